"""The printed command makes the run that it stands beside, read back by the command line; what runs of doses need."""

import shlex

import pytest

from isonb import cli
from isonb.errors import OptionError
from isonb_lab.cli.commands import planned_run
from isonb_lab.runs.settings import command, plan, resolve
from isonb_lab.sweeps.grids import load_grid

GRIDS = ("head_to_head_tuning", "head_to_head", "calibration", "softdecay", "baselines", "layer_doses", "istar")


@pytest.mark.parametrize("grid", GRIDS)
def test_the_command_asks_for_the_same_run(grid):
    runs = load_grid(grid, "small")
    assert runs
    for run in runs[:: max(1, len(runs) // 30)]:
        arguments = shlex.split(command(run.config))
        assert arguments[:2] == ["isonb", "run"]
        assert planned_run(cli._parsed(arguments[1:])).run_id == run.run_id


@pytest.mark.parametrize("method", ["istar", "whitening"])
def test_doses_are_of_a_second_phase_that_trains(method):
    doses = {"experiment": "doses", "task": "english_sentiment", "model": "tiny"}
    with pytest.raises(OptionError, match=f"a method with a second phase that trains; got {method}. Use isolayer"):
        resolve(doses | {"method": method})
    assert resolve(doses | {"method": "isolayer"})["method"]["name"] == "isolayer"


@pytest.mark.parametrize("protocol", [None, "embedded", "small"])
@pytest.mark.parametrize("model", [None, "tiny", "minilm"])
def test_the_protocol_is_that_of_the_model_however_it_is_named(model, protocol):
    inputs = {key: value for key, value in (("model", model), ("protocol", protocol)) if value is not None}
    usual = {"tiny": "embedded", "minilm": "small"}[model or "tiny"]
    result = plan({"task": "english_sentiment"} | inputs)
    same = plan({"task": "english_sentiment", "model": model or "tiny", "protocol": protocol or usual})
    assert result.run_id == same.run_id
    assert (result.settings.learning_rate == 1e-3) == ((protocol or usual) == "embedded")
    assert plan(result.config).run_id == result.run_id, "written out, a run names no protocol"

"""What a run is: settings that no file holds are refused, and the printed command makes the same run."""

import dataclasses
import datetime
import json
import pickle
import shlex

import pytest

from isonb import cli
from isonb.errors import InputError, OptionError
from isonb.options import option
from isonb_lab import methods
from isonb_lab.cli.commands import planned_run
from isonb_lab.runs.settings import command, plan, resolve
from isonb_lab.sweeps.grids import load_grid

TASK = {"task": "english_sentiment"}
GRIDS = ("head_to_head_tuning", "softdecay", "layer_doses", "istar")


@pytest.mark.parametrize("grid", GRIDS)
def test_the_command_asks_for_the_same_run(grid):
    runs = load_grid(grid, "small")
    assert runs
    for run in runs[:: max(1, len(runs) // 10)]:
        arguments = shlex.split(command(run.config))
        assert arguments[:2] == ["isonb", "run"]
        assert planned_run(cli._parsed(arguments[1:])).run_id == run.run_id


def test_a_synthetic_run_of_one_size_and_one_weight_has_a_command_that_runs():
    run = plan({"experiment": "synthetic", "sizes": 500, "zetas": 1.0, "dim": 64})
    assert (run.settings.sizes, run.settings.zetas) == ("500", "1")
    assert planned_run(cli._parsed(shlex.split(command(run.config))[1:])) == run


@pytest.mark.parametrize("method", ["istar", "whitening"])
def test_doses_are_of_a_second_phase_that_trains(method):
    doses = {"experiment": "doses", "task": "english_sentiment", "model": "tiny"}
    with pytest.raises(OptionError, match=f"a method with a second phase that trains; got {method}. Use isolayer"):
        resolve(doses | {"method": method})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"task": "english_sts", "method": {"name": "istar", "after": 3}}, "similarity has none; got 3 in istar"),
        ({"task": "english_sts", "method": {"name": "softdecay", "alpha": -0.5}}, "alpha of method softdecay must"),
        ({"method": {"name": "softdecay", "joint": True}}, "of a finetune run of a classification task: it does"),
        ({"method": {"name": "flow", "last_two": False}}, "last_two of method flow must be left out of a finetune run"),
        ({"task": "english_similarity", "method": {"name": "entropy", "reduction": "mean"}}, "of a regression task"),
        ({"task": "english_span", "readers": True}, "got a finetune run of a span task"),
        ({"experiment": "doses", "method": "isolayer", "readers": True}, "got a doses run of a classification task"),
    ],
)
def test_an_option_that_a_run_of_this_kind_would_not_heed_is_refused(inputs, message):
    with pytest.raises(OptionError, match=message):
        resolve(inputs)


@pytest.mark.parametrize(
    ("inputs", "model", "protocol"),
    [
        ({}, "tiny", "embedded"),
        ({"model": "minilm"}, "minilm", "small"),
        ({"model": "minilm", "protocol": "embedded"}, "minilm", "embedded"),
        ({"protocol": "small"}, "tiny", "small"),
    ],
)
def test_the_protocol_is_that_of_the_model_however_it_is_named(inputs, model, protocol):
    result = plan(TASK | inputs)
    assert result.run_id == plan(TASK | {"model": model, "protocol": protocol}).run_id
    assert (result.settings.learning_rate == 1e-3) == (protocol == "embedded")
    assert plan(result.config).run_id == result.run_id, "written out, a run names no protocol"


@pytest.mark.parametrize(
    "inputs",
    [
        {"method": 3},
        {"method": {"name": ["istar"]}},
        {"method": {"name": "istar", "weight": 10**400}},
        {"method": {"name": "istar", "zeta": "much"}},
        {"task": datetime.date(2024, 1, 1)},
        {"task": ["cola"]},
        {"protocol": ["small"]},
        {"experiment": {"a": 1}},
        {"learning_rate": float("nan")},
        {"unheard_of": 1},
        {"inputs": "mine"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_of_another_kind_are_one_typed_error(inputs):
    with pytest.raises(InputError, match=r"must (be|exist)|written by isonb") as caught:
        resolve(TASK | inputs)
    assert len(str(caught.value)) < 1000


def test_the_form_for_other_processes_is_the_run_itself():
    run = plan(TASK | {"method": {"name": "istar", "weight": -1}})
    again = plan(json.loads(json.dumps(run.to_dict())))
    assert (again, again.settings, again.method) == (run, run.settings, run.method)
    assert pickle.loads(pickle.dumps(run)) == run


def test_an_option_that_came_later_changes_no_id_at_its_default(monkeypatch):
    inputs = TASK | {"method": {"name": "istar", "weight": -1}}
    before = plan(inputs)
    fields = [("brand_new", float, option(1.5, "nothing yet", low=0, high=9))]
    newer = dataclasses.make_dataclass("Newer", fields, bases=(methods.methods()["istar"],), frozen=True)
    monkeypatch.setitem(methods.methods(), "istar", newer)
    now, other = plan(inputs), plan(TASK | {"method": {"name": "istar", "weight": -1, "brand_new": 2}})
    assert now.run_id == before.run_id != other.run_id
    assert now.config["method"] == {**before.config["method"], "brand_new": 1.5}, "a record says all of it"

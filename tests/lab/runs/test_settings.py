"""The printed command makes the run that it stands beside: runs of the shipped grids, read back by the command line."""

import shlex

import pytest

from isonb import cli
from isonb.cli.commands import asked
from isonb.lab.runs.settings import command
from isonb.lab.sweeps.grids import load_grid

GRIDS = ("head_to_head_tuning", "head_to_head", "calibration", "softdecay", "baselines", "layer_doses", "istar")


@pytest.mark.parametrize("grid", GRIDS)
def test_the_command_asks_for_the_same_run(grid):
    runs = load_grid(grid, "small")
    assert runs
    for run in runs[:: max(1, len(runs) // 30)]:
        words = shlex.split(command(run.config))
        assert words[:2] == ["isonb", "run"]
        assert asked(cli._parsed(words[1:])).run_id == run.run_id

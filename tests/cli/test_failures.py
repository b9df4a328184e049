"""A run that fails: its traceback in the log, the user's file and line on the console, exit codes until it is whole."""

import json

import pytest

from isonb import cli

BAD = """
from dataclasses import dataclass

from torch import nn

from isonb.lab.methods import Method


class Bad(nn.Module):
    def forward(self, points):
        return {wrong}


@dataclass(frozen=True)
class Failing(Method):
    '''Fails.'''

    def penalty(self):
        return Bad()
"""
GRID = """
smoke:
  - {task: english_sentiment, model: tiny, method: 'bad.py:Failing'}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "error"),
    [("points.nothing", "AttributeError"), ("1 / 0", "ZeroDivisionError"), ("points @ points", "Error")],
)
def test_a_failing_method_is_told_with_its_line_and_keeps_the_sweep_at_one(tmp_path, monkeypatch, capfd, wrong, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(BAD.format(wrong=wrong))
    (tmp_path / "grid.yaml").write_text(GRID)
    run = ["run", "--task", "english_sentiment", "--model", "tiny", "--protocol", "smoke", "--method", "bad.py:Failing"]
    assert cli.main(run) == 1
    assert "where     bad.py, line 11" in capfd.readouterr().err
    (log,) = (tmp_path / "runs" / "logs").iterdir()
    assert error in log.read_text()
    assert f"return {wrong}" in log.read_text()
    sweep = ["sweep", "grid.yaml", "--size", "smoke", "--yes"]
    assert cli.main(sweep) == 1  # recorded as failed already
    assert cli.main([*sweep, "--retry-failed"]) == 1
    said = capfd.readouterr()
    assert "1 of 1  failed" in said.err  # a plain line: this is no terminal
    assert "failed before" in said.out
    assert cli.main(["status", "runs", "--json"]) == 0
    (why,) = json.loads(capfd.readouterr().out)["failed"].values()
    assert error in why

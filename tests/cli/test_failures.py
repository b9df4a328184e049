"""Methods that fail in a run: what is printed at a terminal and without one, the log, exit codes."""

import json
import sys

import pytest

from isonb import cli

METHOD = """
from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import torch
from torch import nn

from isonb_lab.methods import Method
from isonb.options import option


class Loss(nn.Module):
    def forward(self, points):
        return {wrong}


@dataclass(frozen=True)
class Mine(Method):
    '''Fails.'''

    weight: float = option(1.0, "of the penalty", low=0, high=9)

    def penalty(self):
        return Loss()
"""
LINE = METHOD.splitlines().index("        return {wrong}") + 1
MINE = "run --task english_sentiment --protocol smoke --set max_steps=3 --method mine.py:Mine"
GRID = "smoke:\n  - {task: english_sentiment, model: tiny, method: %s, max_steps: 3}\n"

# What goes wrong in a run: the penalty's value, words of the reason, and whether the user's line is known.
STARTED = {
    "exception": ("points.nothing", "AttributeError", True),
    "wrong shape": ("points.sum(-1)", "a penalty must return a tensor of one number; got shape", False),
    "not finite": ("points.sum() * float('nan')", "must be finite; got nan", False),
    "out of memory": ("torch.empty(10**15)", "allocate", True),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "Kernel died", False),
}


@pytest.fixture
def here(here):
    (here / "grid.yaml").write_text(GRID % "'mine.py:Mine'")
    return here


@pytest.mark.slow
@pytest.mark.parametrize("case", STARTED)
def test_a_run_that_fails_says_why_and_where_with_code_1(case, here, capfd, monkeypatch):
    wrong, text, placed = STARTED[case]
    (here / "mine.py").write_text(METHOD.replace("{wrong}", wrong))
    assert cli.main(MINE.split()) == 1
    out, err = capfd.readouterr()
    where = f"where     mine.py, line {LINE}\n"
    assert err.startswith("failed: ")
    assert text in err.splitlines()[0]
    assert (where in err) == placed
    assert "Traceback" not in out + err
    (log,) = (here / "runs" / "logs").iterdir()
    assert f"log       runs/logs/{log.name}" in err
    assert text.partition(";")[0] in log.read_text()
    assert "Traceback" in log.read_text() or "File" in log.read_text()
    assert cli.main(MINE.split()) == 1  # and nothing was run
    assert capfd.readouterr().err.startswith("failed before: ")
    if case in ("exception", "killed"):  # with a line of the user's and without; the others take the same way
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True)
        assert cli.main([*MINE.split(), "--retry-failed"]) == 1
        shown = capfd.readouterr().err
        assert text in shown
        assert (where in shown) == placed


@pytest.mark.slow
def test_a_sweep_is_at_one_until_it_is_whole(here, capfd):
    (here / "mine.py").write_text(METHOD.replace("{wrong}", "points.nothing"))
    sweep = ["sweep", "grid.yaml", "--size", "smoke", "--yes"]
    assert cli.main(sweep) == 1
    output = capfd.readouterr()
    assert "1 of 1  failed" in output.err  # a plain line: this is no terminal
    assert cli.main(sweep) == 1  # recorded as failed already
    assert "failed before" in capfd.readouterr().out
    assert cli.main(["status", "runs", "--json"]) == 0
    (why,) = json.loads(capfd.readouterr().out)["failed"].values()
    assert "AttributeError" in why
    (here / "grid.yaml").write_text((here / "grid.yaml").read_text().replace("'mine.py:Mine'", "none"))
    assert cli.main(sweep) == 0

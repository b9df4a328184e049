"""Runs side by side give the records that they give one after the other."""

import math
import signal
import subprocess
import sys

import psutil
import pytest
from waiting import gone, until

from isonb_lab.sweeps import inline
from isonb_lab.sweeps.inline import run_all

BASE = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "max_steps": 2, "cloud_examples": 20}


@pytest.mark.slow
def test_records_come_in_the_order_asked_for_whatever_the_workers(monkeypatch):
    seeds = (2, 1, 0, 3)
    configs = [BASE | {"seed": seed} for seed in seeds]
    here = run_all(configs, workers=1)
    monkeypatch.setattr(inline, "START", -math.inf)  # whatever a start costs
    parallel = run_all(configs, workers=2)
    assert tuple(record.config["seed"] for record in parallel) == seeds
    assert [(item.metrics, item.series) for item in here] == [(item.metrics, item.series) for item in parallel]


def test_short_runs_start_no_process(monkeypatch):
    monkeypatch.setattr(inline, "_run", lambda planned: planned.settings.seed)
    monkeypatch.setattr(inline, "ProcessPoolExecutor", lambda *args: pytest.fail("a process was started"))
    assert run_all([BASE | {"seed": seed} for seed in range(9)], workers=4) == list(range(9))


def test_after_an_error_no_further_run_begins(monkeypatch):
    begun = []

    def run(planned):
        begun.append(planned.settings.seed)
        raise ZeroDivisionError

    monkeypatch.setattr(inline, "_run", run)
    with pytest.raises(ZeroDivisionError):
        run_all([BASE | {"seed": seed} for seed in range(4)], workers=1)
    assert begun == [0]


LONG = """
import time
from isonb_lab.sweeps.inline import worker_pool
if __name__ == "__main__":
    with worker_pool(2) as pool:
        list(pool.map(time.sleep, [600, 600]))
"""


def children(pid):
    """Processes that ``pid`` started, its resource tracker left out, when all are past their start."""
    workers = [child for child in psutil.Process(pid).children() if "spawn_main" in " ".join(child.cmdline())]
    return [worker.pid for worker in workers if worker.num_threads() > 1]


def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "long.py").write_text(LONG)
    parent = subprocess.Popen([sys.executable, "long.py"], cwd=tmp_path)
    try:
        until(lambda: len(children(parent.pid)) == 2, 120)
        workers = children(parent.pid)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    until(lambda: all(map(gone, workers)))

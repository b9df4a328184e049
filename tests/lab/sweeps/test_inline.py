"""Runs side by side give the records that they give one after the other."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isonb.lab.options import OptionError
from isonb.lab.sweeps.inline import run_all

BASE = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "max_steps": 2, "cloud_examples": 20}


@pytest.mark.slow
def test_records_come_in_the_order_asked_for_whatever_the_workers():
    configs = [BASE | {"seed": seed} for seed in (1, 0)]
    here, apart = run_all(configs, workers=1), run_all(configs, workers=2)
    assert [record.config["seed"] for record in apart] == [1, 0]
    assert dict(here[0].metrics) == dict(apart[0].metrics)
    assert here[0].series == apart[0].series


def test_nothing_starts_if_one_is_wrong(monkeypatch):
    monkeypatch.setattr("isonb.lab.sweeps.inline._run", lambda config: pytest.fail("a run was started"))
    with pytest.raises(OptionError, match="epochs"):
        run_all([BASE, BASE | {"epochs": 0}], workers=1)


LONG = """
from isonb.lab.sweeps.inline import run_all
if __name__ == "__main__":
    slow = {"task": "english_sentiment", "model": "tiny", "protocol": "embedded"}
    run_all([slow, slow | {"seed": 1}], workers=2)
"""


def children(pid):
    """Processes that ``pid`` started, its resource tracker left out."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path(f"/proc/{os.getpid()}/task").exists(), reason="finds children under /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "long.py").write_text(LONG)
    parent = subprocess.Popen([sys.executable, "long.py"], cwd=tmp_path)
    try:
        end = time.monotonic() + 120
        while len(workers := children(parent.pid)) < 2 and time.monotonic() < end:
            assert parent.poll() is None
            time.sleep(0.1)
        assert len(workers) == 2
        time.sleep(1)  # both are past their start
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    end = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, workers))

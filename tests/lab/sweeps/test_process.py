"""What a run's process says, and how it ends: long words, open ends, signals from outside, a disk that refuses."""

import os
import resource
import signal
import threading
from pathlib import Path

import pytest
import torch
from fake_runs import config, journal
from safetensors.torch import save_file
from waiting import until

from isonb_lab.sweeps.execution import _disk_refused, execute, prepare


def ended_by(number, out):
    """Wait for the first run to start, and end it by a signal."""
    (_, _, process, _) = until(lambda: journal(out, "start"))[0]
    os.kill(int(process), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_run_ended_from_outside_is_stopped_and_not_failed(out, monkeypatch, number):
    monkeypatch.setenv("FAKE_SECONDS", "600")
    threading.Thread(target=ended_by, args=(number, out)).start()
    outcome = execute(prepare(config(0), out, runner="fake_runs:mortal"))
    assert outcome.status == "stopped"
    assert "ended from outside" in outcome.error
    assert not (out / "records").exists()


@pytest.fixture
def no_large_files():
    """Files of more than 64 bytes are refused in this block of code, as by a quota or ulimit -f."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "save",
    [
        lambda path: path.write_bytes(bytes(1000)),
        lambda path: save_file({"weight": torch.zeros(1000)}, path),
        lambda path: torch.save({"weight": torch.zeros(1000)}, path),
    ],
    ids=["system", "safetensors", "torch"],
)
def test_a_file_size_limit_says_nothing_about_the_run(save, tmp_path, no_large_files):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (each library has its own)
        save(Path(tmp_path / "weights"))
    assert _disk_refused(str(caught.value)), str(caught.value)
    assert not _disk_refused("row 27 must be a number; got [Errno 27]")

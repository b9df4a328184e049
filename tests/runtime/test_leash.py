"""A leashed process does its job, ends with its starter however that ends, and leaves nothing behind."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from isonb.runtime import leash
from isonb.runtime.leash import Leash, scratch

JOBS = """
import os, pathlib, subprocess, sys, tempfile, time


def report(job):
    from isonb.runtime.leash import ENDING
    torch = [name for name in sys.modules if name in ("isonb", "torch")]
    print(job["word"], ENDING.is_set(), torch, tempfile.gettempdir() == os.environ["TMPDIR"])
    return job["code"]


def hang(job):
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    pathlib.Path(tempfile.mkdtemp(), "file").write_text("x")
    part = pathlib.Path(job["pids"] + ".part")
    part.write_text(f"{os.getpid()} {helper.pid}")
    part.rename(job["pids"])
    helper.wait()
"""
STARTER = f"""
import os, runpy, signal, sys, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # whatever the shell ignores
    signal.signal(number, signal.SIG_DFL)
held = runpy.run_path({leash.__file__!r})["Leash"](sys.argv[1], {{"pids": sys.argv[2]}}, environment=dict(os.environ))
time.sleep(600)
"""


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.py"
    path.write_text(JOBS, encoding="utf-8")
    return path


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """An empty folder for temporary files."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    monkeypatch.setattr(tempfile, "tempdir", None)


def until(condition, seconds=30):
    """Wait for something true, and return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
    return found


def gone(pid):
    """Whether no such process lives."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def let_go(folder):
    """Whether nobody holds the lock of a folder: the threads of a killed process may do so for a moment after it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def pids(path):
    until(path.exists)
    return [int(pid) for pid in path.read_text().split()]


def test_a_job_is_done_without_importing_isonb_or_torch(jobs, temporary):
    job = {"word": "tree \N{EVERGREEN TREE}", "code": 3}
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    held = Leash(f"{jobs}:report", job, environment=environment, stdout=subprocess.PIPE)
    said = held.process.stdout.read().decode()
    held.process.stdout.close()
    assert said == "tree \N{EVERGREEN TREE} False [] True\n"
    assert held.end() == held.end() == 3
    assert list(temporary.iterdir()) == []


def test_ending_it_ends_what_it_started(jobs, temporary, tmp_path):
    held = Leash(f"{jobs}:hang", {"pids": str(tmp_path / "pids")}, environment=dict(os.environ))
    started = pids(tmp_path / "pids")
    assert held.end() != 0
    assert all(gone(pid) for pid in started)
    assert list(temporary.iterdir()) == []


def test_a_killed_process_takes_along_what_it_had_started(jobs, temporary, tmp_path):
    held = Leash(f"{jobs}:hang", {"pids": str(tmp_path / "pids")}, environment=dict(os.environ))
    process, helper = pids(tmp_path / "pids")
    os.kill(process, signal.SIGKILL)
    assert held.end() == -signal.SIGKILL
    assert gone(helper)
    assert list(temporary.iterdir()) == []


def test_a_folder_of_a_killed_process_goes_with_the_next(temporary):
    code = f"import os, runpy\nwith runpy.run_path({leash.__file__!r})['scratch'](): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    (left,) = temporary.iterdir()
    with scratch() as mine:
        assert list(temporary.iterdir()) == [mine]
        assert mine != left
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_it_ends_with_its_starter(jobs, temporary, tmp_path, number):
    starter = subprocess.Popen([sys.executable, "-c", STARTER, f"{jobs}:hang", str(tmp_path / "pids")])
    started = pids(tmp_path / "pids")
    starter.send_signal(number)
    starter.wait(30)
    until(lambda: all(gone(pid) for pid in started), 10)
    assert list(temporary.iterdir()) == []


def test_the_next_removes_what_two_killed_at_once_have_left(jobs, temporary, tmp_path):
    starter = subprocess.Popen([sys.executable, "-c", STARTER, f"{jobs}:hang", str(tmp_path / "pids")])
    process, helper = pids(tmp_path / "pids")
    (left,) = temporary.iterdir()
    for pid in (process, starter.pid, helper):
        os.kill(pid, signal.SIGSTOP)  # so that neither sees the other go
    for pid in (process, starter.pid, helper):
        os.kill(pid, signal.SIGKILL)
    starter.wait(30)
    until(lambda: let_go(left))
    other = Leash(f"{jobs}:hang", {"pids": str(tmp_path / "others")}, environment=dict(os.environ))
    pids(tmp_path / "others")
    assert not left.exists()
    third = Leash(f"{jobs}:report", {"word": "x", "code": 0}, environment=dict(os.environ), stdout=subprocess.DEVNULL)
    assert Path(other.folder).exists(), "its process lives"
    other.end()
    third.end()
    assert list(temporary.iterdir()) == []

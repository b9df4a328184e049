"""A leashed process does its work, ends with its starter however that ends, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading

import pytest
from waiting import gone, until

from isonb_lab.runtime import supervised
from isonb_lab.runtime.supervised import LONGEST_TEXT, SupervisedProcess

TASKS = """
import os, pathlib, subprocess, sys, tempfile, time


def report(work):
    brought = [name for name in sys.modules if name in ("isonb", "torch")]
    print(work["word"], brought, tempfile.gettempdir() == os.environ["TMPDIR"])
    if work["error"]:
        raise ValueError(work["error"])
    sys.exit(work["code"])


def hang(work):
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    pathlib.Path(tempfile.mkdtemp(), "file").write_text("x")
    part = pathlib.Path(work["pids"] + ".part")
    part.write_text(f"{os.getpid()} {helper.pid}")
    part.rename(work["pids"])
    helper.wait()
"""
STARTER = f"""
import pathlib, runpy, signal, sys, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # whatever the shell ignores
    signal.signal(number, signal.SIG_DFL)
supervise = runpy.run_path({supervised.__file__!r})["SupervisedProcess"]
process = supervise({{"pids": sys.argv[2]}}, pathlib.Path(sys.argv[2] + ".log"), function=sys.argv[1])
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def tasks(tmp_path, monkeypatch):
    (tmp_path / "leashed.py").write_text(TASKS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """An empty folder for temporary files."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def pids(path):
    until(path.exists)
    return [int(pid) for pid in path.read_text().split()]


@pytest.mark.parametrize(
    ("error", "code", "answer"),
    [("", 0, ("", "")), ("", 3, ("ExitCode", "3")), ("no tree" * 9000, 0, ("ValueError", "no tree"))],
    ids=["well", "an exit code", "a long error"],
)
def test_work_is_done_without_importing_isonb_or_torch(temporary, tmp_path, error, code, answer):
    work = {"word": "tree \N{EVERGREEN TREE}", "error": error, "code": code}
    environment = {"PYTHONIOENCODING": "utf-8"}
    process = SupervisedProcess(work, tmp_path / "log", function="leashed:report", environment=environment)
    result = process.wait(threading.Event())
    assert (result.kind, result.text[:7]) == answer
    assert len(result.text) <= LONGEST_TEXT
    first, *traceback = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert first == "tree \N{EVERGREEN TREE} [] True"
    assert [line for line in traceback if line.strip()][-1:] == ([f"ValueError: {error}"] if error else [])
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("way", ["stopped", "killed"])
def test_what_it_started_ends_with_it(temporary, tmp_path, way):
    process = SupervisedProcess({"pids": str(tmp_path / "pids")}, tmp_path / "log", function="leashed:hang")
    started, stop = pids(tmp_path / "pids"), threading.Event()
    if way == "stopped":
        stop.set()
    else:
        os.kill(started[0], signal.SIGKILL)
    answer = process.wait(stop)
    assert (answer.kind, "SIGKILL" in answer.text) == {"stopped": ("stopped", False), "killed": ("ProcessEnded", True)}[
        way
    ]
    assert all(map(gone, started))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_it_ends_with_its_starter(temporary, tmp_path, number):
    starter = subprocess.Popen([sys.executable, "-c", STARTER, "leashed:hang", str(tmp_path / "pids")])
    started = pids(tmp_path / "pids")
    starter.send_signal(number)
    starter.wait(30)
    until(lambda: all(gone(pid) for pid in started), 10)
    until(lambda: not list(temporary.iterdir()), 10)

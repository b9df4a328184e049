"""Waiting for what other processes do."""

import time

import psutil


def until(condition, seconds=60):
    """Wait for something true, and return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
    return found


def hang(pids):
    """Code that writes the id of its process, and of one that this starts, to a file, and waits."""
    return f"""import os, subprocess, sys, time
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open("{pids}.part", "w").write(f"{{os.getpid()}} {{helper.pid}}")
os.rename("{pids}.part", "{pids}")
time.sleep(600)"""


def gone(pid):
    """Whether no such process lives."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE

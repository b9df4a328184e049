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


def gone(pid):
    """Whether no such process lives."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE

"""What other processes print."""

import subprocess
import sys


def call(*command, **options):
    """What a command prints; an AssertionError with all it said if it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(*arguments, **options):
    """What this Python prints when it is called so."""
    return call(sys.executable, *arguments, **options)

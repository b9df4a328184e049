"""Runs for the tests of sweeps: they sleep and put a record, prepared before, in its place; a journal says what ran.

``python fake_runs.py OUT WORKERS SCHEDULER`` sweeps over them in a process that a test can kill.
"""

import os
import shutil
import signal
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

RUNS = 8
PARAMETERS = """\
planned: dict = {}  # the run
out: str = ""  # folder
data: str = ""  # folder
work: str = ""  # folder"""


def write_template(folder, cells):
    """A template of finetune runs, of these cells of code."""
    import jupytext  # which the process of a run doesn't need, as what follows
    from notebooks import python_notebook

    folder.mkdir(exist_ok=True)
    code = [textwrap.dedent(cell).strip() for cell in cells]
    jupytext.write(python_notebook(PARAMETERS, *code), folder / "finetune.md", fmt="md:myst")
    return folder


def config(seed):
    from isonb_lab.runs.settings import plan

    return plan({"task": "english_sentiment", "protocol": "smoke", "seed": seed})


def journal(out, first):
    path = out / "journal"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [text for text in lines if text[0] == first]


def finished(out):
    """How often each run has ended."""
    return Counter(text[1] for text in journal(out, "done"))


def note(out, *arguments):
    """One line to the journal, in one write."""
    with (out / "journal").open("a") as file:
        file.write(" ".join(map(str, arguments)) + "\n")


def seed_of(job):
    return job["parameters"]["planned"]["config"]["seed"]


def slow(job):
    """Sleep, then leave the record. Seed FAKE_HANG sleeps for minutes the first time: it is there to be killed."""
    out = Path(job["parameters"]["out"])
    again = (out / "journal").exists() and f"start {job['run_id']} " in (out / "journal").read_text()
    hang = str(seed_of(job)) == os.environ.get("FAKE_HANG") and not again
    note(out, "start", job["run_id"], os.getpid(), os.getppid())
    time.sleep(600 if hang else float(os.environ.get("FAKE_SECONDS", "0.05")))
    (out / "records").mkdir(exist_ok=True)
    part = out / "records" / f".{job['run_id']}.{os.getpid()}"
    shutil.copy(out / "prepared" / f"{job['run_id']}.json", part)
    os.replace(part, out / "records" / f"{job['run_id']}.json")
    note(out, "done", job["run_id"], os.getpid())


def by_seed(job):
    """Seeds 1 to 4 go wrong in four ways."""
    seed = seed_of(job)
    if seed == 1:
        raise ValueError("the loss must be finite; got nan")
    if seed == 2:
        raise OSError(28, "No space left on device")
    if seed == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 4:
        return
    slow(job)


class SourceError(ValueError):
    """Named as the lab's, as a kernel tells it."""


def no_rows(job):
    """A run whose rows can't be had."""
    raise SourceError("the split must be there; got no file")


def mortal(job):
    """A slow run whatever the shell ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    slow(job)


if __name__ == "__main__":
    from isonb_lab.sweeps.sweep import sweep

    folder, workers, scheduler = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    options = {"workers": workers, "scheduler": scheduler or None, "progress": False, "runner": "fake_runs:slow"}
    report = sweep(map(config, range(RUNS)), folder, **options)
    print(report)
    sys.exit(report.exit_code)

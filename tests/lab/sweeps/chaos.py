"""Runs for the test of chaos, a sweep over them in a process of its own, and the processes that can be killed."""

import contextlib
import multiprocessing
import os
import random
import signal
import sys

import psutil

STEPS = 4
CELLS = [
    """
    import json, os, random, time
    from pathlib import Path

    config = planned["config"]

    def put(path, text):
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_text(text)
        os.replace(part, path)

    Path(work).mkdir(parents=True, exist_ok=True)
    state, draw = Path(work, "state.json"), random.Random(config["seed"])
    begun = json.loads(state.read_text()) if state.exists() else (0, 0, draw.getstate())
    steps, value, (version, numbers, last) = begun
    draw.setstate((version, tuple(numbers), last))
    while steps < STEPS:
        value, steps = value + draw.gauss(0, 1), steps + 1
        put(state, json.dumps([steps, value, draw.getstate()]))
        time.sleep(0.1)
    """.replace("STEPS", str(STEPS)),
    """
    while config["seed"] % 2 and not Path(out, "go").exists():  # so that there is somebody to kill until the end
        time.sleep(0.05)
    """,
    """
    name = Path(work).name
    text = Path(out, "prepared", f"{name}.json").read_text()
    assert json.loads(text)["metrics"]["value"] == value
    Path(out, "records").mkdir(exist_ok=True)
    put(Path(out, "records", f"{name}.json"), text)
    """,
    "time.sleep(0.2)  # what comes after the record",
]
ENDS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP]
# a kernel takes an interrupt for a word to its cell, and one that is just starting may never answer after it
SIGNALS = {"parent": [*ENDS, signal.SIGINT], "worker": [*ENDS, signal.SIGINT], "kernel": ENDS}


def value(seed):
    """What an undisturbed run of the cells above ends with."""
    draw = random.Random(seed)
    return sum(draw.gauss(0, 1) for _ in range(STEPS))


class Sweeping:
    """A sweep in a process of its own, started again and again; Python and isonb are loaded once, and forked."""

    def __init__(self, out, configs, environment, experiments):
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["isonb_lab.sweeps.sweep"])
        self.arguments = (str(out), configs, environment, experiments)
        self.process = None

    def running(self):
        """The process, a new one if the last has ended."""
        if self.process is None or self.process.exitcode is not None:
            self.process = self.context.Process(target=_sweep, args=self.arguments)
            self.process.start()
        return self.process

    def victims(self, kind):
        """Living processes of this kind: the parent of all, a worker (one run's process) or a kernel."""
        parent = self.running().pid
        if kind == "parent":
            return [parent] if len(self.victims("worker")) > 1 else []
        results = []
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(parent).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    text = " ".join(process.cmdline())
                    if ("ipykernel" if kind == "kernel" else "supervised.py") in text:
                        results.append(process.pid)
        return results

    def kill(self, pid, number):
        """Send the signal; whether there was still somebody to get it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
        return False


def _sweep(out, configs, environment, experiments):
    for number, handler in [(signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)]:
        signal.signal(number, handler)  # whatever the shell ignores
    os.environ.update(environment)
    with open(os.path.join(out, "sweeps.log"), "a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    from isonb_lab.sweeps import execution
    from isonb_lab.sweeps.sweep import sweep

    execution.EXPERIMENTS_FOLDER = experiments
    report = sweep(configs, out, workers=2, retry_failed=True, progress=False)
    print(report, flush=True)
    sys.exit(report.exit_code)

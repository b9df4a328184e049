"""A real sweep, with papermill and kernels, whose processes are killed at random: nothing is lost, nothing is left.

The runs compute without torch and go on from checkpoints of their own; ISONB_CHAOS_SEED draws other kills.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from fake_runs import write_template
from support import interruptible
from waiting import until

import isonb
from isonb_lab.runs.record import Record, read_record, write_record
from isonb_lab.runs.settings import resolve

KILLS, RUNS = 20, 6
SEED = int(os.environ.get("ISONB_CHAOS_SEED", "0"))
MARK = "ISONB_CHAOS_MARK"
STEPS = 4
CELLS = [
    """
    import json, os, time
    from pathlib import Path

    config = planned["config"]

    def put(path, text):
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_text(text)
        os.replace(part, path)

    Path(work).mkdir(parents=True, exist_ok=True)
    state = Path(work, "state.json")
    steps, value = json.loads(state.read_text()) if state.exists() else (0, 0)
    while steps < STEPS:
        value, steps = 3 * value + config["seed"] + steps, steps + 1
        put(state, json.dumps([steps, value]))
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
    result = 0
    for step in range(STEPS):
        result = 3 * result + seed + step
    return result


SWEEP = """
import json, signal, sys
from pathlib import Path
from isonb_lab.runs.settings import plan
from isonb_lab.sweeps import execution
from isonb_lab.sweeps.sweep import sweep
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the shell ignores
out, experiments, configs = sys.argv[1:]
execution.EXPERIMENTS_FOLDER = Path(experiments)
report = sweep(map(plan, json.loads(configs)), out, workers=2, retry_failed=True, progress=False)
print(report, flush=True)
sys.exit(report.exit_code)
"""


class Sweeping:
    """A sweep in a process of its own, started again and again."""

    def __init__(self, out, configs, environment, experiments):
        self.out, self.process, self.environment = out, None, os.environ | environment
        self.command = interruptible([sys.executable, "-c", SWEEP, out, experiments, json.dumps(configs)])

    def running(self):
        """The process, a new one if the last has ended."""
        if self.process is None or self.process.poll() is not None:
            with (self.out / "sweeps.log").open("a") as log:
                self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)
        return self.process

    def victims(self, kind):
        """Living processes of this kind: the parent of all, a worker (one run's process) or a kernel."""
        parent, results = self.running().pid, []
        if kind == "parent":
            return [parent] if len(self.victims("worker")) > 1 else []
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(parent).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    text = " ".join(process.cmdline())
                    results += [process.pid] * (("ipykernel" if kind == "kernel" else "supervised.py") in text)
        return results


@pytest.fixture
def sweeping(tmp_path):
    """The sweep, its folder, its folder for temporary files, and the record that each run must leave."""
    out, temporary = tmp_path / "out", tmp_path / "t"
    for folder in (out, temporary):
        folder.mkdir()
    configs = [resolve({"task": "english_sentiment", "protocol": "smoke", "seed": seed}) for seed in range(RUNS)]
    records = [Record(config, {"value": value(config["seed"])}) for config in configs]
    for record in records:
        write_record(out / "prepared", record)
    environment = {"TMPDIR": str(temporary), MARK: str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = str(Path(isonb.__file__).parents[1])
    stored = Sweeping(out, configs, environment, write_template(tmp_path / "experiments", CELLS))
    yield stored, out, temporary, records
    if stored.process is not None:
        stored.process.kill()
        stored.process.wait()


def marked(mark):
    """Processes that come from the sweep."""
    results = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                results.append(process)
        except (psutil.Error, OSError):
            continue
    return results


def complete(out):
    return len(list((out / "records").glob("*.json")))


def disturb(stored, out, runs, draw):
    """Kill at random; what was killed, as long as there were runs to do."""
    events = []
    while len(events) < KILLS and complete(out) < runs:
        kind = draw.choice(["worker", "worker", "kernel", "kernel", "parent"])
        number = draw.choice(SIGNALS[kind])
        time.sleep(draw.uniform(0, 0.5))
        until(lambda kind=kind: stored.victims(kind) or complete(out) == runs, 120)
        with contextlib.suppress(ProcessLookupError):
            if pids := stored.victims(kind):
                os.kill(draw.choice(sorted(pids)), number)
                events.append(f"{kind} {number.name}")
    return events


@pytest.mark.slow
def test_twenty_kills_lose_nothing_change_nothing_and_leave_nothing(sweeping, tmp_path):
    stored, out, temporary, records = sweeping
    print(f"ISONB_CHAOS_SEED={SEED}")
    events = disturb(stored, out, len(records), random.Random(SEED))
    print(events)
    assert len(events) == KILLS
    (out / "go").touch()
    for _ in range(5):  # a sweep whose runs were killed ends with failed ones; the next takes them up
        if stored.running().wait() == 0:
            break
    assert stored.process.returncode == 0, (out / "sweeps.log").read_text()
    until(lambda: not marked(str(tmp_path)), 10)
    names = sorted(record.run_id for record in records)
    assert sorted(os.listdir(out / "records")) == [f"{name}.json" for name in names]
    assert sorted(os.listdir(out / "notebooks")) == [f"{name}.ipynb" for name in names]
    for record in records:
        result = read_record(out / "records" / f"{record.run_id}.json")
        assert (result.status, result.metrics) == ("complete", record.metrics)
    assert os.listdir(out / "work") == []
    assert os.listdir(temporary) == []

"""A real sweep, with papermill and kernels, whose processes are killed at random: nothing is lost, nothing is left.

The runs compute without torch and go on from checkpoints of their own; ISONB_CHAOS_SEED draws other kills.
"""

import os
import random
import textwrap
import time
from pathlib import Path

import chaos
import psutil
import pytest
from test_executed_runs import HEADER
from waiting import until

import isonb
from isonb_lab.runs.record import Record, read_record, write_record
from isonb_lab.runs.settings import resolve

KILLS, RUNS = 20, 6
SEED = int(os.environ.get("ISONB_CHAOS_SEED", "0"))
MARK = "ISONB_CHAOS_MARK"


@pytest.fixture
def sweeping(tmp_path):
    """The sweep, its folder, its folder for temporary files, and the record that each run must leave."""
    out, temporary, experiments = tmp_path / "out", tmp_path / "t", tmp_path / "experiments"
    for folder in (out, temporary, experiments):
        folder.mkdir()
    code = [f"```{{code-cell}} ipython3\n{textwrap.dedent(cell).strip()}\n```\n" for cell in chaos.CELLS]
    (experiments / "finetune.md").write_text("\n".join([HEADER, *code]), encoding="utf-8")
    configs = [resolve({"task": "english_sentiment", "protocol": "smoke", "seed": seed}) for seed in range(RUNS)]
    records = [Record(config, {"value": chaos.value(config["seed"])}) for config in configs]
    for record in records:
        write_record(out / "prepared", record)
    environment = {"TMPDIR": str(temporary), MARK: str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = str(Path(isonb.__file__).parents[1])
    stored = chaos.Sweeping(out, configs, environment, experiments)
    yield stored, out, temporary, records
    if stored.process is not None:
        stored.process.kill()
        stored.process.join()


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
        number = draw.choice(chaos.SIGNALS[kind])
        time.sleep(draw.uniform(0, 0.5))
        until(lambda kind=kind: stored.victims(kind) or complete(out) == runs, 120)
        if (pids := stored.victims(kind)) and stored.kill(draw.choice(sorted(pids)), number):
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
        stored.running().join()
        if stored.process.exitcode == 0:
            break
    assert stored.process.exitcode == 0, (out / "sweeps.log").read_text()
    until(lambda: not marked(str(tmp_path)), 10)
    names = sorted(record.run_id for record in records)
    assert sorted(os.listdir(out / "records")) == [f"{name}.json" for name in names]
    assert sorted(os.listdir(out / "notebooks")) == [f"{name}.ipynb" for name in names]
    for record in records:
        result = read_record(out / "records" / f"{record.run_id}.json")
        assert (result.status, result.metrics) == ("complete", record.metrics)
        assert result.series == {name: list(map(tuple, pairs)) for name, pairs in record.series.items()}
    assert os.listdir(out / "work") == []
    assert os.listdir(temporary) == []

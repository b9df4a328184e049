"""Mistakes at the command line: one line, exit code 2, nothing started or left behind; and what a run shows."""

import os
import shutil
import subprocess
import sys
import time

import huggingface_hub
import pytest
from one_line import assert_one_line

from isonb import cli
from isonb.models import locate
from isonb_lab.cli import commands
from isonb_lab.cli import summary as bars
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.settings import plan
from isonb_lab.sweeps import execution
from isonb_lab.sweeps.execution import prepare
from isonb_lab.sweeps.outcomes import Outcome

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
SMOKE = {"task": "english_sentiment", "protocol": "smoke"}


def silent(*args, **kwargs):
    """A hub that doesn't answer."""
    raise OSError("no route")


@pytest.fixture
def here(here, monkeypatch, bert):
    """A folder of mistakes, the working folder; no run may start."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(here / "cache"))
    for question in ("model_info", "dataset_info"):
        monkeypatch.setattr(huggingface_hub.HfApi, question, silent)
    monkeypatch.setattr(execution, "SupervisedProcess", lambda *args, **options: pytest.fail("a run was started"))
    (here / "file").write_text("")
    (here / "data").mkdir()
    shutil.copytree(bert, here / "bare", ignore=shutil.ignore_patterns("*.safetensors"))
    (here / "grid.yaml").write_text("smoke: {task: english_sentiment, methods: [{name: none}]}\n")
    (here / "torn.yaml").write_text("smoke: [unclosed\n")
    write_record(here / "runs/records", Record({"task": "x"}, {}))
    return here


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run --task cola --data nowhere", "source must be an existing folder; got 'nowhere'"),
        ("run --task cola --data data", "the split 'train' must be at"),
        ("run --task cola --data hub", "no answer from"),
        ("run --model org/none", "no answer from"),
        ("run --model bare", "has no safetensors weights"),
        ("run --model=-rf", "it is no folder and can't be a hub id"),
        ("run --out file", "out must be a folder, there or to be made"),
        ("run --out file/out", "out must be a folder, there or to be made"),
        ("run --report-to paper", "report_to must be among"),
        ("sweep torn.yaml --size smoke", "torn.yaml"),
        ("run --method istar -o weight -3", "-o must be NAME=VALUE; got 'weight' and '-3'. Write -o weight=-3."),
        ("run --set epochs 3", "Write --set epochs=3."),
        ("run --set task=2024-13-45", "the task must be one of isonb's; got '2024-13-45'"),
        ("run --set task=5", "the task must be one of isonb's; got 5"),
        ("run --set task=null", "task of a finetune run must be str; got None"),
        ("run --task colla", "Did you mean 'cola'?"),
        ("run --method istar -o wait=1", "weight"),
        ("run --model tiny --set model=minilm", "model must have one value; got --model tiny and --set model=minilm"),
        ("run --set seed=1 --seed 0", "seed must have one value; got --seed 0 and --set seed=1"),
        ("run -o weight=1 -o weight=2", "weight must have one value; got 1 and 2. Leave one -o out."),
        ("run --set =3", "--set must be NAME=VALUE"),
        ("run --set epochs=0", "epochs of a finetune run must be int from 1 to 1000"),
        ("run --protocol huge", "protocol must be one of small"),
        ("run --seed -1", "seed"),
        ("run --sede 1", "unrecognized arguments: --sede 1"),
        ("sweep grid.yaml --size smoke", "Did you mean 'method'"),
        ("sweep grid.yaml", "has; got 'small'"),
        ("sweep nowhere.yaml --size smoke", "nowhere.yaml"),
        ("status nosuch", "OUT must be the folder of a sweep; got 'nosuch'"),
        ("collect nosuch", "OUT must be the folder of a sweep or of executed chapters; got 'nosuch'"),
        ("collect data", "OUT must be the folder of a sweep"),
        ("collect runs --out table.xls", "a table must be a file .csv, .md, .html, .parquet"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(here, capsys, line, message):
    assert_one_line(capsys, here, line.split(), message)


def test_a_mistake_is_told_before_torch_is_loaded(here):
    lines = (
        *("run --task cola --data nowhere", "run --task cola --data data", "run --task cola --data hub"),
        *("run --model bare", "run --model ./nosuch", "run --model org/none", "run --out file"),
        *("run --method istar -o weight -3", "status nosuch", "collect nosuch", "sweep grid.yaml --size smoke"),
    )
    code = f"""
import sys
from isonb.cli import main
codes = [main(line.split()) for line in {lines}]
print(codes, [name for name in ("torch", "datasets", "distributed") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=os.environ | OFFLINE)
    assert done.stdout == f"{[2] * len(lines)} []\n", done.stderr


def test_a_reader_that_leaves_ends_a_command_quietly():
    """As ``isonb list methods | head -1`` does."""
    command = [sys.executable, "-P", "-m", "isonb", "list", "methods"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(30) == 141


def test_what_failed_before_says_how_to_run_it_again(here, capsys):
    job = prepare(plan(SMOKE), "runs")
    write_record(job.record.parent, Record(job.planned.config, status="failed", error="TaskError: no rows"))
    assert cli.main(["run", "--protocol", "smoke"]) == 1
    assert "again     the same with --retry-failed" in capsys.readouterr().err


def test_other_weights_are_said_before_the_run(here, monkeypatch, capsys):
    job = prepare(plan(SMOKE), "runs")
    values = {"data": {"model": "0" * 64}}
    write_record(job.record.parent, Record(job.planned.config, {"accuracy": 0.5}, manifest=values))
    calls = []
    monkeypatch.setattr(commands, "execute", lambda job: calls.append(job) or Outcome(job.run_id, "stopped"))
    assert cli.main(["run", "--protocol", "smoke"]) == 130
    now = locate.fingerprint_now("tiny")[:8]
    said = f"other model (00000000 then, {now} now) than in {job.record.relative_to(here)}"
    assert said in capsys.readouterr().out
    assert calls[0].run_id != job.run_id


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_shows_updates_and_the_time_left_at_a_terminal_alone(terminal, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    job = prepare(plan(SMOKE), tmp_path)
    job.work.mkdir(parents=True)
    with bars.progress(job.work, 0.01):
        for updates in (20, 30):
            (job.work / "progress").write_text(f"{updates} 40")
            time.sleep(0.2)
    text = capsys.readouterr().err
    assert bool(text) == terminal
    assert all((part in text) == terminal for part in ("Run:", "20/40", "30/40 [00:00<00:00"))

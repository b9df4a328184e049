"""One run as one notebook, by papermill and a real kernel; and one run a GPU."""

import functools
import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path

import nbformat
import pytest
import torch
from fake_runs import config, journal, write_template
from safetensors.torch import save_file
from waiting import gone, hang, until

from isonb_lab.runs.record import read_record
from isonb_lab.runs.settings import plan, resolve
from isonb_lab.sweeps import execution
from isonb_lab.sweeps.execution import _disk_refused, execute, prepare
from isonb_lab.sweeps.gpus import claimed, visible

WRITE = """
    from isonb_lab.runs.record import Record, write_record
    write_record(out + "/records", Record(planned["config"], {"accuracy": 0.5}, named=planned["run_id"]))
"""
CONFIG = resolve({"task": "english_sentiment", "protocol": "smoke", "method": {"name": "istar", "zeta": "auto"}})


@pytest.fixture
def template(tmp_path, monkeypatch):
    """Write a template of these code cells, which is taken for that of isonb."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(execution, "EXPERIMENTS_FOLDER", tmp_path / "experiments")
    return lambda *cells: write_template(tmp_path / "experiments", cells)


def test_a_run_leaves_its_record_and_its_notebook(template, tmp_path):
    report = """
    import os, sys
    os.makedirs(work)
    print([sys.executable, os.getcwd(), os.environ["OMP_NUM_THREADS"], data, work])
    """
    template(report, WRITE)
    job = prepare(plan(CONFIG), tmp_path / "out", data=tmp_path)
    outcome = execute(job)
    assert (outcome.status, outcome.error, outcome.damaged) == ("finished", "", "")
    assert read_record(job.record).config == CONFIG  # through a kernel, unchanged
    (printed,) = nbformat.read(job.notebook, as_version=4).cells[-2].outputs
    assert printed.text.strip() == str([sys.executable, os.getcwd(), "1", str(tmp_path), str(job.work)])
    assert os.listdir(job.notebook.parent) == [job.notebook.name]
    assert not job.work.exists()
    assert execute(job).status == "skipped"


def test_a_run_that_raises_leaves_a_failed_record_and_the_traceback(template, tmp_path):
    template("from isonb.errors import OptionError\nraise OptionError('rank must be 2; got 3. Fix it.')")
    job = prepare(plan(CONFIG), tmp_path / "out")
    outcome = execute(job)
    assert (outcome.status, outcome.error) == ("failed", "OptionError: rank must be 2; got 3. Fix it.")
    record = read_record(job.record)
    assert (record.status, record.error, record.config) == ("failed", outcome.error, CONFIG)
    assert {"code", "seconds", "seed", "started", "versions"} <= set(record.manifest)
    assert "Traceback" in job.notebook.read_text()
    assert execute(job).status == "failed before"
    template(WRITE, "raise ValueError('no picture')")
    again = execute(prepare(plan(CONFIG), tmp_path / "out", retry_failed=True))
    assert (again.status, again.error) == ("finished", "after its record was written, ValueError: no picture")


def test_a_run_done_again_for_its_predictions_must_leave_them_and_keeps_its_record(template, tmp_path):
    template(WRITE)
    execute(prepare(plan(CONFIG), tmp_path / "out"))
    job = prepare(plan(CONFIG), tmp_path / "out", keep_predictions=True)
    before = job.record.read_bytes()
    for cell, error in (("raise ValueError('no memory')", "ValueError: no memory"), ("keep", "")):
        template("keep = {}\n" + cell)
        outcome = execute(job)
        assert (outcome.status, outcome.error) == ("not recorded", f"its predictions aren't there. {error}".strip())
        assert job.record.read_bytes() == before
    template("import pathlib\npath = pathlib.Path(keep['predictions'])\npath.parent.mkdir()\npath.touch()")
    assert execute(job).status == "finished"
    assert execute(job).status == "skipped"


FULL = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"


@pytest.mark.parametrize(
    ("cells", "status", "text"),
    [
        ([FULL, WRITE], "not recorded", "the disk must"),
        (["import os; os.kill(os.getpid(), 9)"], "failed", "Kernel died"),
    ],
)
def test_a_full_disk_and_a_kernel_that_dies(template, tmp_path, cells, status, text):
    template(*cells)
    outcome = execute(prepare(plan(CONFIG), tmp_path / "out"))
    assert (outcome.status, text in outcome.error) == (status, True)
    assert len(list((tmp_path / "out" / "records").iterdir())) == (status == "failed")


def test_a_stopped_run_leaves_nothing_half_done(template, tmp_path, tmp_path_factory, monkeypatch):
    out, stop = tmp_path / "out", threading.Event()
    out.mkdir()
    temporary = tmp_path_factory.mktemp("t")
    monkeypatch.setenv("TMPDIR", str(temporary))
    threading.Thread(target=lambda: until((out / "pids").exists) and stop.set()).start()
    template(hang(out / "pids"))
    outcome = execute(prepare(plan(CONFIG), out), stop=stop)
    assert outcome.status == "stopped"
    assert all(gone(int(pid)) for pid in (out / "pids").read_text().split())
    assert not (out / "records").exists()
    assert list(temporary.iterdir()) == []
    assert list((out / "notebooks").iterdir()) == []


@pytest.mark.parametrize(
    "config",
    [{"task": "english_sentiment"}, {"task": "english_sts"}, {"experiment": "synthetic"}],
    ids=["finetune", "similarity", "synthetic"],
)
@pytest.mark.slow
def test_each_template_runs_through(config, tmp_path):
    job = prepare(plan(config | {"protocol": "smoke"}), tmp_path)
    outcome = execute(job)
    assert (outcome.status, outcome.error) == ("finished", "")
    record = read_record(job.record)
    assert record.metrics
    assert record.series
    notebook = json.loads(job.notebook.read_text())
    kinds = {kind for cell in notebook["cells"] for part in cell.get("outputs", []) for kind in part.get("data", {})}
    assert {"application/vnd.vegalite.v5+json", "image/png", "text/html"} <= kinds


def test_gpus_are_those_this_process_may_use(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf 'GPU-a\\nGPU-b\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for setting, results in (("1", ("GPU-b",)), ("", ()), ("0,-1,1", ("GPU-a",)), ("MIG-x", ("MIG-x",))):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
        assert visible() == results
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible() == ("GPU-a", "GPU-b")
    program.write_text("#!/bin/sh\necho 'no driver'; exit 9\n")
    assert visible() == ()


def test_a_gpu_is_claimed_once(tmp_path):
    stop = threading.Event()
    claim = functools.partial(claimed, ["GPU-a", "GPU-b"], folder=tmp_path)
    with claim() as (first, locks), claim() as (two, _):
        assert {first["CUDA_VISIBLE_DEVICES"], two["CUDA_VISIBLE_DEVICES"]} == {"GPU-a", "GPU-b"}
        assert len(locks) == 1
        stop.set()
        with claim(stop=stop) as (three, none):
            assert (three, none) == ({}, ())
    with claim() as (again, _):
        assert again == {"CUDA_VISIBLE_DEVICES": "GPU-a"}


def ended_by(number, out):
    """Wait for the first run to start, and end it by a signal."""
    (_, _, process, _) = until(lambda: journal(out, "start"))[0]
    os.kill(int(process), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_run_ended_from_outside_is_stopped_and_not_failed(out, monkeypatch, number):
    monkeypatch.setenv("FAKE_SECONDS", "600")
    threading.Thread(target=ended_by, args=(number, out)).start()
    outcome = execute(prepare(config(0), out, runner="fake_runs:mortal"))
    assert outcome.status == "stopped"
    assert "ended from outside" in outcome.error
    assert not (out / "records").exists()


@pytest.fixture
def no_large_files():
    """Files of more than 64 bytes are refused in this block of code, as by a quota or ulimit -f."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "save",
    [
        lambda path: path.write_bytes(bytes(1000)),
        lambda path: save_file({"weight": torch.zeros(1000)}, path),
        lambda path: torch.save({"weight": torch.zeros(1000)}, path),
    ],
    ids=["system", "safetensors", "torch"],
)
def test_a_file_size_limit_says_nothing_about_the_run(save, tmp_path, no_large_files):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (each library has its own)
        save(Path(tmp_path / "weights"))
    assert _disk_refused(str(caught.value)), str(caught.value)
    assert not _disk_refused("row 27 must be a number; got [Errno 27]")

"""Sweeps and their faults: killed workers, killed sweeps, damaged records, full disks and failing runs.

Processes and signals are real; the runs themselves are sleeps (fake_runs.py) that leave prepared records.
"""

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from fake_runs import RUNS, config, finished, journal
from support import interruptible
from waiting import gone, until

from isonb_lab.runs.record import Record, read_record, write_record
from isonb_lab.runs.table import scan
from isonb_lab.runtime.locks import file_lock
from isonb_lab.sweeps import execution
from isonb_lab.sweeps.execution import ExecuteError, execute, prepare
from isonb_lab.sweeps.outcomes import Status
from isonb_lab.sweeps.sweep import SchedulerError, status, sweep

HERE = Path(__file__).parent
HANGS = 3
quiet = functools.partial(sweep, progress=False, runner="fake_runs:slow")


@pytest.fixture
def driver(out):
    """Start a sweep in a process group of its own; what is left of it is killed after the test."""
    started = []

    def start(workers=2, scheduler="", seconds=0.4):
        command = interruptible([sys.executable, HERE / "fake_runs.py", out, workers, scheduler])
        options = {"env": os.environ | {"FAKE_SECONDS": str(seconds)}, "start_new_session": True}
        with (out / "driver.log").open("ab") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, **options))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


@contextlib.contextmanager
def cluster(out, hangs=None):
    """A Dask scheduler and two workers, by the commands that people use; its address.

    Runs have the environment of their worker, not that of the sweep: what is to hang is told here.
    """
    environment = {**os.environ, "FAKE_SECONDS": "0.1", "FAKE_HANG": str(hangs)}
    dask, scheduler_file = str(Path(sys.executable).with_name("dask")), out / "cluster.json"
    options = ["--no-dashboard", "--scheduler-file", str(scheduler_file)]
    scheduler = [dask, "scheduler", "--port", "0", "--interface", "lo", *options]
    worker = [dask, "worker", "--nthreads", "1", "--memory-limit", "0", "--no-nanny", *options]
    processes = []
    try:
        with (out / "cluster.log").open("ab") as log:
            for command in (scheduler, worker, worker):
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=out, env=environment))
            until(lambda: scheduler_file.exists() and scheduler_file.read_text().strip().endswith("}"))
        yield json.loads(scheduler_file.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
            process.wait(30)


def check_each_once(out):
    result = scan(out / "records")
    assert len(result.complete()) == RUNS
    assert result.damaged == []
    assert max(finished(out).values()) == 1


@pytest.mark.slow
def test_a_cluster_gives_the_run_of_a_lost_worker_to_another(out, driver):
    with cluster(out, HANGS) as scheduler:
        sweeping = driver(scheduler=scheduler)
        victim = prepare(config(HANGS), out).run_id
        begun = until(lambda: [phrase for phrase in journal(out, "start") if phrase[1] == victim])
        ((_, _, process, worker),) = begun
        os.kill(int(worker), signal.SIGKILL)
        until(lambda: gone(int(process)), 20)  # the run goes with it
        assert sweeping.wait(60) == 0, (out / "driver.log").read_text()
        assert [message[3] for message in journal(out, "start") if message[1] == victim][1] != worker
    check_each_once(out)
    text = (out / "driver.log").read_text()  # an outcome lost with its worker is asked for again: its record is there
    assert re.search(r"^8 runs: \d finished(, \d already there)?\.$", text, re.MULTILINE)


def test_a_killed_local_sweep_goes_on_where_it_was(out, driver):
    first = driver()
    until(lambda: len(finished(out)) >= 2)
    os.kill(first.pid, signal.SIGKILL)  # not its group: its runs must notice by themselves
    first.wait(30)
    until(lambda: all(gone(int(text[2])) for text in journal(out, "start")), 10)
    assert driver(seconds=0.01).wait(60) == 0
    check_each_once(out)


def test_a_local_sweep_listens_to_nobody_but_ctrl_c(out, driver):
    sweeping = driver(scheduler="local", seconds=600)
    until(lambda: len(journal(out, "start")) == 2)
    runs = [psutil.Process(int(text[2])) for text in journal(out, "start")]
    listening = [item for process in (psutil.Process(sweeping.pid), *runs) for item in process.net_connections("inet")]
    assert [entry.laddr for entry in listening if entry.status == psutil.CONN_LISTEN] == []
    os.kill(sweeping.pid, signal.SIGINT)
    assert sweeping.wait(30) == 130
    assert all(gone(run.pid) for run in runs)
    text = (out / "driver.log").read_text()
    assert f"{RUNS} stopped" in text
    assert "goes on from here" in text
    assert not list((out / "records").glob("*.json"))


def test_two_sweeps_of_one_folder_share_the_runs(out, driver):
    both = [driver(workers=1, seconds=0.1) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    check_each_once(out)


def test_one_bad_run_leaves_the_others_alone(out):
    runs = [config(seed) for seed in (0, 1, 2, 3, 4, 5, 0)]
    report = quiet(runs, out, workers=2, runner="fake_runs:by_seed")
    assert [o.status for o in report.outcomes] == ["finished", "failed", "not recorded", "failed", "failed", "finished"]
    assert report.exit_code == 1
    assert "6 runs: 2 finished, 3 failed, 1 not recorded." in str(report)
    for text in ("ValueError: the loss must be finite; got nan", "No space left", "SIGKILL", "without a record"):
        assert text in str(report)
    failed = read_record(out / "records" / f"{report.outcomes[1].run_id}.json")
    assert (failed.status, failed.error) == ("failed", "ValueError: the loss must be finite; got nan")
    assert failed.manifest["seed"] == 1
    again = quiet(runs, out)  # what wasn't recorded runs again by itself
    before = "failed before"
    assert [o.status for o in again.outcomes] == ["skipped", before, "finished", before, before, "skipped"]
    last = quiet(runs, out, retry_failed=True)
    assert (last.exit_code, len(last.of("finished")), len(last.of("skipped"))) == (0, 3, 3)


def test_a_damaged_record_is_found_told_and_run_again(out):
    path, other = (out / "records" / f"{config(seed).run_id}.json" for seed in range(2))
    again = functools.partial(quiet, [config(0), config(1)], out)
    again()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert list(status(out).damaged) == [path.stem]
    report = again()
    assert [o.status for o in report.outcomes] == ["finished", "skipped"]
    assert f"damaged record of {path.stem}" in str(report)
    assert path.read_bytes() == whole
    assert path.with_name(path.name + ".damaged").read_bytes() == whole[: len(whole) // 2]
    path.write_bytes(other.read_bytes())  # a good record, of another run
    assert again().outcomes[0].damaged.startswith("it is the record of")


def test_status_tells_what_is_running_and_what_is_left(out):
    job, left = prepare(config(0), out, runner="fake_runs:slow"), config(1)
    assert str(status(out)) == "0 complete, 0 failed, 0 damaged, 0 running, 0 pending."
    with file_lock([job.lock]):
        assert execute(job, wait=False).status == "busy"
        assert status(out, [config(0), left]) == Status((), {}, {}, (job.run_id,), (left.run_id,))
    assert execute(job).status == "finished"
    assert status(out, [config(0), left]) == Status((job.run_id,), {}, {}, (), (left.run_id,))


def test_a_disk_that_refuses_everything_is_an_outcome(out, tmp_path):
    job = prepare(config(0), tmp_path / "file" / "out", runner="fake_runs:slow")
    (tmp_path / "file").write_text("no folder")  # after the look at it
    outcome = execute(job)
    assert outcome.status == "not recorded"
    assert "NotADirectoryError" in outcome.error


def test_mistakes_are_told_before_anything_starts(out, tmp_path, monkeypatch):
    monkeypatch.setattr("isonb_lab.sweeps.sweep.CONNECT", 0.5)
    for options, kind, message in (
        ({"workers": 0}, ExecuteError, "workers must be"),
        ({"scheduler": "tcp://127.0.0.1:9"}, SchedulerError, "must answer at tcp:"),
        ({"scheduler": "tls://127.0.0.1:9"}, SchedulerError, "TLS"),  # no certificate is named
    ):
        with pytest.raises(kind, match=message):
            sweep([config(0)], out, progress=False, **options)
    monkeypatch.setattr(execution, "EXPERIMENTS_FOLDER", tmp_path)
    with pytest.raises(ExecuteError, match="installed with its templates; got no file"):
        sweep([config(0)], out)
    assert not (out / "locks").exists()


def test_a_sweep_without_a_worker_says_so_and_goes_on_with_the_next(out, capsys, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr("isonb_lab.sweeps.sweep.WORKER_POLL_S", 0.1)
    monkeypatch.setenv("FAKE_SECONDS", "0")
    result = []
    with LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:

        def join():
            until(lambda: result.append(capsys.readouterr().err) or "No worker at inproc://" in "".join(result))
            cluster.scale(1)

        joining = threading.Thread(target=join)
        joining.start()
        report = quiet([config(0), config(1)], out, scheduler=cluster.scheduler_address)
        joining.join()
    assert [o.status for o in report.outcomes] == ["finished", "finished"]
    assert "".join(result).count("No worker at") == 1


def test_dask_gives_out_again_what_somebody_ended(out, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setenv("FAKE_HANG", "0")  # minutes the first time, at once the second
    ending = threading.Thread(target=lambda: os.kill(int(until(lambda: journal(out, "start"))[0][2]), signal.SIGTERM))
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        ending.start()
        report = quiet([config(0)], out, scheduler=cluster.scheduler_address, runner="fake_runs:mortal")
        ending.join()
    assert [o.status for o in report.outcomes] == ["finished"]
    assert len(journal(out, "start")) == 2


def test_the_next_sweep_ends_what_was_killed_between_record_and_clean_up(out):
    done, failed = (prepare(config(seed), out, runner="fake_runs:slow") for seed in range(2))
    write_record(out / "records", Record(done.planned.config, {"accuracy": 0.5}))
    write_record(out / "records", Record(failed.planned.config, status="failed", error="no memory"))
    torn = [run.record.with_name(f".{run.record.name}.x7s.part") for run in (done, failed)]
    for run, part in zip((done, failed), torn, strict=True):  # what a run has on disk while it is at work
        (run.work / "checkpoint-1").mkdir(parents=True)
        run.notebook.parent.mkdir(exist_ok=True)
        run.unfinished.write_text("as far as it came")
        part.write_text("{")
    done.notebook.write_text("of a failed attempt")
    with file_lock([failed.lock]):  # what others are at is left alone
        assert execute(failed, wait=False).status == "busy"
        assert failed.unfinished.exists()
    report = quiet([config(0), config(1)], out)
    assert [o.status for o in report.outcomes] == ["skipped", "failed before"]
    assert done.notebook.read_text() == "as far as it came"
    assert not any(path.exists() for path in (*torn, done.unfinished, failed.unfinished, done.work))
    assert failed.work.exists(), "the next attempt goes on from its checkpoints"

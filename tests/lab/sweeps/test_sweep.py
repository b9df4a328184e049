"""Sweeps and their faults: killed workers, killed sweeps, damaged records, full disks and failing runs.

Processes and signals are real; the runs themselves are sleeps (fake_runs.py) that leave prepared records.
"""

import contextlib
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
from isonb_lab.sweeps.sweep import SchedulerError, status, sweep

HERE = Path(__file__).parent
HANGS = 3


@pytest.fixture
def driver(out):
    """Start a sweep in a process group of its own; what is left of it is killed after the test."""
    started = []

    def start(workers=2, scheduler="", seconds=0.4, runs=RUNS, hangs=None):
        command = [sys.executable, str(HERE / "fake_runs.py"), str(out), str(workers), scheduler, str(runs)]
        environment = {**os.environ, "FAKE_SECONDS": str(seconds), "FAKE_HANG": str(hangs)}
        with (out / "driver.log").open("ab") as log:
            process = subprocess.Popen(
                interruptible(command), stdout=log, stderr=log, env=environment, start_new_session=True
            )
        started.append(process)
        return process

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
    dask = [str(Path(sys.executable).with_name("dask"))]
    scheduler_file = out / "cluster.json"
    options = ["--scheduler-file", str(scheduler_file)]
    here = ["--port", "0", "--interface", "lo", "--no-dashboard"]
    single = ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--no-nanny"]
    commands = [[*dask, "scheduler", *here, *options], *2 * [[*dask, "worker", *single, *options]]]
    processes = []
    try:
        with (out / "cluster.log").open("ab") as log:
            for command in commands:
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=out, env=environment))
            until(lambda: scheduler_file.exists() and scheduler_file.read_text().strip().endswith("}"))
        yield json.loads(scheduler_file.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
            process.wait(30)


def check_each_once(out, runs=RUNS):
    result = scan(out / "records")
    assert len(result.complete()) == runs
    assert result.damaged == []
    assert max(finished(out).values()) == 1


@pytest.mark.slow
def test_a_cluster_gives_the_run_of_a_lost_worker_to_another(out, driver):
    with cluster(out, HANGS) as scheduler:
        sweeping = driver(scheduler=scheduler, runs=8)
        victim = prepare(config(HANGS), out).run_id
        begun = until(lambda: [phrase for phrase in journal(out, "start") if phrase[1] == victim])
        ((_, _, process, worker),) = begun
        os.kill(int(worker), signal.SIGKILL)
        until(lambda: gone(int(process)), 20)  # the run goes with it
        assert sweeping.wait(60) == 0, (out / "driver.log").read_text()
        assert [message[3] for message in journal(out, "start") if message[1] == victim][1] != worker
    check_each_once(out, 8)
    text = (out / "driver.log").read_text()  # an outcome lost with its worker is asked for again: its record is there
    assert re.search(r"^8 runs: \d finished(, \d already there)?\.$", text, re.MULTILINE)


def test_a_killed_local_sweep_goes_on_where_it_was(out, driver):
    first = driver()
    until(lambda: len(finished(out)) >= 4)
    os.kill(first.pid, signal.SIGKILL)  # not its group: its runs must notice by themselves
    first.wait(30)
    until(lambda: all(gone(int(text[2])) for text in journal(out, "start")), 10)
    assert driver(seconds=0.01).wait(60) == 0
    check_each_once(out)


def test_ctrl_c_kills_what_runs_and_reports(out, driver):
    first = driver(seconds=30)
    until(lambda: len(journal(out, "start")) == 2)
    os.kill(first.pid, signal.SIGINT)
    assert first.wait(30) == 130
    assert all(gone(int(phrase[2])) for phrase in journal(out, "start"))
    text = (out / "driver.log").read_text()
    assert "20 stopped" in text
    assert "goes on from here" in text
    assert not list((out / "records").glob("*.json"))


def test_two_sweeps_of_one_folder_share_the_runs(out, driver):
    both = [driver(workers=1, seconds=0.1) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    check_each_once(out)


def test_one_bad_run_leaves_the_others_alone(out):
    options = {"progress": False, "runner": "fake_runs:by_seed"}
    report = sweep([config(seed) for seed in (0, 1, 2, 3, 4, 5, 0)], out, workers=2, **options)
    assert [o.status for o in report.outcomes] == ["finished", "failed", "not recorded", "failed", "failed", "finished"]
    assert report.exit_code == 1
    result = str(report)
    assert "6 runs: 2 finished, 3 failed, 1 not recorded." in result
    for text in ("ValueError: the loss must be finite; got nan", "No space left", "SIGKILL", "without a record"):
        assert text in result
    failed = read_record(out / "records" / f"{report.outcomes[1].run_id}.json")
    assert (failed.status, failed.error) == ("failed", "ValueError: the loss must be finite; got nan")
    assert failed.manifest["seed"] == 1
    assert not (out / "records" / f"{report.outcomes[2].run_id}.json").exists()  # so it runs again by itself
    options["runner"] = "fake_runs:slow"
    again = sweep([config(seed) for seed in range(6)], out, **options)
    before = "failed before"
    assert [o.status for o in again.outcomes] == ["skipped", before, "finished", before, before, "skipped"]
    last = sweep([config(seed) for seed in range(6)], out, retry_failed=True, **options)
    assert (last.exit_code, len(last.of("finished")), len(last.of("skipped"))) == (0, 3, 3)


def test_a_damaged_record_is_found_told_and_run_again(out):
    options = {"progress": False, "runner": "fake_runs:slow"}
    first = sweep([config(0), config(1)], out, **options)
    path = out / "records" / f"{first.outcomes[0].run_id}.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert list(status(out).damaged) == [path.stem]
    report = sweep([config(0), config(1)], out, **options)
    assert [o.status for o in report.outcomes] == ["finished", "skipped"]
    assert f"damaged record of {path.stem}" in str(report)
    assert path.read_bytes() == whole
    assert path.with_name(path.name + ".damaged").read_bytes() == whole[: len(whole) // 2]
    other = out / "records" / f"{first.outcomes[1].run_id}.json"
    path.write_bytes(other.read_bytes())  # a good record, of another run
    assert sweep([config(0)], out, **options).outcomes[0].damaged.startswith("it is the record of")


def test_status_tells_what_is_running_and_what_is_left(out):
    job = prepare(config(0), out, runner="fake_runs:slow")
    assert str(status(out)) == "0 complete, 0 failed, 0 damaged, 0 running, 0 pending."
    with file_lock([job.lock]):
        assert execute(job, wait=False).status == "busy"
        result = status(out, [config(0), config(1)])
        assert (result.running, len(result.pending)) == ((job.run_id,), 1)
    assert execute(job).status == "finished"
    result = status(out, [config(0), config(1)])
    assert (result.complete, result.running, len(result.pending)) == ((job.run_id,), (), 1)


def test_a_disk_that_refuses_everything_is_an_outcome(out, tmp_path):
    job = prepare(config(0), tmp_path / "file" / "out", runner="fake_runs:slow")
    (tmp_path / "file").write_text("no folder")  # after the look at it
    outcome = execute(job)
    assert outcome.status == "not recorded"
    assert "NotADirectoryError" in outcome.error


def test_mistakes_are_told_before_anything_starts(out, tmp_path, monkeypatch):
    with pytest.raises(ExecuteError, match="workers must be"):
        sweep([config(0)], out, workers=0)
    monkeypatch.setattr(execution, "EXPERIMENTS_FOLDER", tmp_path)
    with pytest.raises(ExecuteError, match="installed with its templates; got no file"):
        sweep([config(0)], out)
    assert not (out / "locks").exists()


def test_no_scheduler_is_an_error_before_anything_starts(out, monkeypatch):
    monkeypatch.setattr("isonb_lab.sweeps.sweep.CONNECT", 0.5)
    with pytest.raises(SchedulerError, match="must answer at tcp:"):
        sweep([config(0)], out, scheduler="tcp://127.0.0.1:9", progress=False)
    with pytest.raises(SchedulerError, match="TLS"):  # no certificate is named
        sweep([config(0)], out, scheduler="tls://127.0.0.1:9", progress=False)
    assert not (out / "locks").exists()


def test_a_local_sweep_listens_to_nobody(out, driver):
    sweeping = driver(scheduler="local", seconds=600, runs=2)
    until(lambda: len(journal(out, "start")) == 2)
    runs = [psutil.Process(int(text[2])) for text in journal(out, "start")]
    listening = [item for process in (psutil.Process(sweeping.pid), *runs) for item in process.net_connections("inet")]
    assert [entry.laddr for entry in listening if entry.status == psutil.CONN_LISTEN] == []


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
        options = {"progress": False, "runner": "fake_runs:slow"}
        report = sweep([config(0), config(1)], out, scheduler=cluster.scheduler_address, **options)
        joining.join()
    assert [o.status for o in report.outcomes] == ["finished", "finished"]
    assert "".join(result).count("No worker at") == 1
    assert "dask worker" in "".join(result)


def test_dask_gives_out_again_what_somebody_ended(out, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setenv("FAKE_HANG", "0")  # minutes the first time, at once the second
    ending = threading.Thread(target=lambda: os.kill(int(until(lambda: journal(out, "start"))[0][2]), signal.SIGTERM))
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        ending.start()
        options = {"progress": False, "runner": "fake_runs:mortal"}
        report = sweep([config(0)], out, scheduler=cluster.scheduler_address, **options)
        ending.join()
    assert [o.status for o in report.outcomes] == ["finished"]
    assert len(journal(out, "start")) == 2


def leave(run, text):
    """What a run has on disk while it is at work: checkpoints, an unfinished notebook, a torn record."""
    (run.work / "checkpoint-1").mkdir(parents=True)
    run.notebook.parent.mkdir(exist_ok=True)
    run.unfinished.write_text(text)
    torn = run.record.with_name(f".{run.record.name}.x7s.part")
    torn.write_text("{")
    return torn


def test_the_next_sweep_ends_what_was_killed_between_record_and_clean_up(out):
    options = {"runner": "fake_runs:slow"}
    done, failed = (prepare(config(seed), out, **options) for seed in range(2))
    write_record(out / "records", Record(done.planned.config, {"accuracy": 0.5}))
    write_record(out / "records", Record(failed.planned.config, status="failed", error="no memory"))
    torn = leave(done, "as far as it came"), leave(failed, "not as far")
    done.notebook.write_text("of a failed attempt")
    with file_lock([failed.lock]):  # what others are at is left alone
        assert execute(failed, wait=False).status == "busy"
        assert failed.unfinished.exists()
    report = sweep([config(0), config(1)], out, progress=False, **options)
    assert [o.status for o in report.outcomes] == ["skipped", "failed before"]
    assert done.notebook.read_text() == "as far as it came"
    assert not any(path.exists() for path in (*torn, done.unfinished, failed.unfinished, done.work))
    assert failed.work.exists(), "the next attempt goes on from its checkpoints"

"""What killed sweeps leave behind, and that the next one puts it away."""

from journals import config

from isonb.lab.runs.record import Record, write_record
from isonb.lab.sweeps.debris import tidy
from isonb.lab.sweeps.job import execute, prepare
from isonb.lab.sweeps.sweep import sweep
from isonb.runtime.locks import held


def leave(job, words):
    """What a run has on disk while it is at work: checkpoints, an unfinished notebook, part of a record."""
    (job.work / "checkpoint-1").mkdir(parents=True)
    (job.work / "checkpoint-1" / "model.safetensors").write_bytes(bytes(100))
    job.notebook.parent.mkdir(exist_ok=True)
    part = job.notebook.with_name(f".{job.run_id}.part.ipynb")
    part.write_text(words)
    torn = job.record.with_name(f".{job.record.name}.x7s.part")
    torn.write_text("{")
    return part, torn


def runs(out, experiments, count):
    return [prepare(config(seed), out, experiments=experiments, runner="fake_runs:slow") for seed in range(count)]


def test_the_next_sweep_ends_what_was_killed_between_record_and_clean_up(out, experiments):
    (job,) = runs(out, experiments, 1)
    write_record(out / "records", Record(job.config, {"accuracy": 0.5}))
    part, torn = leave(job, "as far as it came")
    job.notebook.write_text("of a failed attempt")
    options = {"experiments": experiments, "progress": False, "runner": "fake_runs:slow"}
    assert [o.status for o in sweep([config(0)], out, **options).outcomes] == ["skipped"]
    assert list((out / "work").iterdir()) == []
    assert job.notebook.read_text() == "as far as it came"
    assert not part.exists()
    assert not torn.exists()


def test_one_run_alone_ends_it_too(out, experiments):
    (job,) = runs(out, experiments, 1)
    write_record(out / "records", Record(job.config, {"accuracy": 0.5}))
    leave(job, "as far as it came")
    assert execute(job).status == "skipped"
    assert not job.work.exists()
    assert job.notebook.read_text() == "as far as it came"


def test_what_the_next_attempt_needs_and_what_others_hold_stays(out, experiments):
    unfinished, failed, running = runs(out, experiments, 3)
    write_record(out / "records", Record(failed.config, status="failed", error="no memory"))
    write_record(out / "records", Record(running.config, {"accuracy": 0.5}))
    parts = [leave(job, "part") for job in (unfinished, failed, running)]
    with held([running.lock]):
        tidy(out)
    assert all((job.work / "checkpoint-1" / "model.safetensors").is_file() for job in (unfinished, failed, running))
    assert [[path.exists() for path in paths] for paths in parts] == [[False, False], [False, False], [True, True]]
    tidy(out)
    assert not running.work.exists()

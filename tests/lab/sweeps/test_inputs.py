"""A record is returned for the rows and the weights it was made of; others are another run, and the id says so."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from cola import save_cola

from isonb_lab.runs.inputs import inputs, recorded
from isonb_lab.runs.manifest import Clock
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.recordings import FOLDER
from isonb_lab.runs.settings import plan
from isonb_lab.sweeps.execution import earlier_outcome, execute, prepare
from isonb_lab.sweeps.sweep import status, sweep

COLA = {"task": "cola", "model": "tiny", "protocol": "smoke"}


@pytest.fixture
def data(tmp_path):
    return save_cola(tmp_path / "data")


def record(run):
    """Leave the record that a run would: its metrics made up, its fingerprints real."""
    values = {"data": inputs(run.planned, run.data)}
    return write_record(run.record.parent, Record(run.planned.config, {"matthews": 0.5}, manifest=values))


def test_same_rows_under_another_path_are_one_record(data, tmp_path):
    first = prepare(plan(COLA), tmp_path / "out", data=data)
    assert earlier_outcome(first) is None
    record(first)
    again = prepare(plan(COLA), tmp_path / "out", data=shutil.copytree(data, tmp_path / "copy"))
    assert (again.run_id, again.differs, earlier_outcome(again).status) == (first.run_id, "", "skipped")
    assert first.run_id == plan(COLA).run_id


def test_other_rows_are_another_run(data, tmp_path):
    first = prepare(plan(COLA), tmp_path / "out", data=data)
    record(first)
    other = prepare(plan(COLA), tmp_path / "out", data=save_cola(tmp_path / "other", word="Phrase"))
    assert re.fullmatch(r"other train \(\w{8} then, \w{8} now\), validation \(\w{8} then, \w{8} now\)", other.differs)
    assert other.planned.config == first.planned.config | {"inputs": other.planned.config["inputs"]}
    assert "-inputs-" in other.run_id
    assert earlier_outcome(other) is None
    record(other)
    for run in (first, other):
        (outcome,) = sweep([plan(COLA)], tmp_path / "out", data=run.data, progress=False).outcomes
        assert (outcome.run_id, outcome.status) == (run.run_id, "skipped")
        assert status(tmp_path / "out", [plan(COLA)], run.data).complete == (run.run_id,)
    assert execute(first).run_id == first.run_id


def test_overwritten_weights_are_another_run(here, bert):
    shutil.copytree(bert, here / "mybert")
    task = {"task": "english_sts", "protocol": "smoke"}
    names = ("mybert", "./mybert", "mybert/")
    jobs = [prepare(plan(task | {"model": name}), "out") for name in names]
    assert len({job.run_id for job in jobs}) == 1
    record(jobs[0])
    file = here / "mybert" / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    other = prepare(plan(task | {"model": "./mybert"}), "out")
    assert re.fullmatch(r"other model \(\w{8} then, \w{8} now\)", other.differs)
    file.write_bytes(content)
    assert earlier_outcome(prepare(plan(task | {"model": "mybert"}), "out")).status == "skipped"


def test_a_record_that_says_nothing_of_its_inputs_stands(data, tmp_path):
    job = prepare(plan(COLA), tmp_path / "out", data=data)
    write_record(job.record.parent, Record(job.planned.config, {"matthews": 0.5}))
    assert earlier_outcome(prepare(plan(COLA), tmp_path / "out", data=data)).status == "skipped"


def test_a_hub_that_does_not_answer_leaves_a_record_as_it_is(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("isonb_lab.data.sources._answer", lambda hub_id: None)
    monkeypatch.setattr("datasets.load_dataset", lambda *args, **options: 1 / 0)
    record(job := prepare(plan(COLA), tmp_path / "out", data=data))
    assert earlier_outcome(prepare(plan(COLA), tmp_path / "out", data="hub")).run_id == job.run_id


def test_a_run_checks_the_rows_it_is_named_by():
    assert recorded(plan(COLA), {"train": "a"}, Clock()).manifest["data"] == {"train": "a"}
    with pytest.raises(ValueError, match="rows and weights must be those the run is named by"):
        recorded(plan(COLA | {"inputs": "inputs-0123456789ab"}), {"train": "a"}, Clock())


def test_rows_or_weights_that_cannot_be_had_are_no_result(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    run = {"task": "english_sentiment", "protocol": "smoke"}
    outcome = execute(prepare(plan(run), tmp_path / "out", runner="fake_runs:no_rows"))
    assert outcome.status == "not recorded"
    assert outcome.error.startswith("SourceError: ")
    assert not list((tmp_path / "out").glob("records/*"))


def configuration(row):
    """The configuration in a row of a recorded table, where values of several kinds in a column are text.

    What a row has no value of is null; a protocol that says nothing else (``first``) leaves it so.
    """
    trained = {"method": {}, "train_examples": None}
    result = {"synthetic": {}, "finetune": trained, "doses": trained}.get(row["experiment"], {"method": {}})
    result = {"protocol": "first"} | result
    for name, value in row.items():
        if name.startswith(("metric.", "manifest.")) or name in ("run_id", "status", "error") or pd.isna(value):
            continue
        value = yaml.safe_load(value) if isinstance(value, str) and re.fullmatch(r"True|False|-?\d+", value) else value
        value = value.item() if hasattr(value, "item") else value
        (result["method"] if name.startswith("method.") else result)[name.removeprefix("method.")] = value
    return result


def test_recorded_runs_keep_their_ids():
    tables = [pd.read_parquet(file) for file in sorted(FOLDER.glob("*/runs.parquet"))]
    result = {row["run_id"]: plan(configuration(row)).run_id for table in tables for row in table.to_dict("records")}
    assert len(result) > 400
    assert [(was, now) for was, now in result.items() if was != now] == []

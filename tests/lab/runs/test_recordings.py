"""Recordings: what is published is what is read, or an error says why not."""

import dataclasses
import json
import math

import pandas as pd
import pytest

from isonb_lab.cli.summary import summary
from isonb_lab.runs.publishing import publish, write_recording
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.recordings import FOLDER, RecordedError, recorded, scored
from isonb_lab.runs.settings import resolve
from isonb_lab.runs.table import series_table, table


def record(seed, status="complete", **config):
    inputs = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "seed": seed} | config
    series = {
        "step.train.loss": [(step, 1 / step + seed) for step in range(1, 11)],
        "step.validation.accuracy": [(5, 0.5), (10, 0.6 + seed / 10)],
        "quantile.end.layer1.singular_values": [(0, 0.1), (1, 1.0)],
    }
    error = "it broke" if status == "failed" else ""
    metrics = {"accuracy": 0.6 + seed / 10, "end.cls.two_nn": None}
    return Record(resolve(inputs), metrics, series, {"seed": seed, "seconds": 1.5}, status, error)


@pytest.fixture
def folder(tmp_path):
    for item in (record(0), record(1), record(2, "failed"), record(3, method="istar")):
        write_record(tmp_path / "records", item)
    return tmp_path


def test_what_is_published_is_read_back(folder):
    homes = [publish(folder / "records", folder / where, "some", series=("step.",)) for where in ("out", "again")]
    home, again = ({path.name: path.read_bytes() for path in home.iterdir()} for home in homes)
    assert home == again
    result = recorded("some", folder / "out")
    ours = [record(0), record(1), record(3, method="istar")]
    assert result.runs.columns.tolist() == table(ours).columns.tolist()
    assert result.runs.astype(object).fillna("none").to_dict() == table(ours).astype(object).fillna("none").to_dict()
    logged = series_table(ours)
    logged = logged[logged.name.str.startswith("step.")].reset_index(drop=True)
    pd.testing.assert_frame_equal(result.series, logged, check_dtype=False)
    assert result.manifest["runs"] == sorted(item.run_id for item in ours)


def test_a_recording_in_parts_is_that_of_the_whole(folder):
    whole = publish(folder / "records", folder / "whole", "some", series=("step.",))
    first, last = record(0).run_id, record(3, method="istar").run_id
    home = publish(folder / "records", folder / "parts", "some", only={last}, series=("step.",))
    publish(folder / "records", folder / "parts", "some", only={first, record(1).run_id}, series=("step.",), add=True)
    for name in ("runs.parquet", "series.parquet"):
        pd.testing.assert_frame_equal(pd.read_parquet(home / name), pd.read_parquet(whole / name))
    parts, once = (recorded("some", place.parent).manifest for place in (home, whole))
    assert {**parts, "sha256": None} == {**once, "sha256": None}


def test_a_run_recorded_anew_takes_the_place_of_the_old_one(folder):
    publish(folder / "records", folder / "out", "some")
    again = dataclasses.replace(record(1), metrics={"accuracy": 0.25})
    write_record(folder / "more", again)
    publish(folder / "more", folder / "out", "some", add=True)
    result = recorded("some", folder / "out")
    assert len(result.runs) == 3
    assert result.runs.set_index("run_id").loc[again.run_id, "metric.accuracy"] == 0.25
    assert result.series.groupby("run_id").size().tolist() == [12, 12, 12]
    with pytest.raises(RecordedError, match="a recording must be a readable folder"):
        publish(folder / "more", folder / "out", "none", add=True)


def test_rows_from_before_an_option_are_described_by_its_default(folder):
    """The first row is recorded when I-STAR has no ``zeta`` yet; then a row is added with it."""
    for weight in (-1.0, 1.0):
        write_record(folder / "records", record(6, method={"name": "istar", "weight": weight, "zeta": 0.2}))
    old, new = (record(6, method={"name": "istar", "weight": w, "zeta": 0.2}).run_id for w in (-1.0, 1.0))
    publish(folder / "records", folder / "out", "some", only={old})
    first = recorded("some", folder / "out")
    fewer = {kind: {k: v for k, v in options.items() if k != "method.zeta"} for kind, options in first.defaults.items()}
    runs = first.runs.drop(columns="method.zeta")
    write_recording(folder / "out" / "some", runs, first.series, first.manifest["series"], fewer)
    publish(folder / "records", folder / "out", "some", only={new}, add=True)
    assert recorded("some", folder / "out").runs["method.zeta"].tolist() == [0.2, 0.2]


def test_an_option_of_several_kinds_is_the_same_text_in_parts_and_at_once(folder):
    """A part in which only some runs have the option holds it as float."""
    for layers in ("all", -1):
        write_record(folder / "records", record(5, method={"name": "istar", "layers": layers}))
    word, number = (record(5, method={"name": "istar", "layers": layers}).run_id for layers in ("all", -1))
    publish(folder / "records", folder / "out", "parts", only={word})
    publish(folder / "records", folder / "out", "parts", only={number, record(0).run_id}, add=True)
    publish(folder / "records", folder / "out", "whole", only={word, number, record(0).run_id})
    parts, whole = (recorded(name, folder / "out").runs["method.layers"].tolist() for name in ("parts", "whole"))
    assert parts == whole
    assert {"all", "-1"} <= set(parts)


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("manifest.json", lambda old: json.dumps(json.loads(old) | {"schema": 99}).encode(), "schema 1; got 99"),
        ("manifest.json", lambda old: b"[]", "schema 1"),
        ("manifest.json", lambda old: b"{", "readable"),
        ("series.parquet", lambda old: old[:-9] + b"x" * 9, r"got another series\.parquet"),
    ],
)
def test_damage_is_told(file, damage, message, folder):
    home = publish(folder / "records", folder / "out", "some")
    with pytest.raises(RecordedError, match="'other'"):
        recorded("other", folder / "out")
    (home / file).write_bytes(damage((home / file).read_bytes()))
    with pytest.raises(RecordedError, match=message):
        recorded("some", folder / "out")


@pytest.mark.parametrize("home", sorted(FOLDER.glob("*/runs.parquet")), ids=lambda path: path.parent.name)
def test_every_recording_of_the_book_is_whole(home):
    result = recorded(home.parent.name)
    assert result.runs.run_id.tolist() == result.manifest["runs"]
    assert set(result.series.run_id) <= set(result.runs.run_id)


@pytest.mark.parametrize(
    ("task", "metrics", "main"),
    [
        ("cola", {"matthews": None, "accuracy": 0.7}, ("matthews", None)),
        ("stsb", {"pearson": 0.7, "spearman": None}, ("pearson", 0.7)),
        ("gone.csv?metrics=f1,accuracy", {"f1": 0.2, "accuracy": 0.7, "baseline.accuracy": 0.5}, ("f1", 0.2)),
        ("gone.csv", {"f1": 0.2, "accuracy": 0.7, "baseline.accuracy": 0.5}, ("accuracy", 0.7)),
        ("gone.csv", {"loss": 0.2}, (None, None)),
    ],
)
def test_no_other_metric_stands_in_for_the_main_one(task, metrics, main):
    others = {"task": "mrpc", "metric.accuracy": 0.6, "metric.baseline.accuracy": 0.5}  # so that columns are there
    row = {"task": task, "manifest.scored.rows": 400, **{f"metric.{name}": value for name, value in metrics.items()}}
    report = scored(pd.DataFrame([row, others])).iloc[0]
    name, value = main
    assert (report["metric"] if isinstance(report["metric"], str) else None) == name
    assert math.isnan(report["score"]) if value is None else report["score"] == value


@pytest.mark.parametrize("noted", [True, False])
def test_the_verdict_on_files_that_are_gone_follows_from_the_record_alone(noted):
    config = {"experiment": "finetune", "task": "gone.yaml", "model": "tiny", "method": {"name": "none"}, "seed": 0}
    metrics = {"accuracy": 0.7, "matthews": 0.4, "baseline.accuracy": 0.5, "baseline.matthews": 0.0}
    manifest = {"scored": {"metrics": ["matthews", "accuracy"], "rows": 40}} if noted else {}
    row = scored(table([Record(config, metrics, manifest=manifest)])).iloc[0]
    assert (row["metric"], row["score"], row["rows"]) == ("matthews", 0.4, 40) if noted else math.isnan(row["score"])


def test_means_say_how_many_runs_have_no_value():
    values = [0.5, None, 0.7]
    config = {"experiment": "finetune", "task": "cola", "model": "tiny", "method": {"name": "none"}}
    records = [
        Record({**config, "seed": seed}, {"matthews": value, "accuracy": 0.9}) for seed, value in enumerate(values)
    ]
    (row,) = summary(records).to_dict("records")
    assert (row["metric"], row["mean"], row["seeds"], row["undefined"]) == ("matthews", 0.6, 2, 1)

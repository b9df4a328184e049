"""Run ids, manifests and records: stable names, whole files, and what damage, a full disk or two writers give."""

import hashlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from waiting import until

from isonb_lab.runs import table as tables
from isonb_lab.runs.record import Record, RecordError, read_record, write_record
from isonb_lab.runs.run_ids import ConfigError, canonical, run_id
from isonb_lab.runs.table import scan

CONFIG = {"task": "cola", "model": "minilm", "method": {"name": "istar", "zeta": 0.2}, "seed": 1, "lr": 5e-5}


def a_record(seed=1, **changes):
    values = {
        "config": CONFIG | {"seed": seed},
        "metrics": {"accuracy": 0.8 + seed / 100, "isoscore": None},
        "series": {"loss": [(0, 0.7), (10, 0.1 + 0.2)]},
        "manifest": {"code": {"sha256": "ab", "commit": None}, "seconds": 1.5, "hardware": {"cores": 2}},
    }
    return Record(**(values | changes))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"x": 1}, {"x": 1.0}),
        ({"x": 1e-5}, {"x": "1e-5"}),
        ({"x": "1.0e-5"}, {"x": "10e-6"}),
        ({"x": 0.0}, {"x": -0.0}),
        ({"x": (1, 2)}, {"x": [1.0, "2"]}),
        ({"x": 1}, {"x": 1, "y": None}),
        ({"x": {"b": 1, "a": {"c": 2, "d": 3}}}, {"x": {"a": {"d": 3, "c": 2}, "b": 1}}),
        ({"x": np.int64(3), "y": np.float64(0.1)}, {"x": 3, "y": 0.1}),
    ],
)
def test_same_configuration_same_id(a, b):
    assert run_id(a) == run_id(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"x": 1}, {"x": True}),
        ({"x": 0.1}, {"x": 0.1 + 1e-17 + 2**-56}),
        ({"x": 2**53}, {"x": 2**53 + 1}),
        ({"x": "a"}, {"x": ["a"]}),
        ({"x": [1, 2]}, {"x": [2, 1]}),
        ({"x": {"y": 1}}, {"x.y": 1}),
        ({"x": "true"}, {"x": True}),
    ],
)
def test_other_configuration_other_id(a, b):
    assert run_id(a) != run_id(b)


def test_readable_part():
    assert run_id(CONFIG).startswith("cola-minilm-istar-s1-")
    assert run_id({"seed": 0, "task": "x" * 99}).startswith("x" * 24 + "-s0-")
    assert run_id({"model": "../../etc/../.."}).count("/") == 0
    assert run_id({}).startswith("run-")


def test_id_is_frozen():
    # A change here orphans every record ever written: raise the schema with it.
    text = '{"lr":"0.00005","method":{"name":"istar","zeta":"0.2"},"model":"minilm","seed":"1","task":"cola"}'
    assert canonical(CONFIG) == text
    digits = hashlib.sha256(text.encode()).hexdigest()[:12]
    assert run_id(CONFIG) == f"cola-minilm-istar-s1-{digits}" == "cola-minilm-istar-s1-9bc1bca468ee"


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": float("inf")}, {1: 2}, {"x": object()}, {"x": {2: 3}}, 3])
def test_bad_configuration(bad):
    with pytest.raises(ConfigError, match="got"):
        run_id(bad)


def test_round_trip(tmp_path):
    record = a_record(metrics={"accuracy": np.float32(0.5), "loss": float("nan"), "gap": float("-inf"), "none": None})
    path = write_record(tmp_path / "new" / "folder", record)
    result = read_record(path)
    assert result.config == CONFIG
    assert result.series["loss"] == [(0.0, 0.7), (10.0, 0.1 + 0.2)]
    assert result.metrics == pytest.approx(dict(record.metrics), nan_ok=True)
    assert [item.name for item in path.parent.iterdir()] == [f"{record.run_id}.json"] == [f"{result.run_id}.json"]
    assert write_record(tmp_path / "b", result).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "bad",
    [
        {"status": "done"},
        {"metrics": {"accuracy": "high"}},
        {"series": {"loss": [(None, 1.0)]}},
        {"metrics": {"layers": torch.ones(3)}},
        {"manifest": {"a": object()}},
        {"manifest": {"a": float("nan")}},
    ],
)
def test_what_cannot_be_written(tmp_path, bad):
    with pytest.raises(RecordError, match="got"):
        write_record(tmp_path, a_record(**bad))
    assert not list(tmp_path.iterdir())


DAMAGE = {
    "truncated": lambda text: text[: len(text) // 2],
    "edited": lambda text: text.replace("0.81", "0.91"),
    "other schema": lambda text: text.replace('"schema": 1', '"schema": 2'),
    "key lost": lambda text: text.replace('"series"', '"serious"'),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_seen_and_reported(tmp_path, change):
    good = write_record(tmp_path, a_record(seed=2))
    path = write_record(tmp_path, a_record())
    path.write_text(change(path.read_text()))
    with pytest.raises(RecordError, match=r"got .*(again|Read it with)"):
        read_record(path)
    result = scan(tmp_path)
    assert set(result.records) == result.complete() == {good.stem}
    assert [d.path for d in result.damaged] == [path]


def test_scan_passes_over_the_rest(tmp_path):
    path = write_record(tmp_path, a_record())
    (tmp_path / f".{path.name}.x1.part").write_text("{")
    (tmp_path / ".hidden.json").write_text("{")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "copy.json").write_bytes(path.read_bytes())
    result = scan(tmp_path)
    assert list(result.records) == [path.stem]
    assert [d.path.name for d in result.damaged] == ["copy.json", "folder.json"]
    assert "Rename" in result.damaged[0].reason
    with pytest.raises(RecordError, match="folder"):
        scan(tmp_path / "nowhere")


WRITER = """
import itertools, sys
from isonb_lab.runs.record import Record, write_record
name, folder = sys.argv[1:]
for i in itertools.count():
    pairs = [(step, hash((name, step)) % 997) for step in range(400)]
    write_record(folder, Record({"task": "race"}, {"writer": float(name), "round": i}, {"loss": pairs}))
"""


def test_two_writers_and_a_kill_leave_a_whole_record(tmp_path):
    path, names = tmp_path / f"{run_id({'task': 'race'})}.json", set()
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(n), str(tmp_path)]) for n in range(2)]
    try:
        until(path.exists)
        until(lambda: names.add(read_record(path).metrics["writer"]) or len(names) == 2)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert list(scan(tmp_path).records) == [path.stem]
    assert not scan(tmp_path).damaged


def test_collect(tmp_path):
    for seed in (3, 1, 2):
        write_record(tmp_path, a_record(seed))
    odd = {"task": 5, "seed": "five", "flag": True, "layers": [1, 2]}
    write_record(tmp_path, Record(odd, status="failed", error="why"))
    (tmp_path / "bad.json").write_text("{")
    table = tables.table(scan(tmp_path).records.values())
    tables.write_table(table, tmp_path / "out" / "all.parquet")
    assert list(table.columns[:3]) == ["run_id", "status", "error"]
    assert table["run_id"].is_monotonic_increasing
    good = table[table["status"] == "complete"]
    assert good["metric.accuracy"].tolist() == pytest.approx([0.81, 0.82, 0.83])
    assert good["method.zeta"].tolist() == [0.2] * 3
    assert good["manifest.code.sha256"].tolist() == ["ab"] * 3
    assert table.loc[table["status"] == "failed", "layers"].tolist() == ["[1, 2]"]
    back = pd.read_parquet(tmp_path / "out" / "all.parquet")
    assert list(back.columns) == list(table.columns)
    assert back["metric.accuracy"].tolist() == pytest.approx(table["metric.accuracy"].tolist(), nan_ok=True)
    assert sorted(back["seed"]) == ["1", "2", "3", "five"]


@pytest.mark.parametrize(
    ("suffix", "read"), [(".CSV", pd.read_csv), (".parquet", pd.read_parquet), (".html", None), (".md", None)]
)
def test_a_table_is_what_its_suffix_says(tmp_path, suffix, read):
    file = tmp_path / f"table{suffix}"
    frame = tables.table(a_record(seed, status="failed", error="a|b\nc") for seed in (1, 2))
    tables.write_table(frame, file)
    if callable(read):
        assert read(file)["metric.accuracy"].tolist() == pytest.approx([0.81, 0.82])
        return
    text = file.read_text(encoding="utf-8")
    assert all(name in text for name in frame.columns)
    assert (text.count("<tr") == 3) if suffix == ".html" else ("a\\|b c" in text and text.count("\n") == 4)


@pytest.mark.parametrize("name", ["table", "table.xlsx", "folder.csv"])
def test_a_table_that_cannot_be_written(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RecordError, match="a table must be a file"):
        tables.write_table(pd.DataFrame(), tmp_path / name)

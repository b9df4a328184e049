"""Run ids, manifests and records: stable names, whole files, and what damage, a full disk or two writers give."""

import hashlib
import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch

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
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}),
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
        ({"x": 1}, {"y": 1}),
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
    assert path.name == f"{record.run_id}.json"
    assert result.config == CONFIG
    assert result.series["loss"] == [(0.0, 0.7), (10.0, 0.1 + 0.2)]
    assert result.metrics["accuracy"] == 0.5
    assert np.isnan(result.metrics["loss"])
    assert result.metrics["gap"] == -np.inf
    assert result.metrics["none"] is None
    assert result.run_id == record.run_id
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]
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


def damage(name, content: bytes):
    body = json.loads(content)
    return {
        "truncated": content[: len(content) // 2],
        "edited": content.replace(b"0.81", b"0.91"),
        "other schema": json.dumps(body | {"schema": 2}).encode(),
        "key lost": json.dumps({k: v for k, v in body.items() if k != "series"}).encode(),
    }[name]


@pytest.mark.parametrize("name", ["truncated", "edited", "other schema", "key lost"])
def test_damage_is_seen_and_reported(tmp_path, name):
    good = write_record(tmp_path, a_record(seed=2))
    path = write_record(tmp_path, a_record())
    before = path.read_bytes()
    path.write_bytes(damage(name, before))
    assert path.read_bytes() != before
    with pytest.raises(RecordError, match=r"got .*(again|Read it with)"):
        read_record(path)
    result = scan(tmp_path)
    assert list(result.records) == [good.stem]
    assert [d.path for d in result.damaged] == [path]
    assert result.complete() == {good.stem}


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
import sys
from isonb_lab.runs.record import Record, write_record
name, folder = sys.argv[1:]
print("ready", flush=True)
for i in range(10**6):
    pairs = [(step, hash((name, step)) % 997) for step in range(400)]
    write_record(folder, Record({"task": "race"}, {"writer": float(name), "round": i}, {"loss": pairs}))
    print(i, flush=True)
"""


def test_two_writers_and_a_kill_leave_a_whole_record(tmp_path):
    command = [sys.executable, "-c", WRITER]
    writers = [subprocess.Popen([*command, str(n), str(tmp_path)], stdout=subprocess.PIPE, text=True) for n in range(2)]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
            assert writer.stdout.readline() == "0\n"
        path = tmp_path / f"{run_id({'task': 'race'})}.json"
        names = set()
        deadline = time.monotonic() + 20
        while len(names) < 2 and time.monotonic() < deadline:
            for writer in writers:
                writer.stdout.readline()  # keep both going
            names.add(read_record(path).metrics["writer"])
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert names == {0.0, 1.0}
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
    assert len(table) == 4
    assert table["run_id"].is_monotonic_increasing
    good = table[table["status"] == "complete"]
    assert good["metric.accuracy"].tolist() == pytest.approx([0.81, 0.82, 0.83])
    assert good["method.zeta"].tolist() == [0.2] * 3
    assert good["manifest.code.sha256"].tolist() == ["ab"] * 3
    assert table["metric.isoscore"].isna().all()
    assert table.loc[table["status"] == "failed", "layers"].tolist() == ["[1, 2]"]
    back = pd.read_parquet(tmp_path / "out" / "all.parquet")
    assert list(back.columns) == list(table.columns)
    assert back["metric.accuracy"].tolist() == pytest.approx(table["metric.accuracy"].tolist(), nan_ok=True)
    assert sorted(back["seed"]) == ["1", "2", "3", "five"]
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.parametrize(
    ("suffix", "read"), [(".CSV", pd.read_csv), (".parquet", pd.read_parquet), (".html", None), (".md", None)]
)
def test_a_table_is_what_its_suffix_says(tmp_path, suffix, read):
    same = {"metrics": {"accuracy": 0.5}, "status": "failed", "error": "a|b\nc"}
    file = tmp_path / f"table{suffix}"
    frame = tables.table(a_record(seed, **same) for seed in (1, 2))
    tables.write_table(frame, file)
    if callable(read):
        assert read(file)["metric.accuracy"].tolist() == [0.5, 0.5]
        return
    text = file.read_text(encoding="utf-8")
    assert all(name in text for name in frame.columns)
    assert (text.count("<tr") == 3) if suffix == ".html" else ("a\\|b c" in text and text.count("\n") == 4)


@pytest.mark.parametrize("name", ["table", "table.xlsx", "folder.csv"])
def test_a_table_that_cannot_be_written(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RecordError, match="a table must be a file"):
        tables.write_table(pd.DataFrame(), tmp_path / name)

"""What no run can have: values that no file or number holds, refused where settings are resolved or files are read."""

from __future__ import annotations

import datetime
import json
import os
import time
from pathlib import Path

import pandas as pd
import pytest

from isonb.errors import InputError
from isonb.lab.data.sources import SourceError, read_folder
from isonb.lab.runs import record as records
from isonb.lab.runs.record import Record, RecordError, read_record, write_record
from isonb.lab.runs.run_ids import ConfigError, run_id
from isonb.lab.runs.settings import resolve
from isonb.lab.runs.table import collect, scan
from isonb.lab.sweeps import grids
from isonb.lab.sweeps.grids import GridError, load_grid
from isonb.lab.sweeps.process import Answer

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TASK = {"task": "english_sentiment"}
LONG = 10**4000


@pytest.mark.parametrize(
    "given",
    [
        {"method": 3},
        {"method": True},
        {"method": ["istar"]},
        {"method": {"name": ["istar"]}},
        {"method": {"name": 3}},
        {"method": {"name": "istar", "weight": LONG}},
        {"method": {"name": "istar", "zeta": "\U0001f600"}},
        {"task": datetime.date(2024, 1, 1)},
        {"task": ["cola"]},
        {"task": LONG},
        {"task": 10**5000},
        {"protocol": ["small"]},
        {"experiment": {"a": 1}},
        {"seed": LONG},
        {"seed": str(LONG)},
        {"learning_rate": LONG},
        {"learning_rate": 10**5000},
        {"\U0001f600": 1},
        {"model": "a/\udc80"},
        {"model": "\udc80", "method": "none"},
        {"inputs": "mine"},
    ],
    ids=lambda given: repr(next(iter(given)).encode()),
)
def test_settings_of_another_kind_are_one_typed_error(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"must be|written by isonb") as caught:
        resolve(TASK | given)
    assert len(str(caught.value)) < 1000
    str(caught.value).encode()


def test_numbers_past_every_float_have_no_id() -> None:
    with pytest.raises(ConfigError, match="must be a finite number"):
        run_id({"x": LONG})
    with pytest.raises(ConfigError, match="a number of thousands of digits"):
        run_id({"x": 10**5000})


def test_emoji_are_text() -> None:
    assert resolve(TASK | {"model": "./\U0001f600"})["model"] == "./\U0001f600"


# grids


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    return tmp_path / "grid.yaml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("smoke: {task: english_sentiment, methods: [{name: none}]}", "Did you mean 'method'"),
        ("smoke: {task: 2024-13-45}", "readable YAML file"),
        (f"smoke: {{task: english_sentiment, seed: {'9' * 5000}}}", "readable YAML file"),
        (f"smoke: {{task: english_sentiment, seed: {'9' * 4000}}}", "seed of a finetune run must be int"),
        ("smoke: {task: english_sentiment, method: true}", "the method must be one of"),
    ],
)
def test_odd_grids_are_one_typed_error(grid: Path, text: str, words: str) -> None:
    grid.write_text(text, encoding="utf-8")
    with pytest.raises(GridError, match=words):
        load_grid(grid, "smoke")


def test_blocks_share_one_limit(grid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "resolve", lambda given: pytest.fail("a run was written out"))
    seeds, epochs = list(range(160)), list(range(1, 101))
    block = f"{{task: english_sentiment, seed: {seeds}, epochs: {epochs}}}"
    grid.write_text("smoke:\n" + f"  - &a {block}\n" + 4 * "  - *a\n", encoding="utf-8")
    with pytest.raises(GridError, match="must name at most 20000 runs; got 80000"):
        load_grid(grid, "smoke")


# records


def forged(folder: Path, **changes: object) -> Path:
    """A record whose checksum is right and whose parts are not."""
    path = write_record(folder, Record(TASK, {"accuracy": 0.5}))
    body = json.loads(path.read_bytes()) | changes
    del body["checksum"]
    path.write_text(json.dumps(body | {"checksum": records._checksum(body)}))
    return path


@pytest.mark.parametrize("value", [[1], {"a": 1}, 10**400, "high", "1"], ids=lambda value: str(value)[:5])
@pytest.mark.parametrize("part", ["metrics", "series"])
def test_forged_numbers_are_damage(tmp_path: Path, part: str, value: object) -> None:
    path = forged(tmp_path, **{part: {"accuracy": value if part == "metrics" else [[0, value]]}})
    with pytest.raises(RecordError, match="parts must have their kinds"):
        read_record(path)
    assert len(collect(tmp_path, tmp_path / "table.parquet")) == 0
    assert [damage.path for damage in scan(tmp_path).damaged] == [path]


def test_a_forged_manifest_fits_into_a_table(tmp_path: Path) -> None:
    forged(tmp_path, manifest={"seconds": 10**400})
    collect(tmp_path, tmp_path / "table.parquet")
    assert pd.read_parquet(tmp_path / "table.parquet")["manifest.seconds"].tolist() == [str(10**400)]


def test_a_pipe_among_the_records_is_damage(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    began = time.monotonic()
    assert [damage.path.name for damage in scan(tmp_path).damaged] == ["pipe.json"]
    assert time.monotonic() - began < 5


def test_text_that_no_file_holds(tmp_path: Path) -> None:
    path = write_record(tmp_path, Record(TASK, status="failed", error="no file \udc80"))
    assert read_record(path).error == "no file \\udc80"
    with pytest.raises(RecordError, match="text that a file can hold"):
        write_record(tmp_path, Record(TASK | {"seed": 1}, manifest={"place": "\udc80"}))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_printed_record_is_one_screen() -> None:
    metrics = {f"layer.{i}.isoscore": i / 1000 for i in range(500)} | {"undefined": None}
    text = str(Record(TASK, metrics, {"loss": [(i, 1.0) for i in range(10**5)]}, error="x" * 9999, status="failed"))
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) <= 120
    assert "layer.3.isoscore: 0.003" in text
    assert "485 more metrics" in text


@pytest.mark.parametrize(
    ("suffix", "read"),
    [(".csv", pd.read_csv), (".parquet", pd.read_parquet), (".html", None), (".md", None), (".CSV", pd.read_csv)],
)
def test_a_table_is_what_its_suffix_says(tmp_path: Path, suffix: str, read: object) -> None:
    for seed in (1, 2):
        write_record(tmp_path, Record(TASK | {"seed": seed}, {"accuracy": 0.5}, status="failed", error="a|b\nc"))
    file = tmp_path / f"table{suffix}"
    frame = collect(tmp_path, file)
    if callable(read):
        assert read(file)["metric.accuracy"].tolist() == [0.5, 0.5]
        return
    text = file.read_text(encoding="utf-8")
    assert all(name in text for name in frame.columns)
    assert (text.count("<tr") == 3) if suffix == ".html" else ("a\\|b c" in text and text.count("\n") == 4)


@pytest.mark.parametrize("name", ["table", "table.xlsx", "folder.csv"])
def test_a_table_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RecordError, match="a table must be a file"):
        collect(tmp_path, tmp_path / name)


# rows


def split(folder: Path, name: str, columns: list[str] | None = None) -> None:
    table = pyarrow.table({"sentence": ["A."], "label": [1]})
    if columns is not None:
        table = pyarrow.Table.from_arrays([pyarrow.array(["A."]), pyarrow.array([1]), pyarrow.array([0])], columns)
    (folder / "glue/cola").mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, folder / f"glue/cola/{name}.parquet")


def test_shards_of_two_splittings_are_not_one(tmp_path: Path) -> None:
    for name in ("train-00000-of-00002", "train-00000-of-00003"):
        split(tmp_path, name)
    with pytest.raises(SourceError, match="in all its shards"):
        read_folder(tmp_path, "glue/cola", "train")
    (tmp_path / "glue/cola/train-00000-of-00003.parquet").unlink()
    split(tmp_path, "train-00001-of-00002")
    assert len(read_folder(tmp_path, "glue/cola", "train")) == 2


def test_a_column_that_stands_twice(tmp_path: Path) -> None:
    from isonb.lab.data.rows import load_task

    split(tmp_path, "train", ["sentence", "label", "label"])
    with pytest.raises(SourceError, match="must have each column once; got label twice"):
        load_task("cola", tmp_path, split="train")


@pytest.mark.parametrize(
    "text",
    [
        "[Errno 27] File too large: 'x'",
        "Error while serializing: I/O error: File too large (os error 27)",
        "[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534",
    ],
)
def test_a_limit_on_the_size_of_files_is_the_disk(text: str) -> None:
    assert Answer("RuntimeError", text).disk

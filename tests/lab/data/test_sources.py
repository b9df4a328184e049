"""Rows from folders and from a hub on the loopback: found, found again without it, and refused with one clear error."""

import functools
import json

import pyarrow
import pytest
from cola import write_rows
from pyarrow import parquet

from isonb.runtime.tables import SourceError
from isonb_lab.data import sources
from isonb_lab.data.rows import load_task
from isonb_lab.data.sources import fingerprint
from tests.lab import hub_server
from tests.lab.hub_server import COMMIT, HubServer

ROWS = [{"sentence": f"Sentence {i} — ünï.", "label": i % 2, "idx": i} for i in range(12)]
CARD = """---
configs:
- config_name: cola
  data_files:
  - split: train
    path: cola/train-*
  - split: validation
    path: cola/validation-*
---
"""
ANSWER = """
from isonb_lab.data.sources import fingerprint
from isonb_lab.data.rows import load_task
def answer(request):
    rows = load_task(**request)
    return len(rows), fingerprint(rows), rows.column_names
"""
ask = functools.partial(hub_server.ask, ANSWER)


@pytest.fixture
def folder(tmp_path):
    write_rows(tmp_path / "glue/cola/train.parquet", ROWS)
    write_rows(tmp_path / "glue/cola/validation-00000-of-00002.parquet", ROWS[:5])
    write_rows(tmp_path / "glue/cola/validation-00001-of-00002.parquet", ROWS[5:])
    return tmp_path


def test_folder(folder):
    train, validation = (load_task("cola", folder, split=split) for split in ("train", "validation"))
    assert train["sentence"][:] == validation["sentence"][:] == [row["sentence"] for row in ROWS]
    assert fingerprint(train) == fingerprint(validation)


def test_variable_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("ISONB_DATA", str(folder))
    assert len(load_task("cola")) == 12
    assert sources.data_folder("hub") is None
    monkeypatch.setenv("ISONB_DATA", str(folder / "nowhere"))
    with pytest.raises(SourceError, match=r"data folder \(ISONB_DATA\) must be an existing folder; got '.*nowhere'"):
        load_task("cola")
    assert len(load_task("cola", folder)) == 12
    monkeypatch.setenv("ISONB_DATA", "")
    assert sources.data_folder(None) is None


def test_shards_of_two_splittings_and_a_column_that_stands_twice_are_told(folder):
    table = pyarrow.table([["A."], [1], [1]], names=["sentence", "label", "label"])
    parquet.write_table(table, folder / "glue/cola/train.parquet")
    with pytest.raises(SourceError, match="must have each column once; got label twice"):
        load_task("cola", folder)
    odd = folder / "glue/cola/validation-00001-of-00003.parquet"
    (folder / "glue/cola/validation-00001-of-00002.parquet").rename(odd)
    with pytest.raises(SourceError, match=r"'validation' must be at .*glue/cola/validation\.parquet.*train\.parquet"):
        load_task("cola", folder, split="validation")


def test_fingerprint_is_of_the_content(folder):
    rows = [{"label": row["label"], "sentence": row["sentence"]} for row in ROWS]
    want = fingerprint(load_task("cola", folder))
    assert want == fingerprint(rows)
    renamed = [{"label": row["label"], "text": row["sentence"]} for row in rows]
    others = (rows[:11], rows[::-1], renamed, [row | {"label": 1 - row["label"]} for row in rows])
    assert len({want, *map(fingerprint, others)}) == 5


@pytest.fixture(scope="module")
def repositories(tmp_path_factory):
    glue, sst5, sts = (tmp_path_factory.mktemp(name) for name in ("glue", "sst5", "sts"))
    write_rows(glue / "cola/train-00000-of-00001.parquet", ROWS[:7])
    write_rows(glue / "cola/validation-00000-of-00001.parquet", ROWS)
    (glue / "README.md").write_text(CARD)
    for split, size in {"train": 6, "dev": 4, "test": 5}.items():
        rows = [{"text": f"{split} {i}", "label": i % 5, "label_text": "so"} for i in range(size)]
        (sst5 / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [{"sentence1": f"a {i}", "sentence2": "b", "score": i / 3} for i in range(9)]
    (sts / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    return {"nyu-mll/glue": glue, "SetFit/sst5": sst5, "mteb/sts12-sts": sts}


@pytest.fixture(scope="module")
def visited(repositories, tmp_path_factory):
    """A process's environment, answers and requests from a hub that is gone when the test runs."""
    with HubServer(datasets=repositories) as hub:
        environment = hub.environment(tmp_path_factory.mktemp("home"))
        names = ({"name": name} for name in ("sts12", "rte", "sickr"))
        dev = ({"name": name, "split": "validation"} for name in ("cola", "sst5"))
        answers = ask(environment, *dev, *names)
    return environment, answers, hub.requests


def test_hub_gives_what_a_folder_gives(visited, folder):
    _, (cola, sst5, sts12, *_), requests = visited
    assert cola == [12, fingerprint(load_task("cola", folder, split="validation")), ["sentence", "label"]]
    assert sst5[::2] == [4, ["text", "label"]]  # the hub's file dev.jsonl is the validation split
    assert sts12[::2] == [9, ["sentence1", "sentence2", "score", "subset"]]  # names of subsets: folders alone have them
    assert f"GET datasets/nyu-mll/glue/resolve/{COMMIT}/cola/validation-00000-of-00001.parquet" in requests


def test_what_the_hub_does_not_have(visited):
    *_, config, repository = visited[1]
    assert config[0] == repository[0] == "SourceError"
    assert "nyu-mll/glue (rte, train) must be on the hub" in config[1]
    assert "mteb/sickr-sts (default, test) must be on the hub" in repository[1]
    assert "ISONB_DATA" in repository[1]


def test_cache_serves_without_the_hub(visited):
    environment, answers, _ = visited
    cola = {"name": "cola", "split": "validation"}
    got = ask(environment, cola, {"name": "sst5"})
    assert got[0] == answers[0]
    assert got[1][0] == 6
    assert ask(environment | {"HF_HUB_OFFLINE": "1"}, cola) == answers[:1]


def test_no_hub_and_no_cache_is_one_clear_error(visited, tmp_path, folder):
    environment = visited[0] | {"HF_HOME": str(tmp_path / "home")}
    error, rows = ask(environment, {"name": "cola"}, {"name": "cola", "source": str(folder)})
    assert error[0] == "SourceError"
    for part in ("nyu-mll/glue (cola, train)", "no answer from http://127.0.0.1", "source= or ISONB_DATA"):
        assert part in error[1]
    assert "\n" not in error[1]
    assert rows[0] == 12

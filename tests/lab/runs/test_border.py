"""What no run can have: values that no file or number holds, refused where settings are resolved or files are read."""

import dataclasses
import datetime
import json
import pickle

import pandas as pd
import pytest

from isonb.errors import InputError
from isonb.options import option
from isonb_lab import methods
from isonb_lab.runs.record import Record, RecordError
from isonb_lab.runs.settings import plan, resolve
from isonb_lab.runs.table import table, write_table
from isonb_lab.sweeps import grids
from isonb_lab.sweeps.grids import GridError, load_grid

TASK = {"task": "english_sentiment"}


@pytest.mark.parametrize(
    "inputs",
    [
        {"method": 3},
        {"method": {"name": ["istar"]}},
        {"method": {"name": "istar", "weight": 10**400}},
        {"method": {"name": "istar", "zeta": "much"}},
        {"task": datetime.date(2024, 1, 1)},
        {"task": ["cola"]},
        {"protocol": ["small"]},
        {"experiment": {"a": 1}},
        {"learning_rate": float("nan")},
        {"unheard_of": 1},
        {"inputs": "mine"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_of_another_kind_are_one_typed_error(inputs):
    with pytest.raises(InputError, match=r"must (be|exist)|written by isonb") as caught:
        resolve(TASK | inputs)
    assert len(str(caught.value)) < 1000


def test_the_form_for_other_processes_is_the_run_itself():
    run = plan(TASK | {"method": {"name": "istar", "weight": -1}})
    again = plan(json.loads(json.dumps(run.to_dict())))
    assert (again, again.settings, again.method) == (run, run.settings, run.method)
    assert pickle.loads(pickle.dumps(run)) == run


@pytest.fixture
def newer(monkeypatch):
    """I-STAR with an option more, whose default changes nothing."""
    fields = [("brand_new", float, option(1.5, "nothing yet", low=0, high=9))]
    kind = dataclasses.make_dataclass("Newer", fields, bases=(methods.methods()["istar"],), frozen=True)
    monkeypatch.setitem(methods.methods(), "istar", kind)


def test_an_option_that_came_later_changes_no_id_at_its_default(request):
    inputs = TASK | {"method": {"name": "istar", "weight": -1}}
    before = plan(inputs)
    request.getfixturevalue("newer")
    now, other = plan(inputs), plan(TASK | {"method": {"name": "istar", "weight": -1, "brand_new": 2}})
    assert now.run_id == before.run_id != other.run_id
    assert now.config["method"] == {**before.config["method"], "brand_new": 1.5}, "a record says all of it"


# grids


@pytest.fixture
def grid(tmp_path):
    return tmp_path / "grid.yaml"


def test_blocks_share_one_limit(grid, monkeypatch):
    monkeypatch.setattr(grids, "plan", lambda inputs: pytest.fail("a run was written out"))
    seeds, epochs = list(range(160)), list(range(1, 101))
    block = f"{{task: english_sentiment, seed: {seeds}, epochs: {epochs}}}"
    grid.write_text("smoke:\n" + f"  - &a {block}\n" + 4 * "  - *a\n", encoding="utf-8")
    with pytest.raises(GridError, match="must name at most 20000 runs; got more"):
        load_grid(grid, "smoke")


# records


def test_a_printed_record_is_one_screen():
    metrics = {f"layer.{i}.isoscore": i / 1000 for i in range(500)} | {"undefined": None}
    text = str(Record(TASK, metrics, {"loss": [(i, 1.0) for i in range(10**5)]}, error="x" * 9999, status="failed"))
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) <= 120
    assert "layer.3.isoscore: 0.003" in text
    assert "485 more metrics" in text


@pytest.mark.parametrize(
    ("suffix", "read"),
    [(".CSV", pd.read_csv), (".parquet", pd.read_parquet), (".html", None), (".md", None)],
)
def test_a_table_is_what_its_suffix_says(tmp_path, suffix, read):
    same = {"metrics": {"accuracy": 0.5}, "status": "failed", "error": "a|b\nc"}
    file = tmp_path / f"table{suffix}"
    frame = table(Record(TASK | {"seed": seed}, **same) for seed in (1, 2))
    write_table(frame, file)
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
        write_table(pd.DataFrame(), tmp_path / name)

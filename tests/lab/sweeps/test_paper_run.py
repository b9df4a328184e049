"""The paper grid of Shrink the longest starts from hub ids: proven on local folders that stand for them."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

import isonb
from isonb_lab.data.corpus import sentences
from isonb_lab.runs.table import scan
from isonb_lab.sweeps.cost import needs
from isonb_lab.sweeps.grids import load_grid
from tests.lab import random_models

GRID = Path(isonb.__file__).resolve().parents[1] / "book" / "experiments" / "shrink_the_longest.yaml"
IDS = {"google-bert/bert-base-uncased": "bert", "FacebookAI/roberta-base": "roberta"}
ROWS = {"train": 80, "validation": 24}


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """A folder of models under their hub ids and one of data in the hub's layout."""
    home = tmp_path_factory.mktemp("stand_ins")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_models, "LENGTH", 512)  # the grid's inputs may be that long
        for name, kind in IDS.items():
            random_models.save(kind, home / "models" / name)
    texts = [sentence.text for sentence in sentences()]
    for split, count in ROWS.items():
        label = [i % 2 for i in range(count)]
        pairs = {"sentence1": texts[:count], "sentence2": texts[1 : count + 1], "label": label, "idx": range(count)}
        single = {"sentence": texts[:count], "label": label, "idx": range(count)}
        for task, columns in (("mrpc", pairs), ("cola", single)):
            file = home / "data" / "glue" / task / f"{split}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(columns).to_parquet(file)
    return home


@pytest.fixture(scope="module")
def paper():
    return [run.config for run in load_grid(GRID, "paper")]


def test_the_grid_needs_the_papers_models_by_their_ids(paper, stand_ins, monkeypatch):
    monkeypatch.setenv("ISONB_MODELS", str(stand_ins / "models"))
    expected = needs(paper, stand_ins / "data")
    assert {need.name for need in expected if need.kind == "model"} == set(IDS)
    assert all(need.there for need in expected)


@pytest.mark.slow
def test_the_command_runs_a_block_of_the_paper_grid(stand_ins, monkeypatch, capsys, tmp_path):
    """The first block as it stands, cut to one run of two updates: notebook, record, cost told first."""
    from isonb.cli import main

    block = yaml.safe_load(GRID.read_text(encoding="utf-8"))["paper"][0]
    block |= {"model": "google-bert/bert-base-uncased", "method": {"name": "entropy"}, "seed": 0, "max_steps": 2}
    grid = tmp_path / "one.yaml"
    grid.write_text(yaml.safe_dump({"paper": [block]}), encoding="utf-8")
    monkeypatch.setenv("ISONB_MODELS", str(stand_ins / "models"))
    out = tmp_path / "out"
    command = ["sweep", str(grid), "--size", "paper", "--data", str(stand_ins / "data"), "--out", str(out)]
    assert main([*command, "--workers", "1"]) == 0
    output = capsys.readouterr().out
    assert output.index("estimate") < output.index("isonb collect")
    (record,) = scan(out / "records").records.values()
    assert record.status == "complete"
    assert record.config["model"] == "google-bert/bert-base-uncased"
    assert record.config["batch_size"] == 64
    assert list((out / "notebooks").glob("mrpc-*.ipynb"))

"""A task made of others' splits has their rows, with its own labels, and names what is missing."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from isonb.runtime.tables import SourceError
from isonb_lab.data.rows import load_task, split_files
from isonb_lab.data.tasks import task_named
from isonb_lab.engines.preflight import preflight


@pytest.fixture
def folder(tmp_path):
    """Two training rows, one validation row of SST-2; five test rows of SST-5, one of each label."""
    sst2 = {"sentence": ["good ", "bad "], "label": [1, 0]}
    tables = {
        "glue/sst2/train": pa.table(sst2),
        "glue/sst2/validation": pa.table(sst2).slice(0, 1),
        "sst5/test": pa.table({"text": ["awful", "poor", "so so", "fine", "great"], "label": [0, 1, 2, 3, 4]}),
    }
    for name, table in tables.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path


def test_sst2_is_judged_on_its_validation_set_and_the_test_sentences_that_are_not_neutral(folder):
    rows = load_task("sst2_joint", folder, split="validation")
    assert rows["sentence"] == ["good ", "awful", "poor", "fine", "great"]
    assert rows["label"] == [1, 0, 0, 1, 1]
    assert load_task("sst2_joint", folder)["sentence"] == load_task("sst2", folder)["sentence"]


def test_the_files_of_every_part_are_looked_for(folder):
    files = split_files(task_named("sst2_joint"), folder, "validation")
    assert [str(file.relative_to(folder)) for file in files] == ["glue/sst2/validation.parquet", "sst5/test.parquet"]
    (folder / "sst5/test.parquet").unlink()
    run = {"task": "sst2_joint", "model": "tiny", "method": "none", "protocol": "smoke"}
    with pytest.raises(SourceError, match=r"sst5/test\.parquet"):
        preflight(run, folder)


def test_mnli_has_two_validation_sets(tmp_path):
    (tmp_path / "glue/mnli").mkdir(parents=True)
    for split, word in (("train", "t"), ("validation_matched", "m"), ("validation_mismatched", "mm")):
        table = pa.table({"premise": [word], "hypothesis": ["h"], "label": [2]})
        parquet.write_table(table, tmp_path / f"glue/mnli/{split}.parquet")
    read = {
        (task, split): load_task(task, tmp_path, split=split)["premise"]
        for task in ("mnli", "mnli_mm")
        for split in ("train", "validation")
    }
    assert list(read.values()) == [["t"], ["m"], ["t"], ["mm"]]

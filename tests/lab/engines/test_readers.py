"""Readers of trained vectors: known answers, what each reads, and a run that has them."""

import pytest
import torch
from cola import write_rows
from sklearn.linear_model import RidgeCV

from isonb_lab.data.rows import load_task
from isonb_lab.data.tasks import TASKS
from isonb_lab.engines import finetune, readers
from isonb_lab.runs.inputs import differences, inputs
from isonb_lab.runs.settings import plan

SPLITS = {  # of the readers' tasks, and the embedded task whose rows stand in for theirs
    **{("sst2", split): "english_sentiment" for split in ("train", "validation")},
    **{("cola", split): "english_acceptability" for split in ("train", "validation")},
    ("stsb_test", "test"): "english_sts",
    ("squad", "validation"): "english_span",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with what readers read."""
    folder = tmp_path_factory.mktemp("data")
    for (name, split), ours in SPLITS.items():
        write_rows(folder / TASKS[name].folder / f"{split}.parquet", list(load_task(ours, split=split, limit=40)))
    return folder


def test_the_penalty_of_the_fresh_head_is_chosen_by_leave_one_out():
    draw = torch.Generator().manual_seed(0)
    points, labels = torch.randn(60, 5, generator=draw, dtype=torch.float64), torch.arange(60) % 3
    points[:, 0] += labels
    mean, size = points.mean(0), (points - points.mean(0)).square().mean().sqrt()
    test = torch.randn(200, 5, generator=draw, dtype=torch.float64)
    ridge = RidgeCV(readers.PENALTIES).fit((points - mean) / size, torch.nn.functional.one_hot(labels).double())
    assert readers.linear_head(points, labels, test) == ridge.predict((test - mean) / size).argmax(-1).tolist()


def test_ties_rank_before_the_paragraph_that_answers():
    assert readers.search(torch.ones(3, 2), torch.ones(3, 2)) == pytest.approx(0.5)  # rank 3 of 3


def test_a_second_stage_is_what_is_read_and_the_manifest_tells_of_texts_that_changed(data):
    config = {"protocol": "smoke", "task": "english_sentiment", "model": "tiny", "readers": True, "head": "linear"}
    config |= {"train_layers": 1, "layers": 2, "pooling": "mean"}
    plain, white = (
        finetune.run(config | {"method": method}, data=data, progress=False)
        for method in ("none", {"name": "whitening", "k": 3})
    )
    names = {name for name in plain.metrics if name.startswith("reader.")}
    assert {name for name in names if name.count(".") == 2} == {
        *(f"reader.{reader}.{task}" for reader in ("linear_head", "neighbours") for task in ("sst2", "cola")),
        "reader.cosine.stsb_test",
        "reader.search.squad",
    }
    assert names == {name for name in white.metrics if name.startswith("reader.")}
    place = "reader.cosine.stsb_test.participation_ratio"
    assert white.metrics[place] <= 3 < plain.metrics[place]
    before = plain.manifest["data"]
    assert before == inputs(plan(plain.config), data)
    write_rows(data / "squad/validation.parquet", list(load_task("english_span", split="validation", limit=39)))
    assert differences(before, inputs(plan(plain.config), data)).startswith("other readers (")


@pytest.mark.parametrize("read_by", ["the head", "other readers"])
def test_what_a_run_reads_is_known_before_it_and_so_can_travel(read_by):
    run = plan({"task": "cola", "model": "tiny", "readers": read_by == "other readers"})
    splits = {(rows.task.name, rows.split) for rows in run.selections.values()}
    assert splits == {("cola", "train"), ("cola", "validation"), *(SPLITS if read_by == "other readers" else ())}

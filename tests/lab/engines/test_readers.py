"""Readers of trained vectors: known answers, what each reads, and a run that has them."""

import pytest
import torch

from isonb_lab.engines import finetune, readers
from isonb_lab.runs.settings import plan

DATA_ROWS = 40


@pytest.fixture
def texts(monkeypatch):
    """Rows of the embedded tasks in the place of the hub's, so that no data folder is needed."""
    from isonb_lab.data.rows import load_task

    def load(task, data=None, *, split="test", limit=None, seed=0):
        if task == "squad":
            rows = load_task("english_span", split="validation")
            return {"context": list(rows["context"]), "question": list(rows["question"])}
        if task == "stsb_test":
            rows = load_task("english_sts")
            return {name: list(rows[name])[:DATA_ROWS] for name in ("sentence1", "sentence2", "score")}
        rows = load_task({"sst2": "english_sentiment", "cola": "english_acceptability"}[task], split=split)
        return {name: list(rows[name])[:DATA_ROWS] for name in ("sentence", "label")}

    monkeypatch.setattr(readers, "load_task", load)
    monkeypatch.setattr(readers, "PARAGRAPHS", 20)


def test_the_penalty_of_the_fresh_head_is_chosen_by_leave_one_out():
    draw = torch.Generator().manual_seed(0)
    points, labels = torch.randn(60, 5, generator=draw, dtype=torch.float64), torch.arange(60) % 3
    points[:, 0] += labels
    mean, size = points.mean(0), (points - points.mean(0)).square().mean().sqrt()
    x, y = (points - mean) / size, torch.nn.functional.one_hot(labels).double()

    def fitted(rows, targets, penalty):
        offset, center = targets.mean(0), rows.mean(0)
        moved = rows - center
        weights = torch.linalg.solve(moved.mT @ moved + penalty * torch.eye(5), moved.mT @ (targets - offset))
        return lambda new: (new - center) @ weights + offset

    def error(penalty):
        left = [fitted(x[keep], y[keep], penalty)(x[i]) - y[i] for i in range(60) for keep in [torch.arange(60) != i]]
        return float(torch.stack(left).square().mean())

    best = min(readers.PENALTIES, key=error)
    test = torch.randn(200, 5, generator=draw, dtype=torch.float64)
    wanted = fitted(x, y, best)((test - mean) / size).argmax(-1).tolist()
    assert readers.linear_head(points, labels, test) == wanted


def test_ties_rank_before_the_paragraph_that_answers():
    assert readers.search(torch.ones(3, 2), torch.ones(3, 2)) == pytest.approx(0.5)  # rank 3 of 3


def test_a_second_stage_is_what_is_read(texts):
    config = {"protocol": "smoke", "task": "english_sentiment", "model": "tiny", "readers": True, "head": "linear"}
    config |= {"train_layers": 1, "layers": 2, "pooling": "mean"}
    plain, white = (
        finetune.run(config | {"method": method}, progress=False) for method in ("none", {"name": "whitening", "k": 3})
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


def test_ids_of_runs_without_readers_are_as_before():
    given = {"task": "sst2", "model": "minilm", "seed": 3}
    plain = plan(given).run_id
    assert plan(given | {"readers": False, "pooling": "cls"}).run_id == plain
    assert plan(given | {"readers": True}).run_id != plain != plan(given | {"pooling": "mean"}).run_id

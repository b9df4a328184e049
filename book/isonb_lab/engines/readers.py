"""Other readers of a fine-tuned model's sentence vectors than its own head, each on texts of its own.

They read what the head reads: the sentence vector behind a method's layer, or what its second stage makes of it. Only
the readers are fitted, on vectors that stay. Each reader says how round the vectors are that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore, participation_ratio
from isonb_lab.data.batches import LongestFirst, Tokens, accepted_inputs
from isonb_lab.data.reader_rows import HEADS, PAIRS, SEARCH
from isonb_lab.data.scores import score, spearman
from isonb_lab.data.tasks import task_named
from isonb_lab.engines.stages import Finetuning
from isonb_lab.measuring.cloud import number

LENGTH = 48  # tokens of a text
NEIGHBOURS = 10
PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4)  # of the fresh head, over rows of unit mean square
MEASURED = 1500  # vectors that are measured

Metrics = dict[str, float | None]
Vectors = Callable[[Sequence[str]], Tensor]


@torch.no_grad()
def read(run_: Finetuning, module: nn.Module | None) -> Metrics:
    """Scores ``reader.<reader>.<task>`` of the trained vectors, and ``reader.<reader>.<task>.<measure>`` of them.

    Readers: ``linear_head`` and ``neighbours`` on SST-2 (accuracy) and CoLA (Matthews), ``cosine`` (Spearman) on
    test pairs of STS-B, ``search`` (nDCG at 10) on paragraphs of SQuAD. ``trained_head`` has measures alone: of the
    validation rows, whose score is the run's own. ``module`` is that of a second stage.
    """
    rows = run_.rows.readers
    assert rows is not None
    run_.model.eval()
    vectors = _vectors(run_, module)
    seen = run_.batches(run_.splits["validation"], MEASURED)
    by_head = torch.cat([_read_by_head(run_, batch, module) for batch in seen])
    metrics: Metrics = _roundness(by_head, f"reader.trained_head.{run_.settings.task}")
    for task in HEADS:
        train, test = (rows.heads[task, split] for split in ("train", "validation"))
        points, labels = vectors(list(train["sentence"])), torch.tensor(list(train["label"]))
        unseen, metric = vectors(list(test["sentence"])), task_named(task).metrics[0]
        for name, reader in (("linear_head", linear_head), ("neighbours", neighbours)):
            predicted = reader(points, labels, unseen)
            metrics[f"reader.{name}.{task}"] = score([metric], predicted, list(test["label"]))[metric]
        metrics |= _roundness(unseen, f"reader.linear_head.{task}", f"reader.neighbours.{task}")
    first, other = (vectors(list(rows.pairs[side])) for side in ("sentence1", "sentence2"))
    cosines = F.cosine_similarity(first, other).tolist()
    metrics[f"reader.cosine.{PAIRS}"] = spearman(cosines, [float(score) for score in rows.pairs["score"]])
    metrics |= _roundness(torch.cat([first, other]), f"reader.cosine.{PAIRS}")
    questions, paragraphs = map(vectors, (rows.questions, rows.paragraphs))
    metrics[f"reader.search.{SEARCH}"] = search(questions, paragraphs)
    return metrics | _roundness(torch.cat([questions, paragraphs]), f"reader.search.{SEARCH}")


def linear_head(train: Tensor, labels: Tensor, test: Tensor) -> list[int]:
    """Labels of ``test`` (m, d) by a ridge classifier on ``train`` (n, d), its penalty chosen by leave-one-out.

    >>> points = torch.tensor([[0.0, 1.0], [0.0, 2.0], [3.0, 1.0], [3.0, 2.0]])
    >>> linear_head(points, torch.tensor([0, 0, 1, 1]), torch.tensor([[0.1, 5.0], [2.9, 0.0]]))
    [0, 1]
    """
    from sklearn.linear_model import RidgeCV

    mean = train.double().mean(0)
    size = (train.double() - mean).square().mean().sqrt()
    points, rows = (((x.double() - mean) / size).cpu().numpy() for x in (train, test))
    ridge = RidgeCV(PENALTIES).fit(points, F.one_hot(labels).double().cpu().numpy())
    answers: list[int] = ridge.predict(rows).argmax(-1).tolist()
    return answers


def neighbours(train: Tensor, labels: Tensor, test: Tensor) -> list[int]:
    """The commonest label of the ten nearest rows of ``train`` by cosine, the smallest of several.

    >>> train = torch.eye(2).repeat_interleave(10, 0)
    >>> neighbours(train, torch.tensor([0] * 10 + [1] * 10), torch.tensor([[0.1, 0.9]]))
    [1]
    """
    near = (F.normalize(test) @ F.normalize(train).mT).topk(NEIGHBOURS).indices
    answers: list[int] = F.one_hot(labels[near]).sum(1).argmax(-1).tolist()
    return answers


def search(questions: Tensor, paragraphs: Tensor) -> float:
    """Mean nDCG at 10 of row i of ``paragraphs`` for row i of ``questions``, by cosine; ties rank before it.

    >>> search(torch.eye(2), torch.eye(2)), search(torch.eye(2), torch.eye(2).flip(0))
    (1.0, 0.630)
    """
    cosines = F.normalize(questions) @ F.normalize(paragraphs).mT
    rank = (cosines >= cosines.diagonal()[:, None]).sum(-1)
    return float(torch.where(rank <= 10, 1 / torch.log2(rank + 1.0), 0.0).mean())


def _vectors(run_: Finetuning, module: nn.Module | None) -> Vectors:
    names, length = accepted_inputs(run_.model.encoder), min(LENGTH, run_.settings.max_length)

    def vectors(texts: Sequence[str]) -> Tensor:
        tokens = run_.encoder.tokenizer(list(texts), truncation=True, max_length=length)
        rows = [{name: tokens[name][i] for name in names if name in tokens} for i in range(len(texts))]
        if run_.lower is not None:
            run_.lower.read(rows, progress=False)
        passed = LongestFirst(Tokens(rows))
        return passed.back(torch.cat([_read_by_head(run_, batch, module) for batch in run_.batched(passed)]))

    return vectors


def _read_by_head(run_: Finetuning, batch: dict[str, Tensor], module: nn.Module | None) -> Tensor:
    states, mask = run_.hidden(batch)
    vector = run_.model.vector(states[-1], mask)
    if module is None:
        return run_.model.represent(vector, mask).float().cpu()
    features = run_.method.features(torch.stack(states), mask)
    changed: Tensor = module(vector if features is None else features)
    return changed.float().cpu()


def _roundness(x: Tensor, *readers: str) -> dict[str, Any]:
    x = x[:MEASURED].double()
    measured = {
        "participation_ratio": number(participation_ratio, x),
        "isoscore": number(isoscore, x),
        "mean_cosine": number(mean_cosine, x),
    }
    return {f"{reader}.{name}": value for reader in readers for name, value in measured.items()}

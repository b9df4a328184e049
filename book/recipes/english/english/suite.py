"""The suite: seven tasks in the columns of the hub's data sets, any size, the same rows on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from english.acceptability import judged
from english.draw import Draw
from english.inference import INFERENCES
from english.pairs import paraphrase, similar
from english.sentiment import opinion, review
from english.spans import question

Row = dict[str, Any]
SIZES = {"train": 2000, "validation": 400, "test": 400}
SPLITS = tuple(SIZES)


class Task(NamedTuple):
    """One task. ``make(draw, label)`` gives a row or None (try again)."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    make: Callable[[Draw, int], Row | None]


def _paraphrase(draw: Draw, label: int) -> Row | None:
    pair = paraphrase(draw, label)
    return {"sentence1": pair[0], "sentence2": pair[1], "label": label} if pair else None


def _entailment(draw: Draw, label: int) -> Row | None:
    make = draw.pick(INFERENCES)
    for _ in range(200):  # the kind of pair is kept, so that each kind holds as many of both labels
        case = make(draw, label == 0)
        if case.entailed == (label == 0) and draw.owns(*case.clauses) and case.premise != case.hypothesis:
            return {"sentence1": case.premise, "sentence2": case.hypothesis, "label": label}
    return None


def _similarity(draw: Draw, label: int) -> Row | None:
    result = similar(draw)
    return {"sentence1": result[0], "sentence2": result[1], "score": result[2]} if result else None


def _sentences(make: Callable[[Draw, bool], str]) -> Callable[[Draw, int], Row]:
    return lambda draw, label: {"sentence": make(draw, bool(label)), "label": label}


ONE, PAIR = ("sentence", "label"), ("sentence1", "sentence2")
TASKS = {
    "acceptability": Task(ONE, ("unacceptable", "acceptable"), _sentences(judged)),
    "paraphrase": Task((*PAIR, "label"), ("not_equivalent", "equivalent"), _paraphrase),
    "entailment": Task((*PAIR, "label"), ("entailment", "not_entailment"), _entailment),
    "similarity": Task((*PAIR, "score"), (), _similarity),
    "sentiment": Task(ONE, ("negative", "positive"), _sentences(review)),
    "praise": Task(ONE, ("complaint", "praise"), _sentences(opinion)),
    "span": Task(("id", "title", "context", "question", "answers"), (), lambda draw, label: question(draw)),
}


def suite(task: str, split: str, size: int | None = None, seed: int = 0) -> list[Row]:
    """The rows of one split of one task; ``size`` None gives 2,000 to train on and 400 to validate or test on.

    No verb occurs with the same participants in two splits: validation and test hold combinations of words, and so
    sentences, that training never does, whatever the seeds. Labels are balanced to a row; no row comes twice. A smaller
    size gives the first rows of a larger one.

    >>> suite("sentiment", "train", size=1)
    [{'sentence': 'The preface proved really tiresome.', 'label': 0}]
    >>> suite("entailment", "test", size=2)[1]
    {'sentence1': 'The sad drummer that the singer saved gracefully hid the sturdy jars.', 'sentence2': 'The sad
    drummer gracefully hid the sturdy jars.', 'label': 0}
    """
    draw, (columns, _, make) = Draw(f"{task} {split} {seed}", split), TASKS[task]
    rows: list[Row] = []
    texts: set[str] = set()
    labels: list[int] = []
    while len(rows) < (SIZES[split] if size is None else size):
        labels = labels or draw.shuffled((0, 1))
        row = make(draw, labels[-1])
        text = " | ".join(str(row[column]) for column in columns if column in row and column != "label") if row else ""
        if row is None or text in texts:
            continue
        texts.add(text)
        labels.pop()
        rows.append({column: row.get(column, f"{split}-{seed}-{len(rows)}") for column in columns})
    return rows

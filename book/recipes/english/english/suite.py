"""The embedded suite: seven tasks in the columns of the hub's data sets, any size, the same rows on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from english.acceptability import judged
from english.draw import Draw
from english.inference import INFERENCES
from english.pairs import paraphrase, similar
from english.sentiment import opinion, review
from english.spans import question
from isonb.errors import InputError

__all__ = ["LARGEST", "SIZES", "SPLITS", "TASKS", "SuiteError", "Task", "majority", "suite"]

Row = dict[str, Any]
SIZES = {"train": 2000, "validation": 400, "test": 400}
SPLITS = tuple(SIZES)
LARGEST = 10_000


class SuiteError(InputError):
    """A task or a split that the suite doesn't have, or a size or a seed out of range."""


@dataclass(frozen=True)
class Task:
    """One task. ``make(draw, label)`` gives a row or None (try again); ``metric`` is what the field reports for it."""

    name: str
    columns: tuple[str, ...]
    kind: str  # classification, regression or span
    metric: str
    labels: tuple[str, ...]
    make: Callable[[Draw, int], Row | None]

    def baseline(self, rows: list[Row]) -> float:
        """The metric of the best answer that reads no sentence, see :func:`majority`."""
        return majority(self.metric, rows)


def _acceptability(draw: Draw, label: int) -> Row:
    return {"sentence": judged(draw, bool(label)), "label": label}


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


def _sentiment(draw: Draw, label: int) -> Row:
    return {"sentence": review(draw, bool(label)), "label": label}


def _praise(draw: Draw, label: int) -> Row:
    return {"sentence": opinion(draw, bool(label)), "label": label}


def _span(draw: Draw, label: int) -> Row:
    return question(draw)


PAIR = ("sentence1", "sentence2")
CLASSES = "classification"
TASKS = {
    task.name: task
    for task in (
        Task("acceptability", ("sentence", "label"), CLASSES, "matthews_correlation",
             ("unacceptable", "acceptable"), _acceptability),
        Task("paraphrase", (*PAIR, "label"), CLASSES, "accuracy", ("not_equivalent", "equivalent"), _paraphrase),
        Task("entailment", (*PAIR, "label"), CLASSES, "accuracy", ("entailment", "not_entailment"), _entailment),
        Task("similarity", (*PAIR, "score"), "regression", "spearman", (), _similarity),
        Task("sentiment", ("sentence", "label"), CLASSES, "accuracy", ("negative", "positive"), _sentiment),
        Task("praise", ("sentence", "label"), CLASSES, "accuracy", ("complaint", "praise"), _praise),
        Task("span", ("id", "title", "context", "question", "answers"), "span", "f1", (), _span),
    )
}  # fmt: skip


def suite(task: str, split: str, size: int | None = None, seed: int = 0) -> list[Row]:
    """The rows of one split of one task; ``size`` None gives 2,000 to train on and 400 to validate or test on.

    No verb occurs with the same participants in two splits: validation and test hold combinations of words, and so
    sentences, that training never does, whatever the seeds. Labels are balanced to a row; no row comes twice. A smaller
    size gives the first rows of a larger one.

    Raises :class:`SuiteError` for an unknown task or split, a size outside 1 to 10,000 and a seed that is no integer.

    >>> suite("sentiment", "train", size=1)
    [{'sentence': 'The preface proved really tiresome.', 'label': 0}]
    >>> suite("entailment", "test", size=2)[1]
    {'sentence1': 'The sad drummer that the singer saved gracefully hid the sturdy jars.', 'sentence2': 'The sad
    drummer gracefully hid the sturdy jars.', 'label': 0}
    """
    _check(task, split, size, seed)
    return deepcopy(_rows(task, split, SIZES[split] if size is None else size, seed))


@lru_cache(maxsize=32)  # a run reads its rows several times, and a chapter makes many runs
def _rows(task: str, split: str, expected: int, seed: int) -> list[Row]:
    draw, chosen = Draw(f"{task} {split} {seed}", split), TASKS[task]
    rows: list[Row] = []
    texts: set[str] = set()
    labels: list[int] = []
    while len(rows) < expected:
        labels = labels or draw.shuffled((0, 1))
        row = chosen.make(draw, labels[-1])
        if (
            row is None
            or (text := " | ".join(str(row[c]) for c in chosen.columns if c in row and c != "label")) in texts
        ):
            continue
        texts.add(text)
        labels.pop()
        rows.append({c: row.get(c, f"{split}-{seed}-{len(rows)}") for c in chosen.columns})
    return rows


def _check(task: str, split: str, size: int | None, seed: int) -> None:
    for name, value, choices in (("task", task, tuple(TASKS)), ("split", split, SPLITS)):
        if value not in choices:
            raise SuiteError(f"{name} must be one of {', '.join(choices)}; got {value!r}. Choose one of these.")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= LARGEST):
        raise SuiteError(f"size must be an integer from 1 to {LARGEST}; got {size!r}. Leave it out for the default.")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise SuiteError(f"seed must be an integer; got {seed!r}. Pass, for example, 0.")


def majority(metric: str, rows: list[Row]) -> float:
    """What a constant answer reaches: the share of the commonest label; 0 for a correlation; for spans the mean token
    F1 of answering with the whole first sentence.

    >>> majority("accuracy", [{"label": 1}, {"label": 1}, {"label": 0}, {"label": 0}])
    0.5
    """
    if not rows:
        raise SuiteError("rows must hold at least one row; got none. Pass the rows of a split.")
    if metric in ("matthews_correlation", "spearman"):
        return 0.0
    if metric == "accuracy":
        return max(Counter(row["label"] for row in rows).values()) / len(rows)
    return sum(_token_f1(row["context"].split(".")[0], row["answers"]["text"][0]) for row in rows) / len(rows)


def _token_f1(guess: str, answer: str) -> float:
    a, b = (
        Counter(w.strip(",.").lower() for w in t.split() if w.lower() not in ("a", "an", "the"))
        for t in (guess, answer)
    )
    shared = (a & b).total()
    return 2 * shared / (a.total() + b.total()) if shared else 0.0

"""The tasks: what each predicts from which columns, how it is scored, how large it is, and where its rows come from.

The generated ones are controlled English, made once by the recipe ``book/recipes/english``: 2,000 rows to train on, 400
to validate and to test on. No verb occurs with the same participants in two splits, so validation and test hold
sentences that training never does. Labels are balanced to a row; no row comes twice.

>>> TASKS["cola"].metrics, TASKS["mrpc"].inputs
(('matthews',), ('sentence1', 'sentence2'))
"""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.lab.data import own
from isonb.lab.data.task import FINE_TUNED, KINDS, Task, TaskError
from isonb.lab.options import shown

__all__ = [
    "FINE_TUNED",
    "GENERATED",
    "KINDS",
    "TASKS",
    "Task",
    "TaskError",
    "TaskSize",
    "generated_rows",
    "task_named",
    "task_size",
    "task_spelled",
]

PAIR = ("sentence1", "sentence2")
HERE = Path(__file__).parent
ENGLISH = (*FINE_TUNED, "test")  # splits of the generated tasks


def _glue(
    name: str,
    inputs: tuple[str, ...],
    labels: tuple[str, ...],
    metrics: tuple[str, ...] = ("accuracy",),
    note: str = "",
) -> Task:
    return Task(
        name,
        kind="classification" if labels else "regression",
        inputs=inputs,
        target="label",
        metrics=metrics,
        splits=FINE_TUNED,
        hub="nyu-mll/glue",
        config=name,
        folder=f"glue/{name}",
        labels=labels,
        note="The labels of GLUE's test split are not public: report on validation." + note,
    )


def _similarity(name: str, hub: str, subsets: str = "", folder: str = "", note: str = "") -> Task:
    return Task(
        name,
        kind="similarity",
        inputs=PAIR,
        target="score",
        metrics=("spearman",),
        splits=("test",),
        hub=hub,
        folder=f"sts/{folder or name}",
        subsets=tuple(subsets.split()),
        note=note,
    )


SST5 = Task(
    name="sst5",
    kind="classification",
    inputs=("text",),
    target="label",
    metrics=("accuracy",),
    splits=(*FINE_TUNED, "test"),
    hub="SetFit/sst5",
    folder="sst5",
    labels=("very negative", "negative", "neutral", "positive", "very positive"),
)
SQUAD = Task(
    name="squad",
    kind="span",
    inputs=("question", "context"),
    target="answers",
    metrics=("squad_f1", "exact_match"),
    splits=FINE_TUNED,
    hub="rajpurkar/squad",
    folder="squad",
)
ENTAILMENT = ("entailment", "not_entailment")
OVERLAP = " Training pairs come from the sets of 2012 to 2016: don't score a model tuned here on those."
ALL_SPLITS = "The hub's copy has 9,927 rows, every split of SICK; the usual test split has 4,927."
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _glue("cola", ("sentence",), ("unacceptable", "acceptable"), ("matthews",)),
        _glue("sst2", ("sentence",), ("negative", "positive")),
        _glue("mrpc", PAIR, ("not_equivalent", "equivalent"), ("accuracy", "f1")),
        _glue("qqp", ("question1", "question2"), ("not_duplicate", "duplicate"), ("accuracy", "f1")),
        _glue("stsb", PAIR, (), ("pearson", "spearman"), OVERLAP),
        _glue("qnli", ("question", "sentence"), ENTAILMENT),
        _glue("rte", PAIR, ENTAILMENT),
        SST5,
        SQUAD,
        _similarity("sts12", "mteb/sts12-sts", "MSRpar MSRvid SMTeuroparl surprise.OnWN surprise.SMTnews"),
        _similarity("sts13", "mteb/sts13-sts", "FNWN OnWN headlines"),
        _similarity("sts14", "mteb/sts14-sts", "OnWN deft-forum deft-news headlines images tweet-news"),
        _similarity("sts15", "mteb/sts15-sts", "answers-forums answers-students belief headlines images"),
        _similarity("sts16", "mteb/sts16-sts", "answer-answer headlines plagiarism postediting question-question"),
        _similarity("stsb_test", "mteb/stsbenchmark-sts", folder="stsb"),
        _similarity("sickr", "mteb/sickr-sts", note=ALL_SPLITS),
    )
}


def task_named(name: str) -> Task:
    """The task called ``name``, or that of a file or folder of the user's own (:func:`isonb.lab.data.own.own_task`).

    :class:`TaskError` names the nearest one and all.
    """
    if isinstance(name, str) and name not in TASKS and own.is_own(name):
        return own.own_task(name)
    if not isinstance(name, str) or name not in TASKS:
        close = difflib.get_close_matches(name.lower(), TASKS, n=1, cutoff=0.5) if isinstance(name, str) else ()
        fix = (f"Did you mean {close[0]!r}? " if close else "") + f"Tasks: {', '.join(TASKS)}; or a file of your own."
        fail(TaskError, "the task must be one of isonb's", shown(name), fix)
    return TASKS[name]


def task_spelled(name: str) -> str:
    """One spelling of a task's name: ``./my.csv`` is ``my.csv`` where that is a file, as with folders of models.

    >>> task_spelled("cola")
    'cola'
    """
    plain = name if name in TASKS or not own.is_own(name) else own.spelled(name)
    return name if plain in TASKS else plain


@dataclass(frozen=True)
class TaskSize:
    """Rows of the training and of the evaluation split, and a row's mean tokens: both sentences of a pair together.

    In similarity a sentence's. Counted by minilm's tokenizer.
    """

    train: int
    evaluation: int
    tokens: float


UNKNOWN = TaskSize(10_000, 1000, 30.0)
LETTERS = 4.5  # a token of English


def task_size(name: str) -> TaskSize:
    """The size of a task. One's own data are counted, their tokens guessed from their letters.

    A task that was added later, or whose files are gone, is taken for 10,000 rows of 30 tokens, 1,000 to evaluate.

    >>> task_size("cola").evaluation
    1043
    """
    if name in _sizes() or not own.is_own(name):
        return _sizes().get(name, UNKNOWN)
    try:
        task = own.own_task(name)
    except InputError:
        return UNKNOWN
    counts = {split: len(table) for split, table in task.tables.items()}
    scored = task.tables[task.splits[-1]]
    letters = sum(len(text) for column in task.inputs for text in scored[column].to_pylist()) / len(scored)
    tokens = letters / LETTERS / (2 if task.kind == "similarity" else 1) + 2
    return TaskSize(counts.get("train", 0), len(scored), tokens)


@cache
def _sizes() -> dict[str, TaskSize]:
    with (HERE / "task_sizes.csv").open(encoding="utf-8") as file:
        return {
            row["task"]: TaskSize(int(row["train"]), int(row["evaluation"]), float(row["tokens"]))
            for row in csv.DictReader(file)
        }


def _english(name: str, kind: str, inputs: tuple[str, ...], target: str, metrics: str, labels: str = "") -> Task:
    return Task(f"english_{name}", kind, inputs, target, tuple(metrics.split()), ENGLISH, labels=tuple(labels.split()))


_SIMILARITY = _english("similarity", "regression", PAIR, "score", "spearman")
GENERATED: dict[str, Task] = {
    task.name: task
    for task in (
        _english("acceptability", "classification", ("sentence",), "label", "matthews", "unacceptable acceptable"),
        _english("paraphrase", "classification", PAIR, "label", "accuracy", "not_equivalent equivalent"),
        _english("entailment", "classification", PAIR, "label", "accuracy", " ".join(ENTAILMENT)),
        _SIMILARITY,
        # the same pairs, to be scored by cosine without training
        replace(_SIMILARITY, name="english_sts", kind="similarity", splits=("test",)),
        _english("sentiment", "classification", ("sentence",), "label", "accuracy", "negative positive"),
        _english("praise", "classification", ("sentence",), "label", "accuracy", "complaint praise"),
        _english("span", "span", ("question", "context"), "answers", "squad_f1 exact_match"),
    )
}
TASKS |= GENERATED


@cache  # a run reads its rows several times, and a chapter makes many runs
def generated_rows(name: str, split: str) -> Any:
    """The Arrow table of one split of a task of :data:`GENERATED`."""
    from pyarrow import compute, parquet  # type: ignore[import-untyped,unused-ignore]

    home = "similarity" if name == "english_sts" else name.removeprefix("english_")
    wanted = (compute.field("task") == home) & (compute.field("split") == split)
    return parquet.read_table(HERE / "english.parquet", columns=list(GENERATED[name].columns), filters=wanted)

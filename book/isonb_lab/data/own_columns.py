"""What the columns of a user's own data mean: which are text, which is to be predicted, and what its values are.

Columns are known by name, never by their order. What can't be known is asked for in an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from isonb.errors import fail
from isonb.options import nearest, shown
from isonb.runtime.tables import SourceError
from isonb_lab.data.task import KINDS, TaskError

PAIRS = (("sentence1", "sentence2"), ("text1", "text2"), ("question1", "question2"), ("premise", "hypothesis"))
SINGLE = (("text",), ("sentence",))
TARGETS = ("label", "labels", "score", "scores")
SCORES = ("score", "scores")
ANSWERS = ("answers", "answer")
MISSING = ("", "nan", "NaN")  # what a missing value is written as
MANY = 20  # labels, above which there must be two rows a label
LISTING = re.compile(r"\s*[\[({]\s*(['\"].*['\"]|\d+(\s*,\s*\d+)+)\s*,?[\])}]\s*")  # as Python or JSON writes a list
METRICS: dict[str, tuple[str, ...]] = {  # those that a kind may have; the first two are taken
    "classification": ("accuracy", "matthews", "f1"),
    "regression": ("pearson", "spearman"),
    "span": ("squad_f1", "exact_match"),
    "similarity": ("spearman",),
}


@dataclass(frozen=True)
class ColumnSpec:
    """What the user says of the data; nothing: to be guessed."""

    kind: str = ""
    inputs: tuple[str, ...] = ()
    target: str = ""
    labels: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    training_split: str = ""
    validation_split: str = ""


def text_and_target(columns: Sequence[str], spec: ColumnSpec) -> tuple[tuple[str, ...], str]:
    """The columns of text and the column to predict, by what is wanted, else by their names in any case.

    >>> text_and_target(["id", "Text", "Label"], ColumnSpec())
    (('Text',), 'Label')
    >>> text_and_target(["sentence1", "sentence2", "score"], ColumnSpec())
    (('sentence1', 'sentence2'), 'score')
    """
    for name in (*spec.inputs, *([spec.target] if spec.target else [])):
        if name not in columns:
            unknown(name, columns, "a column")
    available = {name.strip().lower(): name for name in columns}
    spanned = any({"question", "context", answer} <= {*available} for answer in ANSWERS)
    spans = spec.kind == "span" or (not spec.kind and spanned)
    groups = (("question", "context"),) if spans else (*PAIRS, *SINGLE)
    inputs = spec.inputs or next(
        (tuple(available[n] for n in group) for group in groups if {*group} <= {*available}), ()
    )
    free = {name: column for name, column in available.items() if column not in inputs}
    target = spec.target or next((free[name] for name in (ANSWERS if spans else TARGETS) if name in free), "")
    if not inputs or not target:
        what = "the columns of text (text, sentence1 and sentence2, ...)" if not inputs else "the column to predict"
        flag = "inputs" if not inputs else "target"
        fix = f"Name it by --{flag}, or {flag}: in a YAML file."
        fail(TaskError, f"{what} must be known by name", f"the columns {', '.join(columns)}", fix)
    if len({*inputs}) < len(inputs):
        fail(TaskError, "each column of text must be named once", ", ".join(inputs), "Name others by --inputs.")
    if target in inputs:
        fail(TaskError, "the column to predict must be none of the text", repr(target), "Name another by --target.")
    return inputs, target


def unknown(name: str, available: Iterable[str], what: str) -> NoReturn:
    """Raise the :class:`~isonb_lab.data.task.TaskError` of a name that isn't there, with the nearest one."""
    available = list(available)
    fix = f"{nearest(name, available)}There are: {', '.join(available)}."
    fail(TaskError, f"{what} must be one of those there are", shown(name), fix)


def task_kind(spec: ColumnSpec, inputs: tuple[str, ...], target: str, values: Sequence[Any], named: bool) -> str:
    """The kind of task, by what is wanted, else by columns and values; its columns are checked.

    ``named``: whether the data come with names of the target's labels.
    """
    kind, column = spec.kind, target.strip().lower()
    if not kind:
        read = [_number(value) for value in values if value is not None]
        if column in ANSWERS:
            kind = "span"
        elif named or None in read:
            kind = "classification"
        elif column in SCORES:
            kind = "similarity" if len(inputs) == 2 else "regression"
        else:
            kind = "classification" if all(number.is_integer() for number in read if number) else "regression"
    if kind not in KINDS:
        unknown(kind, KINDS, "kind")
    counts = {"classification": (1, 2), "regression": (1, 2), "span": (2,), "similarity": (2,)}[kind]
    if len(inputs) not in counts:
        got = f"{len(inputs)} ({', '.join(inputs)})"
        fail(TaskError, f"a {kind} task has {' or '.join(map(str, counts))} columns of text", got, "Name them.")
    if odd := [name for name in spec.metrics if name not in METRICS[kind]]:
        unknown(odd[0], METRICS[kind], f"a metric of a {kind} task")
    return kind


def convert(
    path: str, kind: str, inputs: tuple[str, ...], target: str, tables: Mapping[str, Any], *labels: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tables with the task's columns and types, and the labels by number; ``labels`` as in :func:`labelled`."""
    from pyarrow import Table

    by_split: dict[str, dict[str, list[Any]]] = {}
    for split, table in tables.items():
        where = f"{path}{f', split {split!r}' if len(tables) > 1 else ''}"
        columns = {name: list(map(str, _values(table[name], f"{where}: {name}", *TEXT))) for name in inputs}
        values: list[Any] = table[target].to_pylist()
        if kind == "span":
            question, context = columns.values()
            answers = _answered(_values(values, f"{where}: {target}"), context, f"{where}: {target}")
            ids = list(map(str, range(len(values))))
            by_split[split] = {"id": ids, "question": question, "context": context, "answers": answers}
        elif kind == "classification":
            by_split[split] = columns | {target: values}
        else:
            by_split[split] = columns | {target: list(map(float, _values(values, f"{where}: {target}", *NUMBER)))}
    names: tuple[str, ...] = ()
    if kind == "classification":
        codes, names = labelled(
            [v for columns in by_split.values() for v in columns[target]], f"{path}: {target}", *labels
        )
        rest = iter(codes)
        by_split = {
            split: columns | {target: [next(rest) for _ in columns[target]]} for split, columns in by_split.items()
        }
    return {split: Table.from_pydict(columns) for split, columns in by_split.items()}, names


def _number(value: Any) -> float | None:
    """The value as a finite number, or None."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


Rule = tuple[Callable[[Any], bool], str, str]  # which values a column may have, in words, and what to do about others
TEXT: Rule = (lambda value: isinstance(value, str | int | float), "text", "Name another column by --inputs.")
NUMBER: Rule = (lambda value: _number(value) is not None, "finite numbers", "Correct the row.")


def _values(
    column: Any, where: str, accepts: Callable[[Any], bool] = lambda _: True, rule: str = "", fix: str = ""
) -> list[Any]:
    """The values of a column, of which each row must have one that is accepted."""
    values: list[Any] = column if isinstance(column, list) else column.to_pylist()
    for row, value in enumerate(values, start=1):
        if value is None or value != value or (isinstance(value, str) and value.strip() in MISSING):
            got = f"{'none' if value is None else str(value).strip().lower() or 'an empty one'} in row {row}"
            fail(SourceError, f"{where} must have a value in each row", got, "Fill it in, or leave the row out.")
        if not accepts(value):
            fail(SourceError, f"{where} must hold {rule}", f"{shown(value)} in row {row}", fix)
    return values


def check_differ(values: Sequence[float], where: str) -> None:
    """Refuse numbers that are all the same: nothing correlates with them."""
    if len(set(values)) < 2:
        got = f"{values[0]:g} in each row that is scored"
        fail(SourceError, f"{where} must hold different values", got, "Name another column by --target, or add rows.")


def labelled(
    values: list[Any], where: str, labels: tuple[str, ...] = (), named: tuple[str, ...] = ()
) -> tuple[list[int], tuple[str, ...]]:
    """Labels by number, and their names by number.

    The order is that of ``labels``, which names them, or their numbers 0, 1, ... (or as many others); else that of the
    data's own names ``named``; else numbers come in their order and words in that of the alphabet.

    >>> labelled(["good", "bad", "good"], "my.csv: label")
    ([1, 0, 1], ('bad', 'good'))
    >>> labelled(["1", "0"], "my.csv: label", ("no", "yes"))
    ([1, 0], ('no', 'yes'))
    """
    _check_single(_values(values, where), where, labels)
    texts = [_word(value) for value in values]
    if named and all(_whole(word) and 0 <= int(word) < len(named) for word in texts):
        texts = [named[int(word)] for word in texts]
    distinct = set(texts)
    whole = sorted(map(int, distinct)) if all(map(_whole, distinct)) else []
    order = labels or named or tuple(map(str, whole)) or tuple(sorted(distinct))
    if not distinct <= {*order}:
        counted = list(range(len(order)))  # or as many other numbers
        counted = counted if {*whole} <= {*counted} else whole if len(whole) == len(order) else []
        if whole and not counted:
            got, fix = f"{len(whole)} different numbers, {len(order)} names", "Name each of them by --labels, in order."
            fail(TaskError, f"{where} must have a name for each number", got, fix)
        if not whole:
            unknown(next(word for word in texts if word not in order), order, f"{where}: a label")
        texts = [order[counted.index(int(word))] for word in texts]
    _check_labels(texts, order, where)
    places = {word: number for number, word in enumerate(order)}
    return [places[word] for word in texts], order


def _check_labels(texts: Sequence[str], order: tuple[str, ...], where: str) -> None:
    distinct = set(texts)
    if len(distinct) < 2 or len({*order}) < len(order):
        got = f"{next(iter(distinct))!r} in each row" if len(distinct) < 2 else f"twice the same of {', '.join(order)}"
        fail(SourceError, f"{where} must hold two labels or more, each named once", got, "Name another by --target.")
    fractions = all(_number(word) is not None for word in distinct) and not all(map(_whole, distinct))
    if len(distinct) > MANY and (fractions or len(distinct) > len(texts) / 2):
        got = f"{len(distinct)} different values in {len(texts)} rows"
        fix = "Take --kind regression for numbers, or name another column by --target."
        fail(SourceError, f"{where} must hold a label for several rows each", got, fix)


def _check_single(values: Sequence[Any], where: str, labels: tuple[str, ...]) -> None:
    """Refuse rows with several labels: lists, lists as text, and words such as "a|b" where a and b are labels."""
    what = f"{where} must hold one label a row"
    fix = (
        "Several labels a row aren't trained on. Keep one a row, or make a task of each label: a column of yes and no."
    )
    for row, value in enumerate(values, start=1):
        if isinstance(value, list | dict) or (isinstance(value, str) and LISTING.fullmatch(value)):
            fail(SourceError, what, f"{shown(value)} in row {row}", fix)
    texts = {value.strip() for value in values if isinstance(value, str)}
    for mark in "|;,":
        joined = sorted(word for word in texts if mark in word and {part.strip() for part in word.split(mark)} <= texts)
        if joined and not set(joined) <= {*labels}:
            fix = f"{fix} If {joined[0]!r} is one label, name all of them by --labels."
            fail(SourceError, what, f"{joined[0]!r}, which are several", fix)


def _word(value: Any) -> str:
    """A label as a word: text as it stands, "007" isn't "7"; of numbers 1 and 1.0 are one."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _whole(word: str) -> bool:
    """Whether a word is a whole number as Python writes it, with no more than 18 digits."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,17}", word) is not None


def _answered(values: Sequence[Any], contexts: Sequence[str], where: str) -> list[dict[str, list[Any]]]:
    """Answers as SQuAD has them, from such ones or from plain text that the context holds."""
    answers: list[dict[str, list[Any]]] = []
    for row, (value, context) in enumerate(zip(values, contexts, strict=True), start=1):
        answer = value if isinstance(value, Mapping) else {"text": str(value)}
        texts, starts = (
            part if isinstance(part, list) else [] if part is None else [part]
            for part in (answer.get("text"), answer.get("answer_start"))
        )
        starts = starts or [context.find(str(word)) for word in texts]
        stand = [
            type(start) is int and start >= 0 and context.startswith(str(word), start)  # no text, null, float or bool
            for word, start in zip(texts, starts, strict=False)
        ]
        if not texts or not len(texts) == len(starts) == sum(stand):
            got = f"{shown(value)} in row {row}"
            fail(SourceError, f"{where} must hold answers that stand in their context", got, "Correct the row.")
        answers.append({"text": [str(word) for word in texts], "answer_start": starts})
    return answers

"""What the columns of a user's own data mean: which are text, which is to be predicted, and what its values are.

Columns are known by name, never by their order. What can't be known is asked for in an error.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from isonb.errors import fail
from isonb.lab.data.sources import SourceError
from isonb.lab.data.task import KINDS, TaskError
from isonb.lab.options import shown

__all__ = [
    "METRICS",
    "Wanted",
    "answered",
    "check_differ",
    "checked_kind",
    "chosen",
    "labelled",
    "numbers",
    "texts",
    "unknown",
]

PAIRS = (("sentence1", "sentence2"), ("text1", "text2"), ("question1", "question2"), ("premise", "hypothesis"))
SINGLE = (("text",), ("sentence",))
TARGETS = ("label", "labels", "score", "scores")
SCORES = ("score", "scores")
ANSWERS = ("answers", "answer")
MISSING = ("", "nan", "NaN")  # what a missing value is written as
MANY = 20  # labels, above which there must be two rows a label
METRICS: dict[str, tuple[str, ...]] = {  # those that a kind may have; the first two are taken
    "classification": ("accuracy", "matthews", "f1"),
    "regression": ("pearson", "spearman"),
    "span": ("squad_f1", "exact_match"),
    "similarity": ("spearman",),
}


@dataclass(frozen=True)
class Wanted:
    """What the user says of the data; nothing: to be guessed."""

    kind: str = ""
    inputs: tuple[str, ...] = ()
    target: str = ""
    labels: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    training_split: str = ""
    validation_split: str = ""


def chosen(columns: Sequence[str], wanted: Wanted) -> tuple[tuple[str, ...], str]:
    """The columns of text and the column to predict, by what is wanted, else by their names in any case.

    >>> chosen(["id", "Text", "Label"], Wanted())
    (('Text',), 'Label')
    >>> chosen(["sentence1", "sentence2", "score"], Wanted())
    (('sentence1', 'sentence2'), 'score')
    """
    for name in (*wanted.inputs, *([wanted.target] if wanted.target else [])):
        if name not in columns:
            unknown(name, columns, "a column")
    known = {name.strip().lower(): name for name in columns}
    spans = wanted.kind == "span" or (not wanted.kind and {"question", "context"} <= {*known})
    answers = next((known[name] for name in ANSWERS if name in known), "") if spans else ""
    groups = (("question", "context"),) if spans and (answers or wanted.kind) else (*PAIRS, *SINGLE)
    inputs = wanted.inputs or next((tuple(known[n] for n in group) for group in groups if {*group} <= {*known}), ())
    order = ANSWERS if groups[0] == ("question", "context") else TARGETS
    free = {name: column for name, column in known.items() if column not in inputs}
    target = wanted.target or next((free[name] for name in order if name in free), "")
    if not inputs or not target:
        what = "the columns of text (text, sentence1 and sentence2, ...)" if not inputs else "the column to predict"
        flag = "inputs" if not inputs else "target"
        fix = f"Name it by --{flag}, or {flag}: in a YAML file."
        fail(TaskError, f"{what} must be known by name", f"the columns {', '.join(columns)}", fix)
    if target in inputs:
        fail(TaskError, "the column to predict must be none of the text", repr(target), "Name another by --target.")
    return inputs, target


def unknown(name: str, known: Iterable[str], what: str) -> NoReturn:
    """Raise the :class:`~isonb.lab.data.task.TaskError` of a name that isn't there, with the nearest one."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    fix = (f"Did you mean {close[0]!r}? " if close else "") + f"There are: {', '.join(known)}."
    fail(TaskError, f"{what} must be one of those there are", shown(name), fix)


def checked_kind(wanted: Wanted, inputs: tuple[str, ...], target: str, values: Sequence[Any], named: bool) -> str:
    """The kind of task, by what is wanted, else by columns and values; its columns are checked.

    ``named``: whether the data come with names of the target's labels.
    """
    kind = wanted.kind or _guessed_kind(inputs, target, values, named)
    if kind not in KINDS:
        unknown(kind, KINDS, "kind")
    counts = {"classification": (1, 2), "regression": (1, 2), "span": (2,), "similarity": (2,)}[kind]
    if len(inputs) not in counts:
        got = f"{len(inputs)} ({', '.join(inputs)})"
        fail(TaskError, f"a {kind} task has {' or '.join(map(str, counts))} columns of text", got, "Name them.")
    if odd := [name for name in wanted.metrics if name not in METRICS[kind]]:
        unknown(odd[0], METRICS[kind], f"a metric of a {kind} task")
    return kind


def _guessed_kind(inputs: tuple[str, ...], target: str, values: Sequence[Any], named: bool) -> str:
    if target.strip().lower() in ANSWERS:
        return "span"
    found = None if named else _as_numbers(values)
    if found is not None and target.strip().lower() in SCORES:
        return "similarity" if len(inputs) == 2 else "regression"
    return "classification" if found is None or all(value.is_integer() for value in found) else "regression"


def texts(values: Sequence[Any], where: str) -> list[str]:
    """A column of text, a text in each row.

    >>> texts(["A cone.", 7], "my.csv: text")
    ['A cone.', '7']
    """
    _present(values, where)
    if odd := [value for value in values if not isinstance(value, str | int | float)]:
        fail(SourceError, f"{where} must hold text", type(odd[0]).__name__, "Name another column by --inputs.")
    return [value if isinstance(value, str) else str(value) for value in values]


def _present(values: Sequence[Any], where: str) -> None:
    for row, value in enumerate(values, start=1):
        text = isinstance(value, str)
        if value is None or (text and value.strip() in MISSING) or (isinstance(value, float) and math.isnan(value)):
            got = f"{'an empty one' if text and not value.strip() else 'none' if value is None else 'nan'} in row {row}"
            fail(SourceError, f"{where} must have a value in each row", got, "Fill it in, or leave the row out.")


def _as_numbers(values: Sequence[Any]) -> list[float] | None:
    """The values as numbers, or None where one is something else."""
    try:
        found = [math.nan if value is None else float(value) for value in values if not isinstance(value, bool)]
    except (TypeError, ValueError):
        return None
    return [value for value in found if math.isfinite(value)] if len(found) == len(values) else None


def numbers(values: Sequence[Any], where: str) -> list[float]:
    """A column of finite numbers.

    >>> numbers(["1", "2.5"], "my.csv: score")
    [1.0, 2.5]
    """
    _present(values, where)
    for row, value in enumerate(values, start=1):
        if not _as_numbers([value]):
            fail(SourceError, f"{where} must hold finite numbers", f"{shown(value)} in row {row}", "Correct the row.")
    return [float(value) for value in values]


def check_differ(values: Sequence[float], where: str) -> None:
    """Refuse numbers that are all the same: nothing correlates with them."""
    if len(set(values)) < 2:
        got = f"{values[0]:g} in each row that is scored"
        fail(SourceError, f"{where} must hold different values", got, "Name another column by --target, or add rows.")


def labelled(
    values: Sequence[Any], where: str, wanted: tuple[str, ...] = (), named: tuple[str, ...] = ()
) -> tuple[list[int], tuple[str, ...]]:
    """Labels by number, and their names by number.

    The order is that of ``wanted``, which names them, or their numbers 0, 1, ... (or as many others); else that of the
    data's own names ``named``; else numbers come in their order and words in that of the alphabet.

    >>> labelled(["good", "bad", "good"], "my.csv: label")
    ([1, 0, 1], ('bad', 'good'))
    >>> labelled(["1", "0"], "my.csv: label", ("no", "yes"))
    ([1, 0], ('no', 'yes'))
    """
    _present(values, where)
    _check_single(values, where, wanted)
    words = [_word(value) for value in values]
    if named and all(_whole(word) and 0 <= int(word) < len(named) for word in words):
        words = [named[int(word)] for word in words]
    there = set(words)
    order = wanted or named or tuple(sorted(there, key=int if all(map(_whole, there)) else str))
    if not there <= {*order}:
        if not all(map(_whole, there)) or not (counted := _counted(there, len(order))):
            odd = next(word for word in words if word not in order)
            unknown(odd, order, f"{where}: a label")
        words = [order[counted.index(int(word))] for word in words]
    _check_labels(words, order, where)
    places = {word: number for number, word in enumerate(order)}
    return [places[word] for word in words], order


def _counted(there: set[str], count: int) -> list[int]:
    """The numbers that ``count`` names stand for: 0, 1, ..., or as many others; empty: neither."""
    found = sorted(map(int, there))
    return list(range(count)) if found[0] >= 0 and found[-1] < count else found if len(found) == count else []


def _check_labels(words: Sequence[str], order: tuple[str, ...], where: str) -> None:
    there = set(words)
    if len(there) < 2 or len({*order}) < len(order):
        got = f"{next(iter(there))!r} in each row" if len(there) < 2 else f"twice the same of {', '.join(order)}"
        fail(SourceError, f"{where} must hold two labels or more, each named once", got, "Name another by --target.")
    fractions = _as_numbers([*there]) is not None and not all(map(_whole, there))
    if len(there) > MANY and (fractions or len(there) > len(words) / 2):
        got = f"{len(there)} different values in {len(words)} rows"
        fix = "Take --kind regression for numbers, or name another column by --target."
        fail(SourceError, f"{where} must hold a label for several rows each", got, fix)


def _check_single(values: Sequence[Any], where: str, wanted: tuple[str, ...]) -> None:
    """Refuse rows with several labels: lists, lists as text, and words such as "a|b" where a and b are labels."""
    fix = (
        "Several labels a row aren't trained on. Keep one a row, or make a task of each label: a column of yes and no."
    )
    odd = [
        (row, value) for row, value in enumerate(values, start=1) if isinstance(value, list | dict) or _listing(value)
    ]
    if odd:
        fail(SourceError, f"{where} must hold one label a row", f"{shown(odd[0][1])} in row {odd[0][0]}", fix)
    words = {value.strip() for value in values if isinstance(value, str)}
    for mark in "|;,":
        joined = sorted(word for word in words if mark in word and {part.strip() for part in word.split(mark)} <= words)
        if joined and not set(joined) <= {*wanted}:
            fix_ = f"{fix} If {joined[0]!r} is one label, name all of them by --labels."
            fail(SourceError, f"{where} must hold one label a row", f"{joined[0]!r}, which are several", fix_)


def _listing(value: Any) -> bool:
    """Whether a text is a list as Python or JSON writes it."""
    return (
        isinstance(value, str)
        and re.fullmatch(r"\s*[\[({]\s*(['\"].*['\"]|\d+(\s*,\s*\d+)+)\s*,?[\])}]\s*", value) is not None
    )


def _word(value: Any) -> str:
    """A label as a word: text as it stands, "007" isn't "7"; of numbers 1 and 1.0 are one."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _whole(word: str) -> bool:
    """Whether a word is a whole number as Python writes it, with no more than 18 digits."""
    return re.fullmatch(r"0|-?[1-9][0-9]{0,17}", word) is not None


def answered(values: Sequence[Any], contexts: Sequence[str], where: str) -> list[dict[str, list[Any]]]:
    """Answers as SQuAD has them, from such ones or from plain text that the context holds.

    >>> answered(["cone"], ["A narrow cone."], "my.csv: answer")
    [{'text': ['cone'], 'answer_start': [9]}]
    """
    _present(values, where)
    found: list[dict[str, list[Any]]] = []
    for row, (value, context) in enumerate(zip(values, contexts, strict=True), start=1):
        given = value if isinstance(value, Mapping) else {"text": [str(value)]}
        words = [str(word) for word in _listed(given.get("text"))]
        starts = _listed(given.get("answer_start")) or [context.find(word) for word in words]
        pairs = zip(words, starts, strict=False)
        if not words or len(starts) != len(words) or any(context[s : s + len(w)] != w or s < 0 for w, s in pairs):
            got = f"{shown(words[0] if words else 'none')} in row {row}"
            fail(SourceError, f"{where} must hold answers that stand in their context", got, "Correct the row.")
        found.append({"text": words, "answer_start": [int(start) for start in starts]})
    return found


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]

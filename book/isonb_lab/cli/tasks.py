"""``isonb tasks check``: what is understood of a user's own data, before anything is run on them."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

from isonb.errors import fail
from isonb.runtime.terminal import printable
from isonb_lab.data.own import KEYS, LISTS, OwnTask, is_own, own_task, spelled, with_options
from isonb_lab.data.task import TaskError
from isonb_lab.data.tasks import TASKS

SHOWN = 3  # rows
MOST = 10  # labels in a line
SHORTEST = 10  # letters of a text


def task_name(name: Any, options: argparse.Namespace) -> Any:
    """The name of a task, with the flags that say what one's own data mean; what is no name comes back as it is."""
    flags = {key: value for key in KEYS if (value := getattr(options, key, None)) is not None}
    is_file = isinstance(name, str) and name not in TASKS and is_own(name)
    if flags and not is_file:
        flag = "--" + next(iter(flags)).replace("_", "-")
        fail(TaskError, f"{flag} is for files of your own", repr(name), "Leave it out, or name a file.")
    parts = {key: tuple(map(str.strip, value.split(","))) if key in LISTS else value for key, value in flags.items()}
    return with_options(name, parts) if is_file else name


def check(options: argparse.Namespace) -> int:
    """Print what was understood of a file or folder; errors are those of :func:`~isonb_lab.data.own.own_task`."""
    name = task_name(options.task, options)
    if not is_own(name):
        fail(TaskError, "tasks check looks at a file or folder of your own", repr(name), "Write its path.")
    task = own_task(name)
    width = shutil.get_terminal_size((100, 24)).columns
    for head, text in [*_facts(task), *_rows(task, width)]:
        print(printable(f"{head:11s} {text}".rstrip()))
    print(f"{'next':11s} isonb run --task {shlex.quote(spelled(name))}")
    return 0


def _facts(task: OwnTask) -> list[tuple[str, str]]:
    target = task.target
    if task.labels:
        target += f" ({len(task.labels)} labels, in this order)"
    facts = [("kind", task.kind), ("text", ", ".join(task.inputs)), ("to predict", target)]
    facts += [("metrics", ", ".join(task.metrics))]
    for split, table in task.tables.items():
        facts.append((split, f"{len(table)} rows{_values(task, table[task.target].to_pylist())}"))
    return facts + [("note", text) for text in task.notes] + [("warning", text) for text in _doubts(task)]


def _doubts(task: OwnTask) -> Iterator[str]:
    """What makes scores say less than they seem to: texts and files on both sides, labels without rows."""
    files = [os.path.realpath(name) for name, *_ in task.state]
    if twice := sorted({name for name in files if files.count(name) > 1}):
        yield f"one file serves two splits: {', '.join(twice)}. What is trained on is scored"
    rows = {split: _texts_and_values(task, table) for split, table in task.tables.items()}
    if task.kind != "similarity" and len(rows) > 1:
        training, scored = (rows[split] for split in task.splits[:2])
        trained_on = {text for text, _ in training}
        if again := [text for text, _ in scored if text in trained_on]:
            count = f"{len(again)} of {len(scored)} {task.splits[1]} rows"
            yield f"{count} have a text that stands in the training rows, too"
    if not task.labels:
        return
    values: dict[tuple[str, ...], set[int]] = {}
    for text, value in (row for of_split in rows.values() for row in of_split):
        values.setdefault(text, set()).add(value)
    if several := [text for text, labels in values.items() if len(labels) > 1]:
        first = _cut(" | ".join(several[0]), 60)
        yield f"{len(several)} texts carry several labels, in different rows, as {first!r}"
    for split, of_split in rows.items():
        present = {value for _, value in of_split}
        if missing := [label for number, label in enumerate(task.labels) if number not in present]:
            more = f" and {len(missing) - MOST} more" if len(missing) > MOST else ""
            yield f"no {split} row has the label {', '.join(missing[:MOST])}{more}"


def _texts_and_values(task: OwnTask, table: Any) -> list[tuple[tuple[str, ...], Any]]:
    """The texts of each row, whatever their case and spaces, and its value."""
    columns = [[" ".join(text.split()).casefold() for text in table[name].to_pylist()] for name in task.inputs]
    return list(zip(zip(*columns, strict=True), table[task.target].to_pylist(), strict=True))


def _values(task: OwnTask, values: list[Any]) -> str:
    """The values to predict in a few words: how often each label, or from where to where."""
    if task.kind == "span":
        return ""
    if not task.labels:
        return f", {task.target} from {min(values):g} to {max(values):g}"
    counts = Counter(values)
    parts = [f"{number} {label} {counts[number]}x" for number, label in enumerate(task.labels)]
    return ": " + ", ".join(parts[:MOST]) + (f" and {len(parts) - MOST} more" if len(parts) > MOST else "")


def _rows(task: OwnTask, width: int) -> list[tuple[str, str]]:
    """The first rows of the first split, texts cut to the width."""
    rows = []
    for number, row in enumerate(task.tables[task.splits[0]].slice(0, SHOWN).to_pylist(), start=1):
        value = row[task.target]
        answer = value["text"][0] if task.kind == "span" else task.labels[value] if task.labels else f"{value:g}"
        room = max(SHORTEST, (width - 12 - len(answer) - 4) // len(task.inputs) - 3)
        texts = [_cut(" ".join(row[column].split()), room) for column in task.inputs]
        rows.append((f"row {number}", f"{' | '.join(texts)} -> {answer}"))
    return rows


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."

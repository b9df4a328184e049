"""``isonb tasks check``: what is understood of a user's own data, before anything is run on them."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections import Counter
from typing import Any

from isonb.errors import fail
from isonb.lab.data.own import KEYS, LISTS, OwnTask, is_own, own_task, spelled, with_options
from isonb.lab.data.task import TaskError
from isonb.lab.data.tasks import TASKS
from isonb.runtime.terminal import printable

__all__ = ["check", "named"]

SHOWN = 3  # rows
MOST = 10  # labels in a line
SHORTEST = 10  # letters of a text


def named(options: argparse.Namespace) -> str:
    """The task's name, with the flags that say what one's own data mean."""
    given = {key: value for key in KEYS if (value := getattr(options, key, None)) is not None}
    own = options.task not in TASKS and is_own(options.task)
    if given and not own:
        flag = "--" + next(iter(given)).replace("_", "-")
        fail(TaskError, f"{flag} is for files of your own", repr(options.task), "Leave it out, or name a file.")
    words = {key: tuple(map(str.strip, value.split(","))) if key in LISTS else value for key, value in given.items()}
    return with_options(options.task, words) if own else str(options.task)


def check(options: argparse.Namespace) -> int:
    """Print what was understood of a file or folder; errors are those of :func:`~isonb.lab.data.own.own_task`."""
    name = named(options)
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
    return facts + [("note", text) for text in task.said]


def _values(task: OwnTask, values: list[Any]) -> str:
    """The values to predict in a few words: how often each label, or from where to where."""
    if task.kind == "span":
        return ""
    if not task.labels:
        return f", {task.target} from {min(values):g} to {max(values):g}"
    counts = Counter(values)
    words = [f"{number} {label} {counts[number]}x" for number, label in enumerate(task.labels)]
    return ": " + ", ".join(words[:MOST]) + (f" and {len(words) - MOST} more" if len(words) > MOST else "")


def _rows(task: OwnTask, width: int) -> list[tuple[str, str]]:
    """The first rows of the first split, texts cut to the width."""
    found = []
    for number, row in enumerate(task.tables[task.splits[0]].slice(0, SHOWN).to_pylist(), start=1):
        value = row[task.target]
        words = value["text"][0] if task.kind == "span" else task.labels[value] if task.labels else f"{value:g}"
        room = max(SHORTEST, (width - 12 - len(words) - 4) // len(task.inputs) - 3)
        texts = [_cut(" ".join(row[column].split()), room) for column in task.inputs]
        found.append((f"row {number}", f"{' | '.join(texts)} -> {words}"))
    return found


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."

"""Tasks of a user's own files: a path in place of a task's name, understood alike in every process that meets it.

The name is a file (CSV, TSV, JSON lines, parquet), a folder, or a YAML file that says what the data mean. Behind a
question mark it may say that too: ``reviews.csv?kind=regression&target=stars`` is what flags of the command line
become, so the name alone makes the task, in a grid, in a record and in the process of a run.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote, unquote

from isonb.errors import fail, in_one_line
from isonb.options import known_name, shown
from isonb.runtime.tables import READERS, SourceError, read_file
from isonb_lab.data import own_columns
from isonb_lab.data.own_columns import METRICS, ColumnSpec
from isonb_lab.data.own_files import EVALUATION, TRAINING, read_place
from isonb_lab.data.sources import State, file_state, sample
from isonb_lab.data.task import FINE_TUNED, Task, TaskError, TaskSize

KEYS = tuple(key.name for key in fields(ColumnSpec))
LISTS = ("inputs", "labels", "metrics")
YAML = (".yaml", ".yml")
LETTERS = 4.5  # a token of English
SHARE = 0.2  # of the rows, which is kept for validation where the data name no such split
Places = tuple[tuple[str, Path], ...]  # split ("" where nobody named it), file or folder


@dataclass(frozen=True)
class OwnTask(Task):
    """A task of a user's own data. ``notes``: what was decided for the user, in sentences.

    ``tables`` are the rows of each split with the task's columns, ``state`` that of the files they were read from.
    """

    place: str = ""
    notes: tuple[str, ...] = ()
    state: State = ()

    @property
    def digest(self) -> str:
        """sha256 of what the task is, whatever its rows and wherever they lie."""
        meaning = [self.kind, self.inputs, self.target, self.labels, self.metrics, self.splits]
        return hashlib.sha256(json.dumps(meaning, ensure_ascii=False).encode()).hexdigest()


def is_own(name: str) -> bool:
    """Whether a name means a file or folder, there or not.

    >>> is_own("cola"), is_own("reviews.csv"), is_own("./reviews")
    (False, True, True)
    """
    path = name.partition("?")[0]
    recognised = PurePath(path).suffix.lower() in (*READERS, *YAML)
    return recognised or "/" in path or (path != "" and os.path.exists(os.path.expanduser(path)))


def spelled(name: str) -> str:
    """One spelling of the name of one's own data.

    >>> spelled("./my.csv?target=stars&kind=regression")
    'my.csv?kind=regression&target=stars'
    """
    path, _, _ = name.partition("?")
    return with_options(PurePath(path).as_posix(), options_of(name))


def with_options(name: str, more: Mapping[str, str | Sequence[str]]) -> str:
    """The name with more said behind its question mark; ``more`` wins.

    >>> with_options("my.csv", {"inputs": ("title", "body")})
    'my.csv?inputs=title,body'
    """
    path, options = name.partition("?")[0], options_of(name) | {key: value for key, value in more.items() if value}
    values = {key: (value,) if isinstance(value, str) else value for key, value in options.items()}
    pairs = [f"{key}={','.join(quote(word, safe=' ') for word in values[key])}" for key in sorted(values)]
    return path + ("?" + "&".join(pairs) if pairs else "")


def options_of(name: str) -> dict[str, str | Sequence[str]]:
    options: dict[str, str | Sequence[str]] = {}
    for word in filter(None, name.partition("?")[2].split("&")):
        key, _, value = word.partition("=")
        known_name(key, KEYS, f"the task {name.partition('?')[0]}")
        options[key] = tuple(unquote(part).strip() for part in value.split(",")) if key in LISTS else unquote(value)
    return options


def own_task(name: str) -> OwnTask:
    """The task of a file or folder. Read once a process, for each state of its files.

    Raises :class:`~isonb.runtime.tables.SourceError` for what can't be read or has no good values,
    :class:`~isonb_lab.data.task.TaskError` and :class:`~isonb.errors.OptionError` for what can't be understood.
    """
    place = Path(os.path.expanduser(name.partition("?")[0])).absolute()
    described, places = _described(place) if place.suffix in YAML else ({}, (("", place),))
    spec = ColumnSpec(**(described | options_of(name)))
    state = tuple(entry for _, path in places for entry in _state(path))
    return _task_of(spelled(name), spec, places, state)


def _state(place: Path) -> State:
    try:
        files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        return file_state(files)
    except (OSError, ValueError) as error:
        why = f"no file {place}" if isinstance(error, FileNotFoundError) else shown(str(error))
        fail(SourceError, "own data must be a file or folder that is there", why, "Correct the path.")


def _described(place: Path) -> tuple[dict[str, Any], Places]:
    """What a YAML file says of the data, and where they lie: seen from its folder."""
    import yaml  # type: ignore[import-untyped]

    _state(place)
    try:
        content = yaml.load(place.read_text(encoding="utf-8"), yaml.BaseLoader)  # text as it stands: no is no false
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        fail(TaskError, f"{place} must be a readable YAML file", in_one_line(error), "Correct it.")
    if not isinstance(content, dict) or not content.get("data_files"):
        fail(TaskError, f"{place} must say data_files: FILE", "none", "Add it, seen from the folder of the YAML file.")
    files = content.pop("data_files")
    files = files if isinstance(files, dict) else {"": files}
    for key in content:
        known_name(key, ("data_files", *KEYS), f"the task {place.name}")
    lists = {key: value if isinstance(value, list) else [value] for key, value in content.items() if key in LISTS}
    for key, several in {"data_files": files.values(), **{key: [content[key]] for key in content}, **lists}.items():
        # the type alone is told: a kilobyte of aliases of aliases stands for 10^9 words
        if odd := [value for value in several if not isinstance(value, str)]:
            rule = "words" if key in LISTS else "a file, or a file a split" if key == "data_files" else "one word"
            fail(TaskError, f"{key} of {place.name} must be {rule}", f"a {type(odd[0]).__name__}", "Write it so.")
    values = content | {key: tuple(values) for key, values in lists.items()}
    return values, tuple((split, place.parent / Path(path).expanduser()) for split, path in files.items())


@functools.lru_cache(maxsize=8)
def _task_of(name: str, spec: ColumnSpec, places: Places, state: State) -> OwnTask:
    path = name.partition("?")[0]
    named = len(places) > 1 or bool(places[0][0])
    by_split, names = ({split: read_file(file) for split, file in places}, {}) if named else read_place(places[0][1])
    first = next(iter(by_split.values()))
    inputs, target = own_columns.text_and_target(first.column_names, spec)
    labels = names.get(target, ())
    kind = own_columns.task_kind(spec, inputs, target, first[target].to_pylist(), bool(labels))
    tables, notes = _by_use(by_split, kind, spec, path)
    for split, table in tables.items():
        if lacking := [column for column in (*inputs, target) if column not in table.column_names]:
            what = f"{path}, split {split!r} must have the columns of the others"
            fail(SourceError, what, f"no {lacking[0]}", "Add it.")
    tables, labels = own_columns.convert(path, kind, inputs, target, tables, spec.labels, labels)
    if kind != "similarity" and len(tables) == 1:
        tables, notes = _split_off(tables["train"], path)
    for table in tables.values() if kind in ("regression", "similarity") else ():
        own_columns.check_differ(table[target].to_pylist(), f"{path}: {target}")
    if "f1" in spec.metrics and len(labels) != 2:
        fix = "Take accuracy or matthews."
        fail(TaskError, f"{path} must have two labels for f1, which is that of the second", ", ".join(labels), fix)
    if kind == "span":
        inputs, target = ("question", "context"), "answers"
    return OwnTask(
        name,
        kind=kind,
        inputs=inputs,
        target=target,
        metrics=spec.metrics or METRICS[kind][:2],
        splits=tuple(tables),
        labels=labels,
        size=_size(kind, inputs, tables),
        place=", ".join(str(path) for _, path in places),
        notes=notes,
        state=state,
        tables=tables,
    )


def _size(kind: str, inputs: tuple[str, ...], tables: Mapping[str, Any]) -> TaskSize:
    """Rows, and tokens guessed from letters."""
    scored = tables[[*tables][-1]]
    letters = sum(len(text) for column in inputs for text in scored[column].to_pylist()) / len(scored)
    tokens = letters / LETTERS / (2 if kind == "similarity" else 1) + 2
    return TaskSize(len(tables.get("train", ())), len(scored), tokens)


def _by_use(
    by_split: Mapping[str, Any], kind: str, spec: ColumnSpec, path: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tables by the names that runs know, and what is to be said of the choice.

    These are ``test`` in similarity, else ``train`` and, where there is one, ``validation``.
    """
    for split in filter(None, (spec.training_split, spec.validation_split)):
        if split not in by_split:
            own_columns.unknown(split, filter(None, by_split), "a split")
    recognised = (*EVALUATION, *TRAINING) if kind == "similarity" else EVALUATION
    scored = spec.validation_split or next((split for split in recognised if split in by_split), "")
    if kind == "similarity":
        scored = scored if scored in by_split else _only(by_split, path)
        return {"test": by_split[scored]}, ((f"the pairs of {scored!r} are scored",) if scored else ())
    training = spec.training_split or next((split for split in TRAINING if split in by_split), "")
    training = training if training in by_split else _only(by_split, path)
    if not scored or scored == training:
        return {"train": by_split[training]}, ()
    notes = f"{training!r} is trained on, {scored!r} is reported"
    return {"train": by_split[training], "validation": by_split[scored]}, (notes,)


def _only(by_split: Mapping[str, Any], path: str) -> str:
    """The one split there is."""
    if len(by_split) > 1:
        fix = "Name them by --training-split and --validation-split."
        fail(TaskError, f"{path} must have splits called train and validation", ", ".join(by_split), fix)
    return next(iter(by_split))


def _split_off(table: Any, path: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A share of the rows kept for validation: the same ones for the same number of rows."""
    if len(table) < 4:
        fail(SourceError, f"{path} must have four rows or more, to train on and to score", len(table), "Add some.")
    away = sample(len(table), max(2, round(SHARE * len(table))), 0)
    stay = sorted({*range(len(table))} - {*away})
    notes = f"no validation split: {len(away)} of {len(table)} rows, always the same, are kept for validation"
    return dict(zip(FINE_TUNED, (table.take(stay), table.take(away)), strict=True)), (notes,)

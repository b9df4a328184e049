"""What a grid asks for, as conditions on the columns of a recording."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml  # type: ignore[import-untyped]

from isonb.errors import fail, in_one_line
from isonb.lab.data.tasks import TASKS
from isonb.lab.runs.protocols import BY_TASK, PROTOCOLS
from isonb.lab.runs.recordings import RecordedError
from isonb.runtime.places import shipped_grids

Settings: TypeAlias = Mapping[str, Any]  # by column: {"task": "cola", "method.name": "istar", "method.weight": -1}
FIRST = ("experiment", "task", "model", "method.name")  # of what a cell says; the seed is the last


@dataclass(frozen=True, eq=False)
class PlannedCell:
    """One run that a grid asks for: the settings that it names, by column, and those in words."""

    given: Settings
    name: str = ""


def plan_of(grid: str | Path, size: str) -> list[PlannedCell]:
    """The cells of one size of a grid, in the order they are written.

    ``grid``: a YAML file, or the name of one that comes with isonb. Raises
    :class:`~isonb.lab.runs.recordings.RecordedError` for a file that isn't there or lacks the size.
    """
    path = Path(grid) if Path(grid).is_file() else shipped_grids().get(str(grid), Path(grid))
    try:
        text = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, ValueError, yaml.YAMLError) as error:
        fix = f"Correct it, or name one of {', '.join(shipped_grids())}."
        fail(RecordedError, "a plan must be a readable grid", f"{in_one_line(error)} for {grid}", fix)
    if not isinstance(text, dict) or size not in text:
        fail(RecordedError, f"the grid must have the size {size}", f"none in {grid}", "Name another size or grid.")
    blocks = text[size] if isinstance(text[size], list) else [text[size]]
    usual = size if size in PROTOCOLS else "small"
    cells = [_spelled_out({"protocol": usual} | given) for block in blocks for given in _product(block)]
    return [PlannedCell(given, in_words(given)) for given in cells]


def in_words(given: Settings) -> str:
    """Settings as a line that tells a run from all others of its grid.

    >>> in_words({"seed": 1, "task": "cola", "method.name": "istar", "method.weight": -1})
    'task cola, method istar, weight -1, seed 1'
    """
    rest = sorted(given.keys() - {*FIRST, "seed"})
    told = {column: given[column] for column in (*FIRST, *rest, "seed") if column in given}
    if told.get("experiment") == "finetune":
        del told["experiment"]
    words = {column: column.removeprefix("method.") for column in told} | {"method.name": "method"}
    return ", ".join(f"{words[column]} {value}" for column, value in told.items())


def _product(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of a block's values; a method that is a mapping is a block of its own."""
    choices = {name: value if isinstance(value, list) else [value] for name, value in block.items()}
    if "method" in choices:
        methods = (_product(one) if isinstance(one, dict) else [{"name": one}] for one in choices["method"])
        choices["method"] = list(itertools.chain.from_iterable(methods))
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def _spelled_out(given: dict[str, Any]) -> dict[str, Any]:
    """A cell with the values of its protocol, by column."""
    protocol, task = given.pop("protocol"), str(given.get("task"))
    kind = TASKS[task].kind if task in TASKS else ""
    given = {"experiment": "similarity" if kind == "similarity" else "finetune"} | given
    like = "finetune" if given["experiment"] == "doses" else given["experiment"]
    method = {f"method.{name}": value for name, value in given.pop("method", {}).items()}
    return PROTOCOLS[protocol].get(like, {}) | BY_TASK.get(protocol, {}).get(task, {}) | given | method

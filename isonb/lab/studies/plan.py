"""What a grid asks for, as conditions on the columns of a recording, and the rows that meet them.

A block of a grid names settings; all others have their defaults. So a cell of the plan is met by the row whose settings
differ from the defaults in what the cell names, and in nothing else. The defaults are those that the recording states
of its own options. An option that is newer than the recording isn't among its columns: with its default, which no cell
has to name, it changes nothing; a cell that names it is met by no row.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import yaml  # type: ignore[import-untyped]

from isonb.errors import fail
from isonb.lab.data.tasks import TASKS
from isonb.lab.runs.protocols import BY_TASK, PROTOCOLS
from isonb.lab.runs.recordings import Recorded, RecordedError
from isonb.lab.runs.run_ids import canonical
from isonb.lab.runs.table import FIRST
from isonb.runtime.places import shipped_grids

__all__ = ["PlannedCell", "Settings", "filled", "plan_of", "settings_of_rows", "usual_settings"]

Settings: TypeAlias = Mapping[str, Any]  # by column: {"task": "cola", "method.name": "istar", "method.weight": -1}


@dataclass(frozen=True, eq=False)
class PlannedCell:
    """One run that a grid asks for: what it says, by column."""

    given: Settings

    @property
    def name(self) -> str:
        """The cell as a line that tells it from all others.

        >>> PlannedCell({"seed": 1, "task": "cola", "method.name": "istar", "method.weight": -1}).name
        'task cola, method istar, weight -1, seed 1'
        """
        last = {"seed": 2}
        first = {"experiment": -4, "model": -2, "task": -3, "method.name": -1}
        order = sorted(self.given, key=lambda column: (first.get(column, last.get(column, 0)), column))
        words = {"method.name": "method"} | {c: c.removeprefix("method.") for c in order if c != "method.name"}
        told = (column for column in order if (column, self.given[column]) != ("experiment", "finetune"))
        return ", ".join(f"{words[column]} {self.given[column]}" for column in told)


def plan_of(grid: str | Path, size: str) -> list[PlannedCell]:
    """The cells of one size of a grid, in the order they are written.

    ``grid``: a YAML file, or the name of one that comes with isonb.
    """
    path = Path(grid) if Path(grid).is_file() else shipped_grids().get(str(grid), Path(grid))
    try:
        text = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        fix = f"Correct it, or name one of {', '.join(shipped_grids())}."
        fail(RecordedError, "a plan must be a readable grid", f"{error} for {grid}", fix)
    if not isinstance(text, dict) or size not in text:
        fail(RecordedError, f"the grid must have the size {size}", f"none in {grid}", "Name another size or grid.")
    blocks = text[size] if isinstance(text[size], list) else [text[size]]
    usual = size if size in PROTOCOLS else "small"
    return [PlannedCell(_spelled_out({"protocol": usual} | given)) for block in blocks for given in _product(block)]


def _product(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of a block's values; a method that is a mapping is a block of its own."""
    choices = [value if isinstance(value, list) else [value] for value in block.values()]
    if "method" in block:
        at = list(block).index("method")
        methods = [_product(one) if isinstance(one, dict) else [{"name": one}] for one in choices[at]]
        choices[at] = list(itertools.chain.from_iterable(methods))
    for values in itertools.product(*choices):
        yield dict(zip(block, values, strict=True))


def _spelled_out(given: dict[str, Any]) -> dict[str, Any]:
    """A cell with the values of its protocol, by column."""
    protocol, task = given.pop("protocol"), str(given.get("task"))
    kind = TASKS[task].kind if task in TASKS else ""
    given = {"experiment": "similarity" if kind == "similarity" else "finetune"} | given
    like = "finetune" if given["experiment"] == "doses" else given["experiment"]
    method = {f"method.{name}": value for name, value in given.pop("method", {}).items()}
    return PROTOCOLS[protocol].get(like, {}) | BY_TASK.get(protocol, {}).get(task, {}) | given | method


def settings_of_rows(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """The settings of each row of a table of runs; what a row lacks is left out."""
    columns = [name for name in runs if name not in FIRST and not name.startswith(("metric.", "manifest."))]
    plain = ({name: _plain(value) for name, value in row.items()} for row in runs[columns].to_dict("records"))
    return [{name: value for name, value in row.items() if value is not None} for row in plain]


def filled(plan: Sequence[PlannedCell], recordings: Sequence[Recorded]) -> dict[PlannedCell, str | None]:
    """The cells, each once, and the run id of the recorded row that meets it; None where none does.

    Of several recordings that have such a row the first counts, and of several such rows of one the first.
    """
    every = {name: options for one in recordings[::-1] for name, options in one.defaults.items()}
    cells: dict[Any, PlannedCell] = {}
    for cell in plan:
        cells.setdefault(_identity(cell.given, every), cell)
    ids: dict[PlannedCell, str | None] = dict.fromkeys(cells.values())
    for one in recordings:
        there: dict[Any, str] = {}
        for run, settings in zip(one.runs["run_id"], settings_of_rows(one.runs), strict=True):
            unset = {name: None for name in usual_settings(settings, one.defaults) if name in one.runs}
            there.setdefault(_identity(unset | settings, one.defaults), str(run))
        ids = {cell: run or there.get(_identity(cell.given, one.defaults)) for cell, run in ids.items()}
    return ids


def _identity(settings: Settings, defaults: Mapping[str, Settings]) -> frozenset[tuple[str, str]]:
    """The settings that aren't at their default, as one value to compare."""
    usual = usual_settings(settings, defaults)
    words = {name: _word(value) for name, value in settings.items()}
    return frozenset(item for item in words.items() if item[0] not in usual or item[1] != _word(usual[item[0]]))


def usual_settings(settings: Settings, defaults: Mapping[str, Settings]) -> dict[str, Any]:
    """The defaults of the experiment and the method that these settings name."""
    experiment = defaults.get(settings["experiment"], {})
    method = settings.get("method.name", "none")
    named = {} if settings["experiment"] == "synthetic" else {"method.name": "none"}
    return {**named, **experiment, **defaults.get(f"method.{method}", {})}


def _plain(value: Any) -> Any:
    """A value of a table as Python has it; None for a missing one."""
    value = getattr(value, "item", lambda: value)()
    return None if value is None or value != value else value


@functools.lru_cache(maxsize=4096, typed=True)
def _word(value: Any) -> str:
    """One text for all ways of writing a value: 1, 1.0 and "1"."""
    return canonical({"": value})

"""The rows of a task: one way to load them, and the same columns, types and order whatever they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isonb.errors import fail, in_one_line
from isonb.runtime.tables import SourceError
from isonb_lab.data import sources
from isonb_lab.data.task import Selection, Task, TaskError
from isonb_lab.data.tasks import task_named


def load_task(
    name: str, source: str | Path | None = None, *, split: str | None = None, limit: int | None = None, seed: int = 0
) -> Any:
    """The rows of one split as a ``datasets.Dataset`` with the columns ``TASKS[name].columns``.

    Where ``datasets`` isn't installed: as :class:`PlainRows`.

    Args:
        name: of :data:`TASKS`, or a file of your own.
        source: a folder in the hub's layout (``glue/cola/train.parquet``), or "hub" for the hub and its local cache.
            None: the folder in the environment variable ISONB_DATA, else the hub. For rows of one's own, and those
            that we generate, it says nothing.
        split: None takes the task's first one.
        limit: at most so many rows, drawn by ``seed`` and kept in file order; a smaller limit takes some of a larger
            one's.
        seed: of the draw.

    Raises :class:`TaskError` for an unknown task or split and a bad limit or seed, before anything is read, and
    :class:`SourceError` for a missing folder, file or column, an empty split, a missing value, a label out of range,
    and a hub that can't be reached with nothing in the cache.

    A similarity task read from the hub has an empty ``subset`` column: the hub's copies don't keep it.
    """
    task = task_named(name)
    split = task.splits[0] if split is None else split
    if split not in task.splits:
        fix = f"Choose one of these. {task.note}".strip()
        fail(TaskError, f"the split of {task.name} must be one of {', '.join(task.splits)}", repr(split), fix)
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        fail(TaskError, "limit must be an integer of at least 1, or None", repr(limit), "None takes all rows.")
    if not isinstance(seed, int):
        fail(TaskError, "seed must be an integer", repr(seed), "Try 0.")
    selection = Selection(task, split, limit, seed)
    return read_rows(selection, sources.rows_folder([selection], source))


def read_rows(selection: Selection, folder: Path | None) -> Any:
    """The rows of :func:`load_task`, from a data folder; None: from the hub, if they are the hub's."""
    table = sources.read_table(selection.task, selection.split, folder)
    if len(table) == 0:
        fail(SourceError, f"{selection} must have rows", "none", "Copy or make the split again.")
    chosen = sources.sample(len(table), selection.limit, selection.seed)
    return conform(selection.task, str(selection), table, chosen)


def count_rows(selection: Selection, folder: Path | None, least: int = 1) -> int:
    """How many rows a split has, at least so many; its columns and first values are checked, as by :func:`conform`."""
    table, count = sources.first_rows(selection.task, selection.split, folder)
    if count:
        conform(selection.task, str(selection), table, list(range(len(table))))
    if count < least:
        fail(SourceError, f"{selection} must have at least {least} rows", count, "Copy the split again.")
    return count


def conform(task: Task, where: str, table: Any, chosen: list[int]) -> Any:
    """The ``chosen`` rows of an Arrow table as a ``datasets.Dataset`` of the task's columns, every value checked.

    Raises :class:`~isonb.runtime.tables.SourceError`, beginning with ``where``, for a missing column, values of
    another type, missing values, labels out of range, questions without answers and scores that aren't finite.
    """
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    if task.subsets and "subset" not in table.column_names:
        table = table.append_column("subset", pyarrow.array([""] * len(table)))
    missing = [column for column in task.columns if column not in table.column_names]
    if missing:
        invariant = f"{where} must have the columns {', '.join(task.columns)}"
        fail(SourceError, invariant, f"{', '.join(table.column_names)}", f"Add {', '.join(missing)}.")
    table, types = table.select(list(task.columns)), _types(task)
    try:
        table = table.replace_schema_metadata(None).cast(pyarrow.schema(types))
    except pyarrow.ArrowException as error:
        what = f"{where} must hold values of the hub's types ({types})"
        fail(SourceError, what, in_one_line(error), "Convert the columns.")
    _check_values(task, where, table)
    return _as_dataset(table.take(chosen), task)


def _types(task: Task) -> dict[str, Any]:
    """The Arrow types of the hub's columns."""
    import pyarrow

    answers = {"text": pyarrow.list_(pyarrow.string()), "answer_start": pyarrow.list_(pyarrow.int32())}
    target = {
        "classification": pyarrow.int64(),
        "regression": pyarrow.float32(),
        "similarity": pyarrow.float64(),
        "span": pyarrow.struct(answers),
    }
    return dict.fromkeys(task.columns, pyarrow.string()) | {task.target: target[task.kind]}


def _as_dataset(table: Any, task: Task) -> Any:
    try:
        from datasets import ClassLabel, Dataset, Features
    except ImportError:
        return PlainRows(table)
    features = Features.from_arrow_schema(table.schema)
    if task.kind == "classification":
        features[task.target] = ClassLabel(names=list(task.labels))
    return Dataset(table.replace_schema_metadata(features.arrow_schema.metadata))


@dataclass(frozen=True)
class PlainRows:
    """What runs use of a ``datasets.Dataset``, where that library isn't installed."""

    table: Any

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table.to_pylist())

    def __getitem__(self, column: str) -> list[Any]:
        values: list[Any] = self.table[column].to_pylist()
        return values

    def select(self, rows: Sequence[int]) -> PlainRows:
        return PlainRows(self.table.take(list(rows)))


def _check_values(task: Task, where: str, table: Any) -> None:
    from pyarrow import compute  # type: ignore[import-untyped,unused-ignore]

    for column in table.column_names:
        if table[column].null_count:
            row = compute.index(compute.is_null(table[column]), True).as_py()
            fail(SourceError, f"{where}: {column} must have a value in each row", f"none in row {row}", "Fill it in.")
    target = table[task.target]
    if task.kind == "classification":
        low, high = compute.min_max(target).as_py().values()
        if low < 0 or high >= len(task.labels):
            fix = f"Number the labels {', '.join(f'{i} {label}' for i, label in enumerate(task.labels))}."
            fail(SourceError, f"{where}: labels must lie in 0..{len(task.labels) - 1}", f"{low}..{high}", fix)
    elif task.kind == "span":
        if compute.min(compute.list_value_length(compute.struct_field(target, "text"))).as_py() < 1:
            fail(SourceError, f"{where}: each question must have an answer", "none", "Use SQuAD v1.1, not v2.0.")
    elif not compute.all(compute.is_finite(target)).as_py():
        fail(SourceError, f"{where}: {task.target} must be finite", "NaN or Inf", "Drop those rows.")

"""From whatever table a source gave to the columns and types that a task promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isonb.checks import fail
from isonb.lab.data.sources import SourceError

if TYPE_CHECKING:
    from isonb.lab.data.tasks import Task

__all__ = ["conform"]


def conform(task: Task, where: str, table: Any, chosen: list[int]) -> Any:
    """The ``chosen`` rows of an Arrow table as a ``datasets.Dataset`` of the task's columns, every value checked.

    Raises :class:`~isonb.lab.data.sources.SourceError`, beginning with ``where``, for a missing column, values of
    another type, missing values, labels out of range, questions without answers and scores that aren't finite.
    """
    import pyarrow  # type: ignore[import-untyped,unused-ignore]
    from datasets import Dataset

    if task.subsets and "subset" not in table.column_names:
        table = table.append_column("subset", pyarrow.array([""] * len(table)))
    missing = [column for column in task.columns if column not in table.column_names]
    if missing:
        invariant = f"{where} must have the columns {', '.join(task.columns)}"
        fail(SourceError, invariant, f"{', '.join(table.column_names)}", f"Add {', '.join(missing)}.")
    table, features = table.select(list(task.columns)), _features(task)
    try:
        table = table.replace_schema_metadata(None).cast(pyarrow.schema(list(features.arrow_schema)))
    except pyarrow.ArrowException as error:
        why = str(error).split("\n")[0]
        fail(SourceError, f"{where} must hold values of the hub's types ({features})", why, "Convert the columns.")
    _check_values(task, where, table)
    return Dataset(table.take(chosen).replace_schema_metadata(features.arrow_schema.metadata))


def _features(task: Task) -> Any:
    from datasets import ClassLabel, Features, List, Value

    types: dict[str, Any] = {column: Value("string") for column in task.columns}
    types[task.target] = {
        "classification": ClassLabel(names=list(task.labels)) if task.labels else None,
        "regression": Value("float32"),
        "similarity": Value("float64"),
        "span": {"text": List(Value("string")), "answer_start": List(Value("int32"))},
    }[task.kind]
    return Features(types)


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

"""Splits that are made of other splits: where the hub names one otherwise, and where a score rests on more rows.

SST-2 has 872 validation rows, which know an accuracy to 1.4 points. The sentences of SST-5's test set that aren't
neutral are SST-2's own test set, and their labels are public. MNLI has two validation splits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """One split of a task. ``labels``: what its labels are called in the whole; rows with another are left out."""

    task: str
    split: str
    labels: Mapping[int, int] | None = None


PARTS: dict[str, dict[str, tuple[Part, ...]]] = {
    "sst2_joint": {
        "train": (Part("sst2", "train"),),
        "validation": (Part("sst2", "validation"), Part("sst5", "test", {0: 0, 1: 0, 3: 1, 4: 1})),
    },
    "mnli": {"validation": (Part("mnli", "validation_matched"),)},
    "mnli_mm": {"train": (Part("mnli", "train"),), "validation": (Part("mnli", "validation_mismatched"),)},
}


def part_rows(part: Part, table: Any, own: tuple[str, ...], columns: tuple[str, ...]) -> Any:
    """The rows of a part of the Arrow ``table``, its columns ``own``, the target last, named ``columns``."""
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    target = table[own[-1]].to_pylist()
    rows: Sequence[int] = range(len(table))
    if part.labels is not None:
        rows = [row for row in rows if target[row] in part.labels]
        target = [part.labels.get(label) for label in target]
    inputs = [table[name].cast(pyarrow.string()) for name in own[:-1]]
    return pyarrow.table([*inputs, pyarrow.array(target)], names=list(columns)).take(list(rows))

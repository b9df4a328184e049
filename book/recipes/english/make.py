"""Writes the rows of the generated tasks into isonb: ``python book/recipes/english/make.py``. Same rows everywhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from english.suite import SPLITS, TASKS, suite

OUT = Path(__file__).parents[2] / "isonb_lab" / "data" / "english.parquet"


def table() -> pa.Table:
    """Every row with its task and split; what a task lacks is null."""
    return pa.Table.from_pylist(
        [{"task": task, "split": split, **row} for task in TASKS for split in SPLITS for row in suite(task, split)],
        schema=pa.schema(
            [
                *((name, pa.string()) for name in ("task", "split", "sentence", "sentence1", "sentence2")),
                ("label", pa.int64()),
                ("score", pa.float64()),
                *((name, pa.string()) for name in ("id", "title", "context", "question")),
                ("answers", pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int64()))])),
            ]
        ),
    )


if __name__ == "__main__":
    pq.write_table(table(), OUT, compression="zstd", compression_level=19)
    print(f"{OUT}: {OUT.stat().st_size:,} bytes")

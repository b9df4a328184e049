"""Rows in parquet files, and a folder of data that holds the task cola."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet


def write_rows(file: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A parquet file of these rows, in folders that are made for it; returns the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file


def cola_rows(count: int = 80, word: str = "Sentence") -> list[dict[str, Any]]:
    """Rows of cola, every second one acceptable."""
    return [{"sentence": f"{word} {i}.", "label": i % 2, "idx": i} for i in range(count)]


def save_cola(folder: Path, count: int = 80, word: str = "Sentence") -> Path:
    """The rows of :func:`cola_rows` to train on and to validate on, in a folder of data; returns the folder."""
    for split in ("train", "validation"):
        write_rows(folder / f"glue/cola/{split}.parquet", cola_rows(count, word))
    return folder

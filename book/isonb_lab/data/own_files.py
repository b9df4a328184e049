"""The files of a user's own data, as tables: CSV, TSV, JSON lines, parquet, and saved Hugging Face data sets.

What a file holds is read as it is written. What it means is for :mod:`isonb_lab.data.own_columns`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isonb.errors import fail, in_one_line
from isonb.runtime.tables import READERS, SourceError, read_file

TRAINING = ("train", "training")
EVALUATION = ("validation", "valid", "val", "dev", "test")
SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk leaves of a dictionary of splits, of one data set


def read_place(place: Path) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Arrow tables by split ("" where there is one and nobody named it), and the names of labels by column.

    A folder is a saved data set, or holds files named ``train``, ``validation``, ... Raises
    :class:`~isonb.runtime.tables.SourceError`.
    """
    if not place.is_dir():
        return {"": read_file(place)}, {}
    if any((place / name).is_file() for name in SAVED):
        return _saved(place)
    splits = (*TRAINING, *EVALUATION)
    found = [path for path in sorted(place.iterdir()) if path.suffix in READERS and path.stem in splits]
    files = {path.stem: path for path in found}
    if len(files) < len(found):
        got = ", ".join(path.name for path in found)
        fail(SourceError, f"{place} must hold one file a split", got, "Take one away, or name the files in YAML.")
    if not files:
        what = f"{place} must be a saved data set, or hold train and validation files ({', '.join(READERS)})"
        got = ", ".join(sorted(path.name for path in place.iterdir())[:8]) or "an empty folder"
        fail(SourceError, what, got, "Name one of its files, or save the set by save_to_disk.")
    return {split: read_file(path) for split, path in files.items()}, {}


def _saved(place: Path) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """What ``save_to_disk`` of the library ``datasets`` has left."""
    import datasets

    try:
        loaded = datasets.load_from_disk(str(place))
        splits = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"": loaded}
        tables = {name: rows.with_format("arrow")[:] for name, rows in splits.items()}
    except Exception as error:  # a damaged set makes several libraries fail in ways of their own
        what = f"{place} must be a data set saved by save_to_disk"
        fail(SourceError, what, in_one_line(error), "Save it again.")
    if not all(len(table) for table in tables.values()):
        fail(SourceError, f"{place} must have rows in each split", "an empty one", "Save it again.")
    kinds = {name: kind for rows in splits.values() for name, kind in rows.features.items()}
    return tables, {name: tuple(kind.names) for name, kind in kinds.items() if hasattr(kind, "names")}

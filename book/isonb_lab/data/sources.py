"""Where the rows of a task come from: a folder in the hub's layout, the hub itself, or a generator of ours.

Each reader gives an Arrow table; :mod:`isonb_lab.data.rows` checks the columns afterwards.
A folder holds ``<data set>/<split>.parquet`` (or the hub's ``<split>-00000-of-00001.parquet`` shards).
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from isonb.errors import fail, in_one_line
from isonb.runtime.tables import SourceError
from isonb_lab.data.task import Part, Selection, Task

DATA_VARIABLE = "ISONB_DATA"
HUB = "hub"
PEEK = 16  # rows of a file whose values are looked at
State = tuple[tuple[str, int, int], ...]  # names, sizes and times of files: they are read again only when one changes


def data_folder(source: str | Path | None) -> Path | None:
    """The folder to read, or None for the hub.

    ``source`` is a folder or "hub"; None means the folder that the environment variable ISONB_DATA names, and the hub
    where it is not set. Raises :class:`SourceError` when the folder is not there.
    """
    if source == HUB:
        return None
    named = source if source is not None else os.environ.get(DATA_VARIABLE) or None
    if named is None:
        return None
    folder = Path(named).expanduser()
    if not str(named) or not folder.is_dir():
        what = f"the data folder ({DATA_VARIABLE})" if source is None else "source"
        fix = f"Correct the path, or pass source={HUB!r} to download."
        fail(SourceError, f"{what} must be an existing folder", repr(str(named)), fix)
    return folder.resolve()


def rows_folder(selections: Iterable[Selection], source: str | Path | None) -> Path | None:
    """The :func:`data_folder` of some rows; None, too, where none of them are the hub's."""
    return data_folder(source) if any(rows.task.hub for rows in selections) else None


def find_rows(selections: Iterable[Selection], folder: Path | None) -> None:
    """Raise :class:`SourceError` for rows that are neither in the data folder nor, where there is none, on the hub."""
    of_hub = [rows for rows in selections if rows.task.hub]
    if folder is not None:
        for rows in of_hub:
            split_files(rows.task, rows.split, folder)
        return
    for hub in dict.fromkeys(str(rows.task.hub) for rows in of_hub):
        place_on_hub(hub)


def split_files(task: Task, split: str, folder: Path) -> list[Path]:
    """The files below a data folder that a split of a hub's task is read from.

    Raises :class:`SourceError` where one is missing.
    """
    parts = [(part.task.folder, part.split) for part in task.parts.get(split, ())] or [(task.folder, split)]
    return [file for data_set, name in parts for file in parquet_files(folder, data_set, name)]


def files_state(selections: Iterable[Selection], folder: Path | None) -> State:
    """The :data:`State` of the files in a data folder that rows are read from."""
    if folder is None:
        return ()
    read = [rows for rows in selections if rows.task.hub]
    return file_state(file for rows in read for file in split_files(rows.task, rows.split, folder))


def file_state(files: Iterable[Path]) -> State:
    """The :data:`State` of some files."""
    return tuple((str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files)


def read_table(task: Task, split: str, folder: Path | None) -> Any:
    """The Arrow table of a split: of one's own, generated, from a data folder, or without one from the hub."""
    from pyarrow import concat_tables  # type: ignore[import-untyped,unused-ignore]

    if task.tables:
        return task.tables[split]
    if task.hub is None:
        return generated_rows(task, split)
    if parts := task.parts.get(split):
        return concat_tables([_read_part(part, task.columns, folder) for part in parts])
    if folder is not None:
        return read_folder(folder, task.folder, split)
    return read_hub(task.hub, task.config, split)


def _read_part(part: Part, columns: Sequence[str], folder: Path | None) -> Any:
    """The rows of a part, its columns named as those of the whole; the target is the last."""
    import pyarrow

    table, (*inputs, target) = read_table(part.task, part.split, folder), part.task.columns
    labels = table[target].to_pylist()
    rows = [row for row, label in enumerate(labels) if part.labels is None or label in part.labels]
    labels = labels if part.labels is None else [part.labels.get(label) for label in labels]
    values = [*(table[name].cast(pyarrow.string()) for name in inputs), pyarrow.array(labels)]
    return pyarrow.table(values, names=list(columns)).take(rows)


def first_rows(task: Task, split: str, folder: Path | None) -> tuple[Any, int]:
    """The first rows of a split and how many it has in all; only of files in a data folder the others aren't read."""
    if task.hub and folder is not None and split not in task.parts:
        return peek_folder(folder, task.folder, split, PEEK)
    table = read_table(task, split, folder)
    return table, len(table)


@cache  # a run reads its rows several times, and a chapter makes many runs
def generated_rows(task: Task, split: str) -> Any:
    """The Arrow table of one split of a task of controlled English, which ships with the lab."""
    from pyarrow import compute, parquet

    # english_sts: the same pairs as english_similarity, to be scored by cosine without training
    home = "similarity" if task.name == "english_sts" else task.name.removeprefix("english_")
    selection = (compute.field("task") == home) & (compute.field("split") == split)
    file = Path(__file__).with_name("english.parquet")
    return parquet.read_table(file, columns=list(task.columns), filters=selection)


def read_folder(root: Path, data_set: str, split: str) -> Any:
    """The Arrow table of one split below ``root``; :class:`SourceError` says which file was expected where."""
    from pyarrow import concat_tables  # type: ignore[import-untyped,unused-ignore]

    with _opened(parquet_files(root, data_set, split)) as files:
        # file by file: column types and metadata as written, and no folder name is taken for a column
        return concat_tables([file.read() for file in files], promote_options="default")


def peek_folder(root: Path, data_set: str, split: str, count: int) -> tuple[Any, int]:
    """The first rows of one split, at most ``count``, and how many it has in all: from the footers of its files.

    Raises :class:`SourceError` as :func:`read_folder`.
    """
    from pyarrow import Table  # type: ignore[import-untyped,unused-ignore]

    with _opened(parquet_files(root, data_set, split)) as files:
        first = next((file for file in files if file.metadata.num_rows), files[0])
        rows = list(itertools.islice(first.iter_batches(batch_size=count), 1))
        return Table.from_batches(rows, first.schema_arrow), sum(file.metadata.num_rows for file in files)


@contextlib.contextmanager
def _opened(paths: Sequence[Path]) -> Iterator[list[Any]]:
    """The files of a split, no rows read. What can't be read, and a column that stands twice, is a SourceError."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped,unused-ignore]

    try:
        files = [ParquetFile(path) for path in paths]
        for names in (file.schema_arrow.names for file in files):
            if twice := [name for name in names if names.count(name) > 1]:
                what, fix = f"{paths[0]} must have each column once", "Rename or drop one of them."
                fail(SourceError, what, f"{twice[0]} twice", fix)
        yield files
    except (ArrowException, OSError) as error:
        fail(SourceError, f"{paths[0]} must be a readable parquet file", in_one_line(error), "Copy the file again.")


def parquet_files(root: Path, data_set: str, split: str) -> list[Path]:
    """The files of one split in order: ``<split>.parquet``, or all shards ``<split>-00000-of-00002.parquet``, ..."""
    folder = root / data_set
    whole = folder / f"{split}.parquet"
    if whole.is_file():
        return [whole]
    shards = sorted(folder.glob(f"{split}-?????-of-?????.parquet"))
    whole_set = [f"{split}-{i:05d}-of-{len(shards):05d}.parquet" for i in range(len(shards))]
    if not shards or [path.name for path in shards] != whole_set:
        present = sorted(path.name for path in folder.glob("*.parquet")) if folder.is_dir() else "no such folder"
        fix = f"Put the split there, or pass source={HUB!r} to download."
        fail(SourceError, f"the split {split!r} must be at {whole} (or in all its shards)", present or "no files", fix)
    return shards


def read_hub(hub_id: str, config: str | None, split: str) -> Any:
    """The Arrow table of one split of a hub data set, downloaded or, without network, from the local cache.

    Raises :class:`SourceError` with the way out (a folder) when neither gives it.
    """
    import datasets

    described = f"{hub_id} ({config or 'default'}, {split})"
    reachable = _answer(hub_id) is not None  # what a refusal means, the reader will say
    with _quiet(offline=not reachable):
        try:
            rows = datasets.load_dataset(hub_id, config, split=split)
        except Exception as error:  # the clients raise errors of five libraries; each means that there are no rows
            why = f"{type(error).__name__}: {in_one_line(error)}"
            why = why if reachable else f"no answer from {datasets.config.HF_ENDPOINT} and no copy in the cache"
            fix = f"Connect once to fill the cache, or name a folder in the hub's layout by source= or {DATA_VARIABLE}."
            raise SourceError(f"{described} must be on the hub or in the local cache; got {why}. {fix}") from error
    return rows.with_format("arrow")[:]


def place_on_hub(hub_id: str) -> str:
    """Where a data set of the hub would come from, in words; the hub is asked once and nothing is downloaded.

    Raises :class:`SourceError` when the hub doesn't have it, or doesn't answer and there is no copy in the cache.
    """
    from huggingface_hub import constants

    if answer := _answer(hub_id):
        fail(SourceError, f"{hub_id} must be on the hub", answer, "Name a folder of data.")
    if answer is not None:
        return f"{hub_id} on the hub"
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME) / "datasets")
    if cache.is_dir() and hub_id.replace("/", "___").lower() in (path.name.lower() for path in cache.iterdir()):
        return f"{hub_id} in the hub's cache"
    got = f"no answer from {constants.ENDPOINT} and no copy"
    fix = f"Connect once to fill the cache, or name a folder of data by --data, source= or {DATA_VARIABLE}."
    return fail(SourceError, f"{hub_id} must be on the hub or in its cache", got, fix)


def _answer(hub_id: str) -> str | None:
    """What the hub says of a data set: "" that it is there, words that it isn't, None nothing at all."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().dataset_info(hub_id, timeout=10)
    except HfHubHTTPError as error:
        return in_one_line(error)
    except Exception:  # offline mode, no route, no answer in time: of whichever client is in use
        return None
    return ""


@contextlib.contextmanager
def _quiet(*, offline: bool) -> Iterator[None]:
    """No bars and no notices inside the block, and with ``offline`` no network either."""
    import datasets

    bars, level = not datasets.are_progress_bars_disabled(), datasets.logging.get_verbosity()
    was_offline = datasets.config.HF_HUB_OFFLINE
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    datasets.config.HF_HUB_OFFLINE = was_offline or offline
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = was_offline
        datasets.logging.set_verbosity(level)
        if bars:
            datasets.enable_progress_bars()


def sample(size: int, limit: int | None, seed: int) -> list[int]:
    """``limit`` of ``size`` row numbers drawn by ``seed``, in file order; all of them when that is fewer or None.

    The draw depends on nothing but the three numbers, and a smaller limit gives some of a larger one's.

    >>> sample(10, 3, 0), sample(10, 4, 0), sample(3, None, 0)
    ([3, 5, 7], [2, 3, 5, 7], [0, 1, 2])
    """
    if limit is None or limit >= size:
        return list(range(size))
    draw = Random(seed)  # random() of a seeded generator is the one stream that Python promises to keep
    keys = [draw.random() for _ in range(size)]
    return sorted(sorted(range(size), key=keys.__getitem__)[:limit])


def fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 over the content of the rows (column names, values, row order), whatever they were read from.

    >>> fingerprint([{"text": "A cone.", "label": 1}])[:8] == fingerprint([{"label": 1, "text": "A cone."}])[:8]
    True
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(dict(row), sort_keys=True, ensure_ascii=False).encode())
        digest.update(b"\n")
    return digest.hexdigest()

"""Hidden states on disk: computed once, read by every run of the same model, layer and texts.

They lie in ``$ISONB_CACHE/states`` in float16, a file for each model, layer and list of texts, whose digest names it.
All files together stay below ``ISONB_STATES_GB`` (:data:`MOST_GB` where that isn't set): those that were read longest
ago go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from isonb.errors import InputError, fail
from isonb.models.catalogue import cache_folder
from isonb.runtime.files import DiskError
from isonb_lab.runtime.locks import file_lock

LIMIT_VARIABLE = "ISONB_STATES_GB"
MOST_GB = 20.0
GB = 10**9

Array = np.ndarray[tuple[int, ...], np.dtype[np.float16]]
Batch = tuple[Sequence[int], Array]


def states_folder() -> Path:
    """Where hidden states lie: ``$ISONB_CACHE/states``."""
    return cache_folder() / "states"


def limit() -> float:
    """The bytes that all files together may have.

    Raises :class:`~isonb.errors.InputError` where ``ISONB_STATES_GB`` isn't a number above 0.
    """
    setting = os.environ.get(LIMIT_VARIABLE, str(MOST_GB))
    with contextlib.suppress(ValueError):
        if (size := float(setting)) > 0:
            return size * GB
    return fail(InputError, f"{LIMIT_VARIABLE} must be a number of gigabytes above 0", setting, "Try 20.")


def digest(model: str, layer: int, texts: Iterable[bytes]) -> str:
    """The name of the file with the states of a model (its fingerprint) at a layer, of texts as their tokens' bytes.

    >>> digest("a", 4, [b"one", b"two"]) == digest("a", 4, [b"one", b"two"]) != digest("a", 3, [b"one", b"two"])
    True
    """
    named = hashlib.sha256(f"{model} {layer}\n".encode())
    for text in texts:
        named.update(hashlib.sha256(text).digest())
    return named.hexdigest()[:32]


def states(name: str, lengths: Sequence[int], width: int, compute: Callable[[], Iterable[Batch]]) -> Array:
    """The states (sum of ``lengths``, ``width``) of texts, text after text, mapped from the file called ``name``.

    Where it isn't there, ``compute`` gives them: the numbers of some texts, and their states one after the other. One
    process computes and the others wait; a file appears when it is whole.

    Raises :class:`~isonb.errors.InputError` for more states than the limit allows, and
    :class:`~isonb.runtime.files.DiskError` where the disk is full.
    """
    path = states_folder() / f"{name}.npy"
    shape = (sum(lengths), width)
    with file_lock([path.with_suffix(".lock")]):
        if not path.is_file():
            _make_room(2 * shape[0] * shape[1], shape)
            _write(path, shape, np.cumsum([0, *lengths]).tolist(), lengths, compute)
    path.touch()
    computed: Array = np.load(path, mmap_mode="r")
    return computed


def _write(
    path: Path,
    shape: tuple[int, int],
    starts: Sequence[int],
    lengths: Sequence[int],
    compute: Callable[[], Iterable[Batch]],
) -> None:
    part = path.with_suffix(".part")  # whoever holds the lock writes; what a killed process has left is overwritten
    try:
        whole = np.lib.format.open_memmap(part, mode="w+", dtype=np.float16, shape=shape)
        with part.open("r+b") as file:  # all its room at once: a full disk is an error here, and a crash on a map
            os.posix_fallocate(file.fileno(), 0, part.stat().st_size)
        for rows, computed in compute():
            ends = np.cumsum([lengths[row] for row in rows])
            for row, end in zip(rows, ends, strict=True):
                whole[starts[row] : starts[row] + lengths[row]] = computed[end - lengths[row] : end]
        whole.flush()
        del whole
        part.replace(path)
    except OSError as error:
        raise DiskError(f"hidden states must fit on the disk; got {error}. Free some room at {path.parent}.") from error
    finally:
        part.unlink(missing_ok=True)


def _make_room(size: int, shape: tuple[int, int]) -> None:
    """Remove the files that were read longest ago, until ``size`` bytes more stay below the limit."""
    most = limit()
    if size > most:
        must = f"hidden states must fit into {most / GB:g} GB"
        got = f"{shape[0]:,} tokens of {shape[1]} numbers, {size / GB:.1f} GB"
        fail(InputError, must, got, f"Set {LIMIT_VARIABLE} higher, or take fewer examples.")
    files = sorted(states_folder().glob("*.npy"), key=lambda file: -file.stat().st_mtime)
    for file in files:
        size += file.stat().st_size
        if size > most:
            file.unlink()  # a process that has mapped it keeps it

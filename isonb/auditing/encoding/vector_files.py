"""The vectors of texts in files, which a run that was cut short goes on with: written row by row, then mapped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from isonb.auditing.encoding import Batch, Counts, Embedder
from isonb.errors import InputError, ShapeError, fail
from isonb.runtime.files import replace

PIECE = 512  # texts between two notes of how far it is
ZEROS = bytes(2**20)


@dataclass(frozen=True)
class StoredVectors:
    """Vectors (n, d) and those by layer (L+1, s, d), None where there are no layers, mapped from files; the counts."""

    vectors: Any
    layers: Any
    counts: Counts


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A disk that is full, or a folder that can't be written, is an :class:`~isonb.errors.InputError`."""
    try:
        yield
    except OSError as error:
        must, got = "the folder of the vectors must be writable and have room", f"{error.strerror or error} ({folder})"
        raise InputError(f"{must}; got {got}. Name another by work, or make room.") from error


def embed_to(
    folder: Path,
    embedder: Embedder,
    texts: Sequence[str],
    sampled: Sequence[int],
    name: str,
    progress: bool,
    key: str = "",
) -> StoredVectors:
    """The vectors of all texts, and of the ``sampled`` ones those of every layer, in files of a folder of ``folder``.

    Its name is ``name`` and a digest of ``key`` (the fingerprint of the model and its settings) and the texts, so that
    nothing stale is read. Row i of ``vectors.npy`` is text i.
    """
    from tqdm import tqdm

    files = _VectorFiles(folder / f"{name}-{_digest(key, texts, sampled)}", len(texts), sampled)
    order = sorted(range(len(texts)), key=lambda row: (-len(texts[row]), row))
    quiet = None if progress else True  # None: the bar shows on a terminal only
    with tqdm(total=len(texts), desc=f"encode {name}", unit="text", leave=False, disable=quiet) as bar:
        bar.update(files.done)
        for start in range(files.done, len(texts), PIECE):
            rows = order[start : start + PIECE]
            words = [texts[row] for row in rows]
            layered = {place for place, row in enumerate(rows) if row in files.sampled}
            for batch in embedder.batches(words, layered):
                files.write(rows, batch)
                bar.update(len(batch.rows))
            files.note(len(rows), embedder.counts(words))
    return StoredVectors(files.arrays["vectors"], files.arrays.get("layers"), files.counts)


def _digest(key: str, texts: Sequence[str], sampled: Sequence[int]) -> str:
    digest = hashlib.sha256(json.dumps([key, list(sampled)]).encode())
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    return digest.hexdigest()[:16]


class _VectorFiles:
    """Arrays on disk and how far they are filled, in texts, longest first."""

    def __init__(self, folder: Path, n: int, sampled: Sequence[int]) -> None:
        self.folder, self.n = folder, n
        self.sampled = {row: i for i, row in enumerate(sampled)}
        self.done, self.counts = 0, Counts()
        self.arrays: dict[str, Any] = {}
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError, ValueError, KeyError):  # nothing there yet, or not whole: begin
            state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
            arrays = {name: self._mapped(name) for name in state["names"]}
            self.done, self.counts, self.arrays = int(state["done"]), Counts(*state["counts"]), arrays

    def _mapped(self, name: str) -> Any:
        import numpy as np

        return np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="r+")

    def _array(self, name: str, shape: tuple[int, ...]) -> Any:
        """The array of this name; the first time its file is filled, since a full disk kills who writes to a map."""
        import numpy as np

        if name not in self.arrays:
            with (self.folder / f"{name}.npy").open("wb") as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for start in range(0, size := 4 * math.prod(shape), len(ZEROS)):
                    file.write(ZEROS[: size - start])
            self.arrays[name] = self._mapped(name)
        return self.arrays[name]

    def write(self, rows: Sequence[int], batch: Batch) -> None:
        """The vectors and layers of a batch, whose numbers count in ``rows``."""
        with writing(self.folder):
            vectors = self._array("vectors", (self.n, batch.vectors.shape[-1]))
            if batch.vectors.shape[-1] != vectors.shape[1]:
                got = f"{batch.vectors.shape[-1]} after {vectors.shape[1]}"
                fail(ShapeError, "every text must give a vector of one length", got, "Look at the model.")
            vectors[[rows[i] for i in batch.rows]] = _floats(batch.vectors)
            if batch.layers is not None:
                count, _, width = batch.layers.shape
                layers = self._array("layers", (count, max(1, len(self.sampled)), width))
                layers[:, [self.sampled[rows[i]] for i in batch.layered]] = _floats(batch.layers)

    def note(self, count: int, more: Counts) -> None:
        """So many texts more are written."""
        self.done += count
        self.counts = Counts(*(a + b for a, b in zip(self.counts, more, strict=True)))
        with writing(self.folder):
            for array in self.arrays.values():  # on the disk before it is said that they are there
                array.flush()
            state = {"done": self.done, "counts": self.counts, "names": list(self.arrays)}
            replace(self.folder / "state.json", json.dumps(state).encode())


def _floats(x: Tensor) -> Any:
    return x.float().numpy()

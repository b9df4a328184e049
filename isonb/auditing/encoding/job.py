"""The vectors of texts in files, which a run that was cut short goes on with: written row by row, then mapped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from isonb.auditing.encoding import Batch, Counts, Embedder
from isonb.errors import InputError, ShapeError, fail
from isonb.runtime.files import replace

__all__ = ["Embedded", "embed_to", "writing"]

PIECE = 512  # texts between two notes of how far it is


@dataclass(frozen=True)
class Embedded:
    """Vectors (n, d) and those by layer (L+1, s, d), None where there are no layers, mapped from files; the counts."""

    vectors: Any
    layers: Any
    counts: Counts


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A disk that is full, or a folder that can't be written, is an :class:`~isonb.errors.InputError`.

    Files are written by calls that fail: on a map, a full disk would kill the process.
    """
    try:
        yield
    except OSError as error:
        got = f"{error.strerror or error} ({folder})"
        raise InputError(
            f"the folder of the vectors must be writable and have room; got {got}. Name another by work, or make room."
        ) from error


def embed_to(
    folder: Path,
    embedder: Embedder,
    texts: Sequence[str],
    sampled: Sequence[int],
    name: str,
    progress: bool,
    key: str = "",
) -> Embedded:
    """The vectors of all texts, and of the ``sampled`` ones those of every layer, in files of a folder of ``folder``.

    Its name is ``name`` and a digest of ``key`` (the fingerprint of the model and its settings) and the texts, so that
    nothing stale is read. Row i of ``vectors.npy`` is text i.
    """
    from tqdm import tqdm

    place = folder / f"{name}-{_digest(key, texts, sampled)}"
    job = _Job(place, len(texts), sampled)
    order = sorted(range(len(texts)), key=lambda row: (-len(texts[row]), row))
    quiet = None if progress else True  # None: the bar shows on a terminal only
    with tqdm(total=len(texts), desc=f"encode {name}", unit="text", leave=False, disable=quiet) as bar:
        bar.update(job.done)
        for start in range(job.done, len(texts), PIECE):
            rows = order[start : start + PIECE]
            words = [texts[row] for row in rows]
            for batch in embedder.batches(words, {place for place, row in enumerate(rows) if row in job.where}):
                job.write(rows, batch)
                bar.update(len(batch.rows))
            job.note(len(rows), embedder.counts(words))
    return job.finished()


def _digest(key: str, texts: Sequence[str], sampled: Sequence[int]) -> str:
    found = hashlib.sha256(json.dumps([key, list(sampled)]).encode())
    for text in texts:
        found.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]


class _Job:
    """The files of one run: arrays on disk and how far they are filled, in texts, longest first."""

    def __init__(self, place: Path, n: int, sampled: Sequence[int]) -> None:
        self.place, self.n = place, n
        self.where = {row: i for i, row in enumerate(sampled)}
        self.done, self.counts = 0, Counts()
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.starts: dict[str, int] = {}
        with writing(place):
            place.mkdir(parents=True, exist_ok=True)
        self._resume()

    def _resume(self) -> None:
        """Go on with what is there, if it is whole: otherwise begin."""
        try:
            state = json.loads((self.place / "state.json").read_text(encoding="utf-8"))
            shapes = {name: tuple(shape) for name, shape in state["shapes"].items()}
            for name, shape in shapes.items():
                if self._mapped(name).shape != shape:
                    return
            self.done, self.counts = int(state["done"]), Counts(*map(int, state["counts"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # nothing there yet, or not whole
            return
        self.shapes = shapes
        self.starts = {name: self._mapped(name).offset for name in shapes}

    def _mapped(self, name: str) -> Any:
        import numpy as np

        return np.load(self.place / f"{name}.npy", mmap_mode="r")

    def _begin(self, name: str, shape: tuple[int, ...]) -> None:
        import numpy as np

        with (self.place / f"{name}.npy").open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            self.starts[name] = file.tell()
            file.truncate(file.tell() + 4 * math.prod(shape))
        self.shapes[name] = shape

    def write(self, rows: Sequence[int], batch: Batch) -> None:
        """The vectors and layers of a batch, whose numbers count in ``rows``."""
        with writing(self.place):
            d = batch.vectors.shape[-1]
            if not self.shapes:
                self._begin("vectors", (self.n, d))
            if d != self.shapes["vectors"][1]:
                got = f"{d} after {self.shapes['vectors'][1]}"
                fail(ShapeError, "every text must give a vector of one length", got, "Look at the model.")
            self._put("vectors", [(rows[i],) for i in batch.rows], batch.vectors)
            if batch.layers is not None:
                count, _, width = batch.layers.shape
                if "layers" not in self.shapes:
                    self._begin("layers", (count, max(1, len(self.where)), width))
                places = [(layer, self.where[rows[i]]) for layer in range(count) for i in batch.layered]
                self._put("layers", places, batch.layers.flatten(0, 1))

    def _put(self, name: str, places: Sequence[tuple[int, ...]], vectors: Tensor) -> None:
        shape, start = self.shapes[name], self.starts[name]
        data = vectors.float().numpy().astype("<f4")
        with (self.place / f"{name}.npy").open("r+b") as file:
            for place, vector in zip(places, data, strict=True):
                row = place[0] if len(place) == 1 else place[0] * shape[1] + place[1]
                file.seek(start + 4 * row * shape[-1])
                file.write(vector.tobytes())

    def note(self, count: int, more: Counts) -> None:
        """So many texts more are written."""
        self.done += count
        self.counts = Counts(*(a + b for a, b in zip(self.counts, more, strict=True)))
        state = {"done": self.done, "counts": self.counts, "shapes": self.shapes}
        with writing(self.place):
            for name in self.shapes:  # on the disk before it is said that they are there
                with (self.place / f"{name}.npy").open("rb") as file:
                    os.fsync(file.fileno())
            replace(self.place / "state.json", json.dumps(state).encode())

    def finished(self) -> Embedded:
        """What was written."""
        return Embedded(
            self._mapped("vectors"), self._mapped("layers") if "layers" in self.shapes else None, self.counts
        )

"""From texts to one vector a text and layer, batch by batch, into files that a run which was cut short goes on with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.texts import within
from isonb.errors import InputError, fail
from isonb.runtime.files import replace

__all__ = ["POOLS", "Embedded", "Embedder", "embed_to"]

POOLS = ("auto", "mean", "cls", "last")
PIECE = 512  # texts between two notes of how far it is
TOKENS = 16_384  # tokens of a batch, padding included
STATES = 2**28  # bytes of hidden states that a batch may take


@dataclass(frozen=True)
class Embedder:
    """An encoder with its pooling: "mean" over all tokens, "cls" the first one, or "last" the last real one."""

    encoder: Any
    pool: str
    max_length: int
    batch_size: int = 32

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of each text, cut at the longest input."""
        read = within(texts, self.max_length)
        found: list[list[int]] = self.encoder.tokenizer(read, truncation=True, max_length=self.max_length)["input_ids"]
        return found

    def states(self, ids: Sequence[Sequence[int]], layers: bool = False) -> Tensor:
        """Pooled vectors (1, B, d) of the last layer, or (L+1, B, d) of all, in one pass of one batch."""
        width = max(map(len, ids))
        pad = self.encoder.tokenizer.pad_token_id
        device = next(self.encoder.model.parameters()).device
        tokens = torch.tensor([[*row, *[pad] * (width - len(row))] for row in ids], device=device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids], device=device)
        with torch.no_grad():
            out = self.encoder.model(
                input_ids=tokens, attention_mask=mask, output_hidden_states=layers, return_dict=True
            )
        hidden = [*out.hidden_states[:-1], out.last_hidden_state] if layers else [out.last_hidden_state]
        return torch.stack([self._pooled(state, mask).float().cpu() for state in hidden])

    def _pooled(self, state: Tensor, mask: Tensor) -> Tensor:
        if self.pool == "cls":
            return state[:, 0]
        if self.pool == "last":
            return state[torch.arange(len(state), device=state.device), mask.sum(-1) - 1]
        real = mask.bool().unsqueeze(-1)
        return torch.where(real, state, 0.0).sum(1) / mask.sum(-1, keepdim=True)

    def together(self, texts: Sequence[str]) -> Tensor:
        """The vectors (B, d) of some texts in one batch. InputError for a text that gives no token."""
        ids = self.tokens(texts)
        if not all(ids):
            fail(InputError, "every text must give at least one token", "none", "Drop the empty text.")
        return self.states(ids)[0]

    def batches(self, ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Row numbers in batches, longest first: at most ``batch_size`` rows, and no more tokens than memory allows."""
        layers, dim = self.encoder.layers, self.encoder.dim
        most = max(1, min(TOKENS, STATES // (4 * dim * (layers + 1))))
        order = sorted(range(len(ids)), key=lambda row: -len(ids[row]))
        while order:
            size = max(1, min(self.batch_size, most // max(1, len(ids[order[0]]))))
            yield order[:size]
            order = order[size:]


@dataclass(frozen=True)
class Embedded:
    """Vectors (n, d) and those by layer (L+1, s, d), mapped from files; how many texts were cut, and unknown tokens."""

    vectors: Any
    layers: Any
    cut: int
    unknown: int
    tokens: int


def embed_to(
    folder: Path, embedder: Embedder, texts: Sequence[str], sampled: Sequence[int], name: str, progress: bool
) -> Embedded:
    """The vectors of all texts, and of the ``sampled`` ones those of every layer, in files of a folder of ``folder``.

    Its name is ``name`` and a digest of the model, the revision that it was loaded from, the settings and the texts, so
    that nothing stale is read. Weights that changed after loading aren't seen: give those another folder. Row i of
    ``vectors.npy`` is text i.
    """
    from tqdm import tqdm

    place = folder / f"{name}-{_key(embedder, texts, sampled)}"
    job = _Job(place, embedder, texts, sampled)
    order = sorted(range(len(texts)), key=lambda row: (-len(texts[row]), row))
    quiet = None if progress else True  # None: the bar shows on a terminal only
    with tqdm(total=len(texts), desc=f"encode {name}", unit="text", leave=False, disable=quiet) as bar:
        bar.update(job.done)
        for start in range(job.done, len(texts), PIECE):
            rows = order[start : start + PIECE]
            job.add(rows, bar)
    return job.finished()


def _key(embedder: Embedder, texts: Sequence[str], sampled: Sequence[int]) -> str:
    encoder = embedder.encoder
    told = [encoder.name, encoder.revision, type(encoder.model).__qualname__, bool(encoder.model.training)]
    found = hashlib.sha256(json.dumps([*told, embedder.pool, embedder.max_length, list(sampled)]).encode())
    for text in texts:
        found.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]


class _Job:
    """The files of one run: arrays on disk and how far they are filled, in texts, longest first."""

    def __init__(self, place: Path, embedder: Embedder, texts: Sequence[str], sampled: Sequence[int]) -> None:
        self.place, self.embedder, self.texts = place, embedder, texts
        self.where = {row: i for i, row in enumerate(sampled)}
        self.state = {"done": 0, "cut": 0, "unknown": 0, "tokens": 0}
        dim, layers = embedder.encoder.dim, embedder.encoder.layers
        shapes = {"vectors": (len(texts), dim), "layers": (layers + 1, max(1, len(sampled)), dim)}
        self._open(shapes)

    def _open(self, shapes: dict[str, tuple[int, ...]]) -> None:
        import numpy as np

        files = {name: self.place / f"{name}.npy" for name in shapes}
        try:
            state = json.loads((self.place / "state.json").read_text(encoding="utf-8"))
            self.arrays = {name: np.load(file, mmap_mode="r+") for name, file in files.items()}
            if any(self.arrays[name].shape != shape for name, shape in shapes.items()):
                raise ValueError
            self.state = {name: int(state[name]) for name in self.state}
        except (OSError, ValueError, KeyError):  # nothing there yet, or not whole: begin
            self.place.mkdir(parents=True, exist_ok=True)
            self.arrays = {
                name: np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shapes[name])
                for name, file in files.items()
            }

    @property
    def done(self) -> int:
        return self.state["done"]

    def add(self, rows: Sequence[int], bar: Any) -> None:
        """Encode the texts of these rows, write their vectors, and then note that they are there."""
        ids = self.embedder.tokens([self.texts[row] for row in rows])
        for batch in self.embedder.batches(ids):
            self._write([rows[i] for i in batch], [ids[i] for i in batch])
            bar.update(len(batch))
        for array in self.arrays.values():
            array.flush()
        unknown = self.embedder.encoder.tokenizer.unk_token_id
        self.state["done"] += len(rows)
        self.state["cut"] += sum(len(row) >= self.embedder.max_length for row in ids)
        self.state["tokens"] += sum(map(len, ids))
        self.state["unknown"] += 0 if unknown is None else sum(row.count(unknown) for row in ids)
        replace(self.place / "state.json", json.dumps(self.state).encode())

    def _write(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        if not all(ids):
            text = self.texts[rows[-1]]
            fail(InputError, "every text must give at least one token", repr(text[:40]), "Drop it.")
        seen = [i for i, row in enumerate(rows) if row in self.where]
        states = self.embedder.states(ids, layers=bool(seen)).numpy()
        self.arrays["vectors"][list(rows)] = states[-1]
        if seen:
            self.arrays["layers"][:, [self.where[rows[i]] for i in seen]] = states[:, seen]

    def finished(self) -> Embedded:
        """What was written."""
        counts = {name: self.state[name] for name in ("cut", "unknown", "tokens")}
        return Embedded(self.arrays["vectors"], self.arrays["layers"], **counts)

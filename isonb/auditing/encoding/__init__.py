"""From texts to vectors, whatever gives them: token by token, a model of sentence-transformers, or a function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.auditing.reading import matrix
from isonb.auditing.reading.rows import rows_of
from isonb.errors import InputError, ShapeError, fail

__all__ = ["Batch", "Counts", "Embedder", "FunctionEmbedder"]


class Batch(NamedTuple):
    """Vectors (B, d) of the texts ``rows``, and those of every layer (L+1, S, d) of the texts ``layered``."""

    rows: list[int]
    vectors: Tensor
    layered: list[int]
    layers: Tensor | None


class Counts(NamedTuple):
    """How many texts were cut at the longest input, and of their tokens how many the model doesn't know."""

    cut: int = 0
    unknown: int = 0
    tokens: int = 0


class Embedder(ABC):
    """What gives the vectors of texts: ``name`` and ``told`` (how it pools) as the report says them.

    ``training``: whether dropout is on. ``max_length``: tokens at which texts are cut; 0 where that isn't known.
    ``batch_size``: texts at a time.
    """

    name: str
    told: str
    training: bool = False
    max_length: int = 0
    batch_size: int

    @abstractmethod
    def together(self, texts: Sequence[str]) -> Tensor:
        """The vectors (B, d) of some texts in one batch. InputError for a text that gives no token."""

    def batches(self, texts: Sequence[str], layered: Container[int]) -> Iterator[Batch]:
        """The vectors of all texts, and of those numbered ``layered`` the layers too, where there are layers."""
        for start in range(0, len(texts), self.batch_size):
            rows = list(range(start, min(start + self.batch_size, len(texts))))
            yield Batch(rows, self.together([texts[row] for row in rows]), [], None)

    def counts(self, texts: Sequence[str]) -> Counts:
        """What can be said of the texts' tokens."""
        return Counts()

    @abstractmethod
    def fingerprint(self) -> str:
        """A digest of everything that makes the vectors. InputError where there is none."""


class FunctionEmbedder(Embedder):
    """A function from a list of strings to one vector each, an array, a tensor or a list: a service, one's own code."""

    told = "as the function gives them"

    def __init__(self, function: Callable[[list[str]], Any], batch_size: int) -> None:
        self.function, self.batch_size = function, batch_size
        self.name = str(getattr(function, "__qualname__", type(function).__name__))

    def together(self, texts: Sequence[str]) -> Tensor:
        """The vectors (B, d) of some texts in one call."""
        vectors = self.function(list(texts))
        if isinstance(vectors, list | tuple) and len(vectors) and not isinstance(vectors[0], str | bytes):
            rows = [torch.as_tensor(row).detach().cpu() for row in vectors]
            if len({row.shape for row in rows}) > 1:
                got = ", ".join(sorted({str(tuple(row.shape)) for row in rows})[:4])
                fail(ShapeError, "the function must give vectors of one length", got, "Pool over the tokens.")
            vectors = torch.stack(rows)
        if isinstance(vectors, Tensor):
            vectors = vectors.detach().cpu().float()
        source = matrix(vectors, "the vectors of the function")
        if source.shape[0] != len(texts):
            got = f"{source.shape[0]} of {len(texts)} texts"
            fail(ShapeError, "the function must give one vector a text", got, "Return them in the order of the texts.")
        return rows_of(source, torch.arange(len(texts)))

    def fingerprint(self) -> str:
        """A function can't be told from another one of its name."""
        fix = "Leave work out, or pass the model itself."
        return fail(InputError, "vectors kept in work must be those of a model", f"the function {self.name}", fix)

"""From texts to vectors, whatever gives them: token by token, a model of sentence-transformers, or a function."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

__all__ = ["Batch", "Counts", "Embedder"]


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


class Embedder(Protocol):
    """What gives the vectors of texts."""

    @property
    def name(self) -> str:
        """As the report calls it."""

    @property
    def told(self) -> str:
        """How it pools, for the report."""

    @property
    def training(self) -> bool:
        """Whether dropout is on."""

    @property
    def max_length(self) -> int:
        """Tokens at which texts are cut; 0 where that isn't known."""

    def together(self, texts: Sequence[str]) -> Tensor:
        """The vectors (B, d) of some texts in one batch. InputError for a text that gives no token."""

    def batches(self, texts: Sequence[str], layered: Container[int]) -> Iterator[Batch]:
        """The vectors of all texts, and of those numbered ``layered`` the layers too, where there are layers."""

    def counts(self, texts: Sequence[str]) -> Counts:
        """What can be said of the texts' tokens."""

    def fingerprint(self) -> str:
        """A digest of everything that makes the vectors. InputError where there is none."""

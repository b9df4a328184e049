"""A function from texts to vectors: a service, a library of one's own, the encode method of another one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.encoding import Batch, Counts
from isonb.auditing.reading.matrices import matrix
from isonb.auditing.reading.rows import rows_of
from isonb.errors import InputError, ShapeError, fail

__all__ = ["FunctionEmbedder"]


class FunctionEmbedder:
    """``function`` takes a list of strings and returns one vector a string: an array, a tensor or a list of them."""

    told = "as the function gives them"
    training = False
    max_length = 0

    def __init__(self, function: Callable[[list[str]], Any], batch_size: int) -> None:
        self.function, self.batch_size = function, batch_size
        self.name = str(getattr(function, "__qualname__", type(function).__name__))

    def together(self, texts: Sequence[str]) -> Tensor:
        """The vectors (B, d) of some texts in one call."""
        found = self.function(list(texts))
        if isinstance(found, list | tuple) and len(found) and not isinstance(found[0], str | bytes):
            rows = [torch.as_tensor(row).detach().cpu() for row in found]
            if len({row.shape for row in rows}) > 1:
                got = ", ".join(sorted({str(tuple(row.shape)) for row in rows})[:4])
                fail(ShapeError, "the function must give vectors of one length", got, "Pool over the tokens.")
            found = torch.stack(rows)
        if isinstance(found, Tensor):
            found = found.detach().cpu().float()
        source = matrix(found, "the vectors of the function")
        if source.shape[0] != len(texts):
            got = f"{source.shape[0]} of {len(texts)} texts"
            fail(ShapeError, "the function must give one vector a text", got, "Return them in the order of the texts.")
        return rows_of(source, torch.arange(len(texts)))

    def batches(self, texts: Sequence[str], layered: Container[int]) -> Iterator[Batch]:
        """The vectors, ``batch_size`` texts a call."""
        for start in range(0, len(texts), self.batch_size):
            rows = list(range(start, min(start + self.batch_size, len(texts))))
            yield Batch(rows, self.together([texts[row] for row in rows]), [], None)

    def counts(self, texts: Sequence[str]) -> Counts:
        """Nothing is known of its tokens."""
        return Counts()

    def fingerprint(self) -> str:
        """A function can't be told from another one of its name."""
        fix = "Leave work out, or pass the model itself."
        return fail(InputError, "vectors kept in work must be those of a model", f"the function {self.name}", fix)

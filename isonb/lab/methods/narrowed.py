"""Small helpers of the methods: a loss that is offered points alone, and options that are a number or a word."""

from __future__ import annotations

from torch import Tensor, nn

from isonb.checks import fail
from isonb.lab.methods.base import Method
from isonb.lab.options import OptionError

__all__ = ["PointsAlone", "number_or"]


class PointsAlone(nn.Module):
    """A loss that takes neither labels nor a shrinkage matrix, so that none is made for it."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, points: Tensor) -> Tensor:
        """Points (n, d); returns a scalar."""
        value: Tensor = self.loss(points)
        return value


def number_or(word: str, method: Method, name: str) -> None:
    """Raises :class:`~isonb.lab.options.OptionError` if the option ``name`` is text other than ``word``."""
    given = getattr(method, name)
    if isinstance(given, str) and given != word:
        fail(OptionError, f"{name} of method {method.name} must be a number or {word!r}", repr(given), "Give one.")

r"""The two numbers whose quotient is the participation ratio, each without bias, so that many small clouds pool."""

from __future__ import annotations

from torch import Tensor

from isonb.checks import border, cloud, fits
from isonb.measures.isoscore import unbiased_parts
from isonb.measures.purity import length_kurtosis, purity
from isonb.points import center_rows, row_count

__all__ = ["squared_traces"]

_GRADIENT = 64.0  # a step on the way to the gradient is at most so many times larger than the value


@border
def squared_traces(x: Tensor, *, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Unbiased estimates of :math:`(\operatorname{tr}\Sigma)^2` and :math:`\operatorname{tr}\Sigma^2`.

    They are numerator and denominator of PR-U (Chun, Canatar, Chung, Lee, ICLR 2026; see
    :func:`~isonb.measures.isoscore.participation_ratio`), divided by n (n - 3): averages over distinct rows, so their
    expectation is right for any distribution of independent rows. The quotient of one small cloud is noisy and a little
    biased; for many clouds of one population average both first, and divide then.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...) and (...), the second possibly negative.
    Differentiable. Fewer than 4 points: :class:`~isonb.errors.ShapeError`. All points equal:
    :class:`~isonb.errors.DegenerateError`; on an accelerator both are 0. They are fourth powers of the scale: where
    those, or their gradients, don't fit the dtype (about 1e9 in float32), :class:`~isonb.errors.DegenerateError`.

    >>> import torch
    >>> x = torch.tensor([[0.0, 1], [1, 3], [2, 0], [4, 1], [6, 4], [7, 3], [8, 5], [9, 4]])
    >>> total, square = squared_traces(x)
    >>> round((total / square).item(), 4)  # PR-U
    1.2257
    """
    x, mask = cloud(x, mask, points=4)
    n = row_count(x, mask)
    y = center_rows(x, mask)[0]  # so that an offset, however large, costs no digits and no range
    a, b = unbiased_parts(purity(y, mask), length_kurtosis(y, mask), n)
    squared = y.square().sum((-2, -1)).square()
    fits(_GRADIENT * squared, "fourth power of the scale")
    unit = squared / (n * (n - 3)).clamp_min(1)
    return a * unit, b * unit

"""How far a number could move with other texts: random halves of the sample, drawn without replacement.

A bootstrap draws a text twice and so plants pairs of cosine 1 and distance 0 into every measure that compares points
with each other. A half holds each text once. For a mean the spread over halves is, in expectation, exactly the
standard error of the whole sample.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from isonb.errors import InputError


def halves(n: int, draws: int = 100, seed: int = 0) -> Tensor:
    """``draws`` random halves of n items as index rows, (draws, n // 2), each in ascending order.

    >>> halves(5, draws=2).shape
    torch.Size([2, 2])
    """
    if n < 4 or draws < 2:
        raise InputError(f"halves need at least 4 items and 2 draws; got n = {n}, draws = {draws}. Give more texts.")
    order = torch.rand(draws, n, generator=torch.Generator().manual_seed(seed)).argsort(-1)
    return order[:, : n // 2].sort(-1).values


def standard_error(statistic: Callable[[Tensor], Tensor], n: int, draws: int = 100, seed: int = 0) -> Tensor:
    r"""Standard error of a smooth statistic of n independent items, from random halves.

    ``statistic`` takes the indices of some items and returns a tensor, the same shape each time; so does this function.
    The spread over halves of m = n // 2 items is scaled by :math:`\sqrt{m/(n-m)}`, which is 1 for even n. Resample what
    is independent: sentences, not the tokens of a sentence. A statistic that depends on n itself (a maximum, the
    dimension of a small sample) is shifted on halves; its spread is still usable, its mean over halves is not.

    >>> x = torch.arange(100.0)
    >>> error = standard_error(lambda rows: x[rows].mean(), len(x), draws=2000)
    >>> bool((error / (x.std() / 10) - 1).abs() < 0.05)
    True
    """
    values = torch.stack([torch.as_tensor(statistic(rows)) for rows in halves(n, draws, seed)])
    return values.std(0).mul(float((n // 2) / (n - n // 2)) ** 0.5)

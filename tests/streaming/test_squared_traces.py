"""Numerator and denominator of the unbiased participation ratio: brute force, masks and gradients."""

from __future__ import annotations

import itertools

import pytest
import torch
from support import normal

from isonb.errors import DegenerateError, ShapeError
from isonb.measures.isoscore import participation_ratio
from isonb.streaming.traces import squared_traces


def test_averages_over_distinct_rows() -> None:
    """Written out over all ordered quadruples of distinct rows: |a-b|^2 |c-d|^2 / 4 and ((a-b).(c-d))^2 / 4."""
    x = normal(6, 3)
    totals, squares = [], []
    for a, b, c, d in itertools.permutations(range(6), 4):
        first, second = x[a] - x[b], x[c] - x[d]
        totals.append(first.square().sum() * second.square().sum() / 4)
        squares.append((first @ second).square() / 4)
    total, square = squared_traces(x)
    torch.testing.assert_close(total, torch.stack(totals).mean(), rtol=1e-10, atol=0)
    torch.testing.assert_close(square, torch.stack(squares).mean(), rtol=1e-10, atol=0)


def test_quotient_mask_and_batch() -> None:
    x, mask = normal(4, 9, 5, seed=1), torch.ones(4, 9, dtype=torch.bool)
    mask[1, 6:] = False
    total, square = squared_traces(x, mask=mask)
    torch.testing.assert_close(total / square, participation_ratio(x, unbiased=True, mask=mask))
    torch.testing.assert_close((total[1], square[1]), squared_traces(x[1, :6]))


def test_gradients_and_errors() -> None:
    x = normal(5, 3, seed=2).requires_grad_(True)
    assert torch.autograd.gradcheck(squared_traces, (x,))
    with pytest.raises(ShapeError):
        squared_traces(x[:3])
    with pytest.raises(DegenerateError):
        squared_traces(torch.ones(5, 3))

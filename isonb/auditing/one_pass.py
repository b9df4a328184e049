"""One pass over all rows: which of them count, which repeat an earlier one, and what their numbers are like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.reading.rows import numbers, pieces


@dataclass
class Pass:
    """What one pass over all rows knows: the numbers of those that are finite and not zero, and of the others.

    ``good``, ``wild`` (not finite), ``zero``: numbers of rows. ``repeats``: of those that are equal to an earlier one.
    ``energy``: the mean square of each dimension, ``low`` and ``high`` its ends. ``filled``: the share of the numbers
    that aren't zero. ``lengths``: of the good rows. ``half``: whether every value fits float16.
    """

    good: Tensor
    wild: Tensor
    zero: Tensor
    repeats: Tensor
    energy: Tensor
    low: Tensor
    high: Tensor
    filled: float
    lengths: Tensor
    half: bool


def read(source: Any) -> Pass:
    """One pass over all rows, and a look at those that may repeat an earlier one."""
    n, d = source.shape
    finite, zero, marks = (torch.zeros(n, dtype=kind) for kind in (torch.bool, torch.bool, torch.long))
    energy, low = torch.zeros(d, dtype=torch.float64), torch.full((d,), math.inf, dtype=torch.float64)
    high, filled, half = -low, 0, True
    lengths = torch.zeros(n, dtype=torch.float64)
    for start, piece in pieces(source):
        here = slice(start, start + len(piece))
        finite[here], zero[here] = piece.isfinite().all(-1), (piece == 0).all(-1)
        usable_rows = finite[here] & ~zero[here]
        if not bool(usable_rows.any()):
            continue
        piece = piece[usable_rows]
        half = half and bool((piece == piece.half().to(piece.dtype)).all())
        piece = piece.double()
        # -0.0 becomes 0.0
        marks[here][usable_rows] = torch.tensor([hash(row.tobytes()) for row in (piece + 0.0).numpy()])
        energy += piece.square().sum(0)
        filled += int(piece.count_nonzero())
        low, high = torch.minimum(low, piece.amin(0)), torch.maximum(high, piece.amax(0))
        lengths[here][usable_rows] = torch.linalg.vector_norm(piece, dim=-1)
    good, wild, none = (rows.nonzero().flatten() for rows in (finite & ~zero, ~finite, zero))
    count = max(1, len(good))
    repeats = _repeats(source, good, marks[good])
    share = filled / (count * d)
    return Pass(good, wild, none, repeats, energy / count, low, high, share, lengths[good], half)


def _repeats(source: Any, good: Tensor, marks: Tensor) -> Tensor:
    """The rows that are equal to an earlier one: those of one hash are compared, number by number."""
    marks, order = marks.sort(stable=True)
    again = 1 + (marks[1:] == marks[:-1]).nonzero().flatten()
    equal = [
        good[order[part]][(numbers(source, good[order[part]]) == numbers(source, good[order[part - 1]])).all(-1)]
        for part in torch.split(again, max(1, 2**22 // source.shape[1]))
        if len(part)
    ]
    return torch.cat(equal).sort().values if equal else good[:0]

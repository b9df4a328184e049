"""The exact k nearest neighbours of every point of a cloud, in O(n) memory a row.

Candidates come from one matrix product of the localized cloud; exact differences rank them. On the CPU every row is
then certified: no point outside its candidates can be nearer, by the rounding bound of the product. Rows that fail
(tight clusters, many duplicates, ties) are searched again by differences. Elsewhere the product runs in float64
instead, since to look at a certificate would make the device wait.
Float32 clouds on the CPU are searched by compiled loops once they are loaded, with the same certificate.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from isonb.checks import check_values
from isonb.compiled_nearest import BLOCK, Choice, compiled_choice
from isonb.cosine import unit_rows
from isonb.distances import PIECE, edge_lengths, localized, rows
from isonb.errors import ShapeError, fail
from isonb.precision import precise
from isonb.products import upper_gram
from isonb.scale import square_norms

__all__ = ["check_k", "distances_to", "nearest", "nearest_by_cosine"]

SPARE = 4  # candidates beyond k
ENTRIES = {"cpu": 2**20}  # numbers held at a time when the caller sets no chunk, by device
WHOLE = 2**22  # most of them where half of the product is spared by holding all of it,
COLUMNS = 128  # and fewest columns
ROUNDING = 16.0  # error of a squared distance by matrix product, in units of epsilon times the squared norms


def check_k(x: Tensor, k: int, mask: Tensor | None, *, least: int = 1, itself: int = 0) -> None:
    """``least <= k``, and every cloud has k neighbours a point (the point ``itself`` among them or not)."""
    most = x.shape[-2] if mask is None or not check_values(x) else int(mask.sum(-1).min()) if mask.numel() else k + 1
    most = most - 1 + itself
    if isinstance(k, bool) or not isinstance(k, int) or not least <= k <= most:
        wanted = f"k must be an integer from {least} to {most}, the neighbours a point of this cloud has"
        fail(ShapeError, wanted, repr(k), "Pass a smaller k or more points.")


def distances_to(x: Tensor, index: Tensor) -> Tensor:
    """Lengths (..., n, k) from each row to its neighbours; 0 from masked rows, inf to neighbours there are not."""
    own = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1).expand(index.shape)
    edges = torch.stack((own, torch.where(index < 0, own, index)), -1)
    step = max(1, _entries(x) * x.shape[-2] // max(1, index.shape[-1] * x.numel()))
    pieces = (edges[..., low : low + step, :, :] for low in range(0, x.shape[-2], step))
    away = torch.cat([edge_lengths(x, piece.flatten(-3, -2)).view(piece.shape[:-1]) for piece in pieces], -2)
    return torch.where((index < 0) & (index[..., :1] >= 0), torch.inf, away)


def _entries(x: Tensor) -> int:
    return ENTRIES.get(x.device.type, 2**27)


class _Clouds(NamedTuple):
    """A batch ready for the search: points (b, n, d), the copy that is multiplied, its squared norms, the real rows."""

    points: Tensor
    fine: Tensor
    norms: Tensor
    real: Tensor | None


@torch.no_grad()
def nearest(x: Tensor, k: int, mask: Tensor | None = None, chunk: int | None = None) -> Tensor:
    """Indices (..., n, k) of the nearest other rows of a checked cloud, nearest first, ties by index; -1 for none."""
    n, d = x.shape[-2:]
    points = localized(x, mask).reshape(-1, n, d)
    fine = points if x.device.type == "cpu" else precise(points)
    clouds = _Clouds(points, fine, square_norms(fine), None if mask is None else mask.reshape(-1, n))
    wide = min(k + SPARE, n - 1)
    choose = _choice(points, wide)
    step = max(1, _entries(x) // max(1, points.shape[0] * max(n, wide * d if choose is None else 0)))
    halved = choose is not None and _halved(points)
    step = min(n, chunk or (n if halved else step))
    block = BLOCK if halved and step == n else step
    room = points.new_empty(points.shape[0] * step * n if choose else 0)  # new memory for each strip costs a tenth more
    find = _rows if choose is None else functools.partial(_compiled_rows, choose, room, block)
    index = torch.cat([find(clouds, k, wide, low, min(low + step, n)) for low in range(0, n, step)], 1)
    if clouds.real is not None:
        index = torch.where(clouds.real.unsqueeze(-1), index, -1)
    return index.view(*x.shape[:-1], k)


@torch.no_grad()
def nearest_by_cosine(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    r"""The k rows of highest cosine to each row of x (n, d), itself left out: indices and cosines (n, k), best first.

    Decided in float64 by differences of the unit rows, :math:`|u - v|^2 = 2 - 2 \cos`: cosines of vectors that share a
    large mean differ by less than float32 can tell. Ties go by index; a zero row is orthogonal to all but its like.

    >>> nearest_by_cosine(torch.tensor([[1.0, 0.0], [3.0, 3.0], [0.0, 2.0]]), 1)[0].flatten().tolist()
    [1, 0, 1]
    """
    unit = unit_rows(precise(x))
    unit = torch.cat([unit, (unit == 0).all(-1, keepdim=True).to(unit)], -1)
    index = nearest(unit, k)
    return index, 1 - distances_to(unit, index).square() / 2


def _choice(points: Tensor, wide: int) -> Choice | None:
    """The compiled choice for this batch (b, n, d) of ``wide`` candidates a point, None where the plain one is due."""
    if points.device.type != "cpu" or points.dtype != torch.float32:
        return None
    return compiled_choice(points.shape[0] * points.shape[1] ** 2, wide)


def _halved(points: Tensor) -> bool:
    """Whether half of the product is worth more than strips of it that lie in the cache."""
    b, n, d = points.shape
    return n > BLOCK and d >= COLUMNS and b * n * n <= WHOLE


def _rows(clouds: _Clouds, k: int, wide: int, low: int, high: int) -> Tensor:
    """Neighbours of the rows from ``low`` below ``high`` of each cloud, (b, high - low, k)."""
    points, fine, norms, real = clouds
    rough = torch.baddbmm(norms.unsqueeze(1), fine[:, low:high], fine.mT, alpha=-2)
    rough = rough.add_(norms[:, low:high].unsqueeze(2)).to(points.dtype)
    rough.diagonal(low, -2, -1).fill_(math.inf)
    if real is not None:
        rough.masked_fill_(~real.unsqueeze(1), math.inf)
    bound, index = rough.topk(wide, -1, largest=False)
    index = index.sort(-1).values
    square = _squared_gaps(points, index, low)
    if real is not None:
        own = torch.arange(low, high, device=index.device).unsqueeze(1)  # a candidate where too few rows are real
        square.masked_fill_(~real.gather(1, index.flatten(1)).view(index.shape) | (index == own), math.inf)
    square, order = square.sort(dim=-1, stable=True)
    index = torch.where(square.isinf(), -1, index.gather(-1, order))[..., :k]
    if points.device.type == "cpu" and wide < points.shape[1] - 1:
        scale = norms[:, low:high] + norms.amax(1, keepdim=True)
        outside = bound.amax(-1) - ROUNDING * torch.finfo(points.dtype).eps * scale
        _search_again(clouds, index, square[..., k - 1] >= outside, low)
    return index


def _compiled_rows(
    choose: Choice, room: Tensor, block: int, clouds: _Clouds, k: int, wide: int, low: int, high: int
) -> Tensor:
    """The same by compiled loops, with the product in ``room``: of fewer than all rows a block, its upper blocks."""
    points, _, norms, real = clouds
    (b, n, _), m = points.shape, high - low
    product = room[: b * m * n].view(b, m, n)
    if block < m:
        upper_gram(product, points, block)
    else:
        torch.bmm(points[:, low:high], points.mT, out=product)
    half = norms / 2 if real is None else torch.where(real, norms / 2, math.inf)
    index, farthest, bound = choose(points, half, product, low, k, wide, block)
    if wide == n - 1:
        return index
    own = norms[:, low:high]
    outside = 2 * bound + own - ROUNDING * torch.finfo(points.dtype).eps * (own + norms.amax(1, keepdim=True))
    _search_again(clouds, index, farthest >= outside, low)
    return index


def _squared_gaps(points: Tensor, index: Tensor, low: int) -> Tensor:
    """Squared distances (b, m, w) by differences, from the rows from ``low`` on to their candidates ``index``."""
    b, m, wide = index.shape
    step = max(1, PIECE // max(1, b * wide * points.shape[-1])) if points.device.type == "cpu" else m
    parts = []
    for start in range(0, m, step):
        piece = index[:, start : start + step]
        own = points[:, low + start : low + start + piece.shape[1]].unsqueeze(2)
        gap = rows(points, piece.flatten(1)).view(*piece.shape, points.shape[-1]).sub_(own)
        parts.append(gap.square_().sum(-1))
    return torch.cat(parts, 1)


def _search_again(clouds: _Clouds, index: Tensor, open_rows: Tensor, low: int) -> None:
    """Overwrite ``index`` where the certificate fails: all differences, sorted, cloud by cloud."""
    k = index.shape[-1]
    for b in open_rows.any(1).nonzero().flatten().tolist():
        row, points = open_rows[b].nonzero().flatten(), clouds.points[b]
        away = torch.cdist(points[row + low], points, compute_mode="donot_use_mm_for_euclid_dist")
        away.scatter_(1, (row + low).unsqueeze(1), math.inf)
        if clouds.real is not None:
            away.masked_fill_(~clouds.real[b], math.inf)
        away, order = away.sort(dim=-1, stable=True)
        index[b, row] = torch.where(away.isinf(), -1, order)[:, :k]

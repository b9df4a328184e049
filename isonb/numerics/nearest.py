"""The exact k nearest neighbours of every point of a cloud, in O(n) memory a row, for any offset and scale.

Candidates come from one matrix product of a localized copy; differences of the points themselves rank them, in float64.
On the CPU every row is then certified: no point outside its candidates can be nearer, by the rounding bound of the
product. Rows that fail (tight clusters, many duplicates, ties) are searched again among all points. Elsewhere the
product runs in float64 instead, since to look at a certificate would make the device wait.
Float32 clouds on the CPU are searched by compiled loops where numba is installed, with the same certificate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from isonb.checks import check_values
from isonb.errors import ShapeError, fail
from isonb.numerics.compiled_nearest import BLOCK, ChoiceLoops, compiled_choice
from isonb.numerics.distances import PIECE, about_middle, edge_lengths, rows, slack
from isonb.numerics.products import upper_gram
from isonb.numerics.rows import unit_rows
from isonb.numerics.scale import largest, power_of_two, precise, square_norms

__all__ = ["check_k", "distances_to", "nearest", "nearest_by_cosine"]

SPARE = 4  # candidates beyond k
ENTRIES = {"cpu": 2**20}  # numbers held at a time when the caller sets no chunk, by device
WHOLE = 2**22  # most of them where half of the product is spared by holding all of it,
COLUMNS = 128  # and fewest columns


def check_k(x: Tensor, k: int, mask: Tensor | None, *, least: int = 1, itself: int = 0) -> None:
    """``least <= k``, and every cloud has k neighbours a point (the point ``itself`` among them or not)."""
    seen = mask is not None and mask.numel() and check_values(x)
    most = (int(mask.sum(-1).min()) if mask is not None and seen else x.shape[-2]) - 1 + itself
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
    """A batch ready for the search: points (b, n, d), the real rows, the copy that is multiplied and its squared norms.

    ``unit`` (b, 1) is the squared unit of the copy, in the widest type, and ``slack`` (b, n) what a squared distance
    from a row to any other may be wrong by, in that unit.
    """

    points: Tensor
    real: Tensor | None
    copy: Tensor
    norms: Tensor
    unit: Tensor
    slack: Tensor


def _ready(points: Tensor, real: Tensor | None) -> _Clouds:
    """Of a batch (b, n, d); off the CPU, and where float32 overflows, the copy is in float64."""
    if points.dtype == torch.float64:  # squares of float32 fit float64 as they are
        points = points / power_of_two(largest(points, (-2, -1)))
    on_cpu = points.device.type == "cpu"
    copy = about_middle(points if on_cpu else precise(points), real)
    size = largest(copy, (-2, -1))
    if on_cpu and not bool(size.isfinite().all()):
        copy = about_middle(precise(points), real)
        size = largest(copy, (-2, -1))
    size = power_of_two(size)
    norms = square_norms(copy.div_(size))
    loss = slack(copy, norms)
    return _Clouds(points, real, copy, norms, precise(size)[..., 0].square(), loss + loss.amax(1, keepdim=True))


@torch.no_grad()
def nearest(x: Tensor, k: int, mask: Tensor | None = None, chunk: int | None = None) -> Tensor:
    """Indices (..., n, k) of the nearest other rows of a checked cloud, nearest first, ties by index; -1 for none."""
    n, d = x.shape[-2:]
    clouds = _ready(x.detach().reshape(-1, n, d), None if mask is None else mask.reshape(-1, n))
    b, wide = len(clouds.points), min(k + SPARE, n - 1)
    loops = compiled_choice(wide) if x.device.type == "cpu" and clouds.copy.dtype == torch.float32 else None
    step = max(1, _entries(x) // max(1, b * max(n, wide * d if loops is None else 0)))
    halved = loops is not None and _halved(clouds.copy)
    step = min(n, chunk or (n if halved else step))
    block = BLOCK if halved and step == n else step
    room = clouds.copy.new_empty(b * step * n if loops else 0)  # new memory for each strip costs a tenth more
    find = _rows if loops is None else functools.partial(_compiled_rows, loops, room, block)
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


def _halved(points: Tensor) -> bool:
    """Whether half of the product is worth more than strips of it that lie in the cache."""
    b, n, d = points.shape
    return n > BLOCK and d >= COLUMNS and b * n * n <= WHOLE


def _rows(clouds: _Clouds, k: int, wide: int, low: int, high: int) -> Tensor:
    """Neighbours of the rows from ``low`` below ``high`` of each cloud, (b, high - low, k)."""
    points, real, copy, norms, *_ = clouds
    rough = torch.baddbmm(norms.unsqueeze(1), copy[:, low:high], copy.mT, alpha=-2)
    rough = rough.add_(norms[:, low:high].unsqueeze(2))
    rough.diagonal(low, -2, -1).fill_(math.inf)
    if real is not None:
        rough.masked_fill_(~real.unsqueeze(1), math.inf)
    bound, candidates = rough.topk(wide, -1, largest=False)
    own = torch.arange(low, high, device=points.device)
    index, farthest = _ranked(points, real, own, candidates.sort(-1).values, k)
    if points.device.type == "cpu" and wide < points.shape[1] - 1:
        outside = precise(bound.amax(-1) - clouds.slack[:, low:high]) * clouds.unit
        for c, row in _failing(farthest >= outside):
            every = torch.arange(points.shape[1]).expand(1, len(row), -1)
            its = None if real is None else real[c : c + 1]
            index[c, row] = _ranked(points[c : c + 1], its, own[row], every, k)[0][0]
    return index


def _compiled_rows(
    loops: ChoiceLoops, room: Tensor, block: int, clouds: _Clouds, k: int, wide: int, low: int, high: int
) -> Tensor:
    """The same by compiled loops, with the product in ``room``: of fewer than all rows a block, its upper blocks."""
    points, real, copy, norms, *_ = clouds
    (b, n, _), m = points.shape, high - low
    product = room[: b * m * n].view(b, m, n)
    if block < m:
        upper_gram(product, copy, block)
    else:
        torch.bmm(copy[:, low:high], copy.mT, out=product)
    half = norms / 2 if real is None else torch.where(real, norms / 2, math.inf)
    index, farthest, bound = loops.choose(points, half, product, low, k, wide, block)
    if wide == n - 1:
        return index
    outside = precise(2 * bound + norms[:, low:high] - clouds.slack[:, low:high]) * clouds.unit
    for c, row in _failing(farthest >= outside):
        others = None if real is None else real[c]
        index[c, row] = loops.among_all(points[c], others, row + low, k)
    return index


def _failing(rows: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Of each cloud with rows (b, m) that can't be certified: its number and theirs."""
    for c in rows.any(1).nonzero().flatten().tolist():
        yield c, rows[c].nonzero().flatten()


def _ranked(points: Tensor, real: Tensor | None, own: Tensor, index: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest of ascending candidates (b, m, w) of the rows ``own`` (m,); the squared distance of the last."""
    square = _squared_gaps(points, own, index)
    none = index == own.unsqueeze(1)  # itself, a candidate where too few rows are real
    if real is not None:
        none |= ~real.gather(1, index.flatten(1)).view(index.shape)
    square, order = square.masked_fill_(none, math.inf).sort(dim=-1, stable=True)
    return torch.where(square.isinf(), -1, index.gather(-1, order))[..., :k], square[..., k - 1]


def _squared_gaps(points: Tensor, own: Tensor, index: Tensor) -> Tensor:
    """Squared distances (b, m, w) by differences in the widest type, from the rows ``own`` (m,) to their candidates."""
    b, m, wide = index.shape
    step = max(1, PIECE // 4 // max(1, b * wide * points.shape[-1])) if points.device.type == "cpu" else m
    parts, exact = [], precise(points)
    for start in range(0, m, step):
        piece = index[:, start : start + step]
        near = rows(points, piece.flatten(1)).view(*piece.shape, points.shape[-1])
        gap = torch.sub(near, exact[:, own[start : start + step]].unsqueeze(2))
        parts.append(gap.square_().sum(-1))
    return torch.cat(parts, 1)

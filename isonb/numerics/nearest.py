"""The exact k nearest neighbours of every point of a cloud, in O(n) memory a row, for any offset and scale.

Candidates come from one matrix product of a localized copy; differences of the points themselves rank them, in float64.
On the CPU every row is then certified: no point outside its candidates can be nearer, by the rounding bound of the
product. Rows that fail (tight clusters, many duplicates, ties) are searched again among all points. Elsewhere the
product runs in float64 instead, since to look at a certificate would make the device wait.
Few points and few dimensions need no product: :mod:`isonb.numerics.dispatch` says where.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from isonb.checks import check_values, is_whole
from isonb.errors import ShapeError, fail
from isonb.numerics import compiled_nearest
from isonb.numerics.compiled import can_compile
from isonb.numerics.dispatch import kd_tree, neighbour_algorithm
from isonb.numerics.distances import PIECE, about_middle, edge_lengths, error_bound, rows
from isonb.numerics.rows import unit_rows
from isonb.numerics.scale import largest, power_of_two, precise, square_norms

SPARE = 4  # candidates beyond k
LABELLED = 28  # and where some of them have the label of the row that asks
ENTRIES = {"cpu": 2**20}  # numbers held at a time when the caller sets no chunk, by device
STRIP = 256  # rows of a cloud on the CPU that are multiplied by those after them at a time


def check_k(x: Tensor, k: int, mask: Tensor | None, *, least: int = 1, itself: int = 0) -> int:
    """Return k: ``least <= k``, and every cloud has k neighbours a point (the point ``itself`` among them or not)."""
    readable = mask is not None and mask.numel() and check_values(x)
    most = (int(mask.sum(-1).min()) if mask is not None and readable else x.shape[-2]) - 1 + itself
    if not is_whole(k) or not least <= k <= most:
        expected = f"k must be an integer from {least} to {most}, the neighbours a point of this cloud has"
        fail(ShapeError, expected, repr(k), "Pass a smaller k or more points.")
    return int(k)


def neighbours(
    x: Tensor, k: int, mask: Tensor | None = None, chunk: int | None = None, *, rough: bool = False
) -> tuple[Tensor, Tensor]:
    """Lengths, differentiable, and indices (..., n, k) of the nearest other rows of a checked cloud.

    Nearest first, ties by index. Off the mask lengths are 0 and indices -1, inf and -1 where there are no more. With
    ``rough`` candidates come from a float32 product on the CPU, whatever the type of the points.
    """
    clouds, real = x.detach().reshape(-1, *x.shape[-2:]), None if mask is None else mask.reshape(-1, mask.shape[-1])
    with torch.no_grad():
        search = Search(clouds, real, rough=rough)
        index, square = search(k, chunk=chunk)
        lengths = search.lengths(square)
        if real is not None:
            index, lengths = torch.where(real.unsqueeze(-1), index, -1), torch.where(real.unsqueeze(-1), lengths, 0.0)
        index, lengths = (part.view(*x.shape[:-1], k) for part in (index, lengths.to(x.dtype)))
    if x.requires_grad and torch.is_grad_enabled():
        row_ids = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1).expand(index.shape)
        edges = torch.stack((row_ids, torch.where(index < 0, row_ids, index)), -1)
        lengths = edge_lengths(x, edges.flatten(-3, -2), lengths.flatten(-2)).view(index.shape)
    return lengths, index


@torch.no_grad()
def nearest_by_cosine(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    r"""The k rows of highest cosine to each row of x (n, d), itself left out: indices and cosines (n, k), best first.

    Decided in float64 by differences of the unit rows, :math:`|u - v|^2 = 2 - 2 \cos`: cosines of vectors that share a
    large mean differ by less than float32 can tell. Ties go by index; a zero row is orthogonal to all but its like.

    >>> nearest_by_cosine(torch.tensor([[1.0, 0.0], [3.0, 3.0], [0.0, 2.0]]), 1)[0].flatten().tolist()
    [1, 0, 1]
    """
    unit, zero = unit_rows(precise(x)), (x == 0).all(-1, keepdim=True)
    unit = torch.cat([unit, zero.to(unit)], -1) if bool(zero.any()) else unit
    away, index = neighbours(unit, k, rough=True)
    return index, 1 - away.square() / 2


class _Copy(NamedTuple):
    """What is multiplied: a copy (b, n, d), its squared norms, the squared unit of it (b, 1) in the widest type.

    ``slack`` (b, n) is what a squared distance from a row to any other may be wrong by, in that unit.
    """

    points: Tensor
    norms: Tensor
    unit: Tensor
    slack: Tensor


def _copy(points: Tensor, real: Tensor | None, rough: bool) -> _Copy:
    """Of clouds (b, n, d); off the CPU in float64, on it in float32 where ``rough``."""
    on_cpu = points.device.type == "cpu"
    points = points if on_cpu else precise(points)
    whole = power_of_two(largest(points, (-2, -1)))  # moving the points would overflow
    copy = about_middle(points if on_cpu and points.dtype == torch.float64 else points / whole, real)  # 1 in float64
    size = power_of_two(largest(copy, (-2, -1)))
    copy = copy.div_(size)
    copy = copy.float() if rough and on_cpu else copy
    norms = square_norms(copy)
    loss = error_bound(copy, norms)
    return _Copy(copy, norms, (precise(whole) * size)[..., 0].square(), loss + loss.amax(1, keepdim=True))


class Search:
    """The search among the real points of clouds (b, n, d), made ready once for any number of calls.

    Squared distances are in the square of ``unit`` (b, 1, 1), where that isn't None.
    """

    def __init__(self, points: Tensor, real: Tensor | None, *, rough: bool = False) -> None:
        self.unit = None
        if points.dtype == torch.float64:  # squares of float32 fit float64 as they are
            self.unit = power_of_two(largest(points, (-2, -1)))
            points = points / self.unit
        self.points, self.real, self.rough = points.contiguous(), real, rough
        self.way = neighbour_algorithm(points, real)
        if self.way == "boxes":
            self.boxes = [kd_tree(cloud) for cloud in points]

    @functools.cached_property
    def copy(self) -> _Copy:
        return _copy(self.points, self.real, self.rough)

    def __call__(
        self, k: int, some: Tensor | None = None, label: Tensor | None = None, chunk: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Indices and squared distances (b, m, k) of the rows ``some`` (m,) to the nearest of another ``label`` (n,).

        All rows and other rows by default. Nearest first, ties by index; -1 and infinity where there are too few.
        """
        row_ids = torch.arange(self.points.shape[1], device=self.points.device)
        rows_, labels = row_ids if some is None else some, row_ids if label is None else label
        label = label if some is None else labels  # without one the rows are taken for all of them
        if self.way == "differences":
            return self._among_all(slice(None), rows_, labels, k)
        if self.way == "boxes":
            index, square, bound = _boxed(self, rows_, labels, k, SPARE if label is None else LABELLED)
        else:
            way = _compiled if can_compile(self.points) and k <= compiled_nearest.WIDEST else _plain
            index, square, bound = way(self, rows_, label, k, chunk)
        failing = square[..., -1] >= bound
        if row_ids.device.type == "cpu" and bool(failing.any()):
            for c in failing.any(1).nonzero().flatten().tolist():
                again = failing[c].nonzero().flatten()
                result = self._among_all(slice(c, c + 1), rows_[again], labels, k)
                index[c, again], square[c, again] = result[0][0], result[1][0]
        return index, square

    def lengths(self, square: Tensor) -> Tensor:
        """Distances (b, m, k) of the points from squared ones, which they replace."""
        return square.sqrt_() if self.unit is None else square.sqrt_().mul_(self.unit)

    def _among_all(self, clouds: slice, some: Tensor, label: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """From all differences."""
        points, real = self.points[clouds], None if self.real is None else self.real[clouds]
        if self.way == "differences" and real is None and len(some) == len(label):  # few enough to keep all pairs
            return compiled_nearest.ranked(points, None, some, label, k)
        every = torch.arange(len(label)).expand(len(points), len(some), -1)
        if not can_compile(points):
            return _ranked(points, real, some, label, every, k)
        every = every if real is None else torch.where(real.unsqueeze(1), every, -1)
        return compiled_nearest.ranked(points, every, some, label, k)


Found = tuple[Tensor, Tensor, Tensor]
"""Indices and squared distances (b, m, k), and a bound (b, m): no point left out is nearer than that."""


def _boxed(search: Search, some: Tensor, label: Tensor, k: int, spare: int) -> Found:
    """By a kd-tree of each cloud, whose squared distances in float64 are good to a few units in the last place."""
    n = search.points.shape[1]
    wide = min(k + 1 + spare, n)  # with the row itself
    result = [boxes.query(cloud[some].numpy(), wide) for boxes, cloud in zip(search.boxes, search.points, strict=True)]
    chosen = torch.stack([torch.from_numpy(near) for _, near in result])
    index, square = compiled_nearest.ranked(search.points, chosen, some, label, k)
    bound = torch.stack([torch.from_numpy(away[:, -1]) for away, _ in result]).square() * (1 - 1e-12)
    again = (square[..., -1] >= bound).any(0).nonzero().flatten()
    if len(again) and 16 * wide < n:  # of the label of the row that asks, or as far
        more = _boxed(search, some[again], label, k, 8 * spare)
        index[:, again], square[:, again], bound[:, again] = more
    return index, square, bound


def _plain(search: Search, some: Tensor, label: Tensor | None, k: int, chunk: int | None) -> Found:
    copy, norms, unit, loss = search.copy
    b, n, d = copy.shape
    wide, parts, entries = min(k + SPARE, n - 1), [], ENTRIES.get(copy.device.type, 2**27)
    labels = torch.arange(n, device=copy.device) if label is None else label
    for piece in torch.split(some, chunk or max(1, entries // max(1, b * max(n, wide * d)))):
        rough = torch.baddbmm(norms.unsqueeze(1), copy[:, piece], copy.mT, alpha=-2)
        rough.add_(norms[:, piece].unsqueeze(2))
        out = labels[piece].unsqueeze(1) == labels
        rough.masked_fill_(out if search.real is None else out | ~search.real.unsqueeze(1), math.inf)
        bound, candidates = rough.topk(wide, -1, largest=False)
        result = _ranked(search.points, search.real, piece, labels, candidates.sort(-1).values, k)
        parts.append((*result, precise(bound.amax(-1) - loss[:, piece]) * unit))
    index, square, bound = (torch.cat(part, 1) for part in zip(*parts, strict=True))
    return index, square, bound if wide < n - 1 else torch.full_like(bound, math.inf)


def _compiled(search: Search, some: Tensor, label: Tensor | None, k: int, chunk: int | None) -> Found:
    """By compiled loops over tiles of the product; of a whole cloud those above the diagonal."""
    copy, norms, unit, loss = search.copy
    b, n, _ = copy.shape
    m, wide = len(some), min(k + SPARE, n - 1)
    half = norms / 2 if search.real is None else torch.where(search.real, norms / 2, math.inf)
    least, whose = half.new_full((b, m, wide), math.inf), torch.full((b, m, wide), -1, dtype=torch.int32)
    step = chunk or (n if b * n * n <= STRIP**2 else STRIP)
    width = max(STRIP, ENTRIES["cpu"] // max(1, b * step))
    for low in range(0, m, step):
        block = copy[:, low : low + step] if label is None else copy[:, some[low : low + step]]
        for start in range(low if label is None else 0, n, width):
            tile = torch.bmm(block, copy[:, start : start + width].mT)
            compiled_nearest.keep(half, tile, (low, start), some, label, least, whose)
    index, square = compiled_nearest.ranked(search.points, whose, some, some if label is None else label, k)
    bound = precise(2 * least[..., -1] - loss[:, some]) * unit
    return index, square, bound if wide < n - 1 else torch.full_like(bound, math.inf)


def _ranked(
    points: Tensor, real: Tensor | None, row_ids: Tensor, label: Tensor, index: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The k nearest of ascending candidates (b, m, w) of the rows ``row_ids`` (m,), with their squared distances."""
    square = squared_gaps(points, row_ids, index)
    none = label[index] == label[row_ids].unsqueeze(1)  # itself, a candidate where too few rows are real
    if real is not None:
        none |= ~real.gather(1, index.flatten(1)).view(index.shape)
    square, order = square.masked_fill_(none, math.inf).sort(dim=-1, stable=True)
    return torch.where(square.isinf(), -1, index.gather(-1, order))[..., :k], square[..., :k]


def squared_gaps(points: Tensor, row_ids: Tensor, index: Tensor) -> Tensor:
    """Squared distances (b, m, w) by differences in the widest type, from rows (m,) to their candidates."""
    b, m, wide = index.shape
    step = max(1, PIECE // 4 // max(1, b * wide * points.shape[-1])) if points.device.type == "cpu" else m
    parts, exact = [], precise(points)
    for start in range(0, m, step):
        piece = index[:, start : start + step]
        near = rows(points, piece.flatten(1)).view(*piece.shape, points.shape[-1])
        gap = torch.sub(near, exact[:, row_ids[start : start + step]].unsqueeze(2))
        parts.append(gap.square_().sum(-1))
    return torch.cat(parts, 1)

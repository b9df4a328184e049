"""The exact k nearest neighbours of every point of a cloud, in O(n) memory a row, for any offset and scale.

Candidates come from one matrix product of a localized copy; differences of the points themselves rank them, in float64.
On the CPU every row is then certified: no point outside its candidates can be nearer, by the rounding bound of the
product. Rows that fail (tight clusters, many duplicates, ties) are searched again among all points. Elsewhere the
product runs in float64 instead, since to look at a certificate would make the device wait.
Few points and few dimensions need no product: :mod:`isonb.numerics.ways` says where.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from isonb.checks import check_values
from isonb.errors import ShapeError, fail
from isonb.numerics import compiled_nearest
from isonb.numerics.compiled import can_compile
from isonb.numerics.distances import PIECE, about_middle, edge_lengths, rows, slack
from isonb.numerics.kd_tree import kd_tree
from isonb.numerics.products import upper_gram
from isonb.numerics.rows import unit_rows
from isonb.numerics.scale import largest, power_of_two, precise, square_norms
from isonb.numerics.ways import way_of_neighbours

__all__ = ["Search", "check_k", "distances_to", "nearest", "nearest_by_cosine", "squared_gaps"]

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


@torch.no_grad()
def nearest(x: Tensor, k: int, mask: Tensor | None = None, chunk: int | None = None) -> Tensor:
    """Indices (..., n, k) of the nearest other rows of a checked cloud, nearest first, ties by index; -1 for none."""
    real = None if mask is None else mask.reshape(-1, mask.shape[-1])
    index = Search(x.detach().reshape(-1, *x.shape[-2:]), real)(k, chunk=chunk)[0]
    if real is not None:
        index = torch.where(real.unsqueeze(-1), index, -1)
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


class _Copy(NamedTuple):
    """What is multiplied: a copy (b, n, d), its squared norms, the squared unit of it (b, 1) in the widest type.

    ``slack`` (b, n) is what a squared distance from a row to any other may be wrong by, in that unit.
    """

    points: Tensor
    norms: Tensor
    unit: Tensor
    slack: Tensor


def _copy(points: Tensor, real: Tensor | None) -> _Copy:
    """Of clouds (b, n, d); off the CPU, and where float32 overflows, in float64."""
    on_cpu = points.device.type == "cpu"
    copy = about_middle(points if on_cpu else precise(points), real)
    size = largest(copy, (-2, -1))
    if on_cpu and not bool(size.isfinite().all()):
        copy = about_middle(precise(points), real)
        size = largest(copy, (-2, -1))
    size = power_of_two(size)
    norms = square_norms(copy.div_(size))
    loss = slack(copy, norms)
    return _Copy(copy, norms, precise(size)[..., 0].square(), loss + loss.amax(1, keepdim=True))


class Search:
    """The search among the real points of clouds (b, n, d), made ready once for any number of calls."""

    def __init__(self, points: Tensor, real: Tensor | None) -> None:
        if points.dtype == torch.float64:  # squares of float32 fit float64 as they are
            points = points / power_of_two(largest(points, (-2, -1)))
        self.points, self.real, self.way = points.contiguous(), real, way_of_neighbours(points)
        if self.way == "boxes":
            self.boxes = [kd_tree(points[c], self._of(c)) for c in range(len(points))]
        elif self.way == "product":
            self.copy = _copy(points, real)

    def _of(self, cloud: int) -> Tensor | None:
        return None if self.real is None else self.real[cloud]

    def __call__(
        self, k: int, some: Tensor | None = None, label: Tensor | None = None, chunk: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Indices and squared distances (b, m, k) of the rows ``some`` (m,) to the nearest of another ``label`` (n,).

        All rows and other rows by default. Nearest first, ties by index; -1 and infinity where there are too few.
        """
        b, n, _ = self.points.shape
        own = torch.arange(n, device=self.points.device)
        if self.way == "product":
            return self._by_product(k, some, own, label, chunk)
        some, label = own if some is None else some, own if label is None else label
        index, square = own.new_empty(b, len(some), k), torch.empty(b, len(some), k, dtype=torch.float64)
        for c in range(b):
            if self.way == "boxes":
                index[c], square[c] = self.boxes[c].search(some, label, k)
            else:
                index[c], square[c] = compiled_nearest.among_all(self.points[c], self._of(c), some, label, k)
        return index, square

    def _by_product(
        self, k: int, some: Tensor | None, own: Tensor, label: Tensor | None, chunk: int | None
    ) -> tuple[Tensor, Tensor]:
        b, n, d = self.points.shape
        wide, m = min(k + SPARE, n - 1), n if some is None else len(some)
        compiled = can_compile(self.points) and wide <= compiled_nearest.WIDEST
        # half of the product is worth more than strips of it that lie in the cache
        halved = (
            compiled and some is label is None and n > compiled_nearest.BLOCK and d >= COLUMNS and b * n * n <= WHOLE
        )
        step = m if halved else max(1, _entries(self.points) // max(1, b * max(n, 0 if compiled else wide * d)))
        step = min(m, chunk or step)
        block = compiled_nearest.BLOCK if halved and step == n else step
        room = self.copy.norms.new_empty(
            b * step * n if compiled else 0
        )  # new memory for each strip costs a tenth more
        index, square = own.new_empty(b, m, k), precise(self.copy.norms[:0]).new_empty(b, m, k)
        for low in range(0, m, step):
            which = slice(low, min(low + step, m)) if some is None else some[low : low + step]
            found = (
                _compiled(self, which, own, label, k, wide, block, room)
                if compiled
                else _plain(self, which, own, label, k, wide)
            )
            index[:, low : low + step], square[:, low : low + step], outside = found
            failing = square[:, low : low + step, -1] >= outside
            if wide < n - 1 and own.device.type == "cpu" and bool(failing.any()):
                for c in failing.any(1).nonzero().flatten().tolist():
                    place = failing[c].nonzero().flatten() + low
                    rows_ = own[place] if some is None else some[place]
                    index[c, place], square[c, place] = self._among_all(c, rows_, own if label is None else label, k)
        return index, square

    def _among_all(self, cloud: int, some: Tensor, label: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if can_compile(self.points):
            return compiled_nearest.among_all(self.points[cloud], self._of(cloud), some, label, k)
        every = label.new_ones(1, len(some), 1) * torch.arange(len(label))
        real = None if self.real is None else self.real[cloud : cloud + 1]
        index, square = _ranked(self.points[cloud : cloud + 1], real, some, label, every, k)
        return index[0], square[0]


Strip = tuple[Tensor, Tensor, Tensor]
"""Indices and squared distances (b, m, k), and a bound (b, m): no point left out is nearer than that."""


def _plain(search: Search, which: slice | Tensor, own: Tensor, label: Tensor | None, k: int, wide: int) -> Strip:
    copy, norms, unit, loss = search.copy
    rough = torch.baddbmm(norms.unsqueeze(1), copy[:, which], copy.mT, alpha=-2).add_(norms[:, which].unsqueeze(2))
    label = own if label is None else label
    out = label[which].unsqueeze(1) == label
    rough.masked_fill_(out if search.real is None else out | ~search.real.unsqueeze(1), math.inf)
    bound, candidates = rough.topk(wide, -1, largest=False)
    index, square = _ranked(search.points, search.real, own[which], label, candidates.sort(-1).values, k)
    return index, square, precise(bound.amax(-1) - loss[:, which]) * unit


def _compiled(
    search: Search,
    which: slice | Tensor,
    own: Tensor,
    label: Tensor | None,
    k: int,
    wide: int,
    block: int,
    room: Tensor,
) -> Strip:
    """By compiled loops, with the product in ``room``: of fewer than all rows a block, its upper blocks."""
    copy, norms, unit, loss = search.copy
    m, (b, n) = len(own[which]), norms.shape
    product = room[: b * m * n].view(b, m, n)
    if block < m:
        upper_gram(product, copy, block)
    else:
        torch.bmm(copy[:, which], copy.mT, out=product)
    if label is None:
        product.diagonal(int(own[which][0]), 1, 2).fill_(-torch.inf)
    else:
        product.masked_fill_(label[which].unsqueeze(1) == label, -torch.inf)
    half = norms / 2 if search.real is None else torch.where(search.real, norms / 2, math.inf)
    label = own if label is None else label
    index, square, bound = compiled_nearest.choose(search.points, half, product, own[which], label, k, wide, block)
    return index, square, precise(2 * bound + norms[:, which] - loss[:, which]) * unit


def _ranked(
    points: Tensor, real: Tensor | None, own: Tensor, label: Tensor, index: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The k nearest of ascending candidates (b, m, w) of the rows ``own`` (m,), with their squared distances."""
    square = squared_gaps(points, own, index)
    none = label[index] == label[own].unsqueeze(1)  # itself, a candidate where too few rows are real
    if real is not None:
        none |= ~real.gather(1, index.flatten(1)).view(index.shape)
    square, order = square.masked_fill_(none, math.inf).sort(dim=-1, stable=True)
    return torch.where(square.isinf(), -1, index.gather(-1, order))[..., :k], square[..., :k]


def squared_gaps(points: Tensor, own: Tensor, index: Tensor) -> Tensor:
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

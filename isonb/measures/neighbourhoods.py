"""The neighbours in a cloud, searched once, and what is read off them: of all points, and of parts of them."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, validated
from isonb.errors import ShapeError, fail
from isonb.measures.neighbors import dimension_of_gaps, log_gaps_of, two_nn_of
from isonb.numerics.nearest import Search, check_k, neighbours


class Neighbours:
    """The k nearest others of each point of a cloud, exact, for any number of readings after one search.

    A reading of a part of the points (a group left out, copies dropped) takes the neighbours that belong to the part.
    Points of which too few do are searched again within it, so each reading equals that of the part alone.

    Shape: x (n, d), half precision raised to float32, 1 <= k <= n - 1. ``distances`` and ``indices`` (n, k) are those
    of :func:`isonb.knn`, without a gradient. Raises :class:`~isonb.errors.InputError` as :func:`isonb.knn`.

    >>> near = Neighbours(torch.arange(1.0, 21.0).square().unsqueeze(-1), 4)
    >>> round(near.two_nn().item(), 4), near.occurrences(1).tolist()[:4]
    (5.4746, [1, 2, 1, 1])
    """

    x: Tensor
    distances: Tensor
    indices: Tensor

    @validated
    @torch.no_grad()
    def __init__(self, x: Tensor, k: int = 12) -> None:
        x, _ = check_points(x, single=True)
        check_k(x, k, None)
        self.x = x.detach()
        away, self.indices = neighbours(self.x, k)
        self.distances = check_overflow(away, "distances")

    @validated
    def within(self, part: Tensor | None = None, k: int | None = None) -> Tensor:
        """Distances (m, k) of the m points that the mask ``part`` (n,) leaves, to their k nearest among them."""
        return self._within(part, k)

    @torch.no_grad()
    def _within(self, part: Tensor | None, k: int | None) -> Tensor:
        k = self.distances.shape[1] if k is None else k
        if part is None:
            known = k <= self.distances.shape[1]
            return self.distances[:, :k] if known else check_overflow(neighbours(self.x, k)[0], "distances")
        if k >= int(part.sum()):
            fail(ShapeError, f"k must be below the {int(part.sum())} points of the part", k, "Pass a smaller k.")
        away, inside = self.distances[part], part[self.indices[part]]
        place = (~inside).to(torch.uint8).argsort(dim=1, stable=True)[:, :k]
        few = (inside.sum(1) < k).nonzero().flatten()
        result = away.gather(1, place) if place.shape[1] == k else away.new_empty(len(away), k)
        if len(few):
            inner = self.x[part]
            search = Search(inner.unsqueeze(0), None)
            square = search(k, few, torch.arange(len(inner), device=inner.device))[1][0]
            result[few] = (square.sqrt() if search.unit is None else square.sqrt() * search.unit.squeeze()).to(result)
        return result

    @validated
    def two_nn(self, part: Tensor | None = None, discard: float = 0.1) -> Tensor:
        """:func:`isonb.two_nn` of all points, or of a part."""
        return two_nn_of(self.x if part is None else self.x[part], self._within(part, 2), discard)

    @validated
    def mle_dimension(self, part: Tensor | None = None, k: int | None = None) -> Tensor:
        """:func:`isonb.mle_dimension` of all points, or of a part; k as many as were searched for by default."""
        x = self.x if part is None else self.x[part]
        return dimension_of_gaps(x, *log_gaps_of(x, self._within(part, k)))

    def occurrences(self, k: int | None = None) -> Tensor:
        """How often each point is among the k nearest of the others (n,): those of hubs are many."""
        return torch.bincount(self.indices[:, :k].flatten(), minlength=len(self.x))

"""The neighbours in a cloud, searched once, and what is read off them: of all points, and of parts of them."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, is_whole, mask_of, validated
from isonb.errors import ShapeError, fail, needs
from isonb.measures.neighbors import dimension_of_gaps, log_gaps_of, two_nn_of
from isonb.numerics.nearest import SPARE, Search, check_k, neighbours, squared_gaps

LINKS, VISITED = 32, 64  # of each point in the graph of an approximate search; points kept in view at each step of it
CHECKED = 256  # points of an approximate search whose neighbours are compared with the exact ones


class Neighbours:
    """The k nearest others of each point of a cloud, exact, for any number of readings after one search.

    A reading of a part of the points (a group left out, copies dropped) takes the neighbours that belong to the part.
    Points of which too few do are searched again within it, so each reading equals that of the part alone.

    ``approximate`` takes neighbours that a graph of faiss proposes (HNSW of Malkov and Yashunin 2018), for clouds on
    which the exact search lasts too long: the distances are right, some neighbours aren't the nearest. ``recall`` is
    then the share of them that are no farther than the exact k-th, measured on 256 points; 1 of an exact search.

    Shape: x (n, d), half precision raised to float32, 1 <= k <= n - 1. ``distances`` and ``indices`` (n, k) are those
    of :func:`isonb.knn`, without a gradient. Raises :class:`~isonb.errors.InputError` as :func:`isonb.knn`, and
    :class:`~isonb.errors.DependencyError` where faiss isn't installed.

    >>> near = Neighbours(torch.arange(1.0, 21.0).square().unsqueeze(-1), 4)
    >>> round(near.two_nn().item(), 4), near.occurrences(1).tolist()[:4]
    (5.4746, [1, 2, 1, 1])
    """

    x: Tensor
    distances: Tensor
    indices: Tensor
    recall: float = 1.0

    @validated
    @torch.no_grad()
    def __init__(self, x: Tensor, k: int = 12, *, approximate: bool = False) -> None:
        x, _ = check_points(x, single=True)
        k = check_k(x, k, None)
        self.x = x.detach()
        if approximate:
            away, self.indices, self.recall = _proposed(self.x, k)
        else:
            away, self.indices = neighbours(self.x, k)
        self.distances = check_overflow(away, "distances")

    @validated
    def within(self, part: Tensor | None = None, k: int | None = None) -> Tensor:
        """Distances (m, k) of the m points that the mask ``part`` (n,) leaves, to their k nearest among them."""
        return self._within(mask_of(self.x, part), k)

    @torch.no_grad()
    def _within(self, part: Tensor | None, k: int | None) -> Tensor:
        inner = self.x if part is None else self.x[part]
        k = check_k(inner, self.distances.shape[1] if k is None else k, None)
        if part is None:
            known = k <= self.distances.shape[1]
            return self.distances[:, :k] if known else check_overflow(neighbours(inner, k)[0], "distances")
        away, inside = self.distances[part], part[self.indices[part]]
        place = (~inside).to(torch.uint8).argsort(dim=1, stable=True)[:, :k]
        few = (inside.sum(1) < k).nonzero().flatten()
        result = away.gather(1, place) if place.shape[1] == k else away.new_empty(len(away), k)
        if len(few):
            search = Search(inner.unsqueeze(0), None)
            square = search(k, few, torch.arange(len(inner), device=inner.device))[1]
            result[few] = search.lengths(square)[0].to(result)
        return result

    @validated
    def two_nn(self, part: Tensor | None = None, discard: float = 0.1) -> Tensor:
        """:func:`isonb.two_nn` of all points, or of a part."""
        part = mask_of(self.x, part)
        return two_nn_of(self.x if part is None else self.x[part], self._within(part, 2), discard)

    @validated
    def mle_dimension(self, part: Tensor | None = None, k: int | None = None) -> Tensor:
        """:func:`isonb.mle_dimension` of all points, or of a part; k as many as were searched for by default."""
        part = mask_of(self.x, part)
        x = self.x if part is None else self.x[part]
        return dimension_of_gaps(x, *log_gaps_of(x, self._within(part, k)))

    def occurrences(self, k: int | None = None) -> Tensor:
        """How often each point is among the k nearest, of those found, of the others (n,): those of hubs are many."""
        most = self.indices.shape[1]
        if k is not None and not (is_whole(k) and 1 <= k <= most):
            fail(ShapeError, f"k must be an integer from 1 to the {most} neighbours found", repr(k), "Search for more.")
        return torch.bincount(self.indices[:, :k].flatten(), minlength=len(self.x))


def _proposed(x: Tensor, k: int) -> tuple[Tensor, Tensor, float]:
    """Distances and indices (n, k) of the nearest of those that the graph proposes, and their recall."""
    with needs("an approximate search", "approximate"):
        import faiss
    search, row_ids = Search(x.unsqueeze(0), None, rough=True), torch.arange(len(x), device=x.device)
    copy, graph = search.copy.points[0].float().cpu().numpy(), faiss.IndexHNSWFlat(x.shape[1], LINKS)
    graph.hnsw.efSearch = max(VISITED, 2 * k)
    graph.add(copy)
    index = torch.from_numpy(graph.search(copy, min(k + 1 + SPARE, len(x)))[1]).to(row_ids)
    square = squared_gaps(search.points, row_ids, index.clamp_min(0).unsqueeze(0))[0]
    square.masked_fill_((index == row_ids.unsqueeze(1)) | (index < 0), torch.inf)
    square, order = square.sort(stable=True)
    square, index = square[:, :k], index.gather(1, order)[:, :k]
    few = row_ids[:: -(-len(x) // CHECKED)]
    farthest = search(k, few)[1][0, :, -1:] * (1 + 1e-9)  # rounded otherwise
    recall = (square[few] <= farthest).double().mean().item()
    if len(missing := square[:, -1].isinf().nonzero().flatten()):  # fewer than k were proposed
        index[missing], square[missing] = (part[0] for part in search(k, missing))
    return search.lengths(square.unsqueeze(0))[0].to(x), index, recall

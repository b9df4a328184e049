"""A spanning tree of a cloud whose distances don't fit into memory, least as far as a product tells.

Boruvka's algorithm on short lists: each point keeps its few nearest others, searched strip by strip. As long as one of
them lies outside the point's own component, the first such is the nearest point outside. When none does, the last of
the list is a bound, and the point is looked up again only if the bound is below what its component has. Memory
O(n (k + d)) and one strip of distances; each pass over all points costs one product X X^T.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isonb.numerics.distances import distances_from

__all__ = ["tiled_tree"]

NEAREST = 8  # points on the list of each
STRIP = 2**24  # distances held at a time


@torch.no_grad()
def tiled_tree(points: Tensor, strip: int = STRIP) -> tuple[Tensor, Tensor]:
    """Edges (n-1, 2) of a spanning tree of one localized cloud (n, d) and their squared lengths, least by product."""
    n, step = len(points), max(1, strip // len(points))
    component = torch.arange(n, device=points.device)
    near = _Nearest(points, min(NEAREST, n - 1), step)
    near.look_up(component, component)
    edges, weights = component.new_empty(0, 2), points.new_empty(0)
    while len(edges) < n - 1:
        near.look_up(near.open(component), component)
        ends, weight = near.cheapest_exits(component)
        kept, component = _joined(ends, component)
        edges, weights = torch.cat([edges, ends[kept]]), torch.cat([weights, weight[kept]])
    return edges, weights


class _Nearest:
    """The ``k`` nearest points of each point, ascending, as they were when it was last looked up."""

    def __init__(self, points: Tensor, k: int, step: int) -> None:
        self.points, self.k, self.step = points, k, step
        self.weight = points.new_empty(len(points), k)
        self.index = torch.empty(len(points), k, dtype=torch.long, device=points.device)

    def look_up(self, some: Tensor, component: Tensor) -> None:
        """List the nearest of those outside their component anew for the points ``some`` (m,)."""
        for low in range(0, len(some), self.step):
            chosen = some[low : low + self.step]
            away = distances_from(self.points, chosen)
            away.masked_fill_(component[chosen].unsqueeze(1) == component, math.inf)
            self.weight[chosen], self.index[chosen] = away.topk(self.k, largest=False)

    def exits(self, component: Tensor) -> tuple[Tensor, Tensor]:
        """Of each point the nearest listed one outside its component: the weight, infinite for none, and which."""
        weight = self.weight.masked_fill(component[self.index] == component.unsqueeze(1), math.inf)
        least = weight.amin(1)
        number = torch.where(weight == least.unsqueeze(1), self.index, len(component))
        return least, number.amin(1)

    def open(self, component: Tensor) -> Tensor:
        """Points to look up: their list is used up, and it may have hidden an exit better than the known ones.

        The largest component needs no exit of its own: all others hook onto something.
        """
        least, _ = self.exits(component)
        best = least.new_full((len(component),), math.inf).scatter_reduce(0, component, least, "amin")
        hidden = (least == math.inf) & (self.weight[:, -1] < best[component])
        return (hidden & (component != _largest(component))).nonzero().squeeze(-1)

    def cheapest_exits(self, component: Tensor) -> tuple[Tensor, Tensor]:
        """The cheapest exit of each component but the largest: both ends (m, 2) and the weight (m,), cheapest first.

        Ties go to the lower edge number, ``low * n + high``.
        """
        least, mate = self.exits(component)
        node = torch.arange(len(component), device=component.device)
        low, high = torch.minimum(node, mate), torch.maximum(node, mate)
        order = (low * len(component) + high).argsort(stable=True)
        order = order[least[order].argsort(stable=True)]
        place = torch.empty_like(order).scatter_(0, order, node)
        first = torch.full_like(component, len(component)).scatter_reduce(0, component, place, "amin")
        first[_largest(component)] = len(component)
        chosen = order[first[first < len(component)].sort().values]
        return torch.stack((low[chosen], high[chosen]), -1), least[chosen]


def _largest(component: Tensor) -> Tensor:
    """The component with the most points."""
    return torch.bincount(component).argmax()


def _joined(ends: Tensor, component: Tensor) -> tuple[Tensor, Tensor]:
    """Which edges join two components, taken in their order, and the components then, named after one of their nodes.

    In exact arithmetic none closes a circle, but for ties. A product rounds the two directions of an edge apart.
    """
    above = list(range(len(component)))

    def root(node: int) -> int:
        while above[node] != node:
            above[node] = node = above[above[node]]
        return node

    kept = []
    for k, (a, b) in enumerate(component[ends].tolist()):
        one, other = root(a), root(b)
        if one != other:
            above[one] = other
            kept.append(k)
    names = torch.tensor([root(node) for node in range(len(component))], device=component.device)
    return torch.tensor(kept, dtype=torch.long, device=component.device), names[component]

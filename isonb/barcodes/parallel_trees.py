"""Minimum spanning trees of a batch by few steps, each over all weights: for accelerators, where a step costs a launch.

The host never looks at the data. Pairs are told apart by their weight, and where that is the same by their number
``low * n + high``, so that there is one tree and each run finds it. No gradient passes here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

FAR = 2.0**96  # the weight of a pair with a masked row: beyond all others, and exact in every type
TRIPLES = 2**26  # triples of nodes up to which paths are compared at once: 256 MiB


def parallel_trees(weights: Tensor) -> Tensor:
    """Edges (b, n-1, 2) of the trees of symmetric weights (b, n, n), which it may overwrite.

    Small clouds by paths, which takes about 30 steps; others by Boruvka, about 40 for each doubling of n.
    """
    b, n, _ = weights.shape
    return by_paths(weights) if b * n**3 <= TRIPLES and weights.device.type != "cpu" else by_boruvka(weights)


def by_paths(weights: Tensor) -> Tensor:
    """Of symmetric weights: a pair is an edge of the tree if no path between the two has only lighter edges.

    The least of the heaviest edges of paths of twice the length is a product of matrices with min for the sum and max
    for the product. Weights are replaced by their rank, so no two edges are equal.
    """
    b, n, _ = weights.shape
    order = weights.flatten(1).argsort(dim=1, stable=True)
    rank = torch.empty_like(order, dtype=torch.int32)
    rank.scatter_(1, order, torch.arange(n * n, dtype=rank.dtype, device=rank.device).expand(b, n * n))
    rank = rank.view(b, n, n)
    rank = torch.minimum(rank, rank.mT)
    heaviest = rank.clone()
    heaviest.diagonal(dim1=1, dim2=2).fill_(-1)
    for _ in range((n - 1).bit_length()):
        heaviest = torch.maximum(heaviest.unsqueeze(2), heaviest.unsqueeze(1)).amin(3)
    chosen = torch.where(rank == heaviest, rank, n * n).flatten(1).sort(dim=1).values[:, : 2 * n - 2 : 2]
    number = order.gather(1, chosen.long())  # each edge stood there in both directions
    return torch.stack((number // n, number % n), -1)


def by_boruvka(weights: Tensor) -> Tensor:
    """Boruvka's algorithm on symmetric weights, which it overwrites: each round a component takes its cheapest way out.

    All components agree on one order, so the picks close no circle, except that two may pick the same edge. A component
    that hooks onto another is gone for good, so its representative's slot holds its edge; the last one has none. A
    round leaves at most half of the components, so chains get shorter.
    """
    b, n, _ = weights.shape
    node = torch.arange(n, device=weights.device)
    component, edges = node.expand(b, n), node.new_zeros(b, n, 2)
    for rounds in range((n - 1).bit_length(), 0, -1):
        weights.masked_fill_(component.unsqueeze(1) == component.unsqueeze(2), math.inf)
        pick = _cheapest_exits(weights, component, node)
        alive = pick < n * n
        ends = torch.where(alive, pick, 0)
        ends = torch.stack((ends // n, ends % n), -1)
        sides = component.gather(1, ends.flatten(1)).view(b, n, 2)
        onto = torch.where(sides[..., 0] == node, sides[..., 1], sides[..., 0])
        onto = torch.where(alive, onto, node)
        stays = ~alive | ((onto.gather(1, onto) == node) & (node < onto))
        edges = torch.where(stays.unsqueeze(-1), edges, ends)
        root = torch.where(stays, node, onto)
        for _ in range(rounds):
            root = root.gather(1, root)
        component = root.gather(1, component)
    slot = node[:-1].expand(b, n - 1)
    slot = slot + (slot >= component[:, :1])
    return edges.gather(1, slot.unsqueeze(-1).expand(b, n - 1, 2))


def _cheapest_exits(weights: Tensor, component: Tensor, node: Tensor) -> Tensor:
    """For each component, at its representative, the number ``low * n + high`` of its cheapest edge; n * n for none."""
    b, n, _ = weights.shape
    weight, mate = weights.min(-1)  # the first of equals, which is the lowest edge number
    number = torch.minimum(node, mate) * n + torch.maximum(node, mate)
    best = weight.new_full((b, n), math.inf).scatter_reduce(1, component, weight, "amin")
    is_cheapest = (weight == best.gather(1, component)) & (weight < math.inf)
    number = torch.where(is_cheapest, number, n * n)
    return number.new_full((b, n), n * n).scatter_reduce(1, component, number, "amin")


def joined(component: Tensor, joining: Tensor, sides: Tensor) -> Tensor:
    """Components (n,) after those in ``joining`` (m,) hooked onto the other of their two ``sides`` (m, 2).

    All hooks agree on one order of the edges, so they close no circle, except that two components may take one edge.
    """
    node = torch.arange(len(component), device=component.device)
    onto = node.scatter(0, joining, sides.sum(1) - joining)
    onto = torch.where((onto[onto] == node) & (node < onto), node, onto)
    while not torch.equal(onto[onto], onto):
        onto = onto[onto]
    return onto[component]


def mask_pairs(weights: Tensor, real: Tensor | None) -> Tensor:
    """The weights (b, n, n), in place, with those to rows off the mask (b, n) beyond all others."""
    return weights if real is None else weights.masked_fill_(~(real.unsqueeze(-1) & real.unsqueeze(-2)), FAR)

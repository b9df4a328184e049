"""Minimum spanning trees of batches of clouds: exact, for any offset and scale. No gradient passes here.

Equal distances go by the lower number ``low * n + high`` of the pair, so there is one tree, whichever way finds it
(:mod:`isonb.numerics.dispatch`):

- *differences*: Prim's algorithm, which subtracts points in float64 as it goes;
- *product*: Prim's algorithm on a matrix product, then mended (:mod:`isonb.barcodes.product_trees`);
- *neighbours*: Boruvka's algorithm on lists of exact nearest neighbours, in O(n) memory a row;
- *parallel*: few steps, each over all weights (:mod:`isonb.barcodes.parallel_trees`), because on an accelerator a step
  costs a launch. Weights there are those of a product in float64, which nothing mends: nothing is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isonb.barcodes.compiled_prim import prim
from isonb.barcodes.parallel_trees import FAR, joined, mask_pairs, parallel_trees
from isonb.barcodes.product_trees import by_product
from isonb.numerics.compiled import can_compile
from isonb.numerics.dispatch import tree_algorithm
from isonb.numerics.distances import lengths_between, localized, numbered, squared_distances
from isonb.numerics.nearest import Search, squared_gaps
from isonb.numerics.scale import largest, power_of_two, precise

LISTED = 4  # neighbours on the list of each point

Tree = tuple[Tensor, Tensor]
"""Edges, the lower end of each first, and their lengths."""


def spanning_tree(x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """Edges (..., n-1, 2) of a Euclidean minimum spanning tree of a checked cloud (..., n, d), the lower end first.

    Rows off the mask hang on by edges of their own, so the edges between real rows are the tree of the real cloud.
    Where the search knows their lengths (..., n-1), these too as constants, and both as :func:`longest_first` has them.
    """
    points, unit = x.detach().reshape(-1, *x.shape[-2:]), None
    real = None if mask is None else mask.reshape(-1, mask.shape[-1])
    if points.dtype == torch.float64:  # squares of float32 fit float64 as they are
        unit = power_of_two(largest(points, (-2, -1)))
        points = points / unit
    whole = torch.compiler.is_compiling() and points.device.type == "cpu"  # to the compiler one operator
    edges, lengths = torch.ops.isonb.trees(points, real) if whole else ALGORITHMS[tree_algorithm(points)](points, real)
    edges = edges.view(*x.shape[:-2], x.shape[-2] - 1, 2)
    if lengths is None:
        return edges, None
    return edges, (lengths if unit is None else lengths.mul_(unit.squeeze(-1))).view(edges.shape[:-1])


@torch.library.custom_op("isonb::trees", mutates_args=(), schema="(Tensor x, Tensor? real) -> (Tensor, Tensor)")
def _trees(points: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    edges, lengths = ALGORITHMS[tree_algorithm(points)](points, real)
    if lengths is None:
        lengths = lengths_between(points.flatten(0, 1), numbered(edges, points.shape[1])).view(edges.shape[:-1])
    return edges, lengths.to(points.dtype)


@_trees.register_fake
def _(points: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    b, n, _ = points.shape
    return points.new_empty(b, n - 1, 2, dtype=torch.long), points.new_empty(b, n - 1)


def longest_first(edges: Tensor, lengths: Tensor, real: Tensor | None, n: int) -> Tree:
    """Edges (..., m, 2) and lengths (..., m) in order: equal ones by the edge number, those not ``real`` last."""
    order = (edges[..., 0] * n + edges[..., 1]).argsort(dim=-1)
    key = lengths.detach() if real is None else torch.where(real, lengths.detach(), -1.0)
    order = order.gather(-1, key.gather(-1, order).argsort(dim=-1, descending=True, stable=True))
    return edges.gather(-2, order.unsqueeze(-1).expand(edges.shape)), lengths.gather(-1, order)


def tree_of_distances(matrix: Tensor, mask: Tensor | None = None) -> Tensor:
    """The edges of checked distances (..., n, n)."""
    n = matrix.shape[-1]
    weights = matrix.detach().reshape(-1, n, n)
    real = None if mask is None else mask.reshape(-1, n)
    weights = weights / power_of_two(largest(weights, (-2, -1)))
    weights = torch.minimum(weights, weights.mT).contiguous()
    edges = (
        prim(weights, real, precomputed=True)[0] if can_compile(weights) else parallel_trees(mask_pairs(weights, real))
    )
    return edges.view(*matrix.shape[:-2], n - 1, 2)


def spanning_forest(x: Tensor, labels: Tensor, least: int) -> tuple[Tensor, Tensor]:
    """Edges (1, n-1, 2) that hold the tree of each label's rows of x (n, d), and which are of whose (C, n-1).

    Of C = n // least labels, as many as can have ``least`` rows; one that has fewer, or isn't there, has no edge.
    Nothing waits for the device.
    """
    alike = labels.unsqueeze(1) == labels
    first, node = alike.int().argmax(1), torch.arange(len(x), device=x.device)
    counted = alike.sum(1) >= least
    place = ((first == node) & counted).cumsum(0)[first]
    edges = parallel_trees(_weights(x.detach().unsqueeze(0), None).masked_fill_(~alike, FAR))
    number = (edges[..., 0] * len(x) + edges[..., 1]).sort(-1).values  # of equal lengths the first is the longer
    low, high = (number // len(x))[0], (number % len(x))[0]
    owner = torch.where(alike[low, high] & counted[low], place[low], 0)
    return torch.stack((low, high), -1).unsqueeze(0), owner == torch.arange(
        1, len(x) // least + 1, device=x.device
    ).unsqueeze(1)


def _in_parallel(points: Tensor, real: Tensor | None) -> tuple[Tensor, None]:
    return parallel_trees(mask_pairs(_weights(points, real), real)), None


def _weights(points: Tensor, real: Tensor | None) -> Tensor:
    """Symmetric (b, n, n): on the CPU by differences, elsewhere by a product."""
    b, n, _ = points.shape
    exact = precise(points)
    if points.device.type == "cpu":
        exact = exact / power_of_two(largest(exact, (-2, -1)))
        weights = squared_gaps(exact, torch.arange(n), torch.arange(n).expand(b, n, n))
    else:
        weights = squared_distances(localized(exact, real)).to(points.dtype)
    return torch.minimum(weights, weights.mT)


def _by_neighbours(points: Tensor, real: Tensor | None) -> Tree:
    """Boruvka on lists, a cloud at a time; a row off the mask hangs on the first real row."""
    real = points.new_ones(points.shape[:2], dtype=torch.bool) if real is None else real
    edges = torch.zeros(len(real), points.shape[1] - 1, 2, dtype=torch.long, device=points.device)
    lengths, joins = points.new_zeros(edges.shape[:2]), real.new_ones(edges.shape[:2])
    for c, row_mask in enumerate(real):
        inside, outside = row_mask.nonzero().squeeze(-1), (~row_mask).nonzero().squeeze(-1)
        joins[c, : len(outside)] = False
        edges[c, : len(outside)] = torch.stack((inside[:1].expand_as(outside), outside), -1).sort(-1).values
        if len(inside) > 1:
            inner, square = _of_lists(points[c, inside])
            edges[c, len(outside) :], lengths[c, len(outside) :] = inside[inner], square.sqrt_()
    return longest_first(edges, lengths, joins, points.shape[1])


def _of_lists(points: Tensor) -> Tree:
    """The least tree (n-1, 2) of one cloud (n, d), and its squared lengths in float64.

    Each point keeps its nearest others. As long as one of them lies outside the point's own component, the first such
    is the nearest point outside. When none does, the last of the list is a bound, and the point is looked up again,
    outside its component, only if what its component has isn't below that bound. The largest component needs no way
    out of its own: all others hook onto something.
    """
    n, search = len(points), Search(points[None], None)
    node = component = torch.arange(n, device=points.device)
    index, square = (result[0] for result in search(min(LISTED, n - 1)))
    numbers, squares = node[:0], square[0, :0]
    while len(numbers) < n - 1:
        outside = (component[index] != component.unsqueeze(1)) & (index >= 0)
        has, first = outside.max(1)
        least = torch.where(has, square.gather(1, first.unsqueeze(1)).squeeze(1), math.inf)
        best = least.new_full((n,), math.inf).scatter_reduce(0, component, least, "amin")
        small = component != torch.bincount(component).argmax()
        again = (~has & small & (square[:, -1] <= best[component])).nonzero().squeeze(-1)
        if len(again):
            index[again], square[again] = (result[0] for result in search(index.shape[1], again, component))
            continue
        mate = index.gather(1, first.unsqueeze(1)).squeeze(1)
        number = torch.minimum(node, mate) * n + torch.maximum(node, mate)
        number = torch.where(small & has & (least == best[component]), number, n * n)
        number = torch.full_like(node, n * n).scatter_reduce(0, component, number, "amin")
        joining = (number < n * n).nonzero().squeeze(-1)
        picked, place = torch.unique(number[joining], return_inverse=True)
        numbers = torch.cat([numbers, picked])
        squares = torch.cat([squares, square.new_empty(len(picked)).scatter_(0, place, best[joining])])
        sides = torch.stack((picked // n, picked % n), -1)[place]
        component = joined(component, joining, component[sides])
    squares = squares if search.unit is None else squares * search.unit.flatten().square()
    return torch.stack((numbers // n, numbers % n), -1), squares


ALGORITHMS: dict[str, Callable[..., Any]] = {
    "parallel": _in_parallel,
    "differences": prim,
    "product": by_product,
    "neighbours": _by_neighbours,
}

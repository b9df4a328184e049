"""Minimum spanning trees of batches of clouds. No gradient passes here. Which way is taken:

=================  ===========================  ==================================================================
points of a cloud  where                        way
=================  ===========================  ==================================================================
up to ``DENSE``    on the CPU                   Prim: n short steps, each one pass over a row of all n x n weights;
                                                :func:`_prim` at first, :mod:`~isonb.compiled_prim` once a process
                                                has taken many steps and numba is installed: the same edges
up to ``DENSE``    on accelerators              :func:`~isonb.parallel_trees.parallel_trees`: few steps, each over all
                                                weights, because there a step costs a launch
more               anywhere                     :func:`~isonb.tiled_trees.tiled_tree`: weights strip by strip
=================  ===========================  ==================================================================

Prim's weights are the cheapest that resolve the shortest edge of the tree: of small clouds a product of the points as
they are; of others, and where that is too coarse (a cloud far from the origin), one of localized points; where that is
too coarse as well (duplicates, tight clusters), the same in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from isonb.compiled_prim import compiled_prim
from isonb.distances import BLOCK, by_differences, localized, raw_squared_distances, squared_distances
from isonb.parallel_trees import parallel_trees
from isonb.precision import precise
from isonb.tiled_trees import tiled_tree

__all__ = ["spanning_tree"]

Tree = Callable[[Tensor, Tensor | None], Tensor]

DENSE = 8192  # points up to which all weights are held at once: 256 MiB of float32
FINE = 2.0**-12  # a squared edge below this share of the squared size of what was multiplied wants a finer product
GROUP = 2**20  # coordinates whose distances are taken at a time on the CPU: what its cache holds
SLAB = 2**16  # weights searched for parents at a time, for the same reason


@torch.no_grad()
def spanning_tree(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Edges (..., n-1, 2) of a Euclidean minimum spanning tree of a checked cloud (..., n, d).

    Rows off the mask hang on by edges of their own, so the edges between real rows are the tree of the real cloud.
    """
    points = x.detach().reshape(-1, *x.shape[-2:])
    real = None if mask is None else mask.reshape(-1, mask.shape[-1])
    if x.shape[-2] > DENSE:
        masks = [None] * len(points) if real is None else real.unbind(0)
        edges = torch.stack([tiled_tree(one, its, fine=FINE) for one, its in zip(points, masks, strict=True)])
    elif x.device.type == "cpu":
        edges = _by_prim(points, real)
    else:
        edges = parallel_trees(_weights(points, real))
    return edges.view(*x.shape[:-2], *edges.shape[-2:])


def _weights(points: Tensor, real: Tensor | None) -> Tensor:
    """Squared distances; a pair with a masked row weighs more than any other, but less than infinity.

    Off the CPU in float64, rounded once: to see where float32 doesn't do would make the device wait.
    """
    on_cpu = points.device.type == "cpu"
    step = max(1, GROUP // max(1, points[:1].numel())) if on_cpu else max(1, len(points))
    parts = []
    for low in range(0, max(1, len(points)), step):
        some = localized(points[low : low + step], None if real is None else real[low : low + step])
        parts.append(squared_distances(some if on_cpu else precise(some)).to(points.dtype))
    return _apart(torch.cat(parts) if len(parts) > 1 else parts[0], real)


def _apart(weights: Tensor, real: Tensor | None) -> Tensor:
    """The weights, in place, with those to masked rows beyond all others."""
    if real is not None:
        weights.masked_fill_(~(real.unsqueeze(-1) & real.unsqueeze(-2)), torch.finfo(weights.dtype).max)
    return weights


def _by_prim(points: Tensor, real: Tensor | None) -> Tensor:
    """The trees by Prim, on a product of the points as they are where it resolves their shortest edge."""
    if points.shape[1] > BLOCK or by_differences(points) or not len(points):
        return _by_localized(points, real)
    weights, size = raw_squared_distances(points)
    few = torch.finfo(points.dtype).tiny ** 0.5
    if not few < float(size.amax()) < 1 / few:
        return _by_localized(points, real)
    edges, lengths = _grown(_apart(weights, real), _first(points, real))
    return _mended(edges, lengths, size, points, real, _by_localized)


def _by_localized(points: Tensor, real: Tensor | None) -> Tensor:
    """The same on localized points: where a float32 product is too coarse in float64."""
    weights, first = _weights(points, real), _first(points, real)
    reach = weights[torch.arange(len(points)), first]
    reach = (reach if real is None else torch.where(real, reach, 0.0)).amax(-1)
    edges, lengths = _grown(weights, first)
    if points.dtype != torch.float32 or by_differences(points):
        return edges
    return _mended(edges, lengths, reach, points, real, lambda few, its: _by_localized(precise(few), its))


def _mended(edges: Tensor, lengths: Tensor, size: Tensor, points: Tensor, real: Tensor | None, again: Tree) -> Tensor:
    """The trees, found ``again`` where an edge is short beside the squared ``size`` of the numbers it came from."""
    coarse = ~(lengths.amin(-1) >= FINE * size)
    if bool(coarse.any()):
        edges[coarse] = again(points[coarse], None if real is None else real[coarse])
    return edges


def _grown(weights: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    return (compiled_prim(weights.shape[1]) or _prim)(weights, first)


def _first(points: Tensor, real: Tensor | None) -> Tensor:
    """The first real row of each cloud."""
    if real is None:
        return torch.zeros(len(points), dtype=torch.long, device=points.device)
    return real.to(torch.uint8).argmax(-1)


def _prim(weights: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Prim's algorithm on a batch (b, n, n), which it overwrites, from node ``first`` (b,).

    Returns edges (b, n-1, 2) and their weights (b, n-1).

    The loop only finds the order in which nodes join. The diagonal is NaN: once a node has joined, its own row makes
    its key NaN and keeps it so, and a NaN is not among the free.
    """
    b, n, _ = weights.shape
    weights.diagonal(dim1=1, dim2=2).fill_(math.nan)
    table, start = weights.view(b * n, n), torch.arange(b) * n
    lines = table.unbind(0) if b == 1 else ()  # of a single cloud a row is looked at, not copied
    key, free, order = weights.new_full((b, n), math.inf), weights.new_empty(b, n), first.new_empty(n, b)
    order[0] = first
    for node, following in zip(order[:-1].unbind(0), order[1:].unbind(0), strict=True):
        row = lines[int(node)] if lines else table.index_select(0, start + node)
        torch.minimum(key, row, out=key)
        torch.nan_to_num(key, nan=math.inf, posinf=math.inf, out=free)
        torch.argmin(free, 1, out=following)
    return _parents(weights, order.T)


def _parents(weights: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Each node after the first, joined to the nearest of those before it in ``order`` (b, n).

    Those after it get a weight beyond all others, those before it one below zero, by one subtraction of places: on the
    CPU that is several times faster than to compare and fill.
    """
    b, n, _ = weights.shape
    weights.diagonal(dim1=1, dim2=2).fill_(math.inf)
    places = torch.arange(n, dtype=weights.dtype).mul_(1e30).expand(b, n)
    place = torch.empty_like(places).scatter_(1, order, places)
    step = max(1, SLAB // max(1, b * n))
    parts = []
    for low in range(0, n, step):
        late = place.unsqueeze(1) - place[:, low : low + step, None]
        parts.append(torch.maximum(late, weights[:, low : low + step], out=late).min(2))
    weight, parent = (torch.cat(halves, 1) for halves in zip(*parts, strict=True))
    child = order[:, 1:]
    return torch.stack((parent.gather(1, child), child), -1), weight.gather(1, child)

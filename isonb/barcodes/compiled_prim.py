"""TreeLoops of spanning trees as machine code for the CPU, where numba is installed: plain in `isonb.barcodes.trees`.

The plain ones start three short torch kernels a step, which is most of the time of a small cloud. Both name the same
edges, ties and all. numba is loaded by the first cloud of a process, which takes about a second.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.numerics.compiled import machine_code

__all__ = ["FAR", "TreeLoops", "compiled_prim"]

FAR = 2.0**96  # the weight of a pair with a masked row: beyond all others, and exact in every type


class TreeLoops(NamedTuple):
    """Prim's algorithm, and the search for pairs that may be shorter than the edges it took."""

    grow: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    doubt: Callable[[Tensor, Tensor, Tensor, Tensor, int], tuple[Tensor, Tensor, Tensor]]


def compiled_prim() -> TreeLoops | None:
    """The compiled loops; None where numba isn't installed, and for a compiler, which can't see into them."""
    return None if torch.compiler.is_compiling() else _load()


@functools.cache
def _load() -> TreeLoops | None:
    # no NaN gets here, and the order in which minima are taken changes nothing
    grow, doubt, loosen = (machine_code(loop, {"nnan", "nsz"}) for loop in (_grow, _doubt, _loosen))
    if grow is None or doubt is None or loosen is None:
        return None
    return TreeLoops(functools.partial(_run_grow, grow), functools.partial(_run_doubt, doubt, loosen))


def _run_grow(grow: Callable[..., None], weights: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Edges (b, n-1, 2) and their weights (b, n-1) of a batch (b, n, n), which is left as it is."""
    b, n, _ = weights.shape
    edges, lengths = first.new_empty(b, n - 1, 2), weights.new_empty(b, n - 1)
    own = weights.new_empty(3, n)
    grow(*(part.numpy() for part in (weights, first, own, edges, lengths)))
    return edges, lengths


def _grow(weights: Any, first: Any, own: Any, edges: Any, lengths: Any) -> None:
    """The order in which nodes join, by symmetric weights, then each joined to the nearest of those before it.

    ``own`` holds three numbers a node: its key, infinity once it has joined, and its place in the order. A minimum and
    the search for it are two loops, because each of them alone runs on whole vectors.
    """
    clouds, n = weights.shape[:2]
    key, joined, place = own
    for c in range(clouds):
        key[:], joined[:] = float("inf"), 0.0
        far, node = key[0], first[c]
        for k in range(n):
            joined[node], place[node] = far, k
            if k > 0:
                edges[c, k - 1, 1] = node
            row, best = weights[c, node], far
            for j in range(n):
                key[j] = min(key[j], row[j])
                best = min(best, key[j] + joined[j])
            for j in range(n):
                if key[j] + joined[j] == best:
                    node = j
                    break
            if k < n - 1:
                lengths[c, k] = best
        for k in range(n - 1):
            node, best = edges[c, k, 1], lengths[c, k]
            row, before = weights[c, node], place[node]
            for j in range(n):
                if row[j] == best and place[j] < before:
                    edges[c, k, 0] = j
                    break


def _run_doubt(
    doubt: Callable[..., None],
    loosen: Callable[..., None],
    weights: Tensor,
    edges: Tensor,
    lengths: Tensor,
    slack: Tensor,
    most: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs (m, 3) in doubt as (cloud, node, node), edges (b, n-1) they may replace, clouds (b,) with too many."""
    b, n = slack.shape
    pairs, count, loose = edges.new_empty(b, most, 2), edges.new_zeros(b), torch.zeros(b, n - 1, dtype=torch.bool)
    tree = [part.numpy() for part in (weights, edges, lengths, slack)]
    doubt(*tree, slack.new_empty(2, n).numpy(), pairs.numpy(), count.numpy())
    many = count > most
    if not bool(count.any()):
        return edges.new_empty(0, 3), loose, many
    count.masked_fill_(many, 0)
    loosen(*tree, edges.new_empty(n).numpy(), pairs.numpy(), count.numpy(), loose.numpy())
    cloud, place = (torch.arange(most) < count.unsqueeze(1)).nonzero(as_tuple=True)
    return torch.cat([cloud.unsqueeze(1), pairs[cloud, place]], 1), loose, many


def _doubt(weights: Any, edges: Any, lengths: Any, slack: Any, own: Any, pairs: Any, count: Any) -> None:
    """Of each joined node the most that the path to the next one can weigh, against the least that the pair can.

    In Prim's order the heaviest edge between two nodes is the heaviest that joined after the first, up to the second.
    """
    clouds, n = slack.shape
    high, joined = own
    for c in range(clouds):
        room, widest = slack[c], slack[c].max()
        high[:], joined[:] = -float("inf"), -float("inf")
        far = -high[0]
        joined[edges[c, 0, 0]] = 0.0
        for k in range(n - 1):
            parent, node, top = edges[c, k, 0], edges[c, k, 1], lengths[c, k] + 2 * widest
            if lengths[c, k] >= FAR:  # to a masked row, and so are all later ones
                break
            row, gap, known = weights[c, node], far, max(high[parent], top)
            high[parent] = joined[parent] = -far  # no pair of its own
            for j in range(n):
                high[j] = max(high[j], top + joined[j])
                gap = min(gap, row[j] - room[j] - high[j])
            if gap <= room[node]:
                for j in range(n):
                    if row[j] - room[j] - high[j] <= room[node]:
                        if count[c] < pairs.shape[1]:
                            pairs[c, count[c], 0], pairs[c, count[c], 1] = node, j
                        count[c] += 1
            high[parent], joined[parent], joined[node] = known, 0.0, 0.0


def _loosen(weights: Any, edges: Any, lengths: Any, slack: Any, up: Any, pairs: Any, count: Any, loose: Any) -> None:
    """Mark the edges on the path of each pair in doubt that may be heavier than the pair."""
    for c in range(len(edges)):
        widest = slack[c].max()
        up[edges[c, 0, 0]] = -1
        for k in range(edges.shape[1]):
            up[edges[c, k, 1]] = k  # the edge by which a node joined
        for m in range(count[c]):
            one, other = pairs[c, m]
            least = weights[c, one, other] - slack[c, one] - slack[c, other]
            while one != other:
                if up[one] < up[other]:
                    one, other = other, one
                edge = up[one]
                loose[c, edge] |= lengths[c, edge] + 2 * widest >= least
                one = edges[c, edge, 0]

"""The rows of a corpus nearest to queries, exact, in one pass over the corpus and without a copy of it.

Few queries are compared by differences in the type of the points, whose error is a share of each square; many by a
matrix product about the middle of the corpus, a tile at a time. Differences in float64 rank the candidates. A query
whose last neighbour isn't nearer than the rounding of what was left out can tell is compared again with all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from isonb.checks import check_overflow, finite
from isonb.numerics import compiled_nearest
from isonb.numerics.dispatch import kd_tree, query_algorithm
from isonb.numerics.distances import PIECE, error_bound
from isonb.numerics.nearest import SPARE, Search
from isonb.numerics.scale import largest, power_of_two, precise, square_norms

SAMPLE = 256  # rows of the corpus whose mean is its middle
TILE = 1024  # rows of it that are multiplied at a time: wider products are slower

Found = tuple[Tensor, Tensor, Tensor | None]
"""Indices and distances (m, k), and the unit () in which these were computed where it isn't 1."""


def nearest_rows(queries: Tensor, corpus: Tensor, k: int, chunk: int) -> Found:
    """Of queries (m, d) in a corpus (n, d) of their type; the values of both are looked at here. Ties by index.

    ``chunk`` queries are multiplied at a time.
    """
    if (way := query_algorithm(queries, corpus, k)) != "plain":
        result = ALGORITHMS[way](queries, corpus, k, chunk)
        if result is not None:
            return result[0], result[1].to(corpus.dtype), None
    finite(queries, name="queries")
    finite(corpus, name="corpus")
    size = power_of_two(torch.maximum(*(largest(item, (0, 1)) for item in (corpus, queries))))
    points, m = torch.cat([precise(queries), precise(corpus)]).div_(precise(size)), len(queries)
    row_ids = torch.arange(len(points), device=points.device)
    search = Search(points.unsqueeze(0), None)
    index, square = search(k, row_ids[:m], (row_ids >= m).long(), chunk)  # those of another label: the corpus
    unit = precise(size).squeeze() * (1.0 if search.unit is None else search.unit.squeeze())
    return index[0] - m, check_overflow((square[0].sqrt_() * unit).to(corpus.dtype), "distances"), unit


def _by_differences(queries: Tensor, corpus: Tensor, k: int, _: int) -> tuple[Tensor, Tensor] | None:
    """None where some number isn't finite, or some square doesn't fit."""
    spare = SPARE if corpus.dtype == torch.float32 else 0
    index, away, total, failing = compiled_nearest.scan(queries, corpus, k, spare)
    if not torch.finfo(corpus.dtype).tiny ** 0.5 < total < math.inf:
        return None
    return _certified(queries, corpus, index, away, index[:, 0] < 0) if failing else (index, away)


def _by_boxes(queries: Tensor, corpus: Tensor, k: int, _: int) -> tuple[Tensor, Tensor] | None:
    """Of float32 points, whose squares fit float64; None where some distance doesn't fit float32."""
    tree, wide = kd_tree(finite(corpus, name="corpus")), min(k + SPARE, len(corpus))
    away, chosen = (torch.from_numpy(part) for part in tree.query(finite(queries, name="queries").numpy(), wide))
    if not float(away.amax()) < torch.finfo(corpus.dtype).max:
        return None
    bound = away[:, -1].square() * (1 - 1e-12)
    return _ranked(queries, corpus, chosen, bound, k)


def _by_product(queries: Tensor, corpus: Tensor, k: int, chunk: int) -> tuple[Tensor, Tensor] | None:
    m, n, info = len(queries), len(corpus), torch.finfo(corpus.dtype)
    most = info.max**0.5
    middle = corpus[:: -(-n // SAMPLE)].mean(0)
    moved = queries - middle
    norms = torch.cat([square_norms(moved), corpus.new_empty(n)])
    if not float(norms[:m].amax()) < most:
        return None
    half, row_ids, label = norms.new_empty(1, m + n), torch.arange(m), (torch.arange(m + n) >= m).long()
    half[0, :m] = norms[:m] / 2
    wide = min(k + SPARE, n)
    least, whose = half.new_full((1, m, wide), math.inf), torch.full((1, m, wide), -1, dtype=torch.int32)
    width = max(TILE, PIECE // corpus.shape[1])
    room, products = torch.empty_like(corpus[:width]), corpus.new_empty(min(chunk, m), min(width, n))
    for start in range(0, n, width):
        tile = torch.sub(corpus[start : start + width], middle, out=room[: min(width, n - start)])
        here = slice(m + start, m + start + len(tile))
        norms[here] = square_norms(tile)
        if not float(norms[here].amax()) < most:  # the choice takes no NaN
            return None
        half[0, here] = norms[here] / 2
        for low in range(0, m, chunk):
            block = moved[low : low + chunk]
            product = torch.mm(block, tile.mT, out=products[: len(block), : len(tile)])
            compiled_nearest.keep(half, product.unsqueeze(0), (low, m + start), row_ids, label, least, whose)
    if not float(norms.amax()) > info.tiny**0.5:
        return None
    loss = error_bound(moved, norms)
    bound = precise(2 * least[0, :, -1] - loss[:m] - loss[m:].amax())
    return _ranked(queries, corpus, whose[0] - m, bound, k)


def _ranked(queries: Tensor, corpus: Tensor, chosen: Tensor, bound: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest of those ``chosen`` (m, wide); no row left out is nearer than ``bound`` (m,)."""
    row_ids = torch.arange(len(queries))
    index, square = compiled_nearest.ranked(corpus[None], chosen[None], row_ids, None, k, queries[None])
    if chosen.shape[1] == len(corpus):
        return index[0], square[0].sqrt_()
    return _certified(queries, corpus, index[0], square[0].sqrt(), square[0, :, -1] >= bound)


def _certified(queries: Tensor, corpus: Tensor, index: Tensor, away: Tensor, failing: Tensor) -> tuple[Tensor, Tensor]:
    """The same, or of all rows in float64 where one left out may be as near: ``failing`` (m,)."""
    if bool(failing.any()):
        index[failing], again, *_ = compiled_nearest.scan(queries[failing], corpus, away.shape[1])
        away[failing] = again.to(away)
    return index, away


ALGORITHMS: dict[str, Callable[[Tensor, Tensor, int, int], tuple[Tensor, Tensor] | None]] = {
    "differences": _by_differences,
    "boxes": _by_boxes,
    "product": _by_product,
}

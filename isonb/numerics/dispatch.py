"""Which way finds neighbours and trees: decided here, by the device, the sizes and the libraries alone.

The sizes were measured; ``tests/numerics/test_dispatch.py`` times both ways on each side of the borders between trees.

Neighbours (:mod:`isonb.numerics.nearest`):

===============  ========================================================  =============================================
differences      few coordinates in all                                    every pair, compiled
boxes            few dimensions, many points, no mask                      scipy's kd-tree, certified
product          else                                                      a matrix product, certified; the choice
                                                                           from it compiled where numba is installed
===============  ========================================================  =============================================

Neighbours of queries in a corpus (:mod:`isonb.numerics.queries`):

===============  ========================================================  =============================================
differences      few queries                                               every pair, compiled
boxes            few dimensions, many points and queries                   scipy's kd-tree, certified
product          else                                                      a matrix product, a tile at a time, certified
plain            nothing can be compiled, or many neighbours               as above, as those of another label
===============  ========================================================  =============================================

Trees (:mod:`isonb.barcodes.trees`):

===============  ========================================================  =============================================
parallel         accelerators up to ``DENSE`` points, small clouds on      all weights, few steps over them
                 the CPU without numba
differences      few coordinates in the cloud                              Prim, compiled
product          few points of many dimensions                             Prim on a product, compiled and mended
neighbours       else                                                      Boruvka on lists of neighbours
===============  ========================================================  =============================================
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from torch import Tensor

from isonb.numerics.compiled import can_compile

DENSE = 8192  # points up to which all weights are held at once: 256 MiB of float32
FEW = 128  # the same where each is a row of differences
ALL_PAIRS = 2**22  # coordinates of all pairs up to which no product pays
BOXES = {1: 256, 2: 256, 3: 512, 4: 1024, 5: 4096}  # points from which a kd-tree pays, by d
TREES = {1: 3072, 2: 3072, 3: 3072, 4: 4096, 5: 6144}  # the same for a spanning tree
SUBTRACTED = 100_000  # coordinates of a cloud up to which Prim subtracts as it goes
QUERIED = 256  # queries from which boxes pay,
COMPARED = 64  # and up to which differences do
WIDEST = 60  # neighbours that the compiled choice keeps
MULTIPLIED = 128  # dimensions from which a product pays for a tree,
MOST_MULTIPLIED = 768  # up to so many points
FEWEST_MULTIPLIED = 2**13  # and from so many coordinates of a cloud on


def kd_tree(points: Tensor) -> Any:
    """The kd-tree of scipy of a cloud (n, d); from 6 dimensions on it hardly pays, so none is written here."""
    return _kd_trees()(points.numpy(), balanced_tree=False)


@functools.cache
def _kd_trees() -> Any:
    try:
        from scipy.spatial import cKDTree
    except ImportError:
        return None
    return cKDTree


def neighbour_algorithm(x: Tensor, mask: Tensor | None = None) -> Literal["differences", "boxes", "product"]:
    """Of each of the clouds (b, n, d)."""
    n, d = x.shape[1:]
    if not can_compile(x):
        return "product"
    if len(x) and n >= BOXES.get(d, n + 1) and mask is None and _kd_trees():
        return "boxes"
    return "differences" if n * n * d <= ALL_PAIRS else "product"


def query_algorithm(queries: Tensor, corpus: Tensor, k: int) -> Literal["differences", "boxes", "product", "plain"]:
    """Of queries (m, d) in a corpus (n, d)."""
    (n, d), m = corpus.shape, queries.shape[0]
    if not can_compile(corpus) or k > WIDEST:
        return "plain"
    if m >= QUERIED and n >= BOXES.get(d, n + 1) and corpus.dtype == torch.float32 and _kd_trees():
        return "boxes"
    return "differences" if m <= COMPARED or d <= 8 else "product"


def tree_algorithm(x: Tensor) -> Literal["parallel", "differences", "product", "neighbours"]:
    """Of each of the clouds (b, n, d)."""
    n, d = x.shape[1:]
    if not can_compile(x):
        return "parallel" if n <= (FEW if x.device.type == "cpu" else DENSE) else "neighbours"
    if n >= TREES.get(d, n + 1) and _kd_trees():
        return "neighbours"
    if d >= MULTIPLIED and n <= MOST_MULTIPLIED and n * d >= FEWEST_MULTIPLIED:
        return "product"
    return "differences" if n * d <= SUBTRACTED else "neighbours"

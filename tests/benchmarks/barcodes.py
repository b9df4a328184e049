"""H0 barcodes, each library from points to sorted deaths, distances included."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

import isonb
from isonb.barcodes.compiled_prim import compiled_prim
from isonb.barcodes.trees import _prim, spanning_tree
from isonb.numerics.distances import edge_lengths, squared_distances
from isonb.numerics.products import gram
from tests.benchmarks.harness import Row, compare
from tests.benchmarks.measures import gaussian
from tests.benchmarks.peers import barcodes
from tests.benchmarks.pieces import Piece

GOALS = {"ripser": 10.0, "gudhi": 10.0, "scipy": 10.0}


def error_of(deaths: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference of sorted deaths over the longest."""
    if deaths.shape != reference.shape:
        return float("inf")
    return float(np.abs(deaths - reference).max() / reference.max())


def h0_large(small: bool = False) -> list[Row]:
    """One cloud of 2,048 points."""
    rows = []
    n = 40 if small else 2048
    for d in (3, 16) if small else (3, 64, 768):
        x = gaussian(n, d)
        points = x.numpy()
        reference = np.sort(isonb.h0_barcode(x.double()).numpy())
        found = [
            (name, lambda call=call, p=points: call(p), error_of(call(points), reference), GOALS.get(name))
            for name, call in barcodes().items()
        ]
        ours = lambda x=x: isonb.h0_barcode(x)  # noqa: E731
        rows += compare("H0, one cloud", f"{n} x {d}", ours, found, allowed=1e-4, rounds=1 if small else 5)
    return rows


def h0_pieces(x: Tensor) -> list[Piece]:
    """Of the barcodes of a batch (b, n, d): distances, trees and lengths."""
    edges, weights, first = spanning_tree(x), squared_distances(x), torch.zeros(len(x), dtype=torch.long)
    grow = loops.grow if (loops := compiled_prim()) else _prim
    return [
        Piece("product above the diagonal", lambda: gram(x), True),
        Piece("trees", lambda: grow(weights, first)),
        Piece("exact lengths", lambda: edge_lengths(x, edges), True),
    ]


def h0_batch(small: bool = False) -> list[Row]:
    """Thirty-two clouds of 64 points at once, against a loop."""
    rows = []
    b, n = (2, 12) if small else (32, 64)
    for d in (3,) if small else (3, 768):
        x = gaussian(b, n, d)
        points = x.numpy()
        reference = np.sort(isonb.h0_barcode(x.double()).numpy(), axis=-1)
        found = []
        for name, call in barcodes("giotto-ph", "ripser").items():
            error = error_of(np.stack([call(cloud) for cloud in points]), reference)
            found.append((f"{name} loop", lambda call=call, p=points: [call(cloud) for cloud in p], error, 5.0))
        ours = lambda x=x: isonb.h0_barcode(x)  # noqa: E731
        size, rounds = f"{b} x {n} x {d}", 1 if small else 7
        rows += compare("H0, a batch", size, ours, found, allowed=1e-4, rounds=rounds, pieces=h0_pieces(x))
    return rows


SUITES = {"h0_large": h0_large, "h0_batch": h0_batch}

"""H0 barcodes, each library from points to sorted deaths, distances included."""

from __future__ import annotations

import numpy as np

import isonb
from tests.benchmarks.harness import Row, compare
from tests.benchmarks.measures import gaussian
from tests.benchmarks.peers import barcodes

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
        limit = "the distances, two thirds (their product alone over a third), and exact lengths; the trees a twentieth"
        ours = lambda x=x: isonb.h0_barcode(x)  # noqa: E731
        size, rounds = f"{b} x {n} x {d}", 1 if small else 7
        rows += compare("H0, a batch", size, ours, found, allowed=1e-4, rounds=rounds, limit=limit)
    return rows


SUITES = {"h0_large": h0_large, "h0_batch": h0_batch}

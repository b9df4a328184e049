"""What a barcode is made of: points under a metric, or their distances. The one border for both functions."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from isonb.barcodes.trees import spanning_tree, tree_of_distances
from isonb.checks import check_overflow, check_values, is_number, tensor_of
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.numerics.distances import edge_lengths, localized, squared_distances
from isonb.numerics.given_distances import check_cloud, lengths_in
from isonb.numerics.rows import center_rows, unit_rows
from isonb.numerics.scale import power_of_two, precise

Metric = Literal["euclidean", "sqeuclidean", "cosine", "correlation", "cityblock", "chebyshev", "precomputed"]
Tree = tuple[Tensor, Tensor | None, Tensor | None]

SQUARES = {"sqeuclidean": 1.0, "cosine": 0.5, "correlation": 0.5}  # so many times a squared Euclidean distance
EXPONENTS = {"cityblock": 1.0, "chebyshev": math.inf}


class MetricInput(NamedTuple):
    """Checked points (..., n, d), or where ``precomputed`` their distances (..., n, n), with a mask (..., n).

    A distance of points is the Euclidean one, or ``squares`` times its square where that isn't 0. Bars come in
    ``dtype``; pairs farther than ``most`` are never joined.
    """

    x: Tensor
    mask: Tensor | None
    dtype: torch.dtype
    precomputed: bool = False
    squares: float = 0.0
    most: float = math.inf

    def tree(self) -> Tree:
        """Edges of the spanning tree, which of them are real, and lengths, as by :func:`tree_edges`."""
        x = self.x
        if self.precomputed and self.most < math.inf and bool((disconnected := torch.isinf(x)).any()):
            near = x.detach().masked_fill(disconnected, 0)
            x = (near / power_of_two(near.max())).masked_fill(disconnected, 4)  # the others are below 2
        return tree_edges(x, self.mask, self.precomputed)

    def lengths(self, edges: Tensor, constant_lengths: Tensor | None = None) -> Tensor:
        """Lengths (..., m) of edges (..., m, 2), differentiable; ``constant_lengths`` those of :func:`tree_edges`."""
        if self.precomputed:
            return lengths_in(self.x, edges)
        lengths = edge_lengths(self.x, edges, constant_lengths)
        return check_overflow(
            (self.squares * lengths.square()).to(self.dtype) if self.squares else lengths, "distances"
        )

    def weights(self) -> Tensor:
        """Numbers (n, n) in the order of the distances of one cloud, in float64 where they are those of points."""
        return self.x if self.precomputed else squared_distances(localized(precise(self.x)))


def tree_edges(x: Tensor, mask: Tensor | None, precomputed: bool = False) -> Tree:
    """Of the spanning tree of a checked cloud: edges (..., n-1, 2), the lower end first; which join two real rows.

    With them the Euclidean lengths (..., n-1) as constants, where they are known.
    """
    edges, lengths = (tree_of_distances(x, mask), None) if precomputed else spanning_tree(x, mask)
    return edges, None if mask is None else mask.gather(-1, edges.flatten(-2)).view(edges.shape).all(-1), lengths


def metric_input(
    x: Tensor, mask: Tensor | None, metric: Metric, *, threshold: float | None = None, single: bool = False
) -> MetricInput:
    """The input checked. Without a ``threshold`` every pair is joined, so all distances must be finite."""
    if metric not in get_args(Metric):
        fix = 'Of any other distances pass those themselves, as scipy\'s pdist gives them, with metric="precomputed".'
        fail(InputError, f"metric must be one of {', '.join(get_args(Metric))}", repr(metric), fix)
    most = math.inf if threshold is None else _length(threshold)
    if metric == "precomputed":
        x = _square(tensor_of(x))
        if some := threshold is not None and isinstance(x, Tensor) and x.is_floating_point():
            most = min(most, _longest(x))
        cut = some and most < math.inf
        distances, mask = check_cloud(x.clamp(max=most) if cut else x, mask, metric, single=single)
        if cut:
            far = x.detach() > most
            distances = torch.where(far | far.mT, x.to(distances.dtype), distances)
        return MetricInput(distances, mask, distances.dtype, True, most=most)
    x, mask = check_cloud(x, mask, "euclidean", single=single)
    if metric == "euclidean":
        return MetricInput(x, mask, x.dtype, most=most)
    if metric in SQUARES:
        points = x if metric == "sqeuclidean" else _directions(x, mask, metric)
        return MetricInput(points, mask, x.dtype, squares=SQUARES[metric], most=most)
    distances = torch.cdist(precise(x), precise(x), EXPONENTS[metric])
    distances, mask = check_cloud(distances.to(x.dtype), mask, "precomputed")
    return MetricInput(distances, mask, x.dtype, True, most=most)


def _length(threshold: Any) -> float:
    if not is_number(threshold) or not float(threshold) >= 0:
        fail(InputError, "threshold must be a length, at least 0", repr(threshold), "Without one every pair is joined.")
    return float(threshold)


def _square(x: Tensor) -> Tensor:
    """Distances (n, n) of condensed ones (n (n - 1) / 2,), in the order of scipy's ``pdist``; others as they are."""
    if not isinstance(x, Tensor) or x.ndim != 1:
        return x
    n = (1 + math.isqrt(1 + 8 * len(x))) // 2
    if n < 2 or n * (n - 1) // 2 != len(x):
        invariant = "a condensed distance matrix must have n (n - 1) / 2 entries"
        fail(ShapeError, invariant, len(x), "Pass what scipy's pdist gives, or a square matrix.")
    places = torch.triu_indices(n, n, 1, device=x.device).unbind()
    half = x.new_zeros(n, n).index_put(places, x)
    return half + half.T


def _longest(x: Tensor) -> float:
    """The longest finite distance of those that some are infinite beside; without one, any."""
    far = x.detach() == torch.inf
    return float(x.detach().masked_fill(far, 0).max()) if bool(far.any()) else math.inf


def _directions(x: Tensor, mask: Tensor | None, name: str) -> Tensor:
    """Unit rows in float64, half of whose squared distance is 1 minus their cosine, or their correlation."""
    x = precise(x)
    if name == "correlation":
        x = center_rows(x.mT)[0].mT
    real = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask
    if check_values(x) and not bool((x.detach().any(-1) | ~real).all()):
        got = f"row {(~x.detach().any(-1) & real).nonzero()[0].tolist()}"
        fix = "Drop or mask such rows: they have no direction."
        fail(DegenerateError, f"no row may be {'zero' if name == 'cosine' else 'constant'} for {name}", got, fix)
    return unit_rows(x)

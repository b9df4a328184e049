"""The measures against the formulas and libraries they replace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

import isonb
from isonb.numerics.compiled_nearest import compiled_choice
from isonb.numerics.distances import localized, weighted_rows
from isonb.numerics.nearest import SPARE, distances_to
from isonb.numerics.products import add_upper_gram, gram
from isonb.streaming.moments import summarised
from tests.benchmarks import peers
from tests.benchmarks.harness import Row, compare, relative_error
from tests.benchmarks.pieces import Piece


def gaussian(*shape: int, seed: int = 0, mean: float = 0.0) -> Tensor:
    """Seeded standard normal points."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + mean


def shrinkage_matrix(d: int) -> Tensor:
    """The covariance of seeded points, enough of them that it has full rank."""
    return torch.cov(gaussian(max(4000, 2 * d), d, seed=1).T)


def star_pair(
    n: int, shrinkage: Tensor, zeta: float = 0.2
) -> tuple[Tensor, Callable[[], Tensor], Callable[[], Tensor], float]:
    """Points, the gradient of IsoScore* by us and by singular values, and our error against those in float64."""
    x = gaussian(n, len(shrinkage)).requires_grad_()

    def ours() -> Tensor:
        return torch.autograd.grad(isonb.isoscore_star(x, zeta, shrinkage), x)[0]

    def theirs() -> Tensor:
        return torch.autograd.grad(peers.star_by_singular_values(x, zeta, shrinkage), x)[0]

    exact = x.detach().double().requires_grad_()
    value = peers.star_by_singular_values(exact, zeta, shrinkage.double())
    return x, ours, theirs, relative_error(ours(), torch.autograd.grad(value, exact)[0])


def isoscore_star(small: bool = False) -> list[Row]:
    """Forward and backward with a full shrinkage matrix, against singular values and against its own product."""
    rows = []
    d, sizes = (16, ((8, None),)) if small else (768, ((64, 50.0), (256, 10.0), (4096, 1.8), (53_000, None)))
    shrinkage = shrinkage_matrix(d)
    for n, goal in sizes:
        x, ours, theirs, error = star_pair(n, shrinkage)
        what, size = "IsoScore* forward+backward", f"{n} x {d}"
        rounds = 1 if small else 3 if n > 10_000 else 5 if n > 1000 else 7
        rows += compare(what, size, ours, [("singular values", theirs, error, goal)], allowed=1e-3, rounds=rounds)
        points = x.detach()
        product = "its product X'X", lambda points=points: points.T @ points, error, 2.5
        pieces = star_pieces(points, shrinkage)
        rows += compare(what, size, ours, [product], allowed=1e-3, rounds=rounds, pieces=pieces, yardstick=True)
    return rows


def star_pieces(x: Tensor, shrinkage: Tensor) -> list[Piece]:
    """Of value and gradient: the covariance and its product with the points; of few points their product with the base.

    The base is looked at twice: whether its squares fit, and for its norm.
    """
    n, d = x.shape
    norm = Piece("norm of the shrinkage matrix", lambda: torch.linalg.vector_norm(shrinkage, dim=-1), True)
    if 2 * n <= d:
        gram_of = Piece("products of few points", lambda: (x @ x.T) @ x, True)
        return [Piece("points times shrinkage matrix", lambda: x @ shrinkage, True), gram_of, norm]
    covariance = gram(x.mT)
    return [
        Piece("product above the diagonal", lambda: gram(x.mT), True),
        Piece("points times covariance", lambda: x @ covariance, True),
        norm,
    ]


def streaming_covariance(small: bool = False) -> list[Row]:
    """Chan-merged moments far from the origin, against the bare matrix product."""
    rows = []
    for n, d in ((200, 8),) if small else ((4096, 768), (16384, 384), (100_000, 64)):
        x = gaussian(n, d, mean=100.0)

        def ours(x: Tensor = x) -> Tensor:
            return isonb.Moments().update(x).cov

        error = relative_error(ours(), torch.from_numpy(np.cov(x.double().numpy().T)))
        product = "its product X'X", lambda x=x: x.T @ x, error, 1.3
        what, size, rounds = "streaming covariance, mean 100", f"{n} x {d}", 1 if small else 7
        pieces = streaming_pieces(x)
        rows += compare(what, size, ours, [product], allowed=1e-6, rounds=rounds, pieces=pieces, yardstick=True)
    return rows


def streaming_pieces(x: Tensor) -> list[Piece]:
    """Of Moments().update(x): its product, the centring, 4,096 rows at a time, and its look at the values if any."""
    cuts = x.split(4096)
    room, out, first = torch.empty_like(cuts[0]), x.new_zeros(x.shape[1], x.shape[1]), x[0]

    def centred() -> None:
        for cut in cuts:
            y = torch.sub(cut, first, out=room[: len(cut)])
            y.sub_(y.sum(0) / len(cut))

    look = Piece("values looked at", lambda: (x.sum(), torch.linalg.vector_norm(x)))
    return [
        Piece("product above the diagonal", lambda: [add_upper_gram(out, cut.mT) for cut in cuts], True),
        Piece("moved by a row, summed, centred", centred, True),
        *([] if summarised(*x.shape) else [look]),
    ]


def neighbour_pieces(x: Tensor, k: int) -> list[Piece]:
    """Of a search for k neighbours: the product, the choice among its entries by exact differences, and the lengths.

    The points are moved to their middle at first: far from the origin the product would have no digits left.
    """
    index = torch.randint(0, len(x), (len(x), k), generator=torch.Generator().manual_seed(0))
    half, points = x.square().sum(-1)[None] / 2, x[None]
    strips = [(low, points[:, low : low + 512] @ points.mT) for low in range(0, len(x), 512)]
    pieces = [Piece("product", lambda: x @ x.T, True), Piece("points moved and scaled", lambda: localized(x), True)]
    if loops := compiled_choice(k + SPARE):
        chosen = lambda: [loops.choose(points, half, part, low, k, k + SPARE, 512) for low, part in strips]  # noqa: E731
        pieces.append(Piece("choice and exact differences", chosen, True))
    return [*pieces, Piece("distances to the chosen", lambda: distances_to(x, index), True)]


def against_product(
    what: str, call: Callable[[], object], x: Tensor, error: float, allowed: float, rounds: int, pieces: Sequence[Piece]
) -> list[Row]:
    """A measure of neighbours beside the product of its points that all distances need."""
    product = "its product XX'", lambda: x @ x.T, error, 1.5
    size = " x ".join(map(str, x.shape))
    return compare(what, size, call, [product], allowed=allowed, rounds=rounds, pieces=pieces, yardstick=True)


def two_nn(small: bool = False) -> list[Row]:
    """Intrinsic dimension, against scikit-dimension."""
    rows = []
    for n, d in ((100, 8),) if small else ((2000, 64), (2000, 768), (5000, 768)):
        x = gaussian(n, d)
        points = x.numpy()
        error = abs(float(isonb.two_nn(x)) / peers.skdim_two_nn(points.astype(float)) - 1)
        peer = ("scikit-dimension", lambda points=points: peers.skdim_two_nn(points), error, 1.0)
        call = lambda x=x: isonb.two_nn(x)  # noqa: E731
        rounds = 1 if small else 7
        rows += compare("TwoNN", f"{n} x {d}", call, [peer], allowed=1e-3, rounds=rounds)
        ratio = gaussian(n).abs().double() + 1
        fitted = Piece("ratios sorted, logarithms", lambda r=ratio: (r.sort(), r.log(), r.log1p()), True)
        rows += against_product("TwoNN", call, x, error, 1e-3, rounds, [*neighbour_pieces(x, 2), fitted])
    return rows


def uniformity_pieces(x: Tensor) -> list[Piece]:
    """Of the gradient over all pairs: the products it needs, the exponentials between them, and the calls alone."""
    weights, few = torch.rand(len(x), len(x)), gaussian(3, 4).requires_grad_()
    return [
        Piece("product above the diagonal", lambda: gram(x), True),
        Piece("weights times points", lambda: weights @ x, True),
        Piece("half of the exponentials", lambda: weights[: len(x) // 2].exp(), True),
        Piece("all calls, on three points", lambda: torch.autograd.grad(isonb.rbf_uniformity(few), few)),
    ]


def uniformity(small: bool = False) -> list[Row]:
    """RBF uniformity forward and backward, against all pairs by torch.pdist and against one whole product."""
    rows = []
    for n, d in ((40, 8),) if small else ((256, 384), (1024, 384), (4096, 384)):
        x = gaussian(n, d).requires_grad_()

        def gradient(value: Callable[[Tensor], Tensor], x: Tensor = x) -> Tensor:
            return torch.autograd.grad(value(x), x)[0]

        ours = gradient(isonb.rbf_uniformity)
        whole = (("torch.pdist", peers.uniformity_by_pairs, 2.5), ("one whole product", peers.uniformity_by_gram, None))
        found = [
            (name, lambda f=f, gradient=gradient: gradient(f), relative_error(ours, gradient(f)), goal)
            for name, f, goal in whole
        ]
        call = lambda gradient=gradient: gradient(isonb.rbf_uniformity)  # noqa: E731
        what, rounds = "RBF uniformity forward+backward", 1 if small else 7
        pieces = uniformity_pieces(x.detach())
        rows += compare(what, f"{n} x {d}", call, found, allowed=1e-3, rounds=rounds, pieces=pieces)
    return rows


def lsds(small: bool = False) -> list[Row]:
    """Local structure discrepancy after a linear map, against neighbours taken from torch.pdist."""
    rows = []
    for n, d in ((40, 8),) if small else ((1024, 64), (1024, 768)):
        x = gaussian(n, d)
        y = x @ gaussian(d, d, seed=1)
        error = relative_error(isonb.lsds(x, y), peers.lsds_by_pairs(x.double(), y.double()))
        peer = ("torch.pdist", lambda x=x, y=y: peers.lsds_by_pairs(x, y), error, None)
        call = lambda x=x, y=y: isonb.lsds(x, y)  # noqa: E731
        rounds = 1 if small else 7
        rows += compare("LSDS", f"{n} x {d}", call, [peer], allowed=1e-4, rounds=rounds)
        index, weights = isonb.knn(x, 12)[1], torch.rand(n, 12)
        rebuilt = Piece("points rebuilt", lambda y=y, i=index, w=weights: weighted_rows(y, i, w), True)
        rows += against_product("LSDS", call, x, error, 1e-4, rounds, [*neighbour_pieces(x, 12), rebuilt])
    return rows


SUITES = {
    "isoscore_star": isoscore_star,
    "streaming_covariance": streaming_covariance,
    "two_nn": two_nn,
    "uniformity": uniformity,
    "lsds": lsds,
}

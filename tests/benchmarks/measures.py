"""The measures against the formulas and libraries they replace, one function a comparison, whatever its size.

On a card (``device="cuda"``) the peers that know no card start from the card, too, and a call that makes the host wait
counts as wrong.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch

import isonb
from isonb.barcodes.compiled_prim import prim
from isonb.barcodes.inputs import MetricInput
from isonb.barcodes.rips import _edge_ranks, _giotto
from isonb.barcodes.trees import spanning_tree
from isonb.numerics.compiled_nearest import ranked
from isonb.numerics.distances import edge_lengths, localized, weighted_rows
from isonb.numerics.products import add_upper_gram, gram
from isonb.streaming.moments import summarised
from tests.benchmarks import peers
from tests.benchmarks.harness import Comparison, Peer, Piece, gaussian, gradient_of, relative_error, size_of
from tests.support import never_waiting

PAIRS = 2**29  # coordinates of differences that torch.pdist may hold at a time for its gradient


def error_of_waiting(call, device):
    """Infinite if the host waits for the card inside ``call``, else 0; on a CPU there is nothing to wait for."""
    if device == "cpu":
        return 0.0
    try:
        with never_waiting():
            call()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        return float("inf")
    return 0.0


def at(device):
    """How a peer that knows no card is called where the points lie on one."""
    return "" if device == "cpu" else " on the CPU"


def product_of_rows(x, error, goal=None):
    return Peer("its product XX'", lambda: x @ x.T, error, goal, floor=True)


def product_of_columns(x, error, goal=None):
    return Peer("its product X'X", lambda: x.T @ x, error, goal, floor=True)


def shrinkage_matrix(d):
    """The covariance of seeded points, enough of them that it has full rank."""
    return torch.cov(gaussian(max(4000, 2 * d), d, seed=1).T)


def star(n, shrinkage, goal=None, floor=None):
    """IsoScore* forward and backward, against singular values and against its own product."""
    device, zeta = shrinkage.device.type, 0.2
    x = gaussian(n, len(shrinkage), device=device)
    ours = gradient_of(lambda z: isonb.isoscore_star(z, zeta, shrinkage), x)
    theirs = gradient_of(lambda z: peers.star_by_singular_values(z, zeta, shrinkage), x)
    exact = gradient_of(lambda z: peers.star_by_singular_values(z, zeta, shrinkage.double()), x.double())
    error = error_of_waiting(ours, device) or relative_error(ours(), exact())
    others = [Peer("singular values", theirs, error, goal), product_of_columns(x, error, floor)]
    rounds = 3 if n > 10_000 and device == "cpu" else 5 if n > 1000 else 7

    def pieces():
        norm = Piece("norm of the shrinkage matrix", lambda: torch.linalg.vector_norm(shrinkage, dim=-1), True)
        if 2 * n <= len(shrinkage):  # the products of few points are smaller than the covariance
            few = Piece("products of few points", lambda: (x @ x.T) @ x, True)
            return [Piece("points times shrinkage matrix", lambda: x @ shrinkage, True), few, norm]
        covariance = gram(x.mT)
        upper = Piece("product above the diagonal", lambda: gram(x.mT), True)
        return [upper, Piece("points times covariance", lambda: x @ covariance, True), norm]

    return Comparison("IsoScore* forward+backward", size_of(x), ours, others, 1e-3, rounds, pieces)


def streaming(n, d):
    """Chan-merged moments far from the origin, against the bare matrix product."""
    x = gaussian(n, d, mean=100.0)
    ours = lambda: isonb.Moments().update(x).cov  # noqa: E731
    error = relative_error(ours(), torch.from_numpy(np.cov(x.double().numpy().T)))

    def pieces():
        cuts = x.split(4096)
        room, out = torch.empty_like(cuts[0]), x.new_zeros(d, d)

        def centred():
            for cut in cuts:
                y = torch.sub(cut, x[0], out=room[: len(cut)])
                y.sub_(y.sum(0) / len(cut))

        looked = Piece("values looked at", lambda: (x.sum(), torch.linalg.vector_norm(x)))
        return [
            Piece("product above the diagonal", lambda: [add_upper_gram(out, cut.mT) for cut in cuts], True),
            Piece("moved by a row, summed, centred", centred, True),
            *([] if summarised(n, d) else [looked]),
        ]

    others = [product_of_columns(x, error, 1.3)]
    return Comparison("streaming covariance, mean 100", size_of(x), ours, others, 1e-6, pieces=pieces)


def neighbour_pieces(x, k):
    """Of a search for k neighbours: the product, the choice among its entries by exact differences, and the lengths.

    The points are moved to their middle at first: far from the origin the product would have no digits left.
    """
    edges = torch.randint(0, len(x), (len(x) * k, 2), generator=torch.Generator().manual_seed(0))
    return [
        Piece("product above the diagonal", lambda: gram(x), True),
        Piece("points moved and scaled", lambda: localized(x), True),
        Piece("distances to the chosen", lambda: edge_lengths(x, edges), True),
    ]


def few_pieces(x, k):
    """The same of few points, where no product pays: all differences in float64 with the choice among them."""
    own = torch.arange(len(x))
    return [
        Piece("differences in float64, the nearest chosen", lambda: ranked(x[None], None, own, own, k), True),
        Piece("all calls, on three points", lambda: isonb.knn(x[:3], 1)),
    ]


def two_nn(n, d, goal=None, floor=None, device="cpu"):
    """Intrinsic dimension, against scikit-dimension and against the product of all points."""
    x = gaussian(n, d, device=device)
    ours, others = partial(isonb.two_nn, x), []
    error = error_of_waiting(ours, device)
    if peers.there("skdim"):
        error = max(error, abs(float(ours()) / peers.skdim_two_nn(x.cpu().double().numpy()) - 1))
        theirs = lambda: peers.skdim_two_nn(x.cpu().numpy())  # noqa: E731
        others = [Peer(f"scikit-dimension{at(device)}", theirs, error, goal)]

    def pieces():
        ratio = gaussian(n).abs().double() + 1
        fitted = Piece("ratios sorted, logarithms", lambda: (ratio.sort(), ratio.log(), ratio.log1p()), True)
        return [*neighbour_pieces(x, 2), fitted]

    others.append(product_of_rows(x, error, floor))
    return Comparison("TwoNN", size_of(x), ours, others, 1e-3, pieces=pieces if device == "cpu" else tuple)


WHOLE = ("one whole product", peers.uniformity_by_gram)
ALL_PAIRS = ("torch.pdist", peers.uniformity_by_pairs)


def uniformity(n, d, goals, device="cpu"):
    """RBF uniformity forward and backward, against all pairs by torch.pdist or against one whole product."""
    x = gaussian(n, d, device=device)
    ours = gradient_of(isonb.rbf_uniformity, x)
    wrong = error_of_waiting(ours, device)
    others = [
        Peer(name, theirs, max(wrong, relative_error(ours(), theirs())), goal)
        for (name, value), goal in goals.items()
        for theirs in [gradient_of(value, x)]
    ]

    def pieces():
        weights = torch.rand(n, n)
        return [
            Piece("product above the diagonal", lambda: gram(x), True),
            Piece("weights times points", lambda: weights @ x, True),
            Piece("half of the exponentials", lambda: weights[: n // 2].exp(), True),
            Piece("all calls, on three points", gradient_of(isonb.rbf_uniformity, gaussian(3, 4))),
        ]

    what = "RBF uniformity forward+backward"
    return Comparison(what, size_of(x), ours, others, 1e-3, pieces=pieces if device == "cpu" else tuple)


def uniformity_value(n, d):
    """The value alone of few points, where calls and checks are the cost."""
    x = gaussian(n, d)
    ours = partial(isonb.rbf_uniformity, x)
    others = [
        Peer(name, partial(value, x), relative_error(ours(), value(x.double())), 1 / 1.3)
        for name, value in (ALL_PAIRS, WHOLE)
    ]

    def pieces():
        return [
            Piece("product", lambda: x @ x.T, True),
            Piece("points moved to their mean", lambda: torch.addcmul(x[:1], x, x[:, :1]), True),
            Piece("lengths of the rows", lambda: torch.linalg.vector_norm(x, dim=-1), True),
            Piece("all calls, on three points", lambda: isonb.rbf_uniformity(x[:3, :4])),
        ]

    return Comparison("RBF uniformity, the value", size_of(x), ours, others, 1e-3, pieces=pieces)


def lsds(n, d):
    """Local structure discrepancy after a linear map, against neighbours taken from torch.pdist."""
    x = gaussian(n, d)
    y = x @ gaussian(d, d, seed=1)
    error = relative_error(isonb.lsds(x, y), peers.lsds_by_pairs(x.double(), y.double()))
    others = [Peer("torch.pdist", partial(peers.lsds_by_pairs, x, y), error), product_of_rows(x, error, 1.5)]

    def pieces():
        index, weights = isonb.knn(x, 12)[1], torch.rand(n, 12)
        return [*neighbour_pieces(x, 12), Piece("points rebuilt", lambda: weighted_rows(y, index, weights), True)]

    return Comparison("LSDS", size_of(x), partial(isonb.lsds, x, y), others, 1e-4, pieces=pieces)


def death_error(deaths, reference):
    """Largest difference of sorted deaths over the longest."""
    if deaths.shape != reference.shape:
        return float("inf")
    return float(np.abs(deaths - reference).max() / reference.max())


def h0(x, what, libraries, goals, *, batch=False):
    """H0 barcodes of clouds (n, d) or (b, n, d), each library from points to sorted deaths, distances included."""
    device, ours = x.device.type, partial(isonb.h0_barcode, x)

    def each(call):
        clouds = x.cpu().numpy()
        return np.stack([call(cloud) for cloud in clouds]) if x.ndim == 3 else call(clouds)

    wrong, ending = error_of_waiting(ours, device), " loop" if batch else at(device)
    reference = np.sort(isonb.h0_barcode(x.double()).cpu().numpy(), axis=-1)
    others = [
        Peer(f"{name}{ending}", partial(each, call), max(wrong, death_error(each(call), reference)), goals.get(name))
        for name, call in libraries.items()
    ]

    def pieces():
        return [
            Piece("trees by differences", lambda: prim(x.reshape(-1, *x.shape[-2:]), None), x.ndim == 2),
            Piece("edges", lambda: spanning_tree(x), x.ndim == 3),
            Piece("all calls, on three points", lambda: isonb.h0_barcode(x[..., :3, :])),
        ]

    rounds, small = (5 if x.ndim == 2 else 7), batch or len(x) <= 512
    return Comparison(what, size_of(x), ours, others, 1e-4, rounds, pieces if small else tuple)


def h1(small):
    """H0 and H1 of one cloud, against ripser and giotto-ph from points to bars."""
    for n, d in ((20, 3),) if small else ((64, 64), (128, 64), (256, 64), (512, 64)):
        x = gaussian(n, d)
        lengths = torch.cat([death - birth for birth, death in isonb.rips_barcode(x, 1)]).sort().values[1 - n :].numpy()
        others = [
            Peer(name, lambda x=x, call=call: call(x.numpy()), death_error(lengths, call(x.numpy())), goal)
            for name, (module, call, goal) in peers.LOOPS.items()
            if peers.there(module)
        ]

        def pieces(x=x):
            space = MetricInput(x, None, x.dtype)
            ranks = _edge_ranks(space)
            pairs = Piece("pairs by giotto-ph", lambda: _giotto()(*ranks, 1), True)
            return [*([pairs] if peers.there("gph") else []), Piece("ranks", lambda: _edge_ranks(space), True)]

        yield Comparison("H0 and H1", size_of(x), partial(isonb.rips_barcode, x, 1), others, 1e-3, 5, pieces)


def h0_large(small):
    """One cloud of 2,048 points."""
    goals = {"ripser": 10.0, "gudhi": 10.0, "scipy": 10.0}
    for d in (3, 16) if small else (3, 64, 768):
        libraries = peers.barcodes()
        if d > 64:  # trees of boxes are lost there: a call takes from 2 to 15 seconds
            libraries = {name: call for name, call in libraries.items() if name not in ("mlpack", "hdbscan")}
        yield h0(gaussian(40 if small else 2048, d), "H0, one cloud", libraries, goals)


def h0_few_points(small):
    """The cloud of a paper's batch: few points of many dimensions, where calls are the cost."""
    names = "torch.cdist and fastcluster", "fastcluster", "giotto-ph", "ripser"
    for n, d in ((12, 40),) if small else ((64, 64), (64, 384), (64, 768), (512, 384), (512, 768)):
        yield h0(gaussian(n, d), "H0, few points", peers.barcodes(*names), dict.fromkeys(names, 0.8))


def h0_batch(small):
    """Thirty-two clouds of 64 points at once, against a loop."""
    goals = {"giotto-ph": 5.0, "ripser": 5.0}
    for shape in ((2, 12, 3),) if small else ((32, 64, 3), (32, 64, 768)):
        yield h0(gaussian(*shape), "H0, a batch", peers.barcodes(*goals), goals, batch=True)


def h0_few_dimensions(small):
    """Where trees of boxes serve the peers: 3 dimensions at four sizes, and 8 to 16 at one."""
    names = "fastcluster", "scipy single linkage", "scikit-learn", "mlpack", "hdbscan"
    goals = {3: 1 / 1.5, 8: 1 / 1.2, 12: 1 / 1.2, 16: 1 / 1.2}
    for n, d in ((40, 3),) if small else ((64, 3), (512, 3), (4096, 3), (20_000, 3), (4096, 8), (4096, 12), (4096, 16)):
        pairless = names[3:] if n > 8192 else names  # the others hold all pairs
        yield h0(gaussian(n, d), "H0, few dimensions", peers.barcodes(*pairless), dict.fromkeys(names, goals[d]))


def neighbours(small):
    """The ten nearest of each point with their distances, against the flat index of faiss."""
    for n, d in ((40, 3),) if small else ((64, 64), (64, 768), (20_000, 384), (20_000, 768)):
        x, exact = gaussian(n, d), isonb.knn(gaussian(min(n, 500), d).double(), 10)[0]
        error, others = relative_error(isonb.knn(x[:500], 10)[0], exact), []
        if peers.there("faiss"):
            others = [Peer("faiss", partial(peers.faiss_neighbours, x.numpy(), 10), error, 1 / 1.3)]
        pieces = partial(neighbour_pieces if n > 64 else few_pieces, x, 10)
        yield Comparison("k nearest neighbours", size_of(x), partial(isonb.knn, x, 10), others, 1e-4, 3, pieces)


def isoscore_stars(small):
    """From fewer points than dimensions to many more."""
    shrinkage = shrinkage_matrix(16 if small else 768)
    for n, goal in ((8, None),) if small else ((64, 50.0), (256, 10.0), (4096, 1.8), (53_000, None)):
        yield star(n, shrinkage, goal, 2.5)


def growing(measure, small):
    """How the time grows with the number of points, beside the peer that scales best."""
    for d in (8,) if small else (64, 768):
        for n in (32, 64) if small else (256, 1024, 4096):
            one = measure(n, d)
            yield replace(one, peers=one.peers[:1], pieces=tuple, rounds=3)


def growing_h0(n, d):
    """Of large clouds in few dimensions, single linkage without a matrix product is the fastest peer."""
    best = peers.barcodes("scikit-learn" if d <= 64 else "giotto-ph") or peers.barcodes("scipy single linkage")
    return h0(gaussian(n, d), "H0 barcode", best, {})


def widening_h0(small):
    """How the time of 1,024 points grows with their dimensions, beside single linkage."""
    best = peers.barcodes("fastcluster") or peers.barcodes("scipy single linkage")
    for d in (2, 3) if small else (2, 4, 8, 16, 32, 64, 128, 256, 768):
        yield replace(h0(gaussian(40 if small else 1024, d), "H0 barcode", best, {}), pieces=tuple)


def sized(measure, trial, *sizes):
    """A suite of one comparison at each size."""
    return lambda small: (measure(*size) for size in ((trial,) if small else sizes))


def uniformity_of(n, d):
    return uniformity(n, d, {ALL_PAIRS: 1 / 1.3 if n <= 64 else 2.5, WHOLE: 1 / 1.3 if n <= 64 else None})


two_nns = partial(two_nn, goal=1.0, floor=1.5)
SUITES = {
    "isoscore_star": isoscore_stars,
    "streaming_covariance": sized(streaming, (200, 8), (4096, 768), (16384, 384), (100_000, 64)),
    "two_nn": sized(two_nns, (100, 8), (2000, 3), (20_000, 3), (2000, 64), (2000, 768), (5000, 768)),
    "uniformity": sized(uniformity_of, (40, 8), (64, 768), (256, 384), (1024, 384), (4096, 384)),
    "uniformity_value": sized(uniformity_value, (40, 8), (64, 768)),
    "lsds": sized(lsds, (40, 8), (1024, 64), (1024, 768)),
    "h0_large": h0_large,
    "h0_few_dimensions": h0_few_dimensions,
    "h0_few_points": h0_few_points,
    "h0_batch": h0_batch,
    "h1": h1,
    "neighbours": neighbours,
    "growth_h0": partial(growing, growing_h0),
    "widths_h0": widening_h0,
    "growth_isoscore_star": partial(growing, lambda n, d: star(n, shrinkage_matrix(d))),
    "growth_uniformity": partial(growing, lambda n, d: uniformity(n, d, {WHOLE: None})),
    "growth_two_nn": partial(growing, two_nn),
}

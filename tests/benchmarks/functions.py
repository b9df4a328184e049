"""The public functions that a user compares with a few lines of torch, beside those lines and the best library."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

import isonb
from isonb.losses.sigreg import random_directions, sigreg_penalty
from isonb.numerics.products import gram
from tests.benchmarks import peers
from tests.benchmarks.harness import Comparison, Peer, Piece, gaussian, gradient_of, relative_error, size_of

GOAL = 0.8  # of a peer's speed, the least that a public function should have
Sizes = Sequence[tuple[int, int]]


def queries(small: bool) -> Iterator[Comparison]:
    """The ten nearest rows of a corpus to one query, to some and to many."""
    sizes = ((3, 40, 8),) if small else ((1, 10_000, 384), (32, 20_000, 384), (100, 20_000, 384), (1000, 100_000, 384))
    for m, n, d in sizes:
        q, corpus = gaussian(m, d), gaussian(n, d, seed=1)
        ours, others = partial(isonb.knn_queries, q, corpus, 10), []
        if peers.there("faiss"):
            error = relative_error(ours()[0], torch.from_numpy(peers.faiss_queries(q.numpy(), corpus.numpy(), 10)))
            theirs = partial(peers.faiss_queries, q.numpy(), corpus.numpy(), 10)
            others.append(Peer("faiss", theirs, error, GOAL))
        plain = partial(peers.nearest_by_cdist, q, corpus, 10)
        others.append(Peer("torch.cdist and topk", plain, relative_error(ours()[0], plain()), GOAL))

        def pieces(q: Tensor = q, corpus: Tensor = corpus) -> list[Piece]:
            return [
                Piece("product", lambda: q @ corpus.T, True),
                Piece("all calls, on three points", lambda: isonb.knn_queries(q[:1], corpus[:3], 3)),
            ]

        yield Comparison("neighbours of queries", f"{m} in {size_of(corpus)}", ours, others, 1e-3, 3, pieces)


def of_clouds(
    what: str,
    ours: Callable[..., Tensor],
    theirs: Callable[..., Tensor],
    name: str,
    sizes: Sizes,
    *,
    both: bool = False,
    pieces: bool = False,
) -> Iterator[Comparison]:
    """A function of one cloud, or of two, against other code for the same; with its gradient where it is a loss."""
    for n, d in sizes:
        clouds = [gaussian(n, d, seed=seed, mean=0.1) for seed in range(2 if both else 1)]
        error = relative_error(ours(*clouds), theirs(*(x.double() for x in clouds)))
        calls = [partial(f, *clouds) for f in (ours, theirs)]
        if what.endswith("forward+backward"):
            calls = [_slope(f, clouds) for f in (ours, theirs)]
        checks = partial(all_calls, ours, clouds[0][:24, :24]) if pieces else tuple
        yield Comparison(what, size_of(clouds[0]), calls[0], [Peer(name, calls[1], error, GOAL)], 1e-3, 5, checks)


def all_calls(function: Callable[[Tensor], object], few: Tensor) -> list[Piece]:
    """What checks and calls cost, whatever the size."""
    return [Piece("all calls, on few numbers", lambda: function(few))]


def _slope(function: Callable[..., Tensor], clouds: Sequence[Tensor]) -> Callable[[], Tensor]:
    """The gradient by the first cloud."""
    return gradient_of(lambda x: function(x, *clouds[1:]), clouds[0])


def plain(small: bool) -> Iterator[Comparison]:
    """Measures and losses beside the lines of torch that one would write."""
    few: Sizes = ((12, 8),) if small else ((64, 768), (4096, 768))
    many: Sizes = ((40, 8),) if small else ((1000, 64), (4096, 768))
    yield from of_clouds("mean cosine", isonb.mean_cosine, peers.mean_cosine, "two lines of torch", few)
    yield from of_clouds(
        "CosReg forward+backward", isonb.cosine_penalty, peers.cosine_penalty, "two lines of torch", few
    )
    yield from of_clouds(
        "IsoScore forward+backward", isonb.isoscore, peers.closed_isoscore, "closed form in torch", few
    )
    alignment = "alignment forward+backward"
    yield from of_clouds(alignment, isonb.alignment, peers.alignment, "one line of torch", few, both=True)
    yield from of_clouds("linear CKA", isonb.cka, peers.cka, "products in torch", few, both=True)
    yield from of_clouds("partition score", isonb.partition_score, peers.partition, "X'X and eigh in torch", many)
    drawn = random_directions(few[0][1], 16 if small else 1024, seed=0)
    ours, theirs = (lambda x: sigreg_penalty(x, drawn)), (lambda x: peers.sigreg(x, drawn.to(x)))
    sizes = few if small else ((64, 768), (1024, 768))
    yield from of_clouds("SIGReg forward+backward", ours, theirs, "as published, 17 nodes", sizes)


def lines(small: bool) -> Iterator[Comparison]:
    """Every other function of a cloud, of token matrices or of bars, beside the plain lines of its definition."""
    clouds: Sizes = ((30, 16),) if small else ((64, 768), (1000, 384))
    for what, (ours, theirs) in peers.LINES.items():
        yield from of_clouds(what, ours, theirs, "lines of torch", clouds, pieces=True)
    tokens = gaussian(*((3, 7, 8) if small else (32, 64, 768)), mean=0.1)
    bars = isonb.h0_barcode(gaussian(*((9, 4) if small else (512, 64))))
    for x, table in ((tokens, peers.TOKEN_LINES), (bars, peers.BAR_LINES)):
        for what, (ours, theirs) in table.items():
            error = relative_error(ours(x), theirs(x.double()))
            peer = Peer("lines of torch", partial(theirs, x), error, GOAL)
            few = partial(all_calls, ours, x[:3, :3, :3] if x.ndim == 3 else x[:3])
            yield Comparison(what, size_of(x), partial(ours, x), [peer], 1e-3, 5, few)


def dimension(small: bool) -> Iterator[Comparison]:
    """The maximum-likelihood dimension against scikit-dimension."""
    for n, d in ((60, 8),) if small else ((2000, 3), (2000, 64), (2000, 768)):
        x, others = gaussian(n, d), []
        if peers.there("skdim"):
            error = abs(float(isonb.mle_dimension(x)) / peers.skdim_mle(x.double().numpy()) - 1)
            others = [Peer("scikit-dimension", partial(peers.skdim_mle, x.numpy()), error, GOAL)]
        yield Comparison("MLE dimension", size_of(x), partial(isonb.mle_dimension, x), others, 1e-3, 5)


def transforms(small: bool) -> Iterator[Comparison]:
    """Fitted and applied to the same points; ours takes covariance and eigenvectors in float64."""
    for n, d in ((90, 8),) if small else ((5000, 384), (5000, 768)):
        x = gaussian(n, d) * torch.linspace(1, 3, d)
        wide = x.double()
        covariance = wide.T @ wide

        def pieces(x: Tensor = x, wide: Tensor = wide, covariance: Tensor = covariance) -> list[Piece]:
            return [
                Piece("covariance in float64", lambda: gram(wide.mT), True),
                Piece("eigenvectors in float64", lambda: torch.linalg.eigh(covariance), True),
                Piece("points times matrix", lambda: x @ covariance.float()),
            ]

        whitened = lambda x=x: isonb.Whitening().fit_transform(x)  # noqa: E731
        others = [
            Peer("torch, float32", partial(peers.whitened, x), peers.unlike(whitened(), peers.whitened(wide)), GOAL)
        ]
        if peers.there("sklearn"):
            theirs = partial(peers.sklearn_whitened, x.numpy())
            others.append(Peer("scikit-learn", theirs, peers.unlike(torch.from_numpy(theirs()), whitened()), GOAL))
        yield Comparison("Whitening, fit and transform", size_of(x), whitened, others, 1e-3, 3, pieces)
        cut = lambda x=x: isonb.AllButTheTop(3).fit_transform(x)  # noqa: E731
        bare = partial(peers.all_but_the_top, x, 3)
        peer = Peer("torch, float32", bare, relative_error(cut(), peers.all_but_the_top(wide, 3)), GOAL)
        yield Comparison("AllButTheTop(3), fit and transform", size_of(x), cut, [peer], 1e-3, 3, pieces)


SUITES: dict[str, Callable[[bool], Iterator[Comparison]]] = {
    "queries": queries,
    "plain": plain,
    "lines": lines,
    "dimension": dimension,
    "transforms": transforms,
}

"""The public functions that a user compares with a few lines of torch, beside those lines and the best library."""

import importlib
import tempfile
from functools import partial

import torch

import isonb
from isonb.losses.sigreg import random_directions, sigreg_penalty
from isonb.numerics.products import gram
from isonb.numerics.rows import center_rows, mean_row, unit_rows
from isonb.transforms.base import variances
from tests.benchmarks import peers
from tests.benchmarks.harness import Comparison, Peer, Piece, gaussian, gradient_of, relative_error, size_of
from tests.benchmarks.training import published_selection, topological_lengths

GOAL = 0.8  # of a peer's speed, the least that a public function should have


def queries(small):
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

        def pieces(q=q, corpus=corpus):
            return [
                Piece("product", lambda: q @ corpus.T, True),
                Piece("all calls, on three points", lambda: isonb.knn_queries(q[:1], corpus[:3], 3)),
            ]

        yield Comparison("neighbours of queries", f"{m} in {size_of(corpus)}", ours, others, 1e-3, 3, pieces)


def beside(what, ours, theirs, name, *inputs):
    """A function of one input, or of two, against other code for the same; with its gradient where it is a loss."""
    error = relative_error(ours(*inputs), theirs(*(x.double() for x in inputs)))
    calls = [partial(f, *inputs) for f in (ours, theirs)]
    if what.endswith("forward+backward"):  # the gradient by the first
        calls = [gradient_of(lambda x, f=f: f(x, *inputs[1:]), inputs[0]) for f in (ours, theirs)]
    few = [x[(slice(24 if x.ndim == 2 else 3),) * x.ndim] for x in inputs]
    pieces = partial(pieces_of, what, ours, theirs, inputs, few)
    return Comparison(what, size_of(inputs[0]), calls[0], [Peer(name, calls[1], error, GOAL)], 1e-3, 5, pieces)


def of_clouds(what, ours, theirs, name, sizes, count=1):
    """The same of clouds of these sizes."""
    for n, d in sizes:
        yield beside(what, ours, theirs, name, *(gaussian(n, d, seed=seed, mean=0.1) for seed in range(count)))


def pieces_of(what, ours, theirs, x, few):
    """Calls and checks whatever the size, the look at every number, and what the row of that name does beside."""
    wide = [cloud.double() for cloud in x]
    exact = [
        Piece("points to float64", lambda: [cloud.double() for cloud in x], True),
        Piece("the same lines in float64", lambda: theirs(*wide), True),
    ]
    return [
        Piece("all calls, on few numbers", lambda: ours(*few)),
        Piece("a look at every number", lambda: [cloud.sum() for cloud in x], True),
        *([Piece("the value alone", partial(ours, *x), True)] if what.endswith("forward+backward") else []),
        *(exact if what in EXACT else []),
        *(Piece(name, partial(step, *x), True) for name, step in STEPS.get(what, {}).items()),
    ]


EXACT = {"partition score", "LiDAR", "NC1", "negative count"}
"""Rows whose definition is computed in float64, so that what is small is told from rounding."""

NEAREST = {"neighbours by exact differences": lambda x: isonb.knn(x, 20)}
MEAN = {"mean about a row": mean_row, "a subtraction": lambda x: x - x[0]}
STEPS = {
    "centring": {"moved by a row, then by the mean": center_rows},
    "ZeroMean": MEAN,
    "mean translation": MEAN,
    "dimension silenced": {"variances in float64": variances},
    "mean direction removed": {"unit rows, twice": lambda x: (unit_rows(x), unit_rows(x))},
    "local dimension": NEAREST,
    "ID score": NEAREST,
    "linear CKA": {"both centred": lambda x, y: (center_rows(x), center_rows(y))},
    "points of hidden states": {"states joined": lambda x: torch.cat(list(x[1:]))},
}
"""Of rows in which we do more than the lines beside us: those steps alone."""


def plain(small):
    """Measures and losses beside the lines of torch that one would write."""
    few = ((12, 8),) if small else ((64, 768), (4096, 768))
    many = ((40, 8),) if small else ((1000, 64), (4096, 768))
    slices, sizes = (16, few) if small else (1024, ((64, 768), (1024, 768)))
    drawn = {d: random_directions(d, slices, seed=0) for d in (24, few[0][1], few[0][1] // 2)}
    ours = lambda x: sigreg_penalty(x, drawn[x.shape[1]])  # noqa: E731
    theirs = lambda x: peers.sigreg(x, drawn[x.shape[1]].to(x))  # noqa: E731
    for row in (
        ("mean cosine", isonb.mean_cosine, peers.mean_cosine, "two lines of torch", few),
        ("CosReg forward+backward", isonb.cosine_penalty, peers.cosine_penalty, "two lines of torch", few),
        ("IsoScore forward+backward", isonb.isoscore, peers.closed_isoscore, "closed form in torch", few),
        ("alignment forward+backward", isonb.alignment, peers.alignment, "one line of torch", few, 2),
        ("linear CKA", isonb.cka, peers.cka, "products in torch", few, 2),
        ("partition score", isonb.partition_score, peers.partition, "X'X and eigh in torch", many),
        ("SIGReg forward+backward", ours, theirs, "as published, 17 nodes", sizes),
        *((what, *pair, "lines of torch", few) for what, pair in peers.LOSS_LINES.items()),
    ):
        yield from of_clouds(*row)


def lines(small):
    """Every other function of a cloud, of token matrices or of bars, beside the plain lines of its definition."""
    clouds = ((30, 16),) if small else ((64, 768), (1000, 384))
    for what, (ours, theirs) in peers.LINES.items():
        yield from of_clouds(what, ours, theirs, "lines of torch", clouds)
    tokens = gaussian(*((3, 7, 8) if small else (32, 64, 768)), mean=0.1)
    bars = isonb.h0_barcode(gaussian(*((9, 4) if small else (512, 64))))
    features = lambda s: s[isonb.prominent_bars(s)].sum(), lambda s: published_selection(s).sum()
    bar_lines = peers.BAR_LINES | {"prominent bars": features}
    for x, table in ((tokens, peers.TOKEN_LINES), (bars, bar_lines)):
        for what, pair in table.items():
            yield beside(what, *pair, "lines of torch", x)


def containers(small):
    """What holds something: diagrams, layers, fitted state, covariances of a model; beside the least that has to be
    done for it, which is a floor.
    """
    n, d = (12, 8) if small else (256, 384)
    x, layer, joint = gaussian(n, d), isonb.IsotropyLayer(d), isonb.JointLoss()
    barcode = isonb.rips_barcode(x)
    arrays = [torch.stack(part, 1).numpy() for part in barcode]
    states = list(gaussian(4, n, 2, d))

    def refreshed():
        return isonb.ShrinkageCovariance(forward=lambda model, one: ([one, one], None)).refresh(layer, states)

    def trained(steps=4):
        flow = isonb.fit_flow(x[: 32 * steps], flow=isonb.GlowFlow(d, levels=1, seed=0))
        return flow.bits_per_dimension(x[:32]).detach()

    flow = isonb.GlowFlow(d, levels=1, seed=0)
    flow.begin(x[:32])

    def slopes(steps=4):
        for part in x[: 32 * steps].split(32):
            torch.autograd.grad(flow.bits_per_dimension(part), list(flow.parameters()))

    folder = tempfile.TemporaryDirectory()
    isonb.Whitening(2).fit(gaussian(6 * d, d)).save(folder.name)
    load_file = importlib.import_module("safetensors.torch").load_file
    shape, layers = ((2, 9, 16), 7) if small else ((8, 32, d), 13)
    hidden = [gaussian(*shape, seed=k) for k in range(layers)]
    windows = torch.stack(hidden[:5], -1).flatten(0, 1)
    two = torch.tensor(1.0), torch.tensor(2.0)
    rows = torch.cat(states).flatten(0, -2)
    copied = lambda: [torch.tensor(a) for a in arrays]  # noqa: E731
    stacked = lambda: [torch.stack(b, 1).numpy() for b in barcode]  # noqa: E731
    loaded = lambda: load_file(f"{folder.name}/weights.safetensors")  # noqa: E731
    decomposed = lambda: [torch.linalg.qr(windows) for _ in hidden[4:]]  # noqa: E731
    moments = lambda: [Piece("moments of the states", lambda: isonb.Moments().update(rows), True)]  # noqa: E731
    same = {  # code for the same
        "IsotropyLayer": (lambda: layer(x), "nn.Linear", lambda: layer.linear(x)),
        "shrinkage covariance of a model": (
            refreshed,
            "torch.cov",
            lambda: torch.cov(torch.cat(states).flatten(0, -2).T),
        ),
    }
    floors = {
        "diagrams from arrays": (lambda: isonb.from_diagrams(arrays), "a copy of the arrays", copied),
        "diagrams to arrays": (lambda: isonb.to_diagrams(barcode), "a stack of both", stacked),
        "JointLoss": (lambda: joint(*two), "two products", lambda: 0.5 * two[0] * 2 + 0.5 * two[1] / 2),
        "BERT-flow, four steps": (trained, "forward and backward alone", slopes),
        "fitted transform from its folder": (lambda: isonb.load_transform(folder.name), "safetensors alone", loaded),
        "SBERT-WK": (lambda: isonb.sbert_wk(hidden), "its QR decompositions", decomposed),
    }
    for what, (ours, name, theirs) in (same | floors).items():
        peer = Peer(name, theirs, 0.0, GOAL if what in same else None, what in floors)
        yield Comparison(what, size_of(x), ours, [peer], 0.0, 5, moments if name == "torch.cov" else tuple)
    if peers.there("torch_topological"):
        ours = lambda: isonb.rips_barcode(x, 0, return_generators=True)[0].diagram[:, 1]  # noqa: E731
        error = relative_error(ours().sort().values, topological_lengths(x).sort().values)
        peer = Peer("torch_topological", partial(topological_lengths, x), error, GOAL)
        yield Comparison("H0 with its generators", size_of(x), ours, [peer], 1e-4, 5)
    folder.cleanup()


def audits(small):
    """The audit of vectors in memory beside one product of them all."""
    x = gaussian(*((200, 8) if small else (10_000, 384)), mean=0.1)
    error = abs(isonb.audit(x, progress=False).values()["mean cosine"] - float(isonb.mean_cosine(x)))
    peer = Peer("its product XX'", lambda: x @ x.T, error, None, floor=True)
    pieces = lambda: [Piece("neighbours of all rows", lambda: isonb.knn(x, 10))]  # noqa: E731
    ours = partial(isonb.audit, x, progress=False)
    yield Comparison("audit of vectors", size_of(x), ours, [peer], 0.01, 3, pieces)


def dimension(small):
    """The maximum-likelihood dimension against scikit-dimension."""
    for n, d in ((60, 8),) if small else ((2000, 3), (2000, 64), (2000, 768)):
        x, others = gaussian(n, d), []
        if peers.there("skdim"):
            error = abs(float(isonb.mle_dimension(x)) / peers.skdim_mle(x.double().numpy()) - 1)
            others = [Peer("scikit-dimension", partial(peers.skdim_mle, x.numpy()), error, GOAL)]
        yield Comparison("MLE dimension", size_of(x), partial(isonb.mle_dimension, x), others, 1e-3, 5)


def transforms(small):
    """Fitted and applied to the same points, off the origin and of variances from 1 to 1e-4, as embeddings have them.

    Peers take float64 where we do: in float32 the whitened covariance of such points is off by 0.003 in torch, by 0.13
    in scikit-learn, and of variances down to 1e-6 scikit-learn's isn't one.
    """
    for n, d in ((90, 8),) if small else ((5000, 384), (5000, 768)):
        x = gaussian(n, d) * torch.logspace(0, -2, d) + 1
        wide = x.double()
        covariance = wide.T @ wide

        def pieces(x=x, wide=wide, covariance=covariance):
            return [
                Piece("covariance in float64", lambda: gram(wide.mT), True),
                Piece("eigenvectors in float64", lambda: torch.linalg.eigh(covariance), True),
                Piece("points times matrix", lambda: x @ covariance.float()),
            ]

        whitened = lambda x=x: isonb.Whitening().fit_transform(x)  # noqa: E731
        lines = {"torch, float64": lambda x=x: peers.whitened(x.double()).float()}
        if peers.there("sklearn"):
            lines["scikit-learn, float64"] = lambda x=x: torch.from_numpy(peers.sklearn_whitened(x.double().numpy()))
        others = [Peer(name, theirs, peers.unlike(theirs(), whitened()), GOAL) for name, theirs in lines.items()]
        yield Comparison("Whitening, fit and transform", size_of(x), whitened, others, 1e-3, 3, pieces)
        cut = lambda x: isonb.AllButTheTop(3).fit_transform(x)  # noqa: E731
        table = {"AllButTheTop(3), fit and transform": (cut, partial(peers.all_but_the_top, k=3))}
        for what, (ours, theirs) in (table | (peers.FITTED if d != 384 else {})).items():
            error = relative_error(ours(x), theirs(x.double()))
            peer = Peer("torch, float64", lambda x=x, f=theirs: f(x.double()).float(), error, GOAL)
            yield Comparison(what, size_of(x), partial(ours, x), [peer], 1e-3, 3, pieces)


SUITES = {
    "queries": queries,
    "plain": plain,
    "lines": lines,
    "dimension": dimension,
    "transforms": transforms,
    "containers": containers,
    "audits": audits,
}

ROW_OF = {
    "cosine_penalty": "CosReg forward+backward",
    "isoscore_from_cov": "IsoScore of a covariance",
    "isoscore_star": "IsoScore* forward+backward",
    "shrinkage_intensity": "Ledoit and Wolf's shrinkage",
    "knn_queries": "neighbours of queries",
    "knn": "k nearest neighbours",
    "from_diagrams": "diagrams from arrays",
    "to_diagrams": "diagrams to arrays",
    "Persistence": "H0 with its generators",
    "h0_barcode": "H0, few points",
    "rips_barcode": "H0 and H1",
    "CosRegLoss": "training step with CosReg, last layer",
    "GaoCosineLoss": "Gao's cosine loss forward+backward",
    "GORLoss": "GOR forward+backward",
    "IStarLoss": "I-STAR forward+backward",
    "PersistentEntropyLoss": "entropy loss forward+backward, selected bars",
    "SIGRegLoss": "SIGReg forward+backward",
    "SpectrumControlLoss": "spectrum control forward+backward",
    "load_transform": "fitted transform from its folder",
    "GlowFlow": "BERT-flow, four steps",
    "fit_flow": "BERT-flow, four steps",
    "DimensionScale": "dimension silenced",
    "centered": "centring",
    "cls_pool": "first token",
    "label_groups": "points by label",
    "points_from_hidden_states": "points of hidden states",
    "token_cloud": "tokens as one cloud",
    "Moments": "streaming covariance, mean 100",
}
"""The row of each public function whose name isn't in the name of its row."""

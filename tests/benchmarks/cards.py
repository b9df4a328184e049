"""What is worth measuring on a card, each against other code on the same card; ``make bench-gpu`` runs it.

A suite takes ``small`` and a device, so that its code runs on a CPU, too: there it measures nothing of a card.
"""

import torch

import isonb
from tests.benchmarks import measures, peers, training
from tests.benchmarks.harness import Comparison, Peak, Peer, gaussian, gradient_of, relative_error, size_of
from tests.benchmarks.memory import h0_error

CARD_MB = 2000.0
LOSSES = {"IsoScore loss": isonb.IsoScoreLoss(), "I-STAR": isonb.IStarLoss(), "CosReg": isonb.CosRegLoss()}


def stars(small, device):
    shrinkage = measures.shrinkage_matrix(16 if small else 768).to(device)
    return (measures.star(n, shrinkage) for n in ((8,) if small else (64, 256, 4096, 53_000)))


def uniformity(small, device):
    """RBF uniformity against one whole product, and where they fit against the pairs of pdist."""
    for n, d in ((40, 8),) if small else ((1024, 384), (8192, 384)):
        fitting = [measures.WHOLE, measures.ALL_PAIRS] if n * n * d <= measures.PAIRS else [measures.WHOLE]
        yield measures.uniformity(n, d, dict.fromkeys(fitting), device)


def two_nn(small, device):
    yield measures.two_nn(*((100, 8) if small else (5000, 768)), device=device)


def h0(small, device):
    """H0 on the card against the fastest library on the CPU, the way to the CPU included."""
    for shape in ((2, 12, 3),) if small else ((32, 64, 768), (1, 2048, 768)):
        yield measures.h0(gaussian(*shape, device=device), "H0", peers.barcodes("giotto-ph"), {})


def graphs(small, device):
    """Losses compiled into one graph, on a card with CUDA graphs, against the same uncompiled."""
    options = {"mode": "reduce-overhead"} if device == "cuda" else {"backend": "eager"}
    x = gaussian(*((16, 8) if small else (2048, 256)), device=device)
    for name, loss in LOSSES.items():
        ours, theirs = gradient_of(torch.compile(loss, fullgraph=True, **options), x), gradient_of(loss, x)
        peer = Peer("the same uncompiled", theirs, relative_error(ours(), theirs()))
        yield Comparison(f"{name} forward+backward, compiled", size_of(x), ours, [peer], 1e-3)


def half(small, device):
    """bfloat16 points, computed in float32: as near to float64 as float32 points, and what raising them costs."""
    x = gaussian(*((16, 8) if small else (16_384, 768)), device=device).bfloat16()
    wide = x.float()
    error = relative_error(isonb.isoscore(x), isonb.isoscore(x.double()))
    peer = Peer("the same in float32", lambda: isonb.isoscore(wide), error)
    yield Comparison("IsoScore of bfloat16", size_of(x), lambda: isonb.isoscore(x), [peer], 1e-4)


def memory(small, device):
    """What H0 of a large cloud takes on the card beside its input."""
    x, mb = gaussian(*((60, 8) if small else (100_000, 768)), device=device), 0.0
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    found = isonb.h0_barcode(x, return_edges=True)
    if device == "cuda":
        mb = (torch.cuda.max_memory_allocated() - before) / 1e6
    limit = "two copies of the points in float64 and a strip of distances"
    yield Peak("H0 barcode on a card", size_of(x), mb, CARD_MB, h0_error(x, found), 1e-4, limit)


CARD_SUITES = {
    "card_h0": h0,
    "card_isoscore_star": stars,
    "card_uniformity": uniformity,
    "card_two_nn": two_nn,
    "card_soft_decay": training.soft_decay,
    "card_step_overhead": training.step_overhead,
    "card_graphs": graphs,
    "card_half": half,
    "card_memory": memory,
}

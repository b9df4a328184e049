"""What is worth measuring on a card, each against other code on the same card; ``make bench-gpu`` runs it.

A suite takes ``small`` and a device, so that its code runs on a CPU, too: there it measures nothing of a card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

import isonb
from tests.benchmarks import peers, training
from tests.benchmarks.barcodes import error_of
from tests.benchmarks.harness import Peak, Row, compare, relative_error
from tests.benchmarks.measures import gaussian, shrinkage_matrix
from tests.benchmarks.memory import h0_error
from tests.support import never_waiting

CARD_MB = 2000.0
PAIRS = 2**29  # coordinates of differences that torch.pdist may hold at a time for its gradient
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "IsoScore loss": isonb.IsoScoreLoss(),
    "I-STAR": isonb.IStarLoss(),
    "CosReg": isonb.CosRegLoss(),
}


def waits(call: Callable[[], object], device: str) -> bool:
    """Whether the host waits for the card inside ``call``; on a CPU there is nothing to wait for."""
    if device != "cuda":
        return False
    try:
        with never_waiting():
            call()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        return True
    return False


def gradient_of(function: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], Tensor]:
    """Forward and backward at ``x``."""
    return lambda: torch.autograd.grad(function(x), x)[0]


def card_isoscore_star(small: bool, device: str) -> list[Row]:
    """IsoScore* forward and backward against singular values; a call that makes the host wait counts as wrong."""
    rows = []
    d, sizes = (16, (8,)) if small else (768, (64, 256, 4096, 53_000))
    shrinkage = shrinkage_matrix(d).to(device)
    for n in sizes:
        x = gaussian(n, d).to(device).requires_grad_()
        ours = gradient_of(lambda z: isonb.isoscore_star(z, 0.2, shrinkage), x)
        theirs = gradient_of(lambda z: peers.star_by_singular_values(z, 0.2, shrinkage), x)
        error = float("inf") if waits(ours, device) else relative_error(ours(), theirs())
        what, size, rounds = "IsoScore* forward+backward", f"{n} x {d}", 1 if small else 7
        rows += compare(what, size, ours, [("singular values", theirs, error, None)], allowed=1e-3, rounds=rounds)
        points = x.detach()
        product = "its product X'X", lambda points=points: points.T @ points, error, None
        rows += compare(what, size, ours, [product], allowed=1e-3, rounds=rounds, yardstick=True)
    return rows


def card_uniformity(small: bool, device: str) -> list[Row]:
    """RBF uniformity forward and backward against one whole product, and where they fit against the pairs of pdist."""
    rows = []
    for n, d in ((40, 8),) if small else ((1024, 384), (8192, 384)):
        x = gaussian(n, d).to(device).requires_grad_()
        ours, whole = gradient_of(isonb.rbf_uniformity, x), gradient_of(peers.uniformity_by_gram, x)
        error = float("inf") if waits(ours, device) else relative_error(ours(), whole())
        others = [("one whole product", whole, error, None)]
        if n * n * d <= PAIRS:
            pairs = gradient_of(peers.uniformity_by_pairs, x)
            others.append(("torch.pdist", pairs, max(error, relative_error(ours(), pairs())), None))
        what, rounds = "RBF uniformity forward+backward", 1 if small else 7
        rows += compare(what, f"{n} x {d}", ours, others, allowed=1e-3, rounds=rounds)
    return rows


def card_two_nn(small: bool, device: str) -> list[Row]:
    """TwoNN on the card against scikit-dimension on the CPU, the way to the CPU included, and its product."""
    n, d = (100, 8) if small else (5000, 768)
    x = gaussian(n, d).to(device)

    def ours() -> Tensor:
        return isonb.two_nn(x)

    def theirs() -> float:
        return peers.skdim_two_nn(x.cpu().double().numpy())

    rows, rounds = [], 1 if small else 7
    error = float("inf") if waits(ours, device) else 0.0
    if peers.there("skdim"):
        error = max(error, abs(float(ours()) / theirs() - 1))
        peer = [("scikit-dimension on the CPU", theirs, error, None)]
        rows += compare("TwoNN", f"{n} x {d}", ours, peer, allowed=1e-3, rounds=rounds)
    product = ("its product XX'", lambda: x @ x.T, error, None)
    return rows + compare("TwoNN", f"{n} x {d}", ours, [product], allowed=1e-3, rounds=rounds, yardstick=True)


def card_h0(small: bool, device: str) -> list[Row]:
    """H0 on the card against the fastest library on the CPU, the way to the CPU included."""
    rows = []
    for shape in ((2, 12, 3),) if small else ((32, 64, 768), (1, 2048, 768)):
        x = gaussian(*shape).to(device)
        for name, call in peers.barcodes("giotto-ph").items():

            def theirs(x: Tensor = x, call: peers.Barcode = call) -> np.ndarray:
                return np.stack([call(cloud) for cloud in x.cpu().numpy()])

            ours = lambda x=x: isonb.h0_barcode(x)  # noqa: E731
            error = error_of(np.sort(ours().cpu().numpy(), axis=-1), theirs())
            error = float("inf") if waits(ours, device) else error
            size, peer = " x ".join(map(str, shape)), [(f"{name} on the CPU", theirs, error, None)]
            rows += compare("H0", size, ours, peer, allowed=1e-4, rounds=1 if small else 7)
    return rows


def card_graphs(small: bool, device: str) -> list[Row]:
    """Losses compiled into one graph, on a card with CUDA graphs, against the same uncompiled."""
    rows = []
    options = {"mode": "reduce-overhead"} if device == "cuda" else {"backend": "eager"}
    for name, loss in LOSSES.items():
        n, d = (16, 8) if small else (2048, 256)
        x = gaussian(n, d).to(device).requires_grad_()
        ours = gradient_of(torch.compile(loss, fullgraph=True, **options), x)
        theirs = gradient_of(loss, x)
        peer = [("the same uncompiled", theirs, relative_error(ours(), theirs()), None)]
        what = f"{name} forward+backward, compiled"
        rows += compare(what, f"{n} x {d}", ours, peer, allowed=1e-3, rounds=1 if small else 7)
    return rows


def card_half(small: bool, device: str) -> list[Row]:
    """bfloat16 points, computed in float32: as near to float64 as float32 points, and what raising them costs."""
    n, d = (16, 8) if small else (16_384, 768)
    x = gaussian(n, d).to(device, torch.bfloat16)
    error = relative_error(isonb.isoscore(x), isonb.isoscore(x.double()))
    wide = x.float()
    peer = [("the same in float32", lambda: isonb.isoscore(wide), error, None)]
    return compare(
        "IsoScore of bfloat16", f"{n} x {d}", lambda: isonb.isoscore(x), peer, allowed=1e-4, rounds=1 if small else 7
    )


def card_memory(small: bool, device: str) -> list[Peak]:
    """What H0 of a large cloud takes on the card beside its input."""
    n, d = (60, 8) if small else (100_000, 768)
    x, mb = gaussian(n, d).to(device), 0.0
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    found = isonb.h0_barcode(x, return_edges=True)
    if device == "cuda":
        mb = (torch.cuda.max_memory_allocated() - before) / 1e6
    error = h0_error(x, found)
    limit = "two copies of the points in float64 and a strip of distances"
    return [Peak("H0 barcode on a card", f"{n} x {d}", mb, CARD_MB, error, 1e-4, limit)]


CARD_SUITES: dict[str, Callable[[bool, str], Sequence[Row | Peak]]] = {
    "card_h0": card_h0,
    "card_isoscore_star": card_isoscore_star,
    "card_uniformity": card_uniformity,
    "card_two_nn": card_two_nn,
    "card_soft_decay": lambda small, device: training.soft_decay(small),
    "card_step_overhead": lambda small, device: training.step_overhead(small),
    "card_graphs": card_graphs,
    "card_half": card_half,
    "card_memory": card_memory,
}
"""By name; the two of training take a card by themselves where there is one."""

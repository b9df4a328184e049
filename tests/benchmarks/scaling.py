"""How time and memory grow up to 65,536 rows; what a loss sends to a card; and what trees of boxes do."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import isonb
from isonb.checks import strict
from isonb.numerics import compiled, dispatch
from tests.benchmarks import memory
from tests.benchmarks.harness import Comparison, Peer, Reading, gaussian, gradient_of, relative_error, size_of

SAMPLE = 16  # rows whose neighbours are looked up among all, to check a search


def knn_error(x: Tensor, found: tuple[Tensor, Tensor]) -> float:
    """Of a few rows, against all differences in float64."""
    rows, exact = torch.arange(0, len(x), max(1, len(x) // SAMPLE)), x.double()
    away = torch.stack([(exact - exact[i]).norm(dim=-1) for i in rows])
    return relative_error(found[0][rows], away.sort(-1).values[:, 1 : found[0].shape[1] + 1])


def audit_error(x: Tensor, found: Any) -> float:
    return abs(found.values()["mean cosine"] - float(isonb.mean_cosine(x)))


CALLS: dict[str, tuple[Any, Any, float]] = {
    "k nearest neighbours": (lambda x: isonb.knn(x, 10), knn_error, 1e-4),
    "H0 barcode": (lambda x: isonb.h0_barcode(x, return_edges=True), memory.h0_error, 1e-4),
    "audit of vectors": (lambda x: isonb.audit(x, progress=False), audit_error, 0.01),
}


def measured(name: str, n: int, d: int) -> dict[str, float]:
    """In this process: CPU seconds of one call, what it adds to the peak, and how wrong it is."""
    torch.set_num_threads(1)
    call, error, _ = CALLS[name]
    call(gaussian(900, d))  # what is loaded and compiled once isn't counted
    x = gaussian(n, d, mean=0.1)
    before, start = memory.peak_mb(), time.process_time()
    found = call(x)
    seconds = time.process_time() - start
    return {"seconds": seconds, "mb": memory.peak_mb() - before + memory.size_mb(x), "error": error(x, found)}


def growth(small: bool) -> Iterator[Reading]:
    """Each call in a process of its own, of twice as many rows each time."""
    d = 16 if small else 384
    for name, (_, _, allowed) in CALLS.items():
        for n in (500, 1000) if small else (2048, 4096, 8192, 16_384, 32_768, 65_536):
            command = [sys.executable, "-W", "ignore", "-m", __name__, name, str(n), str(d)]
            done = subprocess.run(command, cwd=memory.ROOT, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            values = {"what": name, "size": f"{n} x {d}", "n": n, "d": d, "input_mb": 4e-6 * n * d}
            yield Reading(values | {key: found[key] for key in ("seconds", "mb")}, found["error"], allowed)


class Sent(TorchDispatchMode):
    """Counts the operators that do work, and those that make the host wait for a value."""

    WAITS = ("_local_scalar_dense", "nonzero", "_unique2", "equal", "masked_select", "_linalg_svd", "_linalg_eigh")

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        self.count["waits"] += name in self.WAITS
        self.count["operators"] += not func.is_view and name not in ("detach", "empty")
        return func(*args, **(kwargs or {}))


def losses(d: int) -> dict[str, tuple[Any, tuple[Tensor, ...]]]:
    labels = torch.arange(64) % 2
    return {
        "I-STAR": (isonb.IStarLoss(), (torch.eye(d),)),
        "IsoScore loss": (isonb.IsoScoreLoss(), ()),
        "CosReg": (isonb.CosRegLoss(), ()),
        "GOR": (isonb.GORLoss(), ()),
        "SIGReg": (isonb.SIGRegLoss(slices=64, seed=0), ()),
        "spectrum control": (isonb.SpectrumControlLoss(), ()),
        "persistent entropy": (isonb.PersistentEntropyLoss(), ()),
        "persistent entropy by label": (isonb.PersistentEntropyLoss(in_cluster=1.0), (labels,)),
    }


def kernels(small: bool) -> Iterator[Reading]:
    """Operators of a loss with its gradient as a card gets them, counted on the CPU: no compiled loops, no checks."""
    x = gaussian(64, 16 if small else 768)
    for name, (loss, rest) in losses(x.shape[1]).items():
        both = gradient_of(lambda z, loss=loss, rest=rest: loss(z, *rest), x)
        with strict(False), mock.patch.object(compiled, "_numba", return_value=None):
            value = both()
            with Sent() as sent:
                both()
        torch._dynamo.reset()
        try:
            graph = torch.compile(loss, backend="eager", fullgraph=True)
            graph(x, *rest)
            whole = "one graph"
        except torch._dynamo.exc.TorchDynamoException:
            whole = "the graph breaks"
        values = {"what": name, "size": size_of(x), "operators": sent.count["operators"], "waits": sent.count["waits"]}
        error = relative_error(value, both())
        yield Reading(values | {"compiled": whole}, error, 1e-3)


def boxes(small: bool) -> Iterator[Comparison]:
    """Neighbours in few dimensions by a kd-tree, where the table of ways takes one, beside the product."""
    for d in (3,) if small else (2, 3, 5):
        x = gaussian(600 if small else 10_000, d)

        def by_product(x: Tensor = x) -> tuple[Tensor, Tensor]:
            with mock.patch.object(dispatch, "BOXES", {}):
                return isonb.knn(x, 10)

        error = relative_error(isonb.knn(x, 10)[0], by_product()[0])
        peer = Peer("the same by a product", by_product, error, 1.0, floor=True)
        yield Comparison("neighbours by boxes", size_of(x), lambda x=x: isonb.knn(x, 10), [peer], 1e-4, 3)


SUITES = {"scaling": growth, "kernels": kernels, "boxes": boxes}

if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

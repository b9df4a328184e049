"""Memory that a call needs beside its input: the growth of the peak resident size of a process made for it alone."""

import json
import math
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

import isonb
from tests.benchmarks.harness import Peak, gaussian

ROOT = Path(__file__).resolve().parents[2]
BOUND_MB = 1000.0
SAMPLE = 64  # points whose nearest neighbours are looked up to check a tree


def peak_mb() -> float:
    """The largest resident size of this process so far.

    Linux hands the parent's peak down to the number that getrusage gives a child, so /proc is asked where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"), re.M)):
        return int(found[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def h0_error(x: Tensor, found: tuple[Tensor, Tensor]) -> float:
    """Largest relative error of edges that every minimum spanning tree has: from a point to its nearest neighbour.

    Infinite if one of them is missing, or if the edges don't join all points.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    bars, edges = (one.cpu() for one in found)
    graph = coo_array((torch.ones(len(edges)).numpy(), tuple(edges.T.numpy())), shape=(len(x), len(x)))
    known = {tuple(sorted(pair)): bar for pair, bar in zip(edges.tolist(), bars.tolist(), strict=True)}
    worst = 0.0 if len(known) == len(x) - 1 and connected_components(graph)[0] == 1 else float("inf")
    for i in range(min(SAMPLE, len(x))):
        away = torch.cat([(part.double() - x[i].double()).norm(dim=-1) for part in x.split(1024)])
        away[i] = torch.inf
        bar = known.get(tuple(sorted((i, int(away.argmin())))), float("inf"))
        worst = max(worst, abs(bar / float(away.min()) - 1))
    return worst


def uniformity_error(x: Tensor, found: Tensor) -> float:
    """Relative error of the value against float64, all pairs, strip by strip."""
    unit, n = torch.nn.functional.normalize(x.detach().double(), dim=-1), len(x)
    total = sum(float((part @ unit.T).mul_(4).sub_(4).exp_().sum()) for part in unit.split(512))
    return abs(float(found) / math.log((total - n) / (n * (n - 1))) - 1)


def with_gradient(x: Tensor) -> Tensor:
    value = isonb.rbf_uniformity(x.requires_grad_())
    value.backward()
    return value.detach()


CALLS: dict[str, tuple[Callable[[Tensor], object], Callable[..., float]]] = {
    "h0": (lambda x: isonb.h0_barcode(x, return_edges=True), h0_error),
    "uniformity": (with_gradient, uniformity_error),
}


def size_mb(x: Tensor) -> float:
    """Megabytes of the points. While they were made a second copy was there, which the peak before a call has too."""
    return x.numel() * x.element_size() / 1e6


def measured(name: str, n: int, d: int) -> dict[str, float]:
    """In this process: what the call adds to the peak, and how wrong it is."""
    torch.set_num_threads(1)
    call, error = CALLS[name]
    call(gaussian(50, d))  # what is loaded and kept once isn't counted
    x = gaussian(n, d)
    before = peak_mb()
    found = call(x)
    return {"mb": peak_mb() - before + size_mb(x), "error": error(x, found)}


def apart(name: str, what: str, n: int, d: int, limit: str) -> Peak:
    """The same in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", __name__, name, str(n), str(d)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return Peak(what, f"{n} x {d}", found["mb"], BOUND_MB, found["error"], 1e-4, limit)


def memory_h0(small: bool) -> Iterator[Peak]:
    n, d = (1500, 16) if small else (20_000, 768)
    limit = f"a strip of distances and two copies of the points; all n x n distances would be {4e-6 * n * n:.0f} MB"
    yield apart("h0", "H0 barcode", n, d, limit)


def memory_uniformity(small: bool) -> Iterator[Peak]:
    limit = "blocks of 1,024 rows, their products and what the backward pass keeps of one block"
    size = (1500, 16) if small else (32_768, 384)
    yield apart("uniformity", "RBF uniformity forward+backward", *size, limit)


SUITES = {"memory_h0": memory_h0, "memory_uniformity": memory_uniformity}

if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

"""Time and memory of a call, up to 65,536 rows: CPU seconds and the growth of the peak of a process made for it."""

import json
import math
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch

import isonb
from tests.benchmarks.harness import Peak, Reading, gaussian, relative_error

ROOT = Path(__file__).resolve().parents[2]
BOUND_MB = 1000.0
SAMPLE = 64  # points whose nearest neighbours are looked up to check a tree; of a search a quarter


def peak_mb():
    """The largest resident size of this process so far.

    Linux hands the parent's peak down to the number that getrusage gives a child, so /proc is asked where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"), re.M)):
        return int(found[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def h0_error(x, found):
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


def uniformity_error(x, found):
    """Relative error of the value against float64, all pairs, strip by strip."""
    unit, n = torch.nn.functional.normalize(x.detach().double(), dim=-1), len(x)
    total = sum(float((part @ unit.T).mul_(4).sub_(4).exp_().sum()) for part in unit.split(512))
    return abs(float(found) / math.log((total - n) / (n * (n - 1))) - 1)


def with_gradient(x):
    value = isonb.rbf_uniformity(x.requires_grad_())
    value.backward()
    return value.detach()


def knn_error(x, found):
    """Of a few rows, against all differences in float64."""
    rows, exact = torch.arange(0, len(x), max(1, 4 * len(x) // SAMPLE)), x.double()
    away = torch.stack([(exact - exact[i]).norm(dim=-1) for i in rows])
    return relative_error(found[0][rows], away.sort(-1).values[:, 1 : found[0].shape[1] + 1])


def audit_error(x, found):
    return abs(found.values()["mean cosine"] - float(isonb.mean_cosine(x)))


CALLS = {
    "k nearest neighbours": (lambda x: isonb.knn(x, 10), knn_error, 1e-4),
    "H0 barcode": (lambda x: isonb.h0_barcode(x, return_edges=True), h0_error, 1e-4),
    "audit of vectors": (lambda x: isonb.audit(x, progress=False), audit_error, 0.01),
    "RBF uniformity forward+backward": (with_gradient, uniformity_error, 1e-4),
}
"""What is called, how wrong the result is, and how wrong it may be."""


def size_mb(x):
    """Megabytes of the points. While they were made a second copy was there, which the peak before a call has too."""
    return x.numel() * x.element_size() / 1e6


def measured(name, n, d):
    """In this process: CPU seconds of one call, what it adds to the peak, and how wrong it is."""
    torch.set_num_threads(1)
    call, error, _ = CALLS[name]
    call(gaussian(900, d))  # what is loaded, compiled and kept once isn't counted
    x = gaussian(n, d, mean=0.1)
    before, start = peak_mb(), time.process_time()
    found = call(x)
    seconds = time.process_time() - start
    return {"seconds": seconds, "mb": peak_mb() - before + size_mb(x), "error": error(x, found)}


def apart(name, n, d):
    """The same in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", __name__, name, str(n), str(d)]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def peaks(small):
    """What the largest calls take beside their input."""
    n = 1500 if small else 20_000
    limits = {
        "H0 barcode": (
            n,
            16 if small else 768,
            f"a strip of distances and two copies of the points; all n x n distances would be {4e-6 * n * n:.0f} MB",
        ),
        "RBF uniformity forward+backward": (
            1500 if small else 32_768,
            16 if small else 384,
            "blocks of 1,024 rows, their products and what the backward pass keeps of one block",
        ),
    }
    for name, (n, d, limit) in limits.items():
        found = apart(name, n, d)
        yield Peak(name, f"{n} x {d}", found["mb"], BOUND_MB, found["error"], CALLS[name][2], limit)


def growth(small):
    """Each call of twice as many rows each time."""
    d = 16 if small else 384
    for name in list(CALLS)[:3]:
        for n in (500,) if small else (2048, 4096, 8192, 16_384, 32_768, 65_536):
            found = apart(name, n, d)
            values = {"what": name, "size": f"{n} x {d}", "n": n, "d": d, "input_mb": 4e-6 * n * d}
            yield Reading(values | {key: found[key] for key in ("seconds", "mb")}, found["error"], CALLS[name][2])


SUITES = {"scaling": growth, "memory": peaks}

if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

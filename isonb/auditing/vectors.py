"""Audit vectors: one pass over all rows for what is exact, and a sample of them for what needs pairs or a spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.report import SEVERITIES, Audit, Finding, Reading
from isonb.checks import border
from isonb.cosine import mean_cosine, unit_rows
from isonb.errors import DtypeError, InputError, ShapeError, fail
from isonb.isotropy import isoscore, participation_ratio
from isonb.neighbors import knn, two_nn
from isonb.spectrum import explained_variance

__all__ = ["audit"]

CHUNK = 8192  # rows read at a time
SAMPLE = 5000  # rows that the shape is measured on
PAIRS = 100_000  # random pairs behind the quantiles of the cosine
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
GROUPS = 10  # of the jackknife
STUDENT = 2.262  # its quantile 0.975 at GROUPS - 1 degrees of freedom
K = 10  # neighbours
NAMED = 20  # rows or dimensions that a finding names

SHIFTED = 0.1  # mean cosine from which the common mean is worth a warning
USED, BARELY = 0.5, 0.1  # unbiased IsoScore below which directions are hardly used
LOUD = 8.0  # times the median energy that makes a dimension an outlier
HUB = 2.0  # times the largest count in a round cloud that makes a row a hub
TWIN = 0.9999  # cosine of rows that say the same

MEASURES: dict[str, Callable[[Tensor], Tensor]] = {
    "mean cosine": mean_cosine,
    "IsoScore": isoscore,
    "IsoScore-U": lambda x: isoscore(x, unbiased=True),
    "participation ratio": lambda x: participation_ratio(x, unbiased=True),
    "EV1, centred": lambda x: explained_variance(x, 1, center=True)[0],
    "TwoNN dimension": two_nn,
}


@dataclass
class _Pass:
    """What one pass over all rows knows. ``good``: the numbers of rows that are finite and not zero."""

    good: Tensor
    wild: list[int]
    zero: list[int]
    n_wild: int
    n_zero: int
    hashes: Tensor
    energy: Tensor
    mean: Tensor
    variance: Tensor
    lengths: tuple[float, float]
    half: bool


@border
def audit(vectors: Any, *, sample: int = SAMPLE, seed: int = 0) -> Audit:
    """Say what a cloud of vectors is like: measures with intervals, defects with the rows and dimensions they are in.

    Rows that aren't finite or are zero are named and left out. Every row is read once, in pieces, so that an array on
    disk (``numpy.load(path, mmap_mode="r")``) needs little memory. The shape, the neighbours and the pairs come from at
    most ``sample`` rows, drawn by ``seed``. Intervals are 95%, by a jackknife over ten groups of rows; beside each
    measure stands what an isotropic Gaussian cloud of as many rows and dimensions reads. With fewer than 2 d rows the
    shape isn't judged: a covariance of d dimensions needs more.

    Shapes: vectors (n, d), an array or a tensor of numbers; at least 20 rows that count, 2 dimensions. Otherwise
    :class:`~isonb.errors.ShapeError`; for what isn't numbers :class:`~isonb.errors.DtypeError`.

    >>> import torch
    >>> found = audit(torch.randn(500, 64, generator=torch.Generator().manual_seed(0)) + 1.0)
    >>> [finding.name for finding in found.findings], found.ok
    (['shift', 'hubs'], False)
    """
    source = _matrix(vectors)
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 100:
        fail(InputError, "sample must be an integer from 100", repr(sample), f"The default is {SAMPLE}.")
    seen = _read(source)
    n, d = len(seen.good), source.shape[1]
    if n < 20:
        got = f"{n} of {source.shape[0]}"
        fail(
            ShapeError,
            "at least 20 rows must be finite and not zero",
            got,
            "Rows are points; a transposed array has too few.",
        )
    draw = torch.Generator().manual_seed(seed)
    chosen = seen.good if n <= sample else seen.good[torch.randperm(n, generator=draw)[:sample].sort().values]
    x = torch.cat([_numbers(source, part) for part in torch.split(chosen, CHUNK)])
    round_cloud = torch.randn(x.shape, generator=draw, dtype=x.dtype)
    twin = _duplicates(seen)
    readings = tuple(_readings(x, round_cloud, draw))
    withheld = "" if n >= 2 * d else f"The shape isn't judged: {n} rows are too few for {d} dimensions."
    values = {reading.name: reading.value for reading in readings}
    floor = {"random cosine": _quantiles(x, draw), "random cosine, centred": _quantiles(x - x.mean(0), draw)}
    findings = [*_rows(seen, n, d), *twin, *_place(values, floor), *_neighbours(x, round_cloud, chosen)]
    findings += [] if withheld else _spread(values, d)
    findings += _dimensions(seen)
    findings.sort(key=lambda one: SEVERITIES.index(one.severity))
    return Audit(n, d, len(x), tuple(findings), readings, floor, withheld)


def _matrix(vectors: Any) -> Any:
    shape = getattr(vectors, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] < 2:
        got = f"{type(vectors).__name__} of shape {None if shape is None else tuple(shape)}"
        fail(ShapeError, "vectors must be an array (n, d) of d >= 2", got, "Stack them: one row a text.")
    kind = getattr(vectors.dtype, "kind", "f")
    if kind not in "fiu" or (isinstance(vectors, Tensor) and (vectors.dtype == torch.bool or vectors.is_complex())):
        fail(DtypeError, "vectors must be numbers", str(vectors.dtype), "Pass the embeddings, not texts or objects.")
    return vectors.detach() if isinstance(vectors, Tensor) else vectors


def _numbers(source: Any, rows: Tensor | slice) -> Tensor:
    """Some rows as float32 on the CPU, float64 if they are that."""
    if isinstance(source, Tensor):
        part = source[rows if isinstance(rows, slice) else rows.to(source.device)].cpu()
    else:
        part = torch.from_numpy(source[rows if isinstance(rows, slice) else rows.numpy()].copy())
    return part if part.dtype == torch.float64 else part.float()


def _pieces(source: Any) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, source.shape[0], CHUNK):
        yield start, _numbers(source, slice(start, start + CHUNK))


def _read(source: Any) -> _Pass:
    d = source.shape[1]
    keys = torch.randint(-(2**62), 2**62, (d,), generator=torch.Generator().manual_seed(1)) | 1
    good: list[Tensor] = []
    hashes: list[Tensor] = []
    wild: list[int] = []
    zero: list[int] = []
    counted = {"wild": 0, "zero": 0}
    total, square = torch.zeros(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)
    origin: Tensor | None = None
    least, most, half = math.inf, 0.0, True
    for start, part in _pieces(source):
        finite, empty = part.isfinite().all(-1), (part == 0).all(-1)
        for name, found, where in (("wild", wild, ~finite), ("zero", zero, finite & empty)):
            counted[name] += int(where.sum())
            found += (start + where.nonzero().flatten()[: NAMED - len(found)]).tolist() if len(found) < NAMED else []
        kept = finite & ~empty
        rows = part[kept]
        if not len(rows):
            continue
        good.append(start + kept.nonzero().flatten())
        whole = rows.double()
        origin = whole.mean(0) if origin is None else origin
        total += (whole - origin).sum(0)
        square += (whole - origin).square().sum(0)
        bits = (whole + 0.0).view(torch.int64)  # -0.0 becomes 0.0
        hashes.append((bits * keys).sum(-1))
        lengths = torch.linalg.vector_norm(whole, dim=-1)
        least, most = min(least, float(lengths.min())), max(most, float(lengths.max()))
        half = half and bool((rows == rows.half().to(rows.dtype)).all())
    known = torch.cat(good) if good else torch.zeros(0, dtype=torch.long)
    n = max(1, len(known))
    away = total / n
    variance = (square / n - away.square()).clamp_min(0)
    mean = away if origin is None else origin + away
    marks = torch.cat(hashes) if hashes else known
    counts = counted["wild"], counted["zero"]
    return _Pass(known, wild, zero, *counts, marks, variance + mean.square(), mean, variance, (least, most), half)


def _readings(x: Tensor, round_cloud: Tensor, draw: torch.Generator) -> Iterator[Reading]:
    group = torch.randperm(len(x), generator=draw) % GROUPS
    for name, measure in MEASURES.items():
        value = float(measure(x))
        without = torch.tensor([float(measure(x[group != g])) for g in range(GROUPS)], dtype=torch.float64)
        error = math.sqrt((GROUPS - 1) / GROUPS * float((without - without.mean()).square().sum()))
        yield Reading(name, value, value - STUDENT * error, value + STUDENT * error, float(measure(round_cloud)))


def _quantiles(x: Tensor, draw: torch.Generator) -> dict[str, float]:
    """Of the cosine of two different random rows."""
    n = len(x)
    first = torch.randint(n, (PAIRS,), generator=draw)
    second = (first + torch.randint(1, n, (PAIRS,), generator=draw)) % n
    unit = unit_rows(x)
    pieces = zip(torch.split(first, CHUNK), torch.split(second, CHUNK), strict=True)
    cosines = torch.cat([(unit[a] * unit[b]).sum(-1) for a, b in pieces]).double()
    ends = torch.quantile(cosines, torch.tensor(SHARES, dtype=torch.float64))
    return {f"{share:g}": float(end) for share, end in zip(SHARES, ends, strict=True)}


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _rows(seen: _Pass, n: int, d: int) -> Iterator[Finding]:
    for name, count, rows in (("not finite", seen.n_wild, seen.wild), ("zero rows", seen.n_zero, seen.zero)):
        if count:
            words = "NaN or infinity in" if name == "not finite" else "Nothing but zeros in"
            advice = "Left out here. Look at the texts behind them."
            yield Finding(name, "fault", f"{words} {_some(count, 'row')}.", advice, rows=tuple(rows))
    if n < d:
        yield Finding(
            "few rows",
            "warning",
            f"There are fewer rows ({n}) than dimensions ({d}).",
            "Is the array transposed? Rows are points.",
        )
    least, most = seen.lengths
    if abs(least - 1) < 1e-3 and abs(most - 1) < 1e-3:
        yield Finding("unit length", "note", "All rows have length 1.", "A measure of lengths has nothing to say.")
    if seen.half:
        text = "Every value fits float16."
        yield Finding("half precision", "note", text, "Digits may have been lost before these vectors were saved.")


def _duplicates(seen: _Pass) -> Iterator[Finding]:
    marks, where = seen.hashes.sort(stable=True)
    again = torch.zeros(len(marks), dtype=torch.bool)
    again[1:] = marks[1:] == marks[:-1]
    count = int(again.sum())
    if count:
        rows = tuple(seen.good[where[again]].sort().values[:NAMED].tolist())
        severity = "warning" if count > len(marks) / 100 else "note"
        text = f"Repeats of an earlier row: {_some(count, 'row')} ({count / len(marks):.1%})."
        yield Finding("duplicates", severity, text, "Drop them before you measure or index.", rows=rows)


def _place(values: dict[str, float], floor: dict[str, dict[str, float]]) -> Iterator[Finding]:
    shared = values["mean cosine"]
    if shared > SHIFTED:
        raw, centred = (floor[key]["0.99"] for key in ("random cosine", "random cosine, centred"))
        text = (
            f"All rows share a direction: two random rows have a mean cosine of {shared:.2f}, and 1% of random pairs "
            f"pass {raw:.2f} (centred: {centred:.2f})."
        )
        yield Finding("shift", "warning", text, "Subtract the mean (isonb.ZeroMean), or put the threshold above that.")


def _spread(values: dict[str, float], d: int) -> list[Finding]:
    used = values["IsoScore-U"]
    if used >= USED:
        return []
    text = f"The variance of about {values['participation ratio']:.0f} of {d} directions is used."
    advice = "Soft whitening (isonb.SoftZCA) evens it out; judge that on your own task, it can harm."
    return [Finding("stretched", "warning" if used < BARELY else "note", text, advice)]


def _neighbours(x: Tensor, round_cloud: Tensor, chosen: Tensor) -> Iterator[Finding]:
    counts, nearest = _popular(x)
    usual, _ = _popular(round_cloud)
    hubs = (counts > HUB * int(usual.max())).nonzero().flatten()
    if len(hubs):
        first = hubs[counts[hubs].argsort(descending=True)][:NAMED]
        most = int(counts[first[0]])
        text = f"Hubs: {_some(len(hubs), 'row')}; the first is among the {K} nearest of {most:,} others."
        advice = "Hubs answer every query. Centre the vectors, or drop these rows."
        yield Finding("hubs", "warning", text, advice, rows=tuple(chosen[first].tolist()))
    alike = (nearest > TWIN).nonzero().flatten()
    if len(alike):
        text = f"A neighbour with a cosine above {TWIN}: {_some(len(alike), 'row')} of {len(x):,}."
        rows = tuple(chosen[alike[:NAMED]].tolist())
        yield Finding("near duplicates", "note", text, "Boilerplate, or the same text twice?", rows=rows)


def _popular(x: Tensor) -> tuple[Tensor, Tensor]:
    """How often each row is among the K nearest of the others, and the cosine of each row with its nearest."""
    unit = unit_rows(x)
    distances, index = knn(unit, min(K, len(x) - 1))
    return torch.bincount(index.flatten(), minlength=len(x)), 1 - distances[:, 0].square() / 2


def _dimensions(seen: _Pass) -> Iterator[Finding]:
    loud = (seen.energy > LOUD * seen.energy.median()).nonzero().flatten()
    if len(loud):
        loud = loud[seen.energy[loud].argsort(descending=True)][:NAMED]
        share = float(seen.energy[loud].sum() / seen.energy.sum())
        names = ", ".join(map(str, loud.tolist()))
        text = f"Loud: {_some(len(loud), 'dimension')} with {share:.0%} of all squared size ({names})."
        advice = "Loud dimensions decide every cosine. Standardise, or remove the top directions (isonb.AllButTheTop)."
        yield Finding("outlier dimensions", "warning", text, advice, dims=tuple(loud.tolist()))
    dead = (seen.variance <= 1e-12 * seen.energy.amax()).nonzero().flatten()
    if len(dead):
        text = f"Never changing: {_some(len(dead), 'dimension')}."
        yield Finding("dead dimensions", "warning", text, "Drop them.", dims=tuple(dead[:NAMED].tolist()))

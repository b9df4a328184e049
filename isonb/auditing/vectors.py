"""Audit vectors: one pass over all rows for what is exact, and a sample of them for what needs pairs or a spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from isonb.auditing import defects, measured
from isonb.auditing.defects import Finding, Quote
from isonb.auditing.fixing import LEAST, advises, fix_vectors, next_steps
from isonb.auditing.measured import Match, Pairs, quantiles
from isonb.auditing.remedies import remedies, score_text
from isonb.auditing.report import Audit
from isonb.auditing.rows import NAMED, Read, pieces, read, rows_of
from isonb.auditing.unrelated import Unrelated, pair_cosines, random_pairs, unrelated_pairs
from isonb.checks import is_whole
from isonb.errors import InputError, ShapeError, fail
from isonb.measures.neighbourhoods import Neighbours

SAMPLE = 5000  # rows that the shape is measured on
RATE = 0.01  # of false matches
WIDE = 4096  # dimensions above which no spectrum and no exact distance is computed
MOST = 2**26  # numbers of the sample, where there are more
NO_THRESHOLD = "Queries give none, since the rows that answer one can't be told from the others: labelled pairs would."
DISTINCT = 100  # rows that aren't copies, from which the floor is theirs
BINS = 60  # of the histogram of random cosines
FLAT = ("mean_cosine", "common_mean")  # measures of rows alone


@dataclass(frozen=True)
class AuditOptions:
    """What may be asked of an audit besides the vectors: see :func:`isonb.audit`."""

    sample: int = SAMPLE
    seed: int = 0
    false_match_rate: float = RATE
    fix: Path | None = None

    def __post_init__(self) -> None:
        sample, seed = check_sample(self.sample, self.seed)
        rate = measured.check_rate(self.false_match_rate)
        self.__dict__.update(sample=sample, seed=seed, false_match_rate=rate)  # numpy's numbers as Python's

    def as_python(self, pairs: bool) -> list[str]:
        """What was chosen of them, for a line that repeats the audit with a fix, and with its labelled pairs."""
        return ["pairs=pairs"] * pairs + [f"{name}={value!r}" for name, value in self.chosen(pairs).items()]

    def chosen(self, pairs: bool) -> dict[str, Any]:
        """Those that aren't the default; a rate has its meaning beside labelled pairs."""
        names = ("sample", "seed", *["false_match_rate"] * pairs)
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(AuditOptions, name)}


def check_sample(sample: int, seed: int) -> tuple[int, int]:
    """A sample of fewer than 100 rows says nothing; torch has seeds of 64 bits."""
    if not is_whole(sample) or sample < 100:
        fail(InputError, "sample must be an integer from 100", repr(sample), f"The default is {SAMPLE}.")
    if not is_whole(seed) or not -(2**63) <= seed < 2**64:
        fail(InputError, "seed must be an integer of 64 bits", repr(seed), "The default is 0.")
    return int(sample), int(seed)


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings by severity, otherwise in their order."""
    return tuple(sorted(findings, key=lambda item: defects.SEVERITIES.index(item.severity)))


def audit_vectors(
    source: Any,
    options: AuditOptions,
    *,
    pairs: Pairs | None = None,
    queries: Tensor | None = None,
    quote: Quote | None = None,
    origin: str = "vectors",
    names: Sequence[int] | None = None,
) -> Audit:
    """The audit of vectors (n, d) that :func:`~isonb.auditing.reading.matrix` took.

    ``quote`` gives the text of a row, ``origin`` is Python for what the vectors are read from, ``names`` are what its
    rows are called, where that isn't their number.
    """
    d = source.shape[1]
    wide = d > WIDE
    if options.fix is not None and wide:
        fail(ShapeError, f"fix takes at most {WIDE:,} dimensions", f"{d:,}", "Reduce them first, as by a PCA.")
    summary = read(source)
    n = len(summary.good)
    if n < LEAST:
        _too_few(source, n)
    draw = torch.Generator().manual_seed(options.seed)
    order = torch.randperm(n, generator=draw)
    sample = min(options.sample, max(100, MOST // d)) if wide else options.sample
    chosen = summary.good if n <= sample else summary.good[order[:sample].sort().values]
    x = rows_of(source, chosen)
    gaussian = torch.randn(x.shape, generator=draw, dtype=x.dtype)
    measures = FLAT if wide else measured.AUDITED
    near = Neighbours(x, min(measured.LISTED, len(x) - 1))
    copied, nearest = defects.copies(near), defects.nearest_rows(x)
    shape = tuple(measured.readings(x, gaussian, draw, measures, near, copied))
    floor = floor_of(x, draw, pairs, copied, nearest[0])
    withheld = "" if len(x) >= 2 * d else f"The shape isn't judged: {len(x)} rows are too few for {d} dimensions."
    withheld += f" A larger sample has more of the {n:,}." if withheld and len(x) < n else ""
    withheld = f"The shape isn't judged: {d:,} dimensions are too many." if wide else withheld
    values = {reading.measure: reading.value for reading in shape}
    findings = [
        *defects.strange_rows(summary, n, d),
        *defects.duplicates(summary),
        *defects.place(values, floor.quantiles, floor.unrelated),
        *defects.neighbours(near, nearest, gaussian, chosen, quote),
        *([] if withheld else defects.spread(values, d)),
        *defects.dimensions(summary),
    ]
    fixable = n - len(summary.repeats) >= LEAST and int((summary.low < summary.high).sum()) >= 2
    tried = () if wide else remedies(x, draw, pairs, shape=not withheld)
    advised = advises(findings, tried)
    asks = pairs is None and (not floor.unrelated.certain or any(item.name == "shift" for item in findings))
    steps = next_steps(origin, options.as_python(pairs is not None), advised) if advised or asks else ()
    matches = _matches(x, options.false_match_rate, draw, pairs, queries)
    none = queries is not None and not any(item.recall is None for item in matches)
    more: dict[str, Any] = {
        "remedies": tried,
        "matches": matches,
        "queries_note": NO_THRESHOLD if none else "",
        "score": score_text(pairs),
        "unrelated": floor.unrelated,
        "histogram": floor.histogram,
        "next_steps": steps if fixable else (),
    }
    if options.fix is not None:
        more["fixed"] = fix_vectors(source, x, chosen, findings, options.fix, draw, pairs, names)
    known = getattr(source, "read", None) or Read((source.shape[0], d), "vectors")
    return Audit(n, d, len(x), worst_first(findings), shape, floor.quantiles, withheld, floor.scale, **more, read=known)


def _too_few(source: Any, n: int) -> NoReturn:
    """Raise the error of fewer than 20 rows that count: because of dimensions that are empty throughout, or of rows."""
    must, got = f"at least {LEAST} rows must be finite and not zero", f"{n} of {source.shape[0]}"
    filled = torch.zeros(source.shape[1], dtype=torch.bool)
    for _, piece in pieces(source):
        filled |= piece.isfinite().any(0)
    dims = (~filled).nonzero().flatten().tolist()
    if source.shape[0] < LEAST:
        fail(ShapeError, must, got, "Rows are points; a transposed array has too few.")
    if not dims or not bool(filled.any()):
        what = "every row holds NaN or infinity alone" if dims else "the others are zero or hold a NaN or an infinity"
        fail(ShapeError, must, f"{got}, since {what}", "Look at what wrote the vectors.")
    names = ", ".join(map(str, dims[:NAMED])) + (", ..." if len(dims) > NAMED else "")
    got += f", since no row has a number in dimension {names}"
    fail(ShapeError, must, got, "Leave them out: x[:, numpy.isfinite(x).any(0)].")


@dataclass(frozen=True)
class Floor:
    """Cosines of random pairs: ``quantiles`` by cloud, percentiles (``scale``), a histogram, which are unrelated."""

    quantiles: dict[str, dict[str, float]]
    unrelated: Unrelated
    scale: tuple[float, ...]
    histogram: tuple[tuple[float, int, int], ...]


def floor_of(
    x: Tensor,
    draw: torch.Generator,
    pairs: Pairs | None = None,
    copied: Tensor | None = None,
    nearest: Tensor | None = None,
) -> Floor:
    """The cosines of two random rows and of two unrelated ones, as they are and centred.

    ``copied`` marks rows that repeat an earlier one, which are left out; ``nearest`` are the nearest rows of each by
    cosine. Of labelled pairs also: what the first texts score with second texts of other pairs.
    """
    copied = defects.copies(Neighbours(x, min(defects.K, len(x) - 1))) if copied is None else copied
    if bool(copied.any()) and len(x) - int(copied.sum()) >= DISTINCT:
        x, nearest = x[~copied], None
    chosen = random_pairs(len(x), draw)
    cosines = {"": pair_cosines(x, *chosen), ", centred": pair_cosines(x - x.mean(0), *chosen)}
    unrelated, mask = unrelated_pairs(x, *chosen, cosines[""], draw, nearest)
    floor = {f"random cosine{name}": quantiles(values) for name, values in cosines.items()}
    if unrelated.certain:
        floor |= {f"unrelated cosine{name}": quantiles(values[mask]) for name, values in cosines.items()}
    if pairs is not None:
        order = torch.randperm(len(pairs.labels), generator=draw)
        floor["pairs, shuffled"] = quantiles(
            replace(pairs, second=pairs.second[order.roll(1)], first=pairs.first[order]).cosines()
        )
    scale = np.quantile(cosines[""].numpy(), np.linspace(0, 1, 101))
    return Floor(floor, unrelated, tuple(scale.tolist()), _histogram(cosines[""], mask))


def _histogram(cosines: Tensor, unrelated: Tensor) -> tuple[tuple[float, int, int], ...]:
    """The lower end of each bin, and the pairs in it: those that aren't known to be related, and the others."""
    low, high = float(cosines.min()), float(cosines.max())
    counts = [torch.histc(part, BINS, low, high).long().tolist() for part in (cosines[unrelated], cosines[~unrelated])]
    ends = torch.linspace(low, high, BINS + 1, dtype=torch.float64)[:-1].tolist()
    return tuple(zip(ends, *counts, strict=True))


def _matches(
    x: Tensor, rate: float, draw: torch.Generator, pairs: Pairs | None, queries: Tensor | None
) -> tuple[Match, ...]:
    labelled = measured.pair_thresholds(pairs, x, rate, draw) if pairs is not None and pairs.binary else ()
    options = () if queries is None else measured.query_thresholds(queries, x, rate, draw)
    return (*labelled, *options)

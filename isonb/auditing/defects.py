"""What can be wrong with vectors: findings from one pass over all rows, and from the neighbours in a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from isonb.auditing.parts import Finding
from isonb.auditing.rows import NAMED, Pass
from isonb.auditing.words import counted
from isonb.nearest import nearest_by_cosine
from isonb.precision import precise

__all__ = ["SHIFTED", "USED", "dimensions", "duplicates", "neighbours", "place", "spread", "strange_rows"]

K = 10  # neighbours
SHIFTED = 0.1  # mean cosine from which the common mean is worth a warning
USED, BARELY = 0.5, 0.1  # unbiased IsoScore below which directions are hardly used
LOUD = 8.0  # times the median energy that makes a dimension an outlier
HUB = 2.0  # times the largest count in a round cloud that makes a row a hub
TWIN = 0.9999  # cosine of rows that say the same
ALIKE = 0.95  # centred cosine of two texts that say nearly the same

Quote = Callable[[int], str]  # the text behind a row


def strange_rows(seen: Pass, n: int, d: int) -> Iterator[Finding]:
    """Rows that are not numbers or are zero; too few of them; lengths and digits."""
    for name, count, rows in (("not finite", seen.n_wild, seen.wild), ("zero rows", seen.n_zero, seen.zero)):
        if count:
            words = "NaN or infinity in" if name == "not finite" else "Nothing but zeros in"
            advice = "Left out here. Look at the texts behind them."
            yield Finding(name, "fault", f"{words} {counted(count, 'row')}.", advice, rows=tuple(rows))
    if n < d:
        text = f"There are fewer rows ({n}) than dimensions ({d})."
        yield Finding("few rows", "warning", text, "Is the array transposed? Rows are points.")
    least, most = seen.lengths
    if abs(least - 1) < 1e-3 and abs(most - 1) < 1e-3:
        yield Finding("unit length", "note", "All rows have length 1.", "A measure of lengths has nothing to say.")
    if seen.half:
        text = "Every value fits float16."
        yield Finding("half precision", "note", text, "Digits may have been lost before these vectors were saved.")


def duplicates(seen: Pass) -> Iterator[Finding]:
    """Rows that repeat an earlier one, number by number."""
    marks, where = seen.hashes.sort(stable=True)
    again = torch.zeros(len(marks), dtype=torch.bool)
    again[1:] = marks[1:] == marks[:-1]
    count = int(again.sum())
    if count:
        rows = tuple(seen.good[where[again]].sort().values[:NAMED].tolist())
        severity = "warning" if count > len(marks) / 100 else "note"
        text = f"Repeats of an earlier row: {counted(count, 'row')} ({count / len(marks):.1%})."
        yield Finding("duplicates", severity, text, "Drop them before you measure or index.", rows=rows)


def place(values: dict[str, float], floor: dict[str, dict[str, float]]) -> Iterator[Finding]:
    """Whether the cloud lies away from the origin."""
    shared = values.get("mean cosine", 0.0)
    if shared > SHIFTED:
        raw, centred = (floor[key]["0.99"] for key in ("random cosine", "random cosine, centred"))
        text = (
            f"All rows share a direction: two random rows have a mean cosine of {shared:.2f}, and 1% of random pairs "
            f"pass {raw:.2f} (centred: {centred:.2f})."
        )
        yield Finding("shift", "warning", text, "Subtract the mean (isonb.ZeroMean), or put the threshold above that.")


def spread(values: dict[str, float], d: int) -> list[Finding]:
    """Whether few directions hold the variance."""
    used = values.get("IsoScore-U", 1.0)
    if used >= USED:
        return []
    text = f"The variance of about {values['participation ratio']:.0f} of {d} directions is used."
    advice = "Soft whitening (isonb.SoftZCA) evens it out; judge that on your own task, it can harm."
    return [Finding("stretched", "warning" if used < BARELY else "note", text, advice)]


def neighbours(x: Tensor, round_cloud: Tensor, chosen: Tensor, quote: Quote | None = None) -> Iterator[Finding]:
    """Hubs, and rows or texts that are nearly the same. ``chosen``: the number of each row of ``x``."""
    counts, nearest, _ = _popular(x)
    usual = int(_popular(round_cloud)[0].max())
    hubs = (counts > HUB * usual).nonzero().flatten()
    if len(hubs):
        first = hubs[counts[hubs].argsort(descending=True)][:NAMED]
        rows = chosen[first].tolist()
        most = int(counts[first[0]])
        text = f"Hubs: {counted(len(hubs), 'row')}; the first is among the {K} nearest of {most:,} others."
        named = () if quote is None else tuple(map(quote, rows))
        heard = tuple(f"{name}, of {int(counts[i]):,}" for name, i in zip(named, first, strict=False))
        advice = "Hubs answer every query. Centre the vectors, or drop these rows."
        yield Finding("hubs", "warning", text, advice, rows=tuple(rows), examples=heard)
    if quote is not None:
        yield from _alike(x, chosen, quote)
        return
    alike = (nearest > TWIN).nonzero().flatten()
    if len(alike):
        text = f"A neighbour with a cosine above {TWIN}: {counted(len(alike), 'row')} of {len(x):,}."
        rows = chosen[alike[:NAMED]].tolist()
        yield Finding("near duplicates", "note", text, "Boilerplate, or the same text twice?", rows=tuple(rows))


def _alike(x: Tensor, chosen: Tensor, quote: Quote) -> Iterator[Finding]:
    """Different texts with nearly the same vector, once the mean is subtracted."""
    _, nearest, index = _popular(precise(x) - precise(x).mean(0))
    order = nearest.argsort(descending=True, stable=True)
    order = order[nearest[order] > ALIKE]
    pairs = dict.fromkeys((min(i, j), max(i, j)) for i, j in zip(order.tolist(), index[order].tolist(), strict=True))
    if not pairs:
        return
    shown = list(pairs)[:NAMED]
    examples = tuple(
        f"{quote(int(chosen[i]))} and {quote(int(chosen[j]))}, {float(max(nearest[i], nearest[j])):.3f}"
        for i, j in shown
    )
    text = f"A neighbour with a centred cosine above {ALIKE}: {counted(len(order), 'text')} of {len(x):,}."
    rows = tuple(dict.fromkeys(int(chosen[i]) for pair in shown for i in pair))[:NAMED]
    yield Finding("near duplicates", "note", text, "Boilerplate, or the same text twice?", rows=rows, examples=examples)


def _popular(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How often each row is among the K nearest of the others; the cosine of each with its nearest, and which it is."""
    index, cosines = nearest_by_cosine(x, min(K, len(x) - 1))
    return torch.bincount(index.flatten(), minlength=len(x)), cosines[:, 0], index[:, 0]


def dimensions(seen: Pass) -> Iterator[Finding]:
    """Dimensions that drown the others, and such that never change."""
    loud = (seen.energy > LOUD * seen.energy.median()).nonzero().flatten()
    if len(loud):
        loud = loud[seen.energy[loud].argsort(descending=True)][:NAMED]
        share = float(seen.energy[loud].sum() / seen.energy.sum())
        names = ", ".join(map(str, loud.tolist()))
        text = f"Loud: {counted(len(loud), 'dimension')} with {share:.0%} of all squared size ({names})."
        advice = "Loud dimensions decide every cosine. Standardise, or remove the top directions (isonb.AllButTheTop)."
        yield Finding("outlier dimensions", "warning", text, advice, dims=tuple(loud.tolist()))
    dead = (seen.variance <= 1e-12 * seen.energy.amax()).nonzero().flatten()
    if len(dead):
        text = f"Never changing: {counted(len(dead), 'dimension')}."
        yield Finding("dead dimensions", "warning", text, "Drop them.", dims=tuple(dead[:NAMED].tolist()))

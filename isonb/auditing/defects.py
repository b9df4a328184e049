"""What can be wrong with vectors: findings from one pass over all rows, and from the neighbours in a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from isonb.auditing.rows import NAMED, Pass
from isonb.auditing.unrelated import Unrelated
from isonb.measures.neighbourhoods import Neighbours
from isonb.numerics.nearest import nearest_by_cosine
from isonb.numerics.rows import unit_rows
from isonb.runtime.told import counted, fine

SEVERITIES = ("fault", "warning", "note")
K = 10  # neighbours
PART = 1024  # rows whose cosines with all others are in memory
# Where the scale starts and how round the spread is differ from encoder to encoder that work, so they are notes. What
# warns of hubs and loud dimensions is calibrated on minilm and seven sets of real texts: rows that are hubs hold up to
# 12% of all places among the nearest, the first of them up to 6%; no dimension is loud.
SHIFTED, COLLAPSED = 0.1, 0.99  # mean cosine from which the common mean is worth a note, and a warning
USED = 0.5  # unbiased IsoScore below which directions are hardly used
SEARCH_P = 0.25  # the p of partial whitening by which search gained with every encoder of the book's dial
PER_DIM = 5  # rows of such a fit for each dimension
LOUD = 8.0  # times the median energy that makes a dimension an outlier
DROWNS, FEW = 0.2, 0.05  # share of all energy that outliers hold, and of the dimensions that they are, for a warning
HUB = 2.0  # times the largest count in an isotropic Gaussian that makes a row a hub
SHARED, LARGEST = 0.05, 0.05  # share of all places that hubs hold, or of the lists that one is in, for a note
HUB_SHARE, EVERYWHERE = 0.25, 0.1  # the same for a warning
TWIN = 0.9999  # centred cosine of rows that say the same
ALIKE = 0.95  # centred cosine of two texts that say nearly the same
COPY = 2e-3  # of the usual distance to the tenth neighbour: a row that is nearer to another is a copy of it
TIE = 1e-7  # cosines that differ by less are equal, up to the rounding of float32
LONG, SHORT = 10.0, 1000.0  # times the median length that a row is longer or shorter than, to be named
LISTED = 5  # rows or dimensions that a sentence names
SPARSE = 0.5  # share of zeros from which dimensions that are never used are no surprise

Quote = Callable[[int], str]  # the text behind a row
Nearest = tuple[Tensor, Tensor]  # of each row its nearest others and their cosines (n, k), best first


@dataclass(frozen=True)
class Finding:
    """Something to know about the vectors: what was seen, and what to do.

    ``rows`` and ``dims`` name the culprits, ``examples`` quotes their texts where these are known.
    """

    name: str
    severity: str
    text: str
    advice: str = ""
    rows: tuple[int, ...] = ()
    dims: tuple[int, ...] = ()
    examples: tuple[str, ...] = ()


def strange_rows(summary: Pass, n: int, d: int) -> Iterator[Finding]:
    """Rows that are not numbers or are zero; too few of them; lengths and digits."""
    for name, rows in (("not finite", summary.wild), ("zero rows", summary.zero)):
        if len(rows):
            words = "NaN or infinity in" if name == "not finite" else "Nothing but zeros in"
            advice = "Left out here. Look at the texts behind them."
            text = f"{words} {counted(len(rows), 'row')}."
            yield Finding(name, "fault", text, advice, rows=tuple(rows.tolist()))
    if n < d:
        text = f"There are fewer rows ({n}) than dimensions ({d})."
        yield Finding("few rows", "warning", text, "Is the array transposed? Rows are points.")
    yield from lengths(summary.lengths, summary.good)
    if summary.half:
        text = "Every value fits float16."
        yield Finding("half precision", "note", text, "Digits may have been lost before these vectors were saved.")


def lengths(length: Tensor, rows: Tensor) -> Iterator[Finding]:
    """Rows that are much longer or shorter than most, or all of length 1. ``rows``: their numbers."""
    usual = float(length.median())
    if bool(((length - 1).abs() < 1e-3).all()):
        yield Finding("unit length", "note", "All rows have length 1.", "A measure of lengths has nothing to say.")
    far, near = ((length > LONG * usual), (length < usual / SHORT))
    if bool(far.any()):
        order = rows[far][length[far].argsort(descending=True)]
        text = f"Long: {counted(len(order), 'row')}, up to {float(length.max()) / usual:,.0f} times the median length"
        advice = "They win every search by inner product and lead a mean. Look at the texts behind them, or normalise."
        yield Finding("long rows", "warning", f"{text}.", advice, rows=tuple(order.tolist()))
    if bool(near.any()):
        order = rows[near][length[near].argsort()]
        text = f"Short: {counted(len(order), 'row')}, less than 1/{SHORT:.0f} of the median length."
        advice = "What gives their direction may be rounding."
        yield Finding("short rows", "note", text, advice, rows=tuple(order.tolist()))


def listed(numbers: Sequence[int]) -> str:
    """The first numbers, in words.

    >>> listed([3, 1]), listed(range(100))
    ('3, 1', '0, 1, 2, 3, 4 and 95 more')
    """
    more = f" and {len(numbers) - LISTED:,} more" if len(numbers) > LISTED else ""
    return ", ".join(map(str, numbers[:LISTED])) + more


def duplicates(summary: Pass) -> Iterator[Finding]:
    """Rows that repeat an earlier one, number by number."""
    count, n = len(summary.repeats), len(summary.good)
    if count:
        severity = "fault" if count == n - 1 else "warning" if count > n / 100 else "note"  # all rows the same
        text = f"Repeats of an earlier row: {counted(count, 'row')} ({count / n:.1%})."
        rows = tuple(summary.repeats.tolist())
        yield Finding("duplicates", severity, text, "Drop them before you measure or index.", rows=rows)


def place(values: dict[str, float], floor: dict[str, dict[str, float]], unrelated: Unrelated) -> Iterator[Finding]:
    """Whether the cloud lies away from the origin."""
    shared = values.get("mean_cosine", 0.0)
    if shared <= SHIFTED:
        return
    text = f"All rows share a direction: two random rows have a mean cosine of {fine(shared, 2)}"
    severity = "warning" if shared >= COLLAPSED else "note"
    tell = "Labelled pairs tell whether to subtract the mean: in the book's dial that often harmed a threshold."
    if unrelated.certain:
        which = "unrelated" if unrelated.related else "random"
        text += f", and 1% of {which} pairs pass {fine(floor['unrelated cosine']['0.99'], 2)}."
        advice = f"The scale starts there: put the threshold above it. {tell}"
    else:
        text, advice = f"{text}.", f"Take a threshold from labelled pairs. {tell}"
    yield Finding("shift", severity, text, advice)


def spread(values: dict[str, float], d: int) -> list[Finding]:
    """Whether few directions hold the variance."""
    used = values.get("isoscore_unbiased", 1.0)
    if used >= USED:
        return []
    text = f"The variance of about {values['participation_ratio_unbiased']:.0f} of {d} directions is used."
    advice = f"For search isonb.PartialWhitening(p={SEARCH_P}) of {PER_DIM} d rows may help; more of it can harm."
    return [Finding("stretched", "note", text, advice)]


def copies(near: Neighbours) -> Tensor:
    """The rows (n,) that are a copy of an earlier one, up to rounding or a little more.

    >>> copies(Neighbours(torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0 + 1e-6], [2.0, 5.0]]), 3)).tolist()
    [False, False, True, False]
    """
    x, away, index = near.x, near.distances[:, :K], near.indices[:, :K]
    rounding = 4 * torch.finfo(x.dtype).eps * torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    close = away <= rounding.clamp_min(COPY * float(away[:, -1].median()))
    copied: Tensor = (close & (index < torch.arange(len(x)).unsqueeze(-1))).any(-1)
    return copied


def nearest_rows(x: Tensor) -> Nearest:
    """The nearest rows of each by cosine, one more than K, and their cosines."""
    return nearest_by_cosine(x, min(K + 1, len(x) - 1))


def neighbours(
    near: Neighbours, search: Nearest, gaussian: Tensor, chosen: Tensor, quote: Quote | None = None
) -> Iterator[Finding]:
    """Hubs, and rows or texts that are nearly the same. ``search``: the :func:`nearest_rows` of the rows of ``near``.

    ``chosen``: the number of each row.
    """
    centred = near.x - near.x.mean(0)
    again, by_chance = (cache(partial(nearest_rows, x)) for x in (centred, gaussian))  # few clouds need them
    yield from _hubs(
        _popularity(near.x, search),
        lambda: _popularity(centred, again()),
        lambda: HUB * float(_popularity(gaussian, by_chance()).max()),
        chosen,
        quote,
    )
    what, least = ("row", TWIN) if quote is None else ("text", ALIKE)
    if not _may_be_alike(near.distances[:, 0], torch.linalg.vector_norm(centred, dim=-1), least):
        return
    index, nearest = again()[0][:, 0], again()[1][:, 0].double()
    order = nearest.argsort(descending=True, stable=True)
    order = order[nearest[order] > least]
    if len(order) <= 2 * int((by_chance()[1][:, 0] > least).sum()):  # in few dimensions rows are near by chance
        return
    each = dict.fromkeys((min(i, j), max(i, j)) for i, j in zip(order.tolist(), index[order].tolist(), strict=True))
    pairs = [(int(chosen[i]), int(chosen[j]), float(max(nearest[i], nearest[j]))) for i, j in each]
    examples = tuple(f"{quote(i)} and {quote(j)}, {alike:.3f}" for i, j, alike in pairs[:NAMED]) if quote else ()
    text = f"A neighbour with a centred cosine above {least}: {counted(len(order), what)} of {len(chosen):,}."
    rows = tuple(dict.fromkeys(row for i, j, _ in pairs for row in (i, j)))
    yield Finding("near duplicates", "note", text, "Boilerplate, or the same text twice?", rows=rows, examples=examples)


def _may_be_alike(nearest: Tensor, length: Tensor, least: float) -> bool:
    """Whether rows (n,) of these lengths, so far from their nearest, may have a cosine above ``least`` with another.

    Of such a pair :math:`|a - b|^2 < (|a| - |b|)^2 + 2 (1 - c) |a| |b|`, most for the shortest b or the longest.
    """
    a, b = length.unsqueeze(1), torch.stack(length.aminmax())
    most = ((a - b).square() + 2 * (1 - least) * a * b).amax(1)
    return bool((nearest.square() <= 1.01 * most).any())  # rounding


def _hubs(
    counts: Tensor, centred: Callable[[], Tensor], bound: Callable[[], float], chosen: Tensor, quote: Quote | None
) -> Iterator[Finding]:
    """Rows that are near too many others, and whether subtracting the mean would change that.

    ``bound``: the count from which a row is a hub, HUB times the mean or more.
    """
    if _few(*_reach(counts, HUB * float(counts.mean()))):
        return
    least = bound()
    share, one = _reach(counts, least)
    if _few(share, one):
        return
    hubs = (counts > least).nonzero().flatten()
    first = hubs[counts[hubs].argsort(descending=True)]
    rows = chosen[first].tolist()
    most = float(counts[first[0]])
    first_near = f"the first near {most:,.0f} of {len(counts):,} rows"
    text = f"Hubs: {counted(len(hubs), 'row')}, {share:.0%} of all neighbours, {first_near}."
    named = () if quote is None else tuple(map(quote, rows[:NAMED]))
    heard = tuple(f"{name}, of {float(counts[i]):,.0f}" for name, i in zip(named, first, strict=False))
    remaining, largest_remaining = _reach(centred(), least)
    if _few(remaining, largest_remaining):
        advice = "Look at these rows. Centring would end it; labelled pairs tell whether that helps."
    elif remaining < share / 2:
        advice = f"Look at these rows. Centring would leave {remaining:.0%}; labelled pairs tell whether that helps."
    else:
        advice = "Centring doesn't help: look at these rows, and drop what says nothing."
    severity = "warning" if share > HUB_SHARE or one > EVERYWHERE else "note"
    yield Finding("hubs", severity, text, advice, rows=tuple(rows), examples=heard)


def _reach(counts: Tensor, least: float) -> tuple[float, float]:
    """The share of all places among neighbours that hubs hold, and of the lists that the largest of them is in."""
    hubs = counts[counts > least]
    return (float(hubs.sum() / counts.sum()), float(hubs.max()) / len(counts)) if len(hubs) else (0.0, 0.0)


def _few(share: float, one: float) -> bool:
    """Whether hubs of this reach are too few to tell of."""
    return share <= SHARED and one <= LARGEST


def _popularity(x: Tensor, search: Nearest) -> Tensor:
    """How often each row of x is among the K nearest of the others.

    Rows that tie for the last places share them, so that no order of the rows makes a hub: of m ties for p places each
    counts p / m. Where the first row that is left out ties, all rows are looked at.
    """
    n, k, (index, cosines) = len(x), min(K, len(x) - 1), search
    tied = cosines[:, -1] >= cosines[:, k - 1] - TIE if k < n - 1 else torch.zeros(n, dtype=torch.bool)
    counts = torch.bincount(index[~tied, :k].flatten(), minlength=n).double()
    if not bool(tied.any()):
        return counts
    unit = unit_rows(x.double())
    for rows in torch.split(tied.nonzero().flatten(), PART):
        every = unit[rows] @ unit.mT
        every[torch.arange(len(rows)), rows] = -torch.inf
        last = cosines[rows, k - 1 : k].double()
        nearer = every > last + TIE
        ties = (every >= last - TIE) & ~nearer
        places = (k - nearer.sum(-1, keepdim=True)) / ties.sum(-1, keepdim=True)
        counts += nearer.sum(0) + (ties * places).sum(0)
    return counts


def dimensions(summary: Pass) -> Iterator[Finding]:
    """Dimensions that drown the others, and such that never change."""
    d, used = len(summary.energy), summary.energy > 0
    loud = (summary.energy > LOUD * summary.energy[used].median()).nonzero().flatten()
    if len(loud):
        share = float(summary.energy[loud].sum() / summary.energy.sum())
        first = loud[summary.energy[loud].argsort(descending=True)]
        names = tuple(first.tolist())
        text = (
            f"Loud: {counted(len(loud), 'dimension')} of {d:,} with {share:.0%} of all squared size ({listed(names)})."
        )
        drowns = share > DROWNS and len(loud) <= max(1, FEW * int(used.sum()))
        advice = "Loud dimensions decide every cosine. Labelled pairs tell whether all-but-the-top or whitening helps."
        severity = "warning" if drowns else "note"
        yield Finding("outlier dimensions", severity, text, advice if drowns else "", dims=names)
    still = (summary.low == summary.high).nonzero().flatten()
    if len(still):
        zeros = summary.filled < 1 - SPARSE and not bool(summary.energy[still].any())
        named = tuple(still.tolist())
        text = f"Never changing: {counted(len(still), 'dimension')} of {d:,} ({listed(named)})."
        advice = "The vectors are sparse: other texts may use them." if zeros else "Drop them."
        yield Finding("dead dimensions", "note" if zeros else "warning", text, advice, dims=named)

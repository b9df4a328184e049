"""The same rows from another runtime, precision, layer or model version: what moved, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.asking import named
from isonb.auditing.choosing import OF_MODELS, Encoding
from isonb.auditing.comparison import SAME, Comparison, Difference, K, relation_of
from isonb.auditing.defects import SHIFTED, Finding, copies
from isonb.auditing.measured import (
    AUDITED,
    GROUPS,
    LISTED,
    groups_of,
    has_rows,
    is_steady,
    jackknife,
    of_parts,
    parts_of,
    quantiles,
)
from isonb.auditing.models import encoded, text_count
from isonb.auditing.reading import matrix
from isonb.auditing.rows import CHUNK, NAMED, numbers, rows_of, usable
from isonb.auditing.soundness import check_texts
from isonb.auditing.vectors import SAMPLE, WIDE, check_sample, worst_first
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.measures.neighbourhoods import Neighbours
from isonb.measures.pairs import cka
from isonb.measures.registry import MEASURES
from isonb.numerics.nearest import nearest_by_cosine
from isonb.numerics.rows import unit_rows
from isonb.runtime.told import counted, fine

SHARES = (0.0, 0.001, 0.01, 0.05, 0.5)
MOVED = 0.99  # a cosine below which a row is another one
SHUFFLES = 10  # of the rows, for what CKA is by chance
SAME_NEIGHBOURS = 0.9  # mean overlap of neighbours below which a search answers differently
CHANCE = 3.0  # times the overlap of unrelated rows, up to which an overlap is no sign that the rows belong together


def compare(
    first: Any,
    second: Any,
    texts: Sequence[str] | None = None,
    *,
    names: tuple[str | None, str | None] = (None, None),
    sample: int = SAMPLE,
    seed: int = 0,
    pool: str = "auto",
    max_length: int | None = None,
    batch_size: int = 32,
    device: str | torch.device = "cpu",
) -> Comparison:
    """Compare two clouds of the same rows: another runtime, precision, layer or version of a model, or another model.

    Neighbours and CKA need the same rows in one order, and no more: the dimensions may differ, as of a Matryoshka cut,
    a PCA or another model. Cosines of a row with itself need the same dimensions.

    Cosines of rows are of all rows, read in pieces; CKA, neighbours and readings are of a sample. Rows that aren't
    finite or are zero in either are left out, and a fault where they are so in one alone. Intervals are 95%, by a
    jackknife over ten groups of rows, the same in both.

    Args:
        first: whatever :func:`isonb.audit` takes, (n, d).
        second: the same rows from elsewhere, (n, c).
        texts: makes ``first`` and ``second`` two models, which encode them.
        names: which array or column of each.
        sample: rows at most that CKA, neighbours and readings are of.
        seed: of the sample.
        pool: of both models, as in :func:`isonb.audit`.
        max_length: of both models.
        batch_size: texts at a time.
        device: where models that are named run; others run where they lie.

    Raises :class:`~isonb.errors.ShapeError` for other shapes, and fewer than 20 rows that count.

    >>> import torch
    >>> x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    >>> comparison = compare(x, 2 * x)
    >>> comparison.ok, round(comparison.cka, 6), comparison.overlap[0]
    (True, 1.0, 1.0)
    >>> [finding.name for finding in compare(x, x[:, :4]).findings]
    ['other neighbours', 'some dimensions']
    """
    with named("compare"):
        sample, seed = check_sample(sample, seed)
        how = Encoding(pool, max_length, batch_size, device)
        if texts is None:
            how.refuse(OF_MODELS, "of vectors", "It is an option of a model, which needs texts.")
            a, b = matrix(first, "first", names[0]), matrix(second, "second", names[1])
            places, assumed = (str(a.read), str(b.read)), list[Finding]()
        else:
            if any(names):
                fail(InputError, "names must be left out of models", repr(names), "They are an option of vectors.")
            every = check_texts(texts)
            each = (encoded(model, every, how, text_count(every, texts)) for model in (first, second))
            (a, b), places, (ours, theirs) = zip(*each, strict=True)
            assumed = [*ours, *theirs]
        _check_sizes(a, b)
        rows, odd, self_cosines = _read_both(a, b)
        draw = torch.Generator().manual_seed(seed)
        chosen = rows[torch.randperm(len(rows), generator=draw)[:sample].sort().values]
        x, y = rows_of(a, chosen), rows_of(b, chosen)
        group = groups_of(len(x), draw)
        overlap = _overlap(x, y, group)
        differences = {item.measure: item for item in _differences(x, y, group)}
        relation = relation_of(a, b, x, y, chosen)
        findings = [*assumed, *_findings(rows, odd, self_cosines, overlap, relation, len(x)), *_scale(differences)]
        cosines, moved = _cosine_quantiles(rows, self_cosines)
        alike, debiased, by_chance = _cka(x, y, draw)
        return Comparison(
            n=len(rows),
            d=a.shape[1],
            measured=len(x),
            findings=worst_first(findings),
            cosines=cosines,
            moved=moved,
            cka=alike,
            cka_debiased=debiased,
            cka_floor=by_chance,
            overlap=overlap,
            differences=tuple(differences.values()),
            d_second=b.shape[1],
            read=places,
        )


def _check_sizes(a: Any, b: Any) -> None:
    if a.shape[0] != b.shape[0]:
        fix = "Compare the same texts in one order; dimensions may differ."
        fail(ShapeError, "both must have the same rows", f"{a.shape[0]:,} and {b.shape[0]:,} rows", fix)
    widest = max(a.shape[1], b.shape[1])
    if widest > WIDE:
        fix = "Reduce them first, as by sklearn.decomposition.TruncatedSVD."
        fail(ShapeError, f"both must have at most {WIDE} dimensions", widest, fix)


def _read_both(a: Any, b: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """The rows that count, those that are odd in one alone, and the cosine of each that counts with itself."""
    n, alike = a.shape[0], a.shape[1] == b.shape[1]
    good, odd = torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool)
    cosines = torch.zeros(n, dtype=torch.float64)
    for start in range(0, n, step := max(16, min(CHUNK, 2**20 // max(a.shape[1], b.shape[1])))):
        here = slice(start, start + step)
        x, y = numbers(a, here).double(), numbers(b, here).double()
        fine = usable(x), usable(y)
        good[here], odd[here] = fine[0] & fine[1], fine[0] != fine[1]
        if alike:
            cosines[here] = (unit_rows(x.nan_to_num()) * unit_rows(y.nan_to_num())).sum(-1)
    rows = good.nonzero().flatten()
    if len(rows) < 20:
        fail(ShapeError, "at least 20 rows must be finite and not zero", len(rows), "Rows are points.")
    return rows, odd.nonzero().flatten(), cosines[rows] if alike else None


def _cosine_quantiles(rows: Tensor, cosines: Tensor | None) -> tuple[dict[str, float], tuple[tuple[int, float], ...]]:
    """Of the cosines of the rows with themselves: quantiles, and the lowest."""
    if cosines is None:
        return {}, ()
    lowest = cosines.argsort()[:NAMED]
    moved = tuple(zip(rows[lowest].tolist(), cosines[lowest].tolist(), strict=True))
    return quantiles(cosines, SHARES), moved


def _cka(x: Tensor, y: Tensor, draw: torch.Generator) -> tuple[float, float, tuple[float, float]]:
    """Linear CKA, the same debiased, and the ends of that of rows that don't belong together: shuffled ones."""
    x, y = x.double(), y.double()
    try:
        shuffled = [float(cka(x, y[torch.randperm(len(y), generator=draw)], debiased=True)) for _ in range(SHUFFLES)]
        return float(cka(x, y)), float(cka(x, y, debiased=True)), (min(shuffled), max(shuffled))
    except DegenerateError:  # all rows of one are the same
        return math.nan, math.nan, (math.nan, math.nan)


def _overlap(x: Tensor, y: Tensor, group: Tensor) -> tuple[float, float, float]:
    """The mean share of common neighbours, by cosine."""
    k = min(K, len(x) - 1)
    pieces = zip(*(torch.split(nearest_by_cosine(z, k)[0], CHUNK) for z in (x, y)), strict=True)
    shared = torch.cat([(a.unsqueeze(-1) == b.unsqueeze(-2)).any(-1).double().mean(-1) for a, b in pieces])
    half = jackknife([float(shared[group != g].mean()) for g in range(GROUPS)])
    return float(shared.mean()), float(shared.mean()) - half, float(shared.mean()) + half


def _differences(x: Tensor, y: Tensor, group: Tensor) -> Iterator[Difference]:
    near = [Neighbours(item, min(LISTED, len(item) - 1)) for item in (x, y)]
    copied = copies(near[0]) | copies(near[1])
    first, second = (of_parts(item.x, parts_of(group), AUDITED, item, copied) for item in near)
    for name in (name for name in first if name in second):
        rise, *without, _ = (new - old for old, new in zip(first[name], second[name], strict=True))
        half, title = jackknife(without), MEASURES[name].title
        enough = all(has_rows(item.x, name) for item in near)
        steady = enough and all(_is_steady(name, *values) for values in (first[name], second[name]))
        yield Difference(name, title, first[name][0], second[name][0], rise, rise - half, rise + half, steady)


def _is_steady(name: str, value: float, *others: float) -> bool:
    *without, fewer = others
    half = jackknife(without)
    return is_steady(name, value - half, value + half, fewer)


def _findings(
    every: Tensor,
    odd: Tensor,
    self_cosines: Tensor | None,
    overlap: tuple[float, float, float],
    relation: Finding | None,
    measured: int,
) -> Iterator[Finding]:
    if len(odd):
        text = f"Not finite or zero in one of the two alone: {counted(len(odd), 'row')}."
        rows = tuple(odd.tolist())
        yield Finding("odd rows", "fault", text, "Left out here. Look at the texts behind them.", rows=rows)
    if relation is not None:
        yield relation
    if self_cosines is not None and bool((self_cosines < MOVED).any()):
        order = self_cosines.argsort()
        rows = tuple(every[order[self_cosines[order] < MOVED]].tolist())
        text = f"Moved, with a cosine below {MOVED}: {counted(len(rows), 'row')} of {len(every):,}."
        yield Finding("moved rows", "warning", text, "Don't mix both in one index.", rows=rows)
    elif self_cosines is not None and float(self_cosines.min()) > SAME:
        yield Finding("same rows", "note", "The rows are the same up to rounding and length.")
    chance = min(K, measured - 1) / (measured - 1)
    if relation is None and overlap[2] < CHANCE * chance < SAME_NEIGHBOURS:
        text = f"The neighbours have nothing in common ({overlap[0]:.1%}; by chance {chance:.1%})."
        yield Finding("unrelated rows", "fault", text, "Are the rows of both the same texts, in the same order?")
    elif overlap[0] < SAME_NEIGHBOURS:
        text = f"A row keeps {overlap[0]:.0%} of its {K} nearest neighbours among {measured:,} rows."
        yield Finding("other neighbours", "warning", text, "A search answers differently. Encode all rows anew.")


def _scale(differences: Mapping[str, Difference]) -> Iterator[Finding]:
    """Whether scores start elsewhere, surely and by what is worth a word of one cloud alone."""
    moved = differences.get("mean_cosine")
    if moved is not None and (moved.low > SHIFTED or moved.high < -SHIFTED):
        text = f"Two random rows have a mean cosine of {fine(moved.first, 2)} and {fine(moved.second, 2)}."
        yield Finding("other scale", "warning", text, "A threshold of the first is none of the second: choose it anew.")

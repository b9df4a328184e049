"""How two clouds of the same rows may be related as a whole: another order, a rotation, some of the dimensions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.auditing.findings import Finding
from isonb.auditing.reading.rows import NAMED, pieces
from isonb.numerics.rows import unit_rows

TRIED = 200  # rows that are looked for elsewhere
SAME = 1 - 1e-5  # cosine of rows, or of clouds, that differ by rounding alone
THERE = 0.999  # cosine from which a row is taken to be the one that is looked for
MOST = 2048  # dimensions up to which a rotation is looked for


def relation_of(a: Any, b: Any, x: Tensor, y: Tensor, rows: Tensor) -> Finding | None:
    """What relates matrices ``a`` and ``b``, of which ``x`` and ``y`` are the ``rows``; None where nothing does."""
    d, c = x.shape[1], y.shape[1]
    x, y = x.double(), y.double()
    least = min(d, c)
    if float(_cosines(x[:, :least], y[:, :least]).median()) > THERE:  # every row is where it was
        cut = d != c and float(_cosines(x[:, :least], y[:, :least]).quantile(0.01)) > SAME
        names = ("second", "first") if c < d else ("first", "second")
        text = f"The {names[0]} are the first {least} of the {max(d, c)} dimensions of the {names[1]}."
        return Finding("some dimensions", "note", text) if cut else None
    return _rotation(x, y) or _order(a, b, x, rows)


def _cosines(x: Tensor, y: Tensor) -> Tensor:
    return (unit_rows(x) * unit_rows(y)).sum(-1)


def _rotation(x: Tensor, y: Tensor) -> Finding | None:
    r"""Whether :math:`y = s x Q`, Q orthonormal: the singular values of :math:`x^T y` sum to the product of norms."""
    if max(x.shape[1], y.shape[1]) > MOST or len(x) <= min(x.shape[1], y.shape[1]):
        return None  # so few rows can be rotated into any others
    left, values, right = torch.linalg.svd(x.mT @ y, full_matrices=False)
    if float(values.sum() / (x.norm() * y.norm())) < SAME:
        return None
    turn = left @ right
    size, place = turn.abs().max(-1)
    if float(size.min()) > 0.99:
        flipped = int((turn.gather(-1, place.unsqueeze(-1)) < 0).sum())
        moved = int((place != torch.arange(len(place))).sum())
        changes = [f"{moved} in another place"] * (moved > 0) + [f"{flipped} with the other sign"] * (flipped > 0)
        text = f"The same dimensions, {' and '.join(changes)}."
    else:
        text = "The second is a rotation of the first, up to scale: neighbours and readings are the same."
    advice = "Vectors of the two can't be compared with each other: don't mix both in one index."
    return Finding("rotation", "warning", text, advice)


def _order(a: Any, b: Any, x: Tensor, rows: Tensor) -> Finding | None:
    """Whether rows of the first stand elsewhere in the second, whole or cut to the dimensions that both have."""
    least = min(a.shape[1], b.shape[1])
    picked = torch.linspace(0, len(x) - 1, min(TRIED, len(x))).long()
    wanted = unit_rows(x[picked, :least])
    best, place = torch.full((len(picked),), -2.0, dtype=torch.float64), torch.zeros(len(picked), dtype=torch.long)
    for start, part in pieces(b):
        score, where = (wanted @ unit_rows(part[:, :least].double().nan_to_num()).mT).max(-1)
        place = torch.where(score > best, start + where, place)
        best = torch.maximum(best, score)
    there = best > THERE
    elsewhere = there & (place != rows[picked])
    if float(there.double().mean()) < 0.9 or float(elsewhere.double().mean()) < 0.5:
        return None
    if len(set(place[there].tolist())) < 0.5 * int(there.sum()):  # rows that are all alike are everywhere
        return None
    shown = list(zip(rows[picked][elsewhere].tolist(), place[elsewhere].tolist(), strict=True))[:3]
    told = ", ".join(f"row {one} is row {other}" for one, other in shown)
    text = f"The rows are the same in another order: {told}."
    fix = "Sort both by one id, and compare again; nothing else here counts."
    return Finding("other order", "fault", text, fix, rows=tuple(rows[picked][elsewhere][:NAMED].tolist()))

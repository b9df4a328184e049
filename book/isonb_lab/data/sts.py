"""Semantic textual similarity: cosine of two sentence vectors, Spearman against the human score, times 100.

The sets of 2012 to 2016 are made of subsets, and three ways to reach one number are in use. They differ by several
points, so a score always names its protocol:

- ``mean``: Spearman of each subset, plain mean (SoftDecay, Yan et al. 2022; WhiteningBERT, Huang et al. 2021);
- ``weighted``: the same, weighted by the sizes of the subsets (SentEval, BERT-whitening);
- ``all``: one Spearman over the concatenated subsets (SimCSE, Gao et al. 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isonb.checks import check_points, check_values, validated
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb_lab.data.scores import spearman
from isonb_lab.statistics.resampling import rank_difference
from isonb_lab.statistics.seeds import StatsError

PROTOCOLS = ("mean", "weighted", "all")
Values = dict[str, float | None]


@validated
def pair_cosine(x: Tensor, y: Tensor) -> Tensor:
    r"""Cosine :math:`x_i \cdot y_i / (\|x_i\| \|y_i\|)` of row i of both, (n, d) and (n, d) -> (n,) in [-1, 1].

    Raises :class:`~isonb.errors.DegenerateError` for a zero row on the CPU; on an accelerator its cosine is 0.

    >>> pair_cosine(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 2.0], [3.0, 3.0]]))
    tensor([0.0000, 1.0000])
    """
    x, y = check_points(x, points=1, single=True)[0], check_points(y, points=1, single=True, name="y")[0]
    if x.shape != y.shape:
        fail(ShapeError, f"y must have the shape of x, {tuple(x.shape)}", tuple(y.shape), "Encode both sides alike.")
    # Rows are scaled by their largest entry first, so that squares neither overflow nor vanish.
    size = torch.stack([x.abs().amax(-1), y.abs().amax(-1)])
    if check_values(x) and bool((size == 0).any()):
        row = int((size == 0).any(0).nonzero()[0])
        fail(DegenerateError, "no row may be all zeros", f"row {row}", "Find the sentence without a vector.")
    size = torch.where(size > 0, size, torch.ones_like(size))
    x, y = x / size[0, :, None], y / size[1, :, None]
    norms = x.norm(dim=-1) * y.norm(dim=-1)
    return ((x * y).sum(-1) / torch.where(norms > 0, norms, torch.ones_like(norms))).clamp(-1, 1)


def sts_score(predicted: Any, gold: Any, subset: Sequence[str] | None = None, protocol: str = "mean") -> float:
    """Spearman x 100 of predicted similarities and human scores, by one of :data:`PROTOCOLS`.

    ``subset`` names the subset of each pair; None takes all pairs for one set, where the protocols agree. Constant
    predictions of a subset count as 0 (see :func:`isonb_lab.data.scores.spearman`).

    Raises :class:`~isonb.errors.InputError` for an unknown protocol, for another number of names than of pairs, and for
    empty names under "mean" and "weighted" (rows from the hub don't carry them: use "all").

    >>> sts_score([0.1, 0.2, 0.3, 0.9, 0.8, 0.95], [1, 2, 3, 1, 2, 3], ["a", "a", "a", "b", "b", "b"])
    75.0
    """
    if protocol not in PROTOCOLS:
        fail(InputError, f"protocol must be one of {', '.join(PROTOCOLS)}", repr(protocol), "Choose one of these.")
    subset = ["all"] * len(gold) if subset is None else list(subset)
    if not len(predicted) == len(gold) == len(subset):
        got = f"{len(predicted)}, {len(gold)} and {len(subset)}"
        fail(ShapeError, "predicted, gold and subset must have the same length", got, "Pass one entry a pair.")
    if protocol == "all":
        return 100 * spearman(predicted, gold)
    if not all(subset):
        fix = "Read the set from a folder that has the column, or use protocol 'all'."
        fail(InputError, f"protocol {protocol!r} needs the subset of each pair", "empty names", fix)
    predicted, gold = (values.tolist() if hasattr(values, "tolist") else list(values) for values in (predicted, gold))
    total, weights = 0.0, 0
    for rows in _by_name(subset).values():
        weight = len(rows) if protocol == "weighted" else 1
        total += 100 * spearman([predicted[row] for row in rows], [gold[row] for row in rows]) * weight
        weights += weight
    return total / weights


def _by_name(names: Sequence[str]) -> dict[str, list[int]]:
    """Row numbers by name, in order of appearance."""
    return {name: [row for row, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}


@dataclass(frozen=True)
class Gold:
    """Human scores, and the subset of each pair: empty names where a set came without them, None where it has none."""

    values: list[float]
    subsets: list[str] | None

    @property
    def by_subset(self) -> dict[str, list[int]]:
        """Row numbers by subset, in order of appearance; all rows under "all" without subsets; none without names."""
        names = ["all"] * len(self.values) if self.subsets is None else self.subsets
        return _by_name(names) if all(names) else {}


def scores(cosines: Sequence[float], gold: Gold) -> Values:
    """``spearman.<protocol>`` and ``subset.<name>.spearman``, all x 100.

    None where it isn't defined: "mean" and "weighted" without the names of the subsets or with a subset that can't be
    scored (constant gold values or a single pair, in a small draw of pairs).
    """

    def defined(rows: Sequence[int], subsets: list[str] | None, protocol: str = "mean") -> float | None:
        try:
            return sts_score([cosines[row] for row in rows], [gold.values[row] for row in rows], subsets, protocol)
        except InputError:
            return None

    every = range(len(cosines))
    values: Values = {f"spearman.{p}": defined(every, gold.subsets, p) for p in PROTOCOLS if p != "all"}
    values["spearman.all"] = sts_score(cosines, gold.values, None, "all")
    parts = {} if gold.subsets is None else gold.by_subset
    return values | {f"subset.{name}.spearman": defined(rows, None) for name, rows in parts.items()}


def gains(final: Sequence[float], plain: Sequence[float], gold: Gold, seed: int) -> Values:
    """What was gained over plain vectors, x 100: ``difference.spearman.<protocol>``.

    Each with ``.low`` and ``.high`` (95%, bootstrap over pairs) and ``.p`` behind. None as in :func:`scores`.
    """

    def gain(parts: list[list[int]] | None = None, by_size: bool = False) -> Values:
        try:
            gap = rank_difference(gold.values, final, plain, parts, by_size=by_size, seed=seed)
        except StatsError:
            return undefined
        return dict(zip(undefined, [*(100 * end for end in gap.interval.ends), gap.p], strict=True))

    undefined: Values = dict.fromkeys(("", ".low", ".high", ".p"))
    parts, whole = list(gold.by_subset.values()), gain()
    by_protocol = dict.fromkeys(PROTOCOLS, whole)
    if len(parts) != 1:
        by_protocol |= {p: gain(parts, p == "weighted") if parts else undefined for p in ("mean", "weighted")}
    return {
        f"difference.spearman.{p}{end}": value for p, gained in by_protocol.items() for end, value in gained.items()
    }

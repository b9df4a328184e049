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

from isonb.checks import border, check_values, cloud
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.lab.data.scores import spearman

PROTOCOLS = ("mean", "weighted", "all")


@dataclass(frozen=True)
class StsScore:
    """``value`` by ``protocol``, Spearman x 100; ``subsets`` and ``sizes`` by subset name, in order of appearance."""

    value: float
    protocol: str
    subsets: dict[str, float]
    sizes: dict[str, int]


@border
def pair_cosine(x: Tensor, y: Tensor) -> Tensor:
    r"""Cosine :math:`x_i \cdot y_i / (\|x_i\| \|y_i\|)` of row i of both, (n, d) and (n, d) -> (n,) in [-1, 1].

    Raises :class:`~isonb.errors.DegenerateError` for a zero row on the CPU; on an accelerator its cosine is 0.

    >>> pair_cosine(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 2.0], [3.0, 3.0]]))
    tensor([0.0000, 1.0000])
    """
    x, y = cloud(x, points=1, single=True)[0], cloud(y, points=1, single=True, name="y")[0]
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


def sts_score(predicted: Any, gold: Any, subset: Sequence[str] | None = None, protocol: str = "mean") -> StsScore:
    """Spearman x 100 of predicted similarities and human scores, by one of :data:`PROTOCOLS`.

    ``subset`` names the subset of each pair; None takes all pairs for one set, where the protocols agree. Constant
    predictions of a subset count as 0 (see :func:`isonb.lab.data.scores.spearman`).

    Raises :class:`~isonb.errors.InputError` for an unknown protocol, for another number of names than of pairs, and for
    empty names under "mean" and "weighted" (rows from the hub don't carry them: use "all").

    >>> score = sts_score([0.1, 0.2, 0.3, 0.9, 0.8, 0.95], [1, 2, 3, 1, 2, 3], ["a", "a", "a", "b", "b", "b"])
    >>> score.value, score.subsets, score.sizes
    (75.0, {'a': 100.0, 'b': 50.0}, {'a': 3, 'b': 3})
    """
    if protocol not in PROTOCOLS:
        fail(InputError, f"protocol must be one of {', '.join(PROTOCOLS)}", repr(protocol), "Choose one of these.")
    subset = ["all"] * len(gold) if subset is None else list(subset)
    if not len(predicted) == len(gold) == len(subset):
        got = f"{len(predicted)}, {len(gold)} and {len(subset)}"
        fail(ShapeError, "predicted, gold and subset must have the same length", got, "Pass one entry a pair.")
    if protocol != "all" and not all(subset):
        fix = "Read the set from a folder that has the column, or use protocol 'all'."
        fail(InputError, f"protocol {protocol!r} needs the subset of each pair", "empty names", fix)
    predicted, gold = (values.tolist() if hasattr(values, "tolist") else list(values) for values in (predicted, gold))
    places = {name: [row for row, other in enumerate(subset) if other == name] for name in dict.fromkeys(subset)}
    values = {
        name: 100 * spearman([predicted[row] for row in rows], [gold[row] for row in rows])
        for name, rows in places.items()
    }
    sizes = {name: len(rows) for name, rows in places.items()}
    weights = {name: sizes[name] if protocol == "weighted" else 1 for name in places}
    value = sum(values[name] * weights[name] for name in places) / sum(weights.values())
    return StsScore(100 * spearman(predicted, gold) if protocol == "all" else value, protocol, values, sizes)

"""What a similarity run reports: scores by protocol and subset, the gain over plain vectors, measures of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isonb.errors import InputError
from isonb.lab.data.sts import PROTOCOLS, sts_score
from isonb.lab.engines.stages import Series
from isonb.lab.measuring.cloud import Values, cloud_measures, number, variance_curves
from isonb.lab.statistics.resampling import rank_difference
from isonb.lab.statistics.seeds import StatsError
from isonb.measures.cosine import token_uniformity
from isonb.measures.neighbors import lsds
from isonb.measures.registry import attempt
from isonb.measures.spectrum import singular_values

CLOUD_ROWS = 2000  # sentence vectors of both sides together that are measured
QUANTILES = 51


@dataclass(frozen=True)
class Gold:
    """Human scores, and the subset of each pair: empty names where a set came without them, None where it has none."""

    values: list[float]
    subsets: list[str] | None

    @property
    def by_subset(self) -> dict[str, list[int]]:
        """Row numbers by subset, in order of appearance; all rows under "all" without subsets; none without names."""
        names = ["all"] * len(self.values) if self.subsets is None else self.subsets
        if not all(names):
            return {}
        return {name: [row for row, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}


def scores(cosines: Sequence[float], gold: Gold) -> Values:
    """``spearman.<protocol>`` and ``subset.<name>.spearman``, all x 100.

    None where it isn't defined: "mean" and "weighted" without the names of the subsets or with a subset that can't be
    scored (constant gold values or a single pair, in a small draw of pairs).
    """

    def defined(rows: Sequence[int], subsets: list[str] | None, protocol: str = "mean") -> float | None:
        try:
            return sts_score(
                [cosines[row] for row in rows], [gold.values[row] for row in rows], subsets, protocol
            ).value
        except InputError:
            return None

    every = range(len(cosines))
    values: Values = {f"spearman.{p}": defined(every, gold.subsets, p) for p in PROTOCOLS if p != "all"}
    values["spearman.all"] = sts_score(list(cosines), gold.values, None, "all").value
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
        ends = (gap.interval.estimate, gap.interval.low, gap.interval.high)
        return dict(zip(undefined, [*(100 * end for end in ends), gap.p], strict=True))

    undefined: Values = dict.fromkeys(("", ".low", ".high", ".p"))
    parts, whole = list(gold.by_subset.values()), gain()
    by_protocol = dict.fromkeys(PROTOCOLS, whole)
    if len(parts) != 1:
        by_protocol |= {p: gain(parts, p == "weighted") if parts else undefined for p in ("mean", "weighted")}
    return {f"difference.spearman.{p}{end}": value for p, one in by_protocol.items() for end, value in one.items()}


def features(where: str, vectors: Tensor, plain: Tensor, seed: int) -> tuple[Values, Series]:
    """Measures of sentence vectors (n, k), both sides of all pairs stacked, beside the plain ones (n, d).

    Of more than 2000 rows so many are measured, drawn by ``seed``: the same of both. ``<where>.features.<measure>``:
    those of :func:`~isonb.lab.measuring.cloud.cloud_measures`, ``token_uniformity``, and ``lsds`` from the plain
    vectors to these. Series: ``quantile.<where>.features.singular_values``, 51 quantiles of the raw
    singular values over the largest; ``k.<where>.features.explained_variance`` and ``..._centered``. What isn't defined
    is None.
    """
    rows = torch.randperm(len(vectors), generator=torch.Generator().manual_seed(seed))[:CLOUD_ROWS].sort().values
    x, origin = vectors.cpu()[rows].double(), plain.cpu()[rows].double()
    measured = cloud_measures(x) | {
        "token_uniformity": number(token_uniformity, x),
        "lsds": number(lsds, origin, x),
    }
    series: Series = {}
    values = attempt(singular_values, x)
    if values is not None and float(values.max()) > 0:
        share = torch.linspace(0, 1, QUANTILES, dtype=values.dtype)
        ends = torch.quantile(values / values.max(), share).tolist()
        series[f"quantile.{where}.features.singular_values"] = list(zip(share.tolist(), ends, strict=True))
    series |= {f"k.{where}.features.{name}": curve for name, curve in variance_curves(x).items()}
    return {f"{where}.features.{name}": value for name, value in measured.items()}, series

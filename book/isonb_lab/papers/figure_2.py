"""I-STAR's Figure 2: what estimates of IsoScore make of small samples of a known covariance, and that three agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import torch
from scipy import stats as scipy_stats
from torch import Tensor

from isonb.measures.isoscore import isoscore, isoscore_star
from isonb.numerics.rows import centered
from isonb_lab.claims.design import Design, Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import Evidence
from isonb_lab.data.populations import true_score
from isonb_lab.statistics.seeds import LEVEL, Interval

DIM = 768  # its dimensions
ZETAS = tuple(f"ζ = {zeta}" for zeta in ("0", "0.2", "0.4", "0.6", "0.8", "1"))
ALONE = ("IsoScore-U", "IsoScore-U, pooled", "automatic ζ")  # estimates from the batch alone
SERIES = {f"{zeta.replace('ζ = ', 'zeta')}.isoscore_star": zeta for zeta in ZETAS} | dict(
    zip(("unbiased.isoscore", "pooled.isoscore", "auto.isoscore_star"), ALONE, strict=True)
)


def suite_of(settings: Settings) -> str:
    """The size of the larger sample, and the tails of the cloud."""
    tails = "heavy tails, " if settings.get("tail", "gaussian") != "gaussian" else ""
    return f"{tails}|S| = {int(settings['shrinkage_rows']):,}"


def estimates(study: Study) -> pd.DataFrame:
    """Figure 2 as a table: one row a run, estimate and size of X.

    Columns: ``suite``, ``curve`` (the estimate in words), ``points``, ``samples``, ``value`` and ``sd`` (mean and
    standard deviation over samples), ``theory`` (what to expect of a Gaussian cloud; missing without a formula).
    """
    logged = study.series
    tables = [pd.DataFrame(columns=["suite", "curve", "points", "samples", "value", "sd", "theory"])]
    for suite in (s for s in (*study.suites, *study.live_suites) if (logged["suite"] == s).any()):
        wide = logged[logged["suite"] == suite].pivot(index="step", columns="name", values="value")
        for key, curve in SERIES.items():
            names = ("samples", key, f"{key}.std", f"{key.rpartition('.')[0]}.expected")
            table = wide.reindex(columns=[f"size.{name}" for name in names])
            table = table.set_axis(["samples", "value", "sd", "theory"], axis=1).rename_axis("points").reset_index()
            tables.append(table.dropna(subset="value").assign(suite=suite, curve=curve))
    return pd.concat(tables[1:] or tables, ignore_index=True).astype({"points": int, "samples": int})


def _small(study: Study, suites: Sequence[str]) -> pd.DataFrame:
    """The rows of Figure 2 with fewer points than dimensions and Gaussian tails, with half of Student's interval."""
    table = estimates(study)
    table = table[table["suite"].isin(list(suites)) & ~table["suite"].str.startswith("heavy")]
    table = table[(table["points"] < DIM) & (table["samples"] > 2)]
    quantile = scipy_stats.t.ppf((1 + LEVEL) / 2, table["samples"] - 1)
    return table.assign(half=quantile * table["sd"] / table["samples"] ** 0.5)


def too_low(study: Study, suites: Sequence[str]) -> Evidence:
    """IsoScore less the truth for fewer points than dimensions."""
    table = _small(study, suites)
    return {
        f"{row.suite}, |X| = {row.points}": _around(row.value - true_score("figure2", DIM), row.half, row.samples)
        for row in table[table["curve"] == ZETAS[0]].itertuples()
    }


def nearer(study: Study, suites: Sequence[str]) -> Evidence:
    """How much nearer to the truth; the ends are too far out, for both estimates are of the same samples."""
    table, truth = _small(study, suites), true_score("figure2", DIM)
    pairs = table[table["curve"].isin(ZETAS[1:5])].merge(
        table[table["curve"] == ZETAS[0]], on=["suite", "points"], suffixes=("", "_plain")
    )
    return {
        f"{row.suite}, |X| = {row.points}, {row.curve}": _around(
            abs(row.value_plain - truth) - abs(row.value - truth), math.hypot(row.half, row.half_plain), row.samples
        )
        for row in pairs.itertuples()
    }


def _around(estimate: float, half: float, n: int) -> Interval:
    return Interval(float(estimate), float(estimate - half), float(estimate + half), LEVEL, int(n), "student")


def disagreements(seed: int = 0) -> dict[str, list[float]]:
    """By how much three ways to compute IsoScore differ, on random clouds of three shapes, five of each."""
    g = torch.Generator().manual_seed(seed)
    shapes = ((5, 9), (50, 9), (400, 30))
    return {f"{n} points in {d} dimensions": [_disagreement(n, d, g) for _ in range(5)] for n, d in shapes}


def _disagreement(n: int, d: int, generator: torch.Generator) -> float:
    x, stretch = (torch.randn(rows, d, generator=generator, dtype=torch.float64) for rows in (n, d))
    x = x @ stretch
    ways = (_rotated(x), float(isoscore_star(x, 0.0, torch.eye(d, dtype=x.dtype))), float(isoscore(x)))
    return max(ways) - min(ways)


def _rotated(x: Tensor) -> float:
    """IsoScore as first defined: variances along the principal axes, their defect, the share of dimensions."""
    d = x.shape[1]
    v = torch.zeros(d, dtype=x.dtype)
    axes = torch.linalg.svd(centered(x), full_matrices=False).Vh
    v[: len(axes)] = (centered(x) @ axes.mT).square().sum(0)
    gap = math.sqrt(d) * v / v.norm() - 1
    defect = float(gap.norm()) / math.sqrt(2 * (d - math.sqrt(d)))
    return ((d - defect**2 * (d - math.sqrt(d))) ** 2 / d - 1) / (d - 1)


DESIGN = Design(
    name="figure_2",
    page="papers/istar_more",
    recordings=("istar",),
    arm=lambda settings: "Figure 2",  # one for all clouds
    suite=suite_of,
    grid="istar",
)

"""How far IsoScore of a small sample lies from the truth, and what shrinkage and the unbiased estimate do about it.

The experiment of I-STAR's Figure 2 (Rudman and Eickhoff, ICLR 2024): points of a known covariance, a large part of them
for the shrinkage covariance, disjoint samples X of growing size from the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.measures.isoscore import isoscore_from_cov, isoscore_star, shrinkage_intensity
from isonb.streaming.moments import Moments
from isonb.streaming.traces import squared_traces
from isonb_lab.data.populations import Points, expected_score, true_score
from isonb_lab.runs.inputs import recorded
from isonb_lab.runs.manifest import Clock
from isonb_lab.runs.record import Record
from isonb_lab.runs.settings import Planned, SyntheticSettings, plan

AT_ONCE = 8192  # points measured together
Series = dict[str, list[tuple[float, float | None]]]


def run(
    request: Mapping[str, Any] | Planned,
    *,
    data: str | Path | None = None,
    work: str | Path | None = None,
    progress: bool = True,
) -> Record:
    """Draw, measure, and return the record (unwritten); ``data`` and ``work``, those of other runs, aren't used.

    Series over the size of X, mean and (``.std``) standard
    deviation over its samples: ``size.zeta0.2.isoscore_star`` and, to compare, ``size.zeta0.2.expected``;
    ``size.auto.isoscore_star`` with the intensity ``size.auto.zeta``; ``size.unbiased.isoscore`` and, numerators and
    denominators averaged before division, ``size.pooled.isoscore``. Metrics: IsoScore of the population
    (``true.isoscore``), of all points and of S. Points are streamed; on a GPU where there is one.
    """
    from tqdm import tqdm

    clock, planned = Clock(), plan(request)
    settings: SyntheticSettings = planned.settings
    sizes, zetas = settings.sample_sizes, settings.weights
    device = "cuda" if torch.cuda.is_available() else "cpu"
    points = Points(settings.spectrum, settings.tail, settings.dim, settings.seed, device)
    everything, series = Moments(), Series()
    hidden = None if progress else True
    with tqdm(total=settings.sample_rows, desc="points", unit="", leave=False, disable=hidden) as bar:

        def counted(x: Tensor) -> Tensor:
            everything.update(x)
            bar.update(x.shape[:-1].numel())
            return x

        for block in points.blocks(settings.shrinkage_rows):
            counted(block)
        cov = everything.cov
        metrics: dict[str, float | None] = {"shrinkage.isoscore": float(isoscore_from_cov(cov))}
        for size in sizes:
            count, most = settings.samples(size), max(1, AT_ONCE // size)
            several = [min(most, count - start) for start in range(0, count, most)]
            draws = (counted(points.draw(m * size).view(m, size, -1)) for m in several)
            measured = [_measured(x, zetas, cov) for x in draws]
            joined = {name: torch.cat([some[name] for some in measured]).double().cpu() for name in measured[0]}
            for name, value in _values(settings, size, zetas, joined).items():
                series.setdefault(f"size.{name}", []).append((float(size), value))
        for block in points.blocks(settings.sample_rows - int(everything.n)):
            counted(block)
    metrics["all.isoscore"] = float(isoscore_from_cov(everything.cov))
    metrics["true.isoscore"] = true_score(settings.spectrum, settings.dim)
    drawn = f"{settings.spectrum} {settings.tail} points in {settings.dim} dimensions, seed {settings.seed}"
    return recorded(planned, drawn, clock, metrics=metrics, series=series)


def _measured(x: Tensor, zetas: list[float], cov: Tensor) -> dict[str, Tensor]:
    """Every number of samples (m, n, d): tensors (m). Of large samples the covariance is taken once for all weights."""
    total, square = squared_traces(x)
    numbers = {"total": total, "square": square}
    numbers |= {"auto.isoscore_star": isoscore_star(x, "auto"), "auto.zeta": shrinkage_intensity(x)}
    small = x.shape[-2] < x.shape[-1]
    covs = None if small else torch.stack([Moments().update(sample).cov for sample in x])
    for zeta in zetas:
        star = isoscore_star(x, zeta, cov) if covs is None else isoscore_from_cov(torch.lerp(covs, cov, zeta))
        numbers[f"zeta{zeta:g}.isoscore_star"] = star
    return numbers


def _values(
    settings: SyntheticSettings, size: int, zetas: list[float], measured: dict[str, Tensor]
) -> dict[str, float | None]:
    """Means and standard deviations over the samples of a size, and what is expected of them."""
    total, square = measured.pop("total"), measured.pop("square")
    measured["unbiased.isoscore"] = (total / square - 1) / (settings.dim - 1)
    values: dict[str, float | None] = {"samples": float(settings.samples(size))}
    for name, numbers in measured.items():
        values[name] = float(numbers.mean())
        values[f"{name}.std"] = float(numbers.std()) if len(numbers) > 1 else None
    values["pooled.isoscore"] = (float(total.mean() / square.mean()) - 1) / (settings.dim - 1)
    for zeta in zetas:
        expected = expected_score(settings.spectrum, settings.dim, size, settings.shrinkage_rows, zeta)
        values[f"zeta{zeta:g}.expected"] = expected
    return values

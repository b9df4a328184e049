"""Statistics of one layer of a model, gathered batch by batch: its tokens, its sentences, a sample of its points.

What a batch can't be used for (a diverged training leaves NaN) ends the statistic, not the run: it then has no values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from isonb.checks import check_points, strict
from isonb.errors import InputError
from isonb.measures.cosine import cls_uniformity, token_uniformity
from isonb.measures.isoscore import isoscore_from_cov, shrinkage_matrix
from isonb.measures.registry import ZETA, attempt
from isonb.measures.spectrum import spectral_cdf, spectral_median, spectral_skewness
from isonb.numerics.products import gram
from isonb.streaming.moments import Moments
from isonb.streaming.streams import Average, UnitSums
from isonb_lab.measuring.cloud import Values, number, shares_named

QUANTILES = 51  # of singular values, evenly spaced, in a record


class _Streamed(ABC):
    """A statistic that has values once there was a batch and as long as every one could be used."""

    usable = False
    _refused = False

    def add(self, *batch: Any) -> None:
        if not self._refused:
            try:
                with strict():
                    self._add(*batch)
            except InputError:
                self._refused = True
            self.usable = not self._refused

    @abstractmethod
    def _add(self, *batch: Any) -> None: ...


def star_from_cov(cov: Tensor, shrinkage_cov: Tensor | None) -> Tensor:
    """IsoScore* of a covariance with zeta 0.2: mixed with ``shrinkage_cov``, or the identity scaled to its trace."""
    if shrinkage_cov is None:
        base = torch.eye(len(cov), dtype=cov.dtype, device=cov.device) * (cov.trace() / len(cov))
    else:
        base = shrinkage_matrix(shrinkage_cov, cov)
    return isoscore_from_cov(cov.lerp(base, ZETA))


def _mean(average: Average) -> Tensor:
    """The mean; NaN of nothing."""
    count, total = average.state_tensors()
    return total / count


class TokenSums(_Streamed):
    """Mean, covariance, mean length and mean cosine of all real tokens."""

    def __init__(self) -> None:
        self.moments, self.units, self.lengths = Moments(), UnitSums(), Average()

    def _add(self, x: Tensor, mask: Tensor) -> None:
        self.moments.update(x, mask)
        self.units.update(x, mask)
        lengths = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32 if x.dtype.itemsize < 4 else None)
        self.lengths.update(lengths[mask.bool()].cpu())

    def measures(self, shrinkage_cov: Tensor | None) -> Values:
        """``isoscore``, ``isoscore_star``, ``mean_cosine`` and ``mean_norm`` as :func:`cloud_measures` has them."""
        if not self.usable:
            return {}
        return {
            "isoscore": number(lambda: isoscore_from_cov(self.moments.cov)),
            "isoscore_star": number(lambda: star_from_cov(self.moments.cov, shrinkage_cov)),
            "mean_cosine": number(self._mean_cosine),
            "mean_norm": number(lambda: torch.linalg.vector_norm(self.moments.mean).cpu() / _mean(self.lengths)),
        }

    def _mean_cosine(self) -> Tensor:
        directions, *_ = self.units.state_tensors()
        return self.units.mean_cosine if directions >= 2 else torch.tensor(torch.nan)

    def shares(self) -> Values:
        """Anisotropy and explained variance of all tokens, raw and centred."""

        def of(center: bool) -> Tensor:
            count, mean, scatter = self.moments.state_tensors()
            matrix = scatter if center else scatter.addr(mean, count * mean)
            values: Tensor = torch.linalg.eigvalsh(matrix.cpu()).clamp_min(0).flip(0)
            return values / values.sum()

        if not self.usable:
            return {}
        return shares_named(attempt(of, False), "") | shares_named(attempt(of, True), "_centered")


def _spectra(x: Tensor) -> Tensor:
    """Singular values of small matrices (B, T, d), descending: float64 keeps what squaring them loses in float32."""
    x = x.double()
    square: Tensor = torch.linalg.eigvalsh(gram(x if x.shape[-2] <= x.shape[-1] else x.mT))
    return square.clamp_min(0).sqrt().flip(-1)


class SentenceSums(_Streamed):
    """Token uniformity and singular values of the token matrix of each sentence.

    ``points`` names the token that stands for the sentence: "cls" the first, "last" the last real one.
    """

    def __init__(self, points: str = "cls") -> None:
        self.points = points
        self.token_uniformity, self.cls_uniformity = Average(), Average()
        self.values: list[Tensor] = []

    def _add(self, x: Tensor, mask: Tensor) -> None:
        x, mask = check_points(x, mask, points=1)[0].cpu(), mask.bool().cpu()
        length = mask.sum(-1)
        values = _spectra(x)
        self.values.append(values[torch.arange(values.shape[-1]) < length.unsqueeze(-1)])  # padding adds zeros
        x, mask = x[length >= 2], mask[length >= 2]  # the others hold no pair
        if self.points == "last":
            x, mask = x.flip(-2), mask.flip(-1)
        if len(x):
            self.token_uniformity.update(token_uniformity(x, mask))
            self.cls_uniformity.update(cls_uniformity(x, mask))

    @property
    def pooled(self) -> Tensor:
        """Singular values of all sentences in one list."""
        values = self.values if self.usable else []
        return torch.cat([torch.empty(0, dtype=torch.float64), *values])

    def measures(self) -> Values:
        """Means over sentences, and shape of the pooled singular values."""
        if not self.usable:
            return {}
        return {
            "token_uniformity": number(_mean, self.token_uniformity),
            "cls_uniformity": number(_mean, self.cls_uniformity),
            "spectral_skewness": number(spectral_skewness, self.pooled),
            "spectral_median": number(spectral_median, self.pooled),
        }

    def quantiles(self) -> list[tuple[float, float]]:
        """Evenly spaced quantiles (q, value) of the pooled singular values over their largest; none without them."""
        ordered = attempt(lambda: spectral_cdf(self.pooled)[0])
        if ordered is None:
            return []
        share = torch.linspace(0, 1, QUANTILES, dtype=torch.float64)
        place = share * (len(ordered) - 1)
        low, high = ordered[place.floor().long()], ordered[place.ceil().long()]
        values = low + (high - low) * (place - place.floor())
        return [(i / (QUANTILES - 1), value) for i, value in enumerate(values.tolist())]


class Sample:
    """At most ``size`` of all points that come, drawn without replacement; the draw depends on their number alone."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size, self._draw = size, torch.Generator().manual_seed(seed)
        self._keys, self._rows = torch.empty(0, dtype=torch.float64), torch.empty(0, 0)

    def add(self, x: Tensor) -> None:
        """Points (n, d) that come next."""
        keys = torch.rand(len(x), generator=self._draw, dtype=torch.float64)
        rows = x.detach().float().cpu() if x.dtype.itemsize < 4 else x.detach().cpu()
        self._keys = torch.cat([self._keys, keys])
        self._rows = torch.cat([self._rows, rows]) if self._rows.numel() else rows
        if len(self._keys) > self.size:  # those with the smallest keys, in the order they came
            keep = self._keys.topk(self.size, largest=False).indices.sort().values
            self._keys, self._rows = self._keys[keep], self._rows[keep]

    @property
    def points(self) -> Tensor:
        """The points kept (n, d)."""
        return self._rows

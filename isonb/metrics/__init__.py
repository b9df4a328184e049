"""The measures as torchmetrics classes: fed batch by batch, exact when batches, checkpoints or processes are joined.

A class keeps a summary of fixed size (mean and scatter, sums of unit rows, a few numbers), merges it exactly and
computes from it what the function of the same name gives for all points at once. (Some differ at the edge: cosine
metrics need two points that aren't zero, otherwise :class:`~isonb.errors.ShapeError`; ``SpectralSkewness`` is 0 where
all values are equal.) A ``state_dict`` holds the states after
``metric.persistent(True)``, as torchmetrics has it. Processes are joined in two or three collectives, whatever their
shards hold; one that saw no data takes part too. States stay float64 under ``.half()``, ``.to(dtype)`` and autocast.
They need one full read of the values, so NaN and Inf are errors on every device.

Measures that need all points at once (nearest neighbours, barcodes, partition score, RBF uniformity) don't stream.
:class:`Sampled` keeps up to ``capacity`` points for them: exact until then, a uniform sample after.

:func:`metric_of` gives the class for a name of the registry, a sampled one where the measure doesn't stream.

``higher_is_better`` is None throughout: whether isotropy is better is a question, not a convention. In Lightning these
are ordinary metrics: ``self.log("isoscore", self.isoscore)``.
"""

import math
from collections.abc import Callable
from functools import partial

from isonb.errors import InputError, fail
from isonb.measures.registry import LEADING, MEASURES, ZETA
from isonb.metrics.clouds import (
    AlphaReQ,
    Anisotropy,
    ClsUniformity,
    CosineContributions,
    CosinePenalty,
    Covariance,
    EffectiveRank,
    ExplainedVariance,
    IsoScore,
    IsoScoreStar,
    MeanCosine,
    MeanVector,
    ParticipationRatio,
    SpectralSkewness,
    TokenUniformity,
    VarEx,
)
from isonb.metrics.pairs import CKA, NC1, Alignment, LiDAR
from isonb.metrics.sampled import Sampled
from isonb.metrics.streaming import Base

__all__ = [
    "CKA",
    "NC1",
    "Alignment",
    "AlphaReQ",
    "Anisotropy",
    "ClsUniformity",
    "CosineContributions",
    "CosinePenalty",
    "Covariance",
    "EffectiveRank",
    "ExplainedVariance",
    "IsoScore",
    "IsoScoreStar",
    "LiDAR",
    "MeanCosine",
    "MeanVector",
    "ParticipationRatio",
    "Sampled",
    "SpectralSkewness",
    "TokenUniformity",
    "VarEx",
    "metric_of",
]

STREAMED: dict[str, Callable[..., Base]] = {
    "isoscore": IsoScore,
    "isoscore_unbiased": partial(IsoScore, unbiased=True),
    "isoscore_star": partial(IsoScoreStar, ZETA),
    "participation_ratio": ParticipationRatio,
    "participation_ratio_unbiased": partial(ParticipationRatio, unbiased=True),
    "effective_rank": EffectiveRank,
    "nesum": partial(EffectiveRank, math.inf, squared=True, center=True),
    "alpha_req": AlphaReQ,
    "mean_cosine": MeanCosine,
    "token_uniformity": TokenUniformity,
    "cls_uniformity": ClsUniformity,
    "spectral_skewness": SpectralSkewness,
    **{
        f"{name}_{j}{ending}": partial(kind, j, center=bool(ending), alone=True)
        for name, kind in (("anisotropy", Anisotropy), ("explained_variance", ExplainedVariance))
        for ending in ("", "_centered")
        for j in range(1, LEADING + 1)
    },
}


def metric_of(name: str, *, capacity: int = 4096) -> Base:
    """A fresh metric of a measure by its name in the registry: exact where it streams, else of ``capacity`` points.

    Raises :class:`~isonb.errors.InputError` for an unknown name, and for ``spectral_median``, which has no metric.

    >>> metric = metric_of("isoscore_unbiased")
    >>> type(metric).__name__, metric.unbiased, type(metric_of("two_nn")).__name__
    ('IsoScore', True, 'Sampled')
    """
    if name in STREAMED:
        return STREAMED[name]()
    if name not in MEASURES:
        names = ", ".join([*MEASURES, *STREAMED])
        fail(InputError, "a metric must be of a measure of the registry", repr(name), f"There are {names}.")
    return Sampled(MEASURES[name], capacity=capacity)

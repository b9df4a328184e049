"""The measures as torchmetrics classes: fed batch by batch, exact when batches, checkpoints or processes are joined.

A class keeps a summary of fixed size (mean and scatter, sums of unit rows, a few numbers), merges it exactly and
computes from it what the function of the same name gives for all points at once. (Two differ at the edge: cosine
metrics need two points that aren't zero, otherwise :class:`~isonb.errors.ShapeError`, and ``SpectralSkewness`` is 0
where all values are equal.) Processes are joined in one or two collectives, whatever their shards hold; the first has
a fixed size, for up to 32,768 dimensions unless ``dims`` is given. One that saw no data takes part too. States stay
float64 under ``.half()``, ``.to(dtype)`` and autocast. They need one full read of the values, so NaN and Inf are errors
on every device.

Measures that need all points at once (nearest neighbours, barcodes, partition score, RBF uniformity) don't stream.
:class:`Sampled` keeps up to ``capacity`` points for them: exact until then, a uniform sample after.

``higher_is_better`` is None throughout: whether isotropy is better is a question, not a convention. In Lightning these
are ordinary metrics: ``self.log("isoscore", self.isoscore)``.
"""

from isonb.metrics.sampled import Sampled
from isonb.metrics.sentences import (
    ClsUniformity,
    CosineContributions,
    CosinePenalty,
    MeanCosine,
    SpectralSkewness,
    TokenUniformity,
)
from isonb.metrics.spectral import (
    Anisotropy,
    Covariance,
    ExplainedVariance,
    IsoScore,
    IsoScoreStar,
    MeanVector,
    ParticipationRatio,
    VarEx,
)

__all__ = [
    "Anisotropy",
    "ClsUniformity",
    "CosineContributions",
    "CosinePenalty",
    "Covariance",
    "ExplainedVariance",
    "IsoScore",
    "IsoScoreStar",
    "MeanCosine",
    "MeanVector",
    "ParticipationRatio",
    "Sampled",
    "SpectralSkewness",
    "TokenUniformity",
    "VarEx",
]

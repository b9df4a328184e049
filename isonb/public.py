"""Every public name of isonb, which brings torch: :mod:`isonb` takes them from here when the first is used."""

from isonb import checks
from isonb.auditing import Audit, audit, compare
from isonb.barcodes.entropy import persistent_entropy, prominent_bars
from isonb.barcodes.rips import h0_barcode, rips_barcode
from isonb.checks import strict
from isonb.errors import (
    CloudWarning,
    DegenerateError,
    DependencyError,
    DtypeError,
    FitWarning,
    InputError,
    IsotropyWarning,
    NotFittedError,
    PrecisionWarning,
    ShapeError,
)
from isonb.layers import IsoBN, IsotropyLayer, SoftDecay
from isonb.layers.soft_decay import negative_count, soft_decay
from isonb.losses import (
    CosRegLoss,
    GaoCosineLoss,
    GORLoss,
    IsoScoreLoss,
    IStarLoss,
    JointLoss,
    PersistentEntropyLoss,
    ShrinkageCovariance,
    SIGRegLoss,
    SpectrumControlLoss,
    points_from_hidden_states,
)
from isonb.measures.cosine import cls_uniformity, cosine_contributions, cosine_penalty, mean_cosine, token_uniformity
from isonb.measures.isoscore import isoscore, isoscore_from_cov, isoscore_star, participation_ratio, shrinkage_intensity
from isonb.measures.neighbors import id_score, knn, lsds, mle_dimension, two_nn
from isonb.measures.partition import partition_score
from isonb.measures.spectrum import (
    anisotropy,
    explained_variance,
    singular_values,
    spectral_cdf,
    spectral_median,
    spectral_skewness,
    varex_score,
)
from isonb.measures.uniformity import rbf_uniformity
from isonb.points import centered, cls_pool, label_groups, layer_average, mean_pool, token_cloud
from isonb.streaming.moments import Moments
from isonb.transforms import (
    AllButTheTop,
    ClusterRemoval,
    MeanDirection,
    SoftZCA,
    Transform,
    Whitening,
    ZeroMean,
    load_transform,
)
from isonb.transforms.flow import GlowFlow, fit_flow
from isonb.transforms.sbert_wk import sbert_wk
from isonb.transforms.turns import (
    DimensionScale,
    MeanShift,
    PartialWhitening,
    SingularDecay,
    Standardise,
    isotropy_report,
)

__all__ = [
    "AllButTheTop",
    "Audit",
    "CloudWarning",
    "ClusterRemoval",
    "CosRegLoss",
    "DegenerateError",
    "DependencyError",
    "DimensionScale",
    "DtypeError",
    "FitWarning",
    "GORLoss",
    "GaoCosineLoss",
    "GlowFlow",
    "IStarLoss",
    "InputError",
    "IsoBN",
    "IsoScoreLoss",
    "IsotropyLayer",
    "IsotropyWarning",
    "JointLoss",
    "MeanDirection",
    "MeanShift",
    "Moments",
    "NotFittedError",
    "PartialWhitening",
    "PersistentEntropyLoss",
    "PrecisionWarning",
    "SIGRegLoss",
    "ShapeError",
    "ShrinkageCovariance",
    "SingularDecay",
    "SoftDecay",
    "SoftZCA",
    "SpectrumControlLoss",
    "Standardise",
    "Transform",
    "Whitening",
    "ZeroMean",
    "anisotropy",
    "audit",
    "centered",
    "checks",
    "cls_pool",
    "cls_uniformity",
    "compare",
    "cosine_contributions",
    "cosine_penalty",
    "explained_variance",
    "fit_flow",
    "h0_barcode",
    "id_score",
    "isoscore",
    "isoscore_from_cov",
    "isoscore_star",
    "isotropy_report",
    "knn",
    "label_groups",
    "layer_average",
    "load_transform",
    "lsds",
    "mean_cosine",
    "mean_pool",
    "mle_dimension",
    "negative_count",
    "participation_ratio",
    "partition_score",
    "persistent_entropy",
    "points_from_hidden_states",
    "prominent_bars",
    "rbf_uniformity",
    "rips_barcode",
    "sbert_wk",
    "shrinkage_intensity",
    "singular_values",
    "soft_decay",
    "spectral_cdf",
    "spectral_median",
    "spectral_skewness",
    "strict",
    "token_cloud",
    "token_uniformity",
    "two_nn",
    "varex_score",
]

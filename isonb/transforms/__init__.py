"""Post-processing of sentence or token vectors, fitted once and applied anywhere.

Each transform has ``fit(x, mask)`` (points (..., d), all leading axes one cloud), ``transform(x, mask)`` and
``save(folder)``; ``load_transform(folder)`` reads any of them back. Those that are affine fold into a
:class:`torch.nn.Linear` by ``to_dense()``, which needs isonb no more, and learn from a stream by ``fit_moments``.
Statistics are float64 (float32 on MPS; those of cluster removal in the dtype of its points); ``transform`` computes in
the dtype of its input, half precision in float32, and is differentiable in the points; ``fit`` is not.
"""

from typing import Any

from isonb.transforms.base import Transform, load_transform
from isonb.transforms.clusters import ClusterRemoval
from isonb.transforms.graded import DimensionScale, MeanTranslation, PartialWhitening, SingularDecay, Standardize
from isonb.transforms.mean_direction import MeanDirection
from isonb.transforms.whitening import AllButTheTop, SoftZCA, Whitening, ZeroMean

__all__ = [
    "AllButTheTop",
    "ClusterRemoval",
    "DimensionScale",
    "MeanDirection",
    "MeanTranslation",
    "PartialWhitening",
    "SingularDecay",
    "SoftZCA",
    "Standardize",
    "Transform",
    "Whitening",
    "ZeroMean",
    "load_transform",
]


def __getattr__(name: str) -> Any:
    """A name of the last release."""
    from isonb.transforms.turns import renamed

    return renamed(name, 2)

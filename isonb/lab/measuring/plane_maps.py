"""A cloud mapped to the plane, to be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from isonb.errors import InputError, fail

__all__ = ["plane_map"]

DIRECTIONS = 50
PERPLEXITY = 40.0
ITERATIONS = 300
FEWEST = 5


def plane_map(points: Tensor, *, seed: int = 0) -> NDArray[np.floating[Any]]:
    """t-SNE of the points (n, d) after 50 principal components: (n, 2). Distances on such a map mean nothing.

    Perplexity 40 and 300 iterations, as in Figure 4 of SoftDecay; fewer than 121 points get perplexity (n - 1) / 3.
    Raises :class:`~isonb.errors.InputError` for fewer than 5 points.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if points.ndim != 2 or len(points) < FEWEST:
        fail(InputError, f"points must be (n, d) with n >= {FEWEST}", tuple(points.shape), "Pass more of them.")
    x = points.double().cpu().numpy()
    x = PCA(min(DIRECTIONS, *x.shape, len(x) - 1), random_state=seed).fit_transform(x)
    perplexity = min(PERPLEXITY, (len(x) - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, max_iter=ITERATIONS, init="pca", random_state=seed)
    return np.asarray(tsne.fit_transform(x))

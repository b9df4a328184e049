"""The picture of *SoftDecay: all tables*: sentence vectors on a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import Tensor

from isonb_lab.pages.charts import CLOUD, option_menu


def plane_map(points: Tensor, *, seed: int = 0) -> NDArray[np.floating[Any]]:
    """t-SNE of the points (n, d), n >= 5, after 50 principal components: (n, 2). Distances on such a map mean nothing.

    Perplexity 40 and 300 iterations, as in Figure 4 of SoftDecay; fewer than 121 points get perplexity (n - 1) / 3.

    >>> import torch
    >>> points = torch.randn(18, 4, generator=torch.Generator().manual_seed(0))
    >>> points[9:] += 50
    >>> flat = plane_map(points)
    >>> flat.shape, bool(((flat[:9].max(0) < flat[9:].min(0)) | (flat[9:].max(0) < flat[:9].min(0))).any())
    ((18, 2), True)
    """
    x = points.double().cpu().numpy()
    x = PCA(min(50, *x.shape, len(x) - 1), random_state=seed).fit_transform(x)
    tsne = TSNE(2, perplexity=min(40.0, (len(x) - 1) / 3), max_iter=300, init="pca", random_state=seed)
    return np.asarray(tsne.fit_transform(x))


def sentence_maps(spots: pd.DataFrame, *, order: Sequence[str]) -> Any:
    """A map of ``x`` and ``y`` for each kind of ``vectors``, the ``side`` of a pair by colour; a menu of ``pairs``."""
    menu = option_menu("ground", list(dict.fromkeys(spots["pairs"]))[::-1], label="pairs")
    hollow = CLOUD | {"filled": False, "size": 22, "strokeWidth": 1.2}  # the two sides of a pair often coincide
    chart = alt.Chart(spots, width=160, height=160).mark_point(**hollow).transform_filter("datum.pairs == ground")
    chart = chart.encode(
        alt.X("x:Q", axis=None, scale=alt.Scale(zero=False)),
        alt.Y("y:Q", axis=None, scale=alt.Scale(zero=False)),
        alt.Color("side:N", title=None),
        alt.Shape("side:N", title=None),
    )
    maps = chart.facet(alt.Facet("vectors:N", sort=list(order), title=None), columns=3)
    return maps.resolve_scale(x="independent", y="independent").add_params(menu)

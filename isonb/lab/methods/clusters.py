"""Cluster-based removal (Rajaee and Pilehvar, ACL 2021): the top directions of each cluster of token vectors."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from isonb import transforms
from isonb.lab.methods.declared import takes
from isonb.lab.methods.shared import Fitted, OnFeatures, fewer


@takes(transforms.ClusterRemoval, without=("seed",))
class ClusterRemovalMethod(OnFeatures):
    """In each k-means cluster the mean and the top ``D`` directions are removed.

    In similarity the clusters are of token vectors, before pooling; in fine-tuning of the features. A cluster of at
    most D + 1 points would lose all it has, so there are no more clusters than give 2 (D + 1) points each on average,
    and D is at most half of the points.
    """

    name: ClassVar[str] = "cluster_removal"
    source: ClassVar[str] = "Cluster-based removal (Rajaee and Pilehvar, ACL 2021)"
    token_fit: ClassVar[bool] = True

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """Centres, means and directions of the rows."""
        fewer(self.D, rows, "D")
        removed = min(self.D, len(rows) // 2)
        clusters = min(self.n_clusters, max(1, len(rows) // (2 * (removed + 1))))
        return transforms.ClusterRemoval(clusters, removed, seed).fit(rows)

    def fit_tokens(self, tokens: Tensor, seed: int) -> Fitted:
        """The same, learned from token vectors."""
        return self.fitted(tokens, seed)


METHODS = (ClusterRemovalMethod,)

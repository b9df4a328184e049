"""What is done to finished vectors: affine transforms, removals, a flow, other pooling; fitted on the task itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from isonb import transforms
from isonb.options import option
from isonb.transforms.flow import GlowFlow, fit_flow
from isonb.transforms.sbert_wk import sbert_wk
from isonb_lab.methods.shared import Fitted, OnFeatures, OnVectors, fewer, options_from


@options_from(transforms.ZeroMean)
class ZeroMeanMethod(OnVectors):
    """The mean of the vectors is subtracted; their covariance, hence IsoScore, stays."""

    name: ClassVar[str] = "zero_mean"
    source: ClassVar[str] = "All-but-the-top (Mu and Viswanath 2018), its first step"


@options_from(transforms.MeanDirection, without=("renormalize",))
class MeanDirectionMethod(OnVectors):
    """The mean direction is taken out of unit vectors, which are brought back to length 1."""

    name: ClassVar[str] = "mean_direction"
    source: ClassVar[str] = "Mean removal R1 and R2 (Ren, Sun and Liang, arXiv 2511.11041)"


@options_from(transforms.Whitening)
class WhiteningMethod(OnVectors):
    """Mean zero, covariance one, cut to the first ``k`` directions.

    n vectors vary in at most n - 1 directions; those without variance are left out, so fewer than ``k`` may remain.
    """

    name: ClassVar[str] = "whitening"
    source: ClassVar[str] = "BERT-whitening (Su et al. 2021)"


@options_from(transforms.Whitening, without=("k",))
class WhiteBert(OnVectors):
    """Whitening of the masked mean of layers 1 and last, whichever layers the run names."""

    name: ClassVar[str] = "whitebert"
    source: ClassVar[str] = "WhiteningBERT (Huang et al. 2021)"

    def features(self, states: Tensor, mask: Tensor) -> Tensor:
        """As in similarity."""
        return self.pool(states, mask, ())

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        return super().pool(states, mask, (1, -1))


@options_from(transforms.SoftZCA)
class SoftZCAMethod(OnVectors):
    """Whitening softened by ``eps``, along the original axes."""

    name: ClassVar[str] = "soft_zca"
    source: ClassVar[str] = "Soft-ZCA (Diera, Galke and Scherp 2024)"


@options_from(transforms.AllButTheTop)
class AllButTheTopMethod(OnVectors):
    """The mean and the top ``D`` principal directions are removed."""

    name: ClassVar[str] = "all_but_the_top"
    source: ClassVar[str] = "All-but-the-top (Mu and Viswanath 2018)"

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        fewer(self.D or 0, rows, "D")
        return super().fitted(rows, seed)


@options_from(transforms.ClusterRemoval, without=("seed",))
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
        fewer(self.D, rows, "D")
        removed = min(self.D, len(rows) // 2)
        clusters = min(self.n_clusters, max(1, len(rows) // (2 * (removed + 1))))
        return transforms.ClusterRemoval(clusters, removed, seed).fit(rows)

    def fit_tokens(self, tokens: Tensor, seed: int) -> Fitted:
        return self.fitted(tokens, seed)


@options_from(GlowFlow, without=("d", "seed"))
class Flow(OnVectors):
    """A Glow-type flow, trained by maximum likelihood on the vectors it then maps; the encoder stays.

    In similarity the vectors are masked means of the last two layers, the authors' choice, unless ``last_two`` is off;
    in fine-tuning what the head sees.
    """

    name: ClassVar[str] = "flow"
    source: ClassVar[str] = "BERT-flow (Li et al. 2020)"
    idle: ClassVar[Mapping[str, tuple[str, ...]]] = {"finetune": ("last_two",)}

    epochs: int = option(1, "passes over the vectors", low=1, high=10**4)
    batch_size: int = option(32, "vectors an update", low=2, high=10**6)
    learning_rate: float = option(1e-3, "of Adam", low=0, high=1)
    last_two: bool = option(True, "in similarity, average the last two layers, whichever the run names")

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
            rows = rows.detach().clone()
            network = GlowFlow(rows.shape[-1], self.levels, self.depth, self.width, seed)
            network = network.to(rows.device, torch.promote_types(rows.dtype, torch.float32))
            return fit_flow(rows, self.epochs, self.learning_rate, self.batch_size, seed, flow=network)

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        return super().pool(states, mask, (-2, -1) if self.last_two else layers)


@dataclass(frozen=True)
class SbertWK(OnFeatures):
    """Layers and tokens are weighted by what they add; nothing is trained.

    In fine-tuning a new head is trained on these vectors of the frozen encoder. A shallow encoder starts as early as it
    must to leave three layers, or one more than ``window``.
    """

    name: ClassVar[str] = "sbert_wk"
    source: ClassVar[str] = "SBERT-WK (Wang and Kuo 2020)"

    layer_start: int = option(4, "first layer used, earlier in shallow encoders; 0 is the embedding", low=0, high=100)
    window: int = option(2, "layers looked at on each side", low=1, high=100)

    def features(self, states: Tensor, mask: Tensor) -> Tensor:
        """As in similarity."""
        return self.pool(states, mask, ())

    def module(self, rows: Tensor, seed: int) -> nn.Module:
        return nn.Identity()

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        latest = len(states) - max(self.window + 1, 3)
        return sbert_wk(states, mask, max(0, min(self.layer_start, latest)), self.window)


METHODS = (
    ZeroMeanMethod,
    WhiteningMethod,
    WhiteBert,
    SoftZCAMethod,
    AllButTheTopMethod,
    MeanDirectionMethod,
    ClusterRemovalMethod,
    Flow,
    SbertWK,
)

"""The Isotropy Layer with its joint loss (Attieh et al., ICDAR 2023), and IsoBN, the baseline it compares with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from isonb import layers, losses
from isonb.options import option
from isonb_lab.methods.base import Method, Place, SecondPhase, Site
from isonb_lab.methods.shared import options_from


@options_from(losses.IStarLoss, without=("weight",), idle={"zeta": {"isotropy": "isoscore"}})
class IsoLayer(Method):
    """After fine-tuning, a linear layer before the head is trained on task loss and isotropy, all else frozen.

    The two losses are balanced by running means. A batch of B vectors can't show an IsoScore above (B - 2)/(d - 1), so
    the batch is large. In similarity, a contrastive loss stands for the task loss.
    """

    name: ClassVar[str] = "isolayer"
    source: ClassVar[str] = "IsoLayer (Attieh et al., ICDAR 2023)"
    acts_on: ClassVar[Place] = "second"
    read_by: ClassVar[Place] = "second"
    keeps_head: ClassVar[bool] = True
    two_phases: ClassVar[bool] = True
    idle: ClassVar[Mapping[str, tuple[str, ...]]] = {"similarity": ("head", "patience"), "doses": ("learning_rate",)}

    activation: Literal["none", "tanh"] = option("none", "after each layer")
    depth: int = option(1, "layers, one after the other", low=1, high=16)
    init: Literal["identity", "default"] = option("identity", "start: the fine-tuned model as it is, or random")
    isotropy: Literal["isoscore", "isoscore_star"] = option(
        "isoscore", "loss beside the task's: -ln IsoScore, or 1 - IsoScore* shrunk to the scaled identity"
    )
    s: float = option(0.15, "first step of the running means; later ones are s/(1 + k)", low=0, high=1)
    alpha: float = option(0.5, "share of the task loss in the joint loss, the paper's Eq. 2", low=0, high=1)
    head: Literal["frozen", "tuned"] = option("frozen", "the head during this phase: frozen or tuned")
    batch_size: int = option(512, "vectors an update", low=2, high=10**6)
    learning_rate: float = option(1e-3, "of AdamW, constant", low=0, high=1)
    epochs: int = option(50, "passes over the training vectors, at most", low=1, high=10**4)
    patience: int | None = option(5, "epochs without improvement before it stops; None: all epochs", low=1, high=10**4)

    def second(self, features: Tensor, seed: int) -> SecondPhase:
        dim, activation = features.shape[-1], None if self.activation == "none" else self.activation
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            stack = nn.Sequential(*(layers.IsotropyLayer(dim, activation, self.init) for _ in range(self.depth)))
        plain = losses.IsoScoreLoss(unbiased=self.unbiased)
        return SecondPhase(
            module=stack.to(features.device, torch.promote_types(features.dtype, torch.float32)),
            head=self.head,
            penalty=self.build() if self.isotropy == "isoscore_star" else plain,
            joint=losses.JointLoss(self.s, alpha=self.alpha),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            epochs=self.epochs,
            patience=self.patience,
        )


@options_from(layers.IsoBN, without=("d",))
class IsoBNMethod(Method):
    """Each dimension of the pooled sentence vector is scaled by its running correlation with the others and spread."""

    name: ClassVar[str] = "isobn"
    source: ClassVar[str] = "IsoBN (Zhou et al. 2021)"
    acts_on: ClassVar[Place] = "features"
    site: ClassVar[Site] = "pooled"

    def layer(self, dim: int) -> nn.Module:
        return self.build(dim)  # type: ignore[no-any-return]


METHODS = (IsoLayer, IsoBNMethod)

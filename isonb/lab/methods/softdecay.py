"""SoftDecay (Yan et al., UAI 2022) and spectrum control, which its supplement compares with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from isonb import layers, losses
from isonb.errors import fail
from isonb.lab.methods.base import Method, Place, Site
from isonb.lab.options import OptionError, option
from isonb.layers.soft_decay import soft_decay
from isonb.training.points import PointRule

__all__ = ["METHODS", "SoftDecayMethod", "SpectrumControl"]


class _WithPads(layers.SoftDecay):
    """SoftDecay that takes padding for tokens."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


@dataclass(frozen=True)
class SoftDecayMethod(Method):
    """The singular values of each sentence's tokens are compressed by a layer on the last hidden state.

    Alpha is trained with the rest. In similarity nothing is trained: the sentence vectors of each side of all pairs are
    one matrix, transformed with ``sts_alpha``.
    """

    name: ClassVar[str] = "softdecay"
    source: ClassVar[str] = "SoftDecay (Yan et al., UAI 2022)"
    acts_on: ClassVar[Place] = "features"
    site: ClassVar[Site] = "tokens"
    post_hoc: ClassVar[bool] = True

    alpha: float = option(-0.2, "where the trained alpha starts", low=-1, high=0)
    alpha_rate: float | None = option(2e-3, "learning rate of alpha; nothing: the run's", low=0, high=1)
    mode: str = option("code", "code: negative values stay, as released; safe: cut at 0", choices=("code", "safe"))
    include_pads: bool = option(False, "padding counts as tokens, as in the released code")
    sts_alpha: float = option(-0.6, "the fixed alpha in similarity", low=-1, high=0)
    joint: bool = option(False, "in similarity, both sides of the pairs in one matrix; otherwise one each")

    def __post_init__(self) -> None:
        for name in ("alpha", "sts_alpha"):
            value = getattr(self, name)
            if self.mode == "safe" and not -1 < value < 0:
                want = f"{name} of method {self.name} must lie between -1 and 0, both excluded, in mode safe"
                fail(OptionError, want, value, "The paper starts at -0.2 and searches -0.2 to -1.")

    def layer(self, dim: int) -> nn.Module:
        """The layer, called with the mask of real tokens."""
        kind = _WithPads if self.include_pads else layers.SoftDecay
        return kind(self.alpha, mode=self.mode)

    def learning_rates(self) -> Mapping[str, float]:
        """Alpha has its own."""
        return {} if self.alpha_rate is None else {"raw": self.alpha_rate}

    @torch.no_grad()
    def transform(self, first: Tensor, second: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Each side as a matrix of its own, or both as one."""
        if not self.joint:
            return soft_decay(first, self.sts_alpha, self.mode), soft_decay(second, self.sts_alpha, self.mode)
        both = soft_decay(torch.cat([first, second]), self.sts_alpha, self.mode)
        return both[: len(first)], both[len(first) :]


@dataclass(frozen=True)
class SpectrumControl(Method):
    """The squared distance of the last layer's largest singular values from a prior curve joins the loss."""

    name: ClassVar[str] = "spectrum_control"
    source: ClassVar[str] = "Spectrum control (Wang et al. 2020), in the form of SoftDecay (Yan et al., UAI 2022)"
    acts_on: ClassVar[Place] = "tokens"

    weight: float = option(1e-4, "weight", low=-100, high=100)
    prior: str = option("exponential", "the curve", choices=("exponential", "polynomial"))
    c1: float = option(1.0, "height of the curve", low=0, high=1e6)
    c2: float = option(1.0, "rate of the exponential", low=0, high=1e6)
    power: float = option(2.0, "power of the index of a singular value in the curve", low=0, high=100)
    top: int | None = option(5, "how many singular values; nothing: all", low=1, high=10**6)
    include_pads: bool = option(False, "padding counts as tokens")

    def penalty(self) -> nn.Module:
        """The distance of the spectrum."""
        return losses.SpectrumControlLoss(
            self.weight, prior=self.prior, c1=self.c1, c2=self.c2, power=self.power, top=self.top
        )

    def points(self) -> PointRule:
        """Tokens of the last layer."""
        return PointRule("tokens", -1, self.include_pads)


METHODS = (SoftDecayMethod, SpectrumControl)

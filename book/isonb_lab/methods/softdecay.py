"""SoftDecay (Yan et al., UAI 2022) and spectrum control, which its supplement compares with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from isonb import layers, losses
from isonb.errors import OptionError, fail
from isonb.integrations.hidden_states import Pooling
from isonb.layers.soft_decay import soft_decay
from isonb.options import option
from isonb_lab.methods.base import Method, Place, Site
from isonb_lab.methods.shared import WithLoss, options_from


class _WithPads(layers.SoftDecay):
    """SoftDecay that takes padding for tokens."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


@options_from(layers.SoftDecay, without=("trainable",))
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
    idle: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "similarity": ("alpha", "alpha_rate", "include_pads"),
        "finetune": ("sts_alpha", "joint"),
    }

    alpha_rate: float | None = option(2e-3, "learning rate of alpha; None: the run's", low=0, high=1)
    include_pads: bool = option(False, "padding counts as tokens, as in the released code")
    sts_alpha: float = option(-0.6, "the fixed alpha in similarity", low=-1, high=0)
    joint: bool = option(False, "in similarity, both sides of the pairs in one matrix; otherwise one each")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "sts_alpha"):
            value = getattr(self, name)
            if self.mode == "safe" and not -1 < value < 0:
                want = f"{name} of method {self.name} must lie between -1 and 0, both excluded, in mode safe"
                fail(OptionError, want, value, "The paper starts at -0.2 and searches -0.2 to -1.")

    def layer(self, dim: int) -> nn.Module:
        return _WithPads(self.alpha, mode=self.mode) if self.include_pads else self.build()

    def learning_rates(self) -> Mapping[str, float]:
        return {} if self.alpha_rate is None else {"raw": self.alpha_rate}

    @torch.no_grad()
    def transform(self, first: Tensor, second: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        if not self.joint:
            return soft_decay(first, self.sts_alpha, self.mode), soft_decay(second, self.sts_alpha, self.mode)
        both = soft_decay(torch.cat([first, second]), self.sts_alpha, self.mode)
        return both[: len(first)], both[len(first) :]


@options_from(losses.SpectrumControlLoss)
class SpectrumControl(WithLoss):
    """The squared distance of the last layer's largest singular values from a prior curve joins the loss."""

    name: ClassVar[str] = "spectrum_control"
    source: ClassVar[str] = "Spectrum control (Wang et al. 2020), in the form of SoftDecay (Yan et al., UAI 2022)"
    acts_on: ClassVar[Place] = "tokens"

    include_pads: bool = option(False, "padding counts as tokens")

    def points(self) -> Pooling:
        return Pooling("tokens", -1, self.include_pads)


METHODS = (SoftDecayMethod, SpectrumControl)

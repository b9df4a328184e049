"""SBERT-WK (Wang and Kuo 2020): sentence vectors from how each token moves through the layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from isonb.lab.methods.base import Method, Place, SecondPhase
from isonb.lab.options import option
from isonb.transforms.sbert_wk import sbert_wk


@dataclass(frozen=True)
class SbertWK(Method):
    """Layers and tokens are weighted by what they add; nothing is trained.

    In fine-tuning a new head is trained on these vectors of the frozen encoder. A shallow encoder starts as early as it
    must to leave three layers, or one more than ``window``.
    """

    name: ClassVar[str] = "sbert_wk"
    source: ClassVar[str] = "SBERT-WK (Wang and Kuo 2020)"
    acts_on: ClassVar[Place] = "second"
    two_phases: ClassVar[bool] = True
    post_hoc: ClassVar[bool] = True

    layer_start: int = option(4, "first layer used, earlier in shallow encoders; 0 is the embedding", low=0, high=100)
    window: int = option(2, "layers looked at on each side", low=1, high=100)

    def features(self, states: Tensor, mask: Tensor) -> Tensor:
        """As in similarity."""
        return self.pool(states, mask, ())

    def second(self, features: Tensor, seed: int) -> SecondPhase:
        """A new head on the vectors as they are."""
        return SecondPhase(nn.Identity(), head="new")

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        """SBERT-WK vectors, whichever layers the run names."""
        latest = len(states) - max(self.window + 1, 3)
        return sbert_wk(states, mask, max(0, min(self.layer_start, latest)), self.window)


METHODS = (SbertWK,)

"""BERT-flow (Li et al. 2020): an invertible map of the sentence vectors to a standard normal."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from isonb.lab.methods.declared import takes
from isonb.lab.methods.shared import Fitted, OnVectors
from isonb.lab.options import option
from isonb.transforms.flow import GlowFlow, fit_flow


@takes(GlowFlow, without=("d", "seed"))
class Flow(OnVectors):
    """A Glow-type flow, trained by maximum likelihood on the vectors it then maps; the encoder stays.

    In similarity the vectors are masked means of the last two layers, the authors' choice, unless ``last_two`` is off;
    in fine-tuning what the head sees.
    """

    name: ClassVar[str] = "flow"
    source: ClassVar[str] = "BERT-flow (Li et al. 2020)"

    epochs: int = option(1, "passes over the vectors", low=1, high=10**4)
    batch_size: int = option(32, "vectors an update", low=2, high=10**6)
    learning_rate: float = option(1e-3, "of Adam", low=0, high=1)
    last_two: bool = option(True, "in similarity, average the last two layers, whichever the run names")

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """A flow trained on the rows."""
        with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
            rows = rows.detach().clone()
            made = GlowFlow(rows.shape[-1], self.levels, self.depth, self.width, seed)
            made = made.to(rows.device, torch.promote_types(rows.dtype, torch.float32))
            return fit_flow(rows, self.epochs, self.learning_rate, self.batch_size, seed, flow=made)

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        """The mean over real tokens of the mean of the last two layers, or of ``layers``."""
        return super().pool(states, mask, (-2, -1) if self.last_two else layers)


METHODS = (Flow,)

"""Contrastive tuning of the encoder on sentences alone: SimCSE (Gao et al. 2021), tension (Carlsson et al. 2021)."""

from __future__ import annotations

from typing import ClassVar

from isonb.errors import OptionError, fail
from isonb_lab.methods.base import Contrast, Method
from isonb_lab.methods.shared import options_from


@options_from(Contrast, without=("objective", "negatives"))
class SimCSE(Method):
    """The encoder is tuned so that a sentence is closest to itself under another dropout mask, before anything else."""

    name: ClassVar[str] = "simcse"
    source: ClassVar[str] = "SimCSE (Gao et al. 2021), unsupervised"

    def contrast(self) -> Contrast:
        return self.build("simcse")  # type: ignore[no-any-return]


@options_from(Contrast, without=("objective", "temperature"), batch_size=16, learning_rate=1e-5, max_length=75)
class Tension(Method):
    """Two copies of the encoder learn to tell a sentence from others by dot product, before anything else."""

    name: ClassVar[str] = "tension"
    source: ClassVar[str] = "Contrastive tension (Carlsson et al. 2021)"

    def __post_init__(self) -> None:
        super().__post_init__()
        group = self.negatives + 1
        if self.batch_size % group:
            want = f"batch_size of method tension must be a multiple of negatives + 1 = {group}"
            fail(OptionError, want, self.batch_size, f"Give {max(1, self.batch_size // group) * group}, say.")

    def contrast(self) -> Contrast:
        return self.build("tension")  # type: ignore[no-any-return]


METHODS = (SimCSE, Tension)

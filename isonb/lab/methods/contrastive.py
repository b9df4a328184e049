"""Contrastive tuning of the encoder on sentences alone: SimCSE (Gao et al. 2021), tension (Carlsson et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from isonb.errors import fail
from isonb.lab.methods.base import Contrast, Method
from isonb.lab.options import OptionError, option

__all__ = ["METHODS", "SimCSE", "Tension"]


@dataclass(frozen=True)
class SimCSE(Method):
    """The encoder is tuned so that a sentence is closest to itself under another dropout mask, before anything else."""

    name: ClassVar[str] = "simcse"
    source: ClassVar[str] = "SimCSE (Gao et al. 2021), unsupervised"

    steps: int = option(100, "updates", low=1, high=10**7)
    batch_size: int = option(64, "sentences an update", low=2, high=65536)
    learning_rate: float = option(3e-5, "learning rate", low=0, high=1)
    temperature: float = option(0.05, "of the cosines", low=1e-4, high=100)
    max_length: int = option(32, "tokens a sentence", low=4, high=8192)

    def contrast(self) -> Contrast:
        """Stage 1 by SimCSE."""
        return Contrast(
            "simcse",
            self.steps,
            self.batch_size,
            self.learning_rate,
            temperature=self.temperature,
            max_length=self.max_length,
        )


@dataclass(frozen=True)
class Tension(Method):
    """Two copies of the encoder learn to tell a sentence from others by dot product, before anything else."""

    name: ClassVar[str] = "tension"
    source: ClassVar[str] = "Contrastive tension (Carlsson et al. 2021)"

    steps: int = option(100, "updates", low=1, high=10**7)
    batch_size: int = option(16, "pairs an update, a multiple of negatives + 1", low=2, high=65536)
    negatives: int = option(7, "pairs of different sentences to one of the same (K)", low=1, high=1000)
    learning_rate: float = option(1e-5, "learning rate", low=0, high=1)
    max_length: int = option(75, "tokens a sentence", low=4, high=8192)

    def __post_init__(self) -> None:
        group = self.negatives + 1
        if self.batch_size % group:
            fail(
                OptionError,
                f"batch_size of method tension must be a multiple of negatives + 1 = {group}",
                self.batch_size,
                f"Give {max(1, self.batch_size // group) * group}, say.",
            )

    def contrast(self) -> Contrast:
        """Stage 1 by contrastive tension."""
        return Contrast(
            "tension",
            self.steps,
            self.batch_size,
            self.learning_rate,
            negatives=self.negatives,
            max_length=self.max_length,
        )


METHODS = (SimCSE, Tension)

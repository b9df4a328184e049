"""Tuning of the encoder before its task: on sentences alone, or on labelled pairs of sentences.

SimCSE (Gao et al. 2021) and tension (Carlsson et al. 2021); Sentence-BERT (Reimers and Gurevych 2019) and supervised
SimCSE.
"""

from __future__ import annotations

from typing import ClassVar

from isonb.errors import OptionError, fail
from isonb_lab.methods.base import Contrast, Method
from isonb_lab.methods.shared import options_from


@options_from(Contrast, without=("objective", "negatives", "pairs"))
class SimCSE(Method):
    """The encoder is tuned so that a sentence is closest to itself under another dropout mask, before anything else."""

    name: ClassVar[str] = "simcse"
    source: ClassVar[str] = "SimCSE (Gao et al. 2021), unsupervised"

    def contrast(self) -> Contrast:
        return self.build("simcse")  # type: ignore[no-any-return]


@options_from(Contrast, without=("objective", "temperature", "pairs"), batch_size=16, learning_rate=1e-5, max_length=75)
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


@options_from(
    Contrast, without=("objective", "temperature", "negatives"), batch_size=16, learning_rate=2e-5, max_length=128
)
class SBERT(Method):
    """A classifier reads the vectors of both sentences of a pair and their difference, before anything else."""

    name: ClassVar[str] = "sbert"
    source: ClassVar[str] = "Sentence-BERT (Reimers and Gurevych 2019), classification objective"

    def contrast(self) -> Contrast:
        return self.build("sbert")  # type: ignore[no-any-return]


@options_from(Contrast, without=("objective", "negatives"), learning_rate=5e-5)
class SupervisedSimCSE(Method):
    """A sentence is to be closest to one that it entails, and away from one that it contradicts, before anything else.

    The published batch has 512 pairs, and the dense layer behind the vector stays; here it is dropped as in ``simcse``.
    """

    name: ClassVar[str] = "supervised_simcse"
    source: ClassVar[str] = "SimCSE (Gao et al. 2021), supervised"

    def contrast(self) -> Contrast:
        return self.build("supervised_simcse")  # type: ignore[no-any-return]


METHODS = (SimCSE, Tension, SBERT, SupervisedSimCSE)

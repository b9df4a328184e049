"""Tuning of the encoder before its task: on sentences alone, or on labelled pairs of sentences.

SimCSE (Gao et al. 2021) and tension (Carlsson et al. 2021); Sentence-BERT (Reimers and Gurevych 2019) and supervised
SimCSE.
"""

from __future__ import annotations

from typing import ClassVar

from isonb.errors import OptionError, fail
from isonb_lab.methods.base import Contrast, Method
from isonb_lab.methods.shared import options_from


class Tuning(Method):
    """Tunes the encoder by the objective that it is named after."""

    def contrast(self) -> Contrast:
        return self.build(self.name)  # type: ignore[no-any-return]


@options_from(Contrast, without=("objective", "negatives", "pairs"))
class SimCSE(Tuning):
    """The encoder is tuned so that a sentence is closest to itself under another dropout mask, before anything else."""

    name: ClassVar[str] = "simcse"
    source: ClassVar[str] = "SimCSE (Gao et al. 2021), unsupervised"


@options_from(Contrast, without=("objective", "temperature", "pairs"), batch_size=16, learning_rate=1e-5, max_length=75)
class Tension(Tuning):
    """Two copies of the encoder learn to tell a sentence from others by dot product, before anything else."""

    name: ClassVar[str] = "tension"
    source: ClassVar[str] = "Contrastive tension (Carlsson et al. 2021)"

    def __post_init__(self) -> None:
        super().__post_init__()
        group = self.negatives + 1
        if self.batch_size % group:
            want = f"batch_size of method tension must be a multiple of negatives + 1 = {group}"
            fail(OptionError, want, self.batch_size, f"Give {max(1, self.batch_size // group) * group}, say.")


@options_from(
    Contrast, without=("objective", "temperature", "negatives"), batch_size=16, learning_rate=2e-5, max_length=128
)
class SBERT(Tuning):
    """A classifier reads the vectors of both sentences of a pair and their difference, before anything else."""

    name: ClassVar[str] = "sbert"
    source: ClassVar[str] = "Sentence-BERT (Reimers and Gurevych 2019), classification objective"


@options_from(Contrast, without=("objective", "negatives"), learning_rate=5e-5)
class SupervisedSimCSE(Tuning):
    """A sentence is to be closest to one that it entails, and away from one that it contradicts, before anything else.

    The published batch has 512 pairs, and the dense layer behind the vector stays; here it is dropped as in ``simcse``.
    """

    name: ClassVar[str] = "supervised_simcse"
    source: ClassVar[str] = "SimCSE (Gao et al. 2021), supervised"


METHODS = (SimCSE, Tension, SBERT, SupervisedSimCSE)

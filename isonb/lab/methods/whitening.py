"""Affine transforms of sentence vectors: subtract the mean, whiten, whiten softly. Fitted on the task itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from isonb import transforms
from isonb.lab.methods.shared import Fitted, OnVectors, number_or
from isonb.lab.options import option
from isonb.points import layer_average, mean_pool

__all__ = ["METHODS", "SoftZCAMethod", "WhiteBert", "WhiteningMethod", "ZeroMeanMethod"]


@dataclass(frozen=True)
class ZeroMeanMethod(OnVectors):
    """The mean of the vectors is subtracted; their covariance, hence IsoScore, stays."""

    name: ClassVar[str] = "zero_mean"
    source: ClassVar[str] = "All-but-the-top (Mu and Viswanath 2018), its first step"

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """The mean of the rows."""
        return transforms.ZeroMean().fit(rows)


@dataclass(frozen=True)
class WhiteningMethod(OnVectors):
    """Mean zero, covariance one, cut to the first ``k`` directions.

    n vectors vary in at most n - 1 directions; those without variance are left out, so fewer than ``k`` may remain.
    """

    name: ClassVar[str] = "whitening"
    source: ClassVar[str] = "BERT-whitening (Su et al. 2021)"

    k: int | None = option(None, "directions kept, at most the encoder's dimensions; nothing: all", low=1, high=65536)

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """Mean and whitening matrix of the rows."""
        return transforms.Whitening(self.k).fit(rows)


@dataclass(frozen=True)
class WhiteBert(OnVectors):
    """Whitening of the masked mean of layers 1 and last, whichever layers the run names."""

    name: ClassVar[str] = "whitebert"
    source: ClassVar[str] = "WhiteningBERT (Huang et al. 2021)"

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """Mean and whitening matrix of the rows."""
        return transforms.Whitening().fit(rows)

    def features(self, states: Tensor, mask: Tensor) -> Tensor:
        """As in similarity."""
        return self.pool(states, mask, (1, -1))

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        """The mean over real tokens of the mean of layers 1 and last."""
        return mean_pool(layer_average(states, (1, -1)), mask)


@dataclass(frozen=True)
class SoftZCAMethod(OnVectors):
    """Whitening softened by ``eps``, along the original axes."""

    name: ClassVar[str] = "soft_zca"
    source: ClassVar[str] = "Soft-ZCA (Diera, Galke and Scherp 2024)"

    eps: float | str = option(
        "auto", 'added to each variance; "auto": the shrinkage of Ledoit and Wolf', low=0, high=1e6
    )

    def __post_init__(self) -> None:
        number_or("auto", self, "eps")

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """Mean and softened whitening matrix of the rows."""
        return transforms.SoftZCA(self.eps).fit(rows)


METHODS = (ZeroMeanMethod, WhiteningMethod, WhiteBert, SoftZCAMethod)

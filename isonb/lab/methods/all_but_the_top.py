"""All-but-the-top (Mu and Viswanath 2018): remove the mean and the top directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from isonb import transforms
from isonb.lab.methods.shared import Fitted, OnVectors, fewer
from isonb.lab.options import option

__all__ = ["METHODS", "AllButTheTopMethod"]


@dataclass(frozen=True)
class AllButTheTopMethod(OnVectors):
    """The mean and the top ``D`` principal directions are removed."""

    name: ClassVar[str] = "all_but_the_top"
    source: ClassVar[str] = "All-but-the-top (Mu and Viswanath 2018)"

    D: int | None = option(None, "directions removed; nothing: a hundredth of the dimensions", low=0, high=65536)
    centered: bool = option(True, "project the vectors after subtracting the mean; otherwise as first written")

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """Mean and top directions of the rows."""
        fewer(self.D or 0, rows, "D")
        return transforms.AllButTheTop(self.D, self.centered).fit(rows)


METHODS = (AllButTheTopMethod,)

"""Eight properties that a score of isotropy should have, each with clouds for which the right answer is known.

Seven are those of Rudman et al. (IsoScore, 2022) with smaller clouds; the eighth varies the number of points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

HAS, LACKS, UNDEFINED = "yes", "no", "none"
DECAY = torch.arange(1, 25, dtype=torch.float64) ** -0.25  # standard deviations: variances 1 / sqrt(j)
FEWEST = 32  # points of the smallest sample
TURNED = 0.95  # rank correlation from which a reading counts as falling or rising
CHANGED = 0.5  # and the change from end to end


@dataclass(frozen=True)
class Property:
    """What a score should do along ``values``: ``kind`` is "constant", "linear", "falls" or "rises".

    ``build(value)`` gives the clouds (draws, points, dimensions) at a value.
    """

    kind: str
    values: tuple[float, ...]
    build: Callable[[float], Tensor]


def properties(points: int, draws: int, seed: int = 0) -> dict[str, Property]:
    """The eight properties by name, on clouds of ``points`` points, ``draws`` of each.

    >>> suite = properties(64, 2)
    >>> suite["high dimension"].build(3).shape, suite["dimensions used"].kind
    (torch.Size([2, 64, 3]), 'linear')
    """

    def gauss(d: float, count: float = points) -> Tensor:
        g = torch.Generator().manual_seed(seed + int(d))
        return torch.randn(draws, points, int(d), generator=g, dtype=torch.float64)[:, : int(count)]

    def skewered(share: float) -> Tensor:
        """A line along (1, 1, 1), and in a share of the rows a round cloud instead."""
        z = gauss(3)
        on_line = torch.arange(points) >= share * points
        return torch.where(on_line[:, None], z[..., :1].expand_as(z), z)

    oval = torch.linalg.cholesky(torch.tensor([[1.0, 0.8], [0.8, 1.0]], dtype=torch.float64))
    sizes = tuple(sorted({max(FEWEST, round(points * 2**-e)) for e in range(5)}))
    return {
        "mean": Property("constant", (0, 1, 2, 3, 5, 10, 20), lambda m: gauss(5) + m),
        "scale": Property("constant", (1, 2, 4, 9, 16, 25), lambda c: gauss(5) * c**0.5 + 3),
        "maximum variance": Property("falls", (1, 2, 4, 8, 15, 25, 50, 75), lambda x: gauss(10) * _spike(x)),
        "dimensions used": Property(
            "linear", (2, 5, 9, 13, 17, 21, 25), lambda k: gauss(25) * (torch.arange(25) < k).double()
        ),
        "high dimension": Property("constant", (2, 3, 5, 9, 16, 24, 48), gauss),
        "rotation": Property("constant", (0, 15, 45, 90, 120, 165), lambda a: gauss(2) @ oval.mT @ _turn(a)),
        "global stability": Property("rises", (0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95), skewered),
        "sample size": Property("constant", sizes, lambda n: gauss(24, n) * DECAY),
    }


def has_property(kind: str, runs: pd.DataFrame, tolerance: float = 0.1) -> str:
    """Whether a score has a property, in one way for all: :data:`HAS`, :data:`LACKS` or :data:`UNDEFINED`.

    ``runs``: readings, 1 where isotropic; a row a value, a column a draw. "constant": no reading is further than
    ``tolerance`` plus two standard errors over the draws from the first; "linear": from (k - 1) / 24; "falls" and
    "rises": the rank correlation with the value is beyond 0.95, and the ends differ by 0.5 at least.

    >>> has_property("constant", pd.DataFrame([[1.0, 0.9], [0.95, 0.9]], index=[1, 2]))
    'yes'
    """
    if runs.isna().any(axis=None):
        return UNDEFINED
    mean = runs.mean(axis=1)
    if kind in ("constant", "linear"):
        if kind == "constant":
            gap = runs - runs.iloc[0]
        else:
            gap = runs.sub(pd.Series((runs.index - 1) / 24, index=runs.index), axis=0)
        allowed = tolerance + 2 * gap.std(axis=1) / math.sqrt(runs.shape[1])
        return HAS if (gap.mean(axis=1).abs() <= allowed).all() else LACKS
    sign = -1 if kind == "falls" else 1
    rank = mean.rank().corr(pd.Series(mean.index, index=mean.index).rank())
    return HAS if sign * rank >= TURNED and sign * (mean.iloc[-1] - mean.iloc[0]) >= CHANGED else LACKS


def _turn(degrees: float) -> Tensor:
    angle = torch.tensor(degrees).deg2rad()
    c, s = angle.cos(), angle.sin()
    return torch.stack([torch.stack([c, -s]), torch.stack([s, c])]).double()


def _spike(x: float) -> Tensor:
    return torch.cat([torch.tensor([x**0.5]), torch.ones(9)]).double()

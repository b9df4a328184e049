"""Clouds whose covariance is known: the population, its points in pieces, and what theory expects of a sample."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from isonb.measures.isoscore import isoscore_from_cov

FREEDOM = 5  # degrees of freedom of the heavy tails: the fourth moment is finite, the sixth is not
BLOCK = 4096


def variances(spectrum: str, dim: int) -> Tensor:
    """Variances (d) along the axes. "figure2": 10, 6, 4, 4, then ones (I-STAR, Figure 2); "isotropic": ones.

    >>> variances("figure2", 6).tolist()
    [10.0, 6.0, 4.0, 4.0, 1.0, 1.0]
    """
    along = torch.ones(dim)
    if spectrum == "figure2":
        along[:4] = torch.tensor([10.0, 6.0, 4.0, 4.0])
    return along


def true_score(spectrum: str, dim: int) -> float:
    """IsoScore of the population.

    >>> round(true_score("figure2", 768), 4)
    0.8673
    """
    return float(isoscore_from_cov(variances(spectrum, dim).double().diag()))


def expected_score(spectrum: str, dim: int, size: int, rows: int, zeta: float) -> float:
    r"""IsoScore* to expect of ``size`` Gaussian points, shrunk by the covariance of ``rows`` others.

    With the participation ratio PR of the population, :math:`1/\mathrm{PR}^* \approx 1/\mathrm{PR} + (1-\zeta)^2/n +
    \zeta^2/|S|`: sampling adds to the squared norm of a covariance, not to its trace.

    >>> [round(expected_score("figure2", 768, 700, 20_000, zeta / 5), 3) for zeta in range(6)]
    [0.444, 0.538, 0.643, 0.745, 0.819, 0.839]
    """
    ratio = 1 + true_score(spectrum, dim) * (dim - 1)
    expected = 1 / (1 / ratio + (1 - zeta) ** 2 / size + zeta**2 / rows)
    return (expected - 1) / (dim - 1)


class Points:
    """Independent points of a population, drawn one after the other by a seed; the same on every device.

    Heavy tails are those of the multivariate t distribution with 5 degrees of freedom; its covariance is 5/3 of the
    Gaussian's, which no IsoScore sees.
    """

    def __init__(self, spectrum: str, tail: str, dim: int, seed: int, device: torch.device | str = "cpu") -> None:
        self._scale = variances(spectrum, dim).sqrt()
        self._tail, self._device = tail, device
        self._generator = torch.Generator().manual_seed(seed)

    def draw(self, rows: int) -> Tensor:
        """The next points, float32 (rows, d)."""
        x = torch.randn(rows, len(self._scale), generator=self._generator) * self._scale
        if self._tail == "student5":
            lengths = torch.randn(rows, FREEDOM, generator=self._generator).square().mean(-1, keepdim=True)
            x = x / lengths.sqrt()
        return x.to(self._device)

    def blocks(self, rows: int) -> Iterator[Tensor]:
        """The next ``rows`` points in pieces that fit in little memory."""
        for start in range(0, rows, BLOCK):
            yield self.draw(min(BLOCK, rows - start))

"""Losses that spread sentence vectors, later than the four papers: GOR and SIGReg of :mod:`isonb.losses.spreading`."""

from __future__ import annotations

from torch import Tensor, nn

from isonb.losses.spreading import gor_penalty, random_directions, sigreg_penalty
from isonb.numerics.distributed import Group

__all__ = ["GORLoss", "SIGRegLoss"]


class GORLoss(nn.Module):
    """``weight`` times the global orthogonal regularisation: :func:`isonb.losses.spreading.gor_penalty`.

    Zhang et al. 2017 with both parts at weight 1; ``mean_weight=0, hinge=False`` is EmbeddingGemma's spread-out term.
    Points are sentence vectors.

    >>> import torch
    >>> round(GORLoss()(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).item(), 6)
    0.222222
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        mean_weight: float = 1.0,
        square_weight: float = 1.0,
        hinge: bool = True,
        group: Group = "world",
    ) -> None:
        super().__init__()
        self.weight, self.mean_weight, self.square_weight = weight, mean_weight, square_weight
        self.hinge, self.group = hinge, group

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        return self.weight * gor_penalty(
            points,
            mean_weight=self.mean_weight,
            square_weight=self.square_weight,
            hinge=self.hinge,
            mask=mask,
            group=self.group,
        )


class SIGRegLoss(nn.Module):
    """``weight`` times SIGReg (LeJEPA, Balestriero and LeCun 2025): :func:`isonb.losses.spreading.sigreg_penalty`.

    Each call draws ``slices`` new directions from torch's generator, the first process for all; with a ``seed`` they
    are the same in every call. Under :func:`torch.compile` the graph breaks where they are drawn. Vectors whose scale
    isn't near 1 along a direction need ``normalize=True``.

    >>> import torch
    >>> loss = SIGRegLoss()
    >>> round(loss(torch.tensor([[-1.0], [0.0], [1.0]])).item(), 5)  # there is one direction, and its opposite
    0.03295
    """

    def __init__(
        self,
        weight: float = 1.0,
        slices: int = 1024,
        *,
        seed: int | None = None,
        normalize: bool = False,
        group: Group = "world",
    ) -> None:
        super().__init__()
        self.weight, self.slices, self.seed = weight, slices, seed
        self.normalize, self.group = normalize, group

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        directions = random_directions(
            points.shape[-1], self.slices, seed=self.seed, device=points.device, group=self.group
        )
        return self.weight * sigreg_penalty(points, directions, normalize=self.normalize, mask=mask, group=self.group)

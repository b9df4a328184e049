"""The losses of the four papers, of their baselines and of later years, ready to be added to a task loss.

Each returns what is *added*; its weight and sign are its own. All act on the points of the whole batch: of every
process, when torch.distributed is initialised (``group=None`` keeps to this one; see :mod:`isonb.numerics.distributed`
for what that means for gradients). Under autocast they compute in float32. Too few points for a loss to mean anything
give 0 with a graph, so the last small batch of an epoch passes (the functions say what a mask that leaves too few gives
where values aren't looked at). All but :class:`PersistentEntropyLoss` and :class:`isonb.SIGRegLoss` compile into one
graph (``torch.compile(loss, fullgraph=True)``); compiled, they don't look at values (see :mod:`isonb.checks`). No class
here holds mathematics: see :mod:`isonb.losses.penalties`, :mod:`isonb.losses.persistent_entropy` and
:mod:`isonb.losses.spreading`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from isonb.errors import InputError, fail
from isonb.losses.joint import JointLoss
from isonb.losses.penalties import cosreg_penalty, isoscore_penalty, istar_penalty, spectrum_penalty
from isonb.losses.persistent_entropy import entropy_penalty
from isonb.losses.shrinkage import ShrinkageCovariance, points_from_hidden_states
from isonb.losses.spreading_losses import GORLoss, SIGRegLoss
from isonb.numerics.distributed import Group

__all__ = [
    "CosRegLoss",
    "GORLoss",
    "GaoCosineLoss",
    "IStarLoss",
    "IsoScoreLoss",
    "JointLoss",
    "PersistentEntropyLoss",
    "SIGRegLoss",
    "ShrinkageCovariance",
    "SpectrumControlLoss",
    "points_from_hidden_states",
]


class PersistentEntropyLoss(nn.Module):
    """``-weight`` times the persistent entropy of each label's points, of :mod:`isonb.losses.persistent_entropy`.

    Shrink-the-longest (arXiv 2501.05502): points are the last layer's [CLS] vectors of the effective batch (64 there),
    labels the gold labels, weight 1, summed over labels. Under :func:`torch.compile` the graph breaks at this loss.

    >>> loss = PersistentEntropyLoss(select=False)
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0]], requires_grad=True)
    >>> round(loss(points).item(), 4)  # four equal bars: minus ln 4
    -1.3863
    >>> loss(points[:3]).item()  # fewer than five points: nothing to add
    0.0
    """

    def __init__(
        self,
        select: bool = True,
        in_cluster: float = 0.0,
        *,
        in_cluster_sign: int = 1,
        keep_breaking: bool = True,
        normalize: bool = False,
        reduction: str = "sum",
        min_points: int = 5,
        max_dim: int = 0,
        weight: float = 1.0,
        group: Group = "world",
    ) -> None:
        super().__init__()
        self.select, self.keep_breaking, self.normalize = select, keep_breaking, normalize
        self.in_cluster, self.in_cluster_sign = in_cluster, in_cluster_sign
        self.reduction, self.min_points, self.max_dim = reduction, min_points, max_dim
        self.weight, self.group = weight, group

    def forward(self, points: Tensor, labels: Tensor | None = None) -> Tensor:
        """Points (n, d), integer labels (n,) or None for one group; returns a scalar."""
        return self.weight * entropy_penalty(
            points,
            labels,
            select=self.select,
            keep_breaking=self.keep_breaking,
            in_cluster=self.in_cluster,
            in_cluster_sign=self.in_cluster_sign,
            normalize=self.normalize,
            reduction=self.reduction,
            min_points=self.min_points,
            max_dim=self.max_dim,
            group=self.group,
        )


class IStarLoss(nn.Module):
    """``weight * (1 - IsoScore*)``: :func:`isonb.losses.penalties.istar_penalty`.

    I-STAR (Rudman and Eickhoff, ICLR 2024): points are the tokens of layers 1..L
    (:func:`points_from_hidden_states`), ``shrinkage_cov`` comes from a :class:`ShrinkageCovariance` at each epoch's
    start. A negative weight lowers isotropy, a positive one raises it.

    The mask may stand second, as a bool vector: ``IStarLoss()(*points_from_hidden_states(states, attention_mask))``.

    >>> points = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])
    >>> round(IStarLoss(weight=-1.0, zeta=0.3)(points, torch.eye(2)).item(), 6)
    -0.371056
    """

    def __init__(
        self, weight: float = 1.0, zeta: float | str = 0.2, *, unbiased: bool = False, group: Group = "world"
    ) -> None:
        super().__init__()
        self.weight, self.zeta, self.unbiased, self.group = weight, zeta, unbiased, group

    def forward(self, points: Tensor, shrinkage_cov: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), shrinkage_cov (d, d) or None for the scaled identity, mask (n,); returns a scalar."""
        if shrinkage_cov is not None and shrinkage_cov.dtype == torch.bool and shrinkage_cov.ndim == 1:
            if mask is not None:
                fail(InputError, "there must be one mask", "two, the first for shrinkage_cov", "Name the arguments.")
            shrinkage_cov, mask = None, shrinkage_cov
        return self.weight * istar_penalty(
            points, shrinkage_cov, zeta=self.zeta, unbiased=self.unbiased, mask=mask, group=self.group
        )


class IsoScoreLoss(nn.Module):
    """``-weight * ln IsoScore``: :func:`isonb.losses.penalties.isoscore_penalty` (IsoLayer, Attieh et al., ICDAR 2023).

    >>> round(IsoScoreLoss()(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])).item(), 6)
    0.753772
    """

    def __init__(
        self,
        *,
        weight: float = 1.0,
        unbiased: bool = False,
        floor: float | None = None,
        group: Group = "world",
    ) -> None:
        super().__init__()
        self.weight, self.unbiased, self.floor, self.group = weight, unbiased, floor, group

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        return self.weight * isoscore_penalty(
            points, unbiased=self.unbiased, floor=self.floor, mask=mask, group=self.group
        )


class CosRegLoss(nn.Module):
    """``weight`` times the mean cosine in its 1/M^2 form: :func:`isonb.losses.penalties.cosreg_penalty`.

    I-STAR's baseline CosReg: points are the tokens of the last layer, weight 1.

    >>> round(CosRegLoss()(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).item(), 6)
    0.31427
    """

    def __init__(self, weight: float = 1.0, *, group: Group = "world") -> None:
        super().__init__()
        self.weight, self.group = weight, group

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        return self.weight * cosreg_penalty(points, mask=mask, group=self.group)


class GaoCosineLoss(CosRegLoss):
    """CosReg on the rows of a word-embedding matrix, as proposed for language models (Gao et al. 2019).

    Every process holds the same matrix, so nothing is reduced over processes.

    >>> embedding = nn.Embedding.from_pretrained(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> round(GaoCosineLoss()(embedding).item(), 6)
    0.31427
    """

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__(weight, group=None)

    def forward(self, points: Tensor | nn.Embedding | nn.Linear, mask: Tensor | None = None) -> Tensor:
        """The embedding matrix (M, d), or the module whose weight it is; returns a scalar."""
        return super().forward(points.weight if isinstance(points, nn.Module) else points, mask)


class SpectrumControlLoss(nn.Module):
    """``weight`` times the distance of the spectrum to a prior curve: :func:`isonb.losses.penalties.spectrum_penalty`.

    Spectrum control (Wang et al. 2020) in the form SoftDecay's code adapts to token matrices: the ``top`` 5 singular
    values against exp(-k^2), weight 1e-4, here squared.

    >>> s = torch.diag(torch.tensor([3.0, 1.0, 0.5]))
    >>> loss = SpectrumControlLoss(weight=1.0, prior="polynomial", c1=3.0, power=0.5, top=None)
    >>> round(loss(s).item(), 5)
    2.77531
    """

    def __init__(
        self,
        weight: float = 1e-4,
        *,
        prior: str = "exponential",
        c1: float = 1.0,
        c2: float = 1.0,
        power: float = 2.0,
        top: int | None = 5,
        group: Group = "world",
    ) -> None:
        super().__init__()
        self.weight, self.prior, self.c1, self.c2 = weight, prior, c1, c2
        self.power, self.top, self.group = power, top, group

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), or on one process (..., n, d) matrix by matrix, mask (..., n); returns a scalar."""
        return self.weight * spectrum_penalty(
            points,
            prior=self.prior,
            c1=self.c1,
            c2=self.c2,
            power=self.power,
            top=self.top,
            mask=mask,
            group=self.group,
        )

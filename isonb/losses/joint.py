"""A task loss and an isotropy loss on one scale, by their running means."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from isonb.checks import validated
from isonb.errors import DtypeError, ShapeError, fail
from isonb.numerics.distributed import Group, all_sum, process_group
from isonb.numerics.modules import OptionModule
from isonb.options import option


@dataclass(eq=False, repr=False)
class JointLoss(OptionModule):
    r"""Task loss and isotropy loss, balanced by running means (IsoLayer, Attieh et al., ICDAR 2023).

    Returns :func:`isonb.losses.joint.balanced_sum` of the two with the means before this step; then, in training,
    :math:`m_i \leftarrow w L_i + (1 - w) m_i` with :math:`w = s / (1 + k)` at step k. The paper doesn't give the
    initial means: they are the losses of the first batch. Means and step are buffers, the means float32 or wider. The
    paper's losses are positive; a mean counts by its size, so that a negative loss is lowered too. A step with a loss
    that isn't finite, as of one that a loss scaler skips, changes neither means nor step.

    Under several processes each loss is averaged over them first; ``count``, the number of examples behind ``l1`` here,
    weights the average of ``l1`` (unequal shards). ``l2`` is meant to be the same everywhere, as the losses of this
    module are.

    >>> import isonb, torch
    >>> joint, scalar = isonb.JointLoss(s=0.15), torch.tensor
    >>> [round(joint(scalar(a), scalar(b)).item(), 6) for a, b in ((1.0, 4.0), (0.8, 3.5), (0.6, 3.0))]
    [2.5, 2.09375, 1.689862]
    """

    s: float = option(0.15, "first step of the running means; later ones are s/(1 + k)", low=0, high=1)
    _: KW_ONLY
    alpha: float = option(0.5, "share of the task loss in the joint loss, the paper's Eq. 2", low=0, high=1)
    group: Group = option("world", "the processes over which the two losses are averaged")
    mean1: Tensor = field(init=False)
    mean2: Tensor = field(init=False)
    step: Tensor = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.register_buffer("mean1", torch.zeros(()))
        self.register_buffer("mean2", torch.zeros(()))
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    @validated
    def forward(self, l1: Tensor, l2: Tensor, count: int | Tensor | None = None) -> Tensor:
        """Task loss, isotropy loss, examples behind the task loss; returns a scalar."""
        l1, l2 = self._everywhere(_scalar(l1, "l1"), _scalar(l2, "l2"), count)
        step = self.step.to(l1.device)
        first = step == 0
        mean1 = torch.where(first, l1.detach(), self.mean1.to(l1))
        mean2 = torch.where(first, l2.detach(), self.mean2.to(l2))
        total = balanced_sum(l1, l2, mean1, mean2, self.alpha)
        if self.training:
            finite = torch.isfinite(l1.detach()) & torch.isfinite(l2.detach())
            for running, mean, loss in ((self.mean1, mean1, l1), (self.mean2, mean2, l2)):
                later = torch.lerp(mean.detach(), loss.detach(), self.s / (1 + step.to(mean)))
                running.copy_(torch.where(finite, later, running.to(later)))
            self.step.copy_(step + finite)
        return total

    def _everywhere(self, l1: Tensor, l2: Tensor, count: int | Tensor | None) -> tuple[Tensor, Tensor]:
        if process_group(self.group) is None:
            return l1, l2
        weight = torch.as_tensor(1 if count is None else count, dtype=l1.dtype, device=l1.device)
        sums = all_sum(torch.stack([l1 * weight, weight, l2.to(l1), torch.ones_like(weight)]), self.group)
        return sums[0] / sums[1], sums[2] / sums[3]


def _scalar(loss: Tensor, name: str) -> Tensor:
    """A loss, one number of half precision in float32."""
    if not isinstance(loss, Tensor) or not loss.is_floating_point() or loss.layout != torch.strided:
        got = loss.dtype if isinstance(loss, Tensor) else type(loss).__name__
        fail(DtypeError, f"{name} must be a dense tensor of one floating-point number", got, "Pass the loss itself.")
    if loss.ndim:
        fail(ShapeError, f"{name} must be one number", f"shape {tuple(loss.shape)}", f"Pass {name}.mean().")
    return loss if loss.dtype in (torch.float32, torch.float64) else loss.float()


@validated
def balanced_sum(first: Tensor, second: Tensor, mean1: Tensor, mean2: Tensor, alpha: float = 0.5) -> Tensor:
    r"""Two losses on one scale by running means, :math:`\alpha L_1 \bar m/|m_1| + (1-\alpha) L_2 \bar m/|m_2|`.

    Equation 2 of IsoLayer (Attieh et al., ICDAR 2023) with its balancing. :math:`\bar m` is the average of
    :math:`|m_1|` and :math:`|m_2|`, which are constants; the paper's losses are positive. A mean of 0 leaves its loss
    unscaled. All arguments and the result are scalars.

    >>> one = torch.tensor
    >>> balanced_sum(one(0.8), one(3.5), one(1.0), one(4.0)).item()
    2.09375
    """
    size1, size2 = mean1.detach().abs(), mean2.detach().abs()
    average = (size1 + size2) / 2

    def scaled(loss: Tensor, size: Tensor) -> Tensor:
        return loss * torch.where(size == 0, 1.0, average / torch.where(size == 0, 1.0, size))

    return alpha * scaled(first, size1) + (1 - alpha) * scaled(second, size2)

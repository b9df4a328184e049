"""What the losses share: a log of the last call, and what too few points give.

A training run must survive its last, smallest batch: where there are too few points for a loss to mean anything it is
0, still attached to the points, so that ``backward`` works and every gradient is zero. Malformed input raises.
"""

from __future__ import annotations

from torch import Tensor

from isonb.checks import check_values
from isonb.numerics.distributed import Group, all_sum, process_group
from isonb.numerics.modules import OptionModule
from isonb.numerics.rows import row_count

POOLED = "the processes whose points count as one cloud"  # what the option ``group`` means


class Loss(OptionModule):
    """A loss whose options are the fields of a dataclass, made by :func:`isonb.options.option`.

    ``logged`` holds what a log shows of the last call, by name: numbers that say more of the geometry than the loss.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.logged: dict[str, Tensor] = {}


def attached_zero(points: Tensor) -> Tensor:
    """0 with a graph to the points."""
    return points[..., :0].sum()


def too_few(points: Tensor, mask: Tensor | None, least: int, group: Group) -> bool:
    """Whether all processes together hold fewer than ``least`` points; False where that would wait for the device."""
    if process_group(group) is None and (mask is None or points.shape[-2] < least):
        return points.shape[-2] < least
    if not check_values(points):
        return False
    return int(all_sum(row_count(points, mask).detach(), group)) < least

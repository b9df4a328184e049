"""What the losses share: options as fields, and what too few points give.

A training run must survive its last, smallest batch: where there are too few points for a loss to mean anything it is
0, still attached to the points, so that ``backward`` works and every gradient is zero. Malformed input raises.
"""

from __future__ import annotations

from torch import Tensor, nn

from isonb.checks import check_values
from isonb.numerics.distributed import Group, all_sum, process_group
from isonb.numerics.rows import row_count


class Loss(nn.Module):
    """A loss whose options are the fields of a dataclass: declared once, with their meaning under Args.

    The methods of the lab and the command line take names, defaults, types, words and ranges from there. ``logged``
    holds what a log shows of the last call, by name: numbers that say more of the geometry than the loss itself.
    """

    def __post_init__(self) -> None:
        super().__init__()
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

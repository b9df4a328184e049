r"""Statistics over the union of the rows that several processes hold, with gradients.

Every process computes the same loss L of the union and calls ``backward`` on it. What is differentiated then is the sum
of the processes' losses, :math:`\sum_r L_r = RL`, so the adjoint of a sum over processes is again a sum over processes.
Each process ends with R times the part of :math:`\partial L/\partial\theta` that passes through its own rows, and the
average over processes, which DistributedDataParallel, FSDP and Accelerate take of every gradient, is exactly
:math:`\partial L/\partial\theta` of one process that holds all rows, however unequal the shards. Where gradients are
summed by hand instead, divide them by the number of processes, as for any other loss.

``group`` is ``"world"`` (all processes of torch.distributed; nothing happens where it isn't initialised), a process
group, or None for this process alone. Every process of the group must make the same calls in the same order, with the
same dtype and width; a shard may be empty.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from isonb.errors import InputError, fail
from isonb.numerics.rows import center_rows, row_count

Group: TypeAlias = Literal["world"] | dist.ProcessGroup | None


def process_group(group: Group | str) -> dist.ProcessGroup | None:
    """The group to reduce over, or None where this process is alone in it.

    >>> process_group("world") is None  # torch.distributed isn't initialised
    True
    """
    if isinstance(group, str) and group != "world":
        fix = "Make a group with torch.distributed.new_group."
        fail(InputError, 'group must be "world", a process group or None', repr(group), fix)
    if group is None or not dist.is_available() or not dist.is_initialized():
        return None
    chosen = dist.group.WORLD if isinstance(group, str) else group
    return chosen if dist.get_world_size(chosen) > 1 else None


class _AllSum(torch.autograd.Function):
    """Sum over processes forward, sum over processes backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        out = x.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(out, group=group)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        grad = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class _AllRows(torch.autograd.Function):
    """Rows of every process one below the other; backward keeps the own part of the sum of all gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: list[int], group: dist.ProcessGroup) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        padded = x.new_zeros(max(sizes), *x.shape[1:])
        padded[: x.shape[0]] = x.detach()
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded, group=group)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        grad = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(grad, group=ctx.group)
        return torch.split(grad, ctx.sizes)[dist.get_rank(ctx.group)], None, None


def all_sum(x: Tensor, group: Group = "world") -> Tensor:
    """The sum of ``x`` over the processes of ``group``; its gradient is summed over them, too.

    >>> all_sum(torch.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    processes = process_group(group)
    out: Tensor = x if processes is None else _AllSum.apply(x, processes)  # type: ignore[no-untyped-call]
    return out


def from_first(x: Tensor, group: Group = "world") -> Tensor:
    """``x`` of the first process of ``group``, whose shape and dtype all have; without gradient.

    >>> from_first(torch.tensor([1.0])).tolist()
    [1.0]
    """
    processes = process_group(group)
    if processes is None:
        return x
    out = x.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(out, dist.get_global_rank(processes, 0), group=processes)
    return out


def union_rows(x: Tensor, group: Group = "world") -> tuple[Tensor, slice]:
    """The rows of every process in rank order, and where this process's own stand among them.

    >>> union_rows(torch.tensor([[1.0], [2.0]]))[1]
    slice(0, 2, None)
    """
    processes = process_group(group)
    if processes is None:
        return x, slice(0, x.shape[0])
    size = torch.tensor([x.shape[0]], device=x.device)
    gathered = [torch.empty_like(size) for _ in range(dist.get_world_size(processes))]
    dist.all_gather(gathered, size, group=processes)
    sizes = [int(s) for s in gathered]
    start = sum(sizes[: dist.get_rank(processes)])
    return _AllRows.apply(x, sizes, processes), slice(start, start + x.shape[0])  # type: ignore[no-untyped-call]


def all_rows(x: Tensor, group: Group = "world") -> Tensor:
    """The rows of every process in rank order, (n_r, ...) -> (sum of n_r, ...).

    The gradient of a row is summed over the processes. The lengths may differ and are exchanged first, which waits for
    the device.

    >>> all_rows(torch.tensor([[1.0], [2.0]])).tolist()
    [[1.0], [2.0]]
    """
    return union_rows(x, group)[0]


class UnionMoments(NamedTuple):
    """What the losses need of the union: points, mean and scatter about it."""

    n: Tensor
    mean: Tensor
    scatter: Tensor


def rows_about_mean(x: Tensor, mask: Tensor | None, group: Group) -> tuple[Tensor, Tensor, Tensor]:
    """Count () and mean (d) of the checked rows (n, d) of all processes, and this process's rows about that mean.

    One collective of d + 1 numbers. Each process centres on its own mean first and moves by the difference of two means
    afterwards, so a cloud far from the origin keeps its shape in float32.

    >>> rows_about_mean(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), None, None)[2].tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    rows, mean = center_rows(x, mask)
    n = row_count(x, mask)
    if process_group(group) is None:
        return n, mean, rows
    sums = all_sum(torch.cat([n.unsqueeze(0), n * mean]), group)
    common = sums[1:] / sums[0].clamp_min(1)
    rows = rows + (mean - common)
    if mask is not None:
        rows = torch.where(mask.unsqueeze(-1), rows, 0.0)
    return sums[0], common, rows


def union_moments(x: Tensor, mask: Tensor | None = None, group: Group = "world") -> UnionMoments:
    """Count (), mean (d) and scatter (d, d) of the checked rows (n, d) of all processes, differentiable.

    Two collectives of d + 1 and d * d numbers.

    >>> union_moments(torch.tensor([[1.0, 0.0], [3.0, 0.0]])).scatter.tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    n, mean, rows = rows_about_mean(x, mask, group)
    return UnionMoments(n, mean, all_sum(rows.mT @ rows, group))

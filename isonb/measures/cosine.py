r"""Cosines between the points of a cloud, exact in O(nd): :math:`\sum_{ij} \cos(x_i, x_j) = |\sum_i \hat x_i|^2`.

A zero row has no direction. It takes no part in the means (they are over the other rows) and adds nothing to the
penalty; its gradient is zero. Any other row has one, however short or long.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_points, check_size, check_values, validated
from isonb.errors import DegenerateError, fail
from isonb.numerics.rows import Directions, count_nonzero_rows, directions, row_count

_PAIRS = 4096  # sampled pairs looked at together


def _resultant(along: Directions) -> Tensor:
    """The sum of unit rows (..., d)."""
    return (along.inverse.unsqueeze(-2) @ along.rows).squeeze(-2)


def _pair_mean(total: Tensor, count: Tensor, include_self: bool) -> Tensor:
    """Mean over ordered pairs, of a sum over all of them with the diagonal."""
    if include_self:
        return total / (count * count).clamp_min(1)
    return torch.where(count > 1, (total - count) / (count * (count - 1)).clamp_min(1), 0.0)


@validated
def mean_cosine(
    x: Tensor, *, mask: Tensor | None = None, n_pairs: int | None = None, generator: torch.Generator | None = None
) -> Tensor:
    r"""Mean cosine of two different points (Ethayarajh 2019; baseline of I-STAR, Rudman and Eickhoff, ICLR 2024).

    .. math:: \frac{\left|\sum_i \hat x_i\right|^2 - n}{n (n - 1)}, \qquad \hat x = x / |x|

    Exact over all pairs. ``n_pairs`` draws that many pairs i != j with replacement instead (seeded by ``generator``),
    as papers do; theirs may also draw i = j. About 0 for any cloud around the origin and near 1 for a far-off one: it
    measures the mean, not isotropy.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...) in [-1/(m - 1), 1] with m nonzero rows, of drawn
    pairs in [-1, 1]. Differentiable. Errors: fewer than 2 points :class:`~isonb.errors.ShapeError`, fewer than 2
    nonzero ones :class:`~isonb.errors.DegenerateError`, on an accelerator 0; n_pairs < 1
    :class:`~isonb.errors.InputError`.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> round(mean_cosine(x).item(), 6)
    0.471405
    """
    along = directions(check_points(x, mask, look=False)[0])
    count = count_nonzero_rows(along, 2)
    if n_pairs is None:
        return _pair_mean(_resultant(along).square().sum(-1), count, False)
    n_pairs = check_size(n_pairs, "n_pairs", "Leave it out for the exact mean.")
    return _sampled_mean(along.rows * along.inverse.unsqueeze(-1), along.inverse > 0, n_pairs, generator)


def _sampled_mean(unit: Tensor, usable: Tensor, n_pairs: int, generator: torch.Generator | None) -> Tensor:
    """The mean of n_pairs random products of different usable rows."""
    order = usable.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)  # usable rows first
    count = usable.sum(-1, keepdim=True)
    home = unit.device if generator is None else generator.device

    def draw(among: Tensor, size: int) -> Tensor:
        share = torch.rand(*count.shape[:-1], size, generator=generator, device=home, dtype=torch.float32)
        return torch.minimum((share.to(unit.device) * among).long(), (among - 1).clamp_min(0))

    total = unit.new_zeros(unit.shape[:-2])
    for start in range(0, n_pairs, _PAIRS):
        size = min(_PAIRS, n_pairs - start)
        i, j = draw(count, size), draw(count - 1, size)
        j = j + (j >= i).long()  # any row but i
        pair = [order.gather(-1, k.clamp_max(unit.shape[-2] - 1)).unsqueeze(-1) for k in (i, j)]
        rows = [unit.gather(-2, k.expand(*k.shape[:-1], unit.shape[-1])) for k in pair]
        total = total + (rows[0] * rows[1]).sum((-2, -1))
    return total / n_pairs


@validated
def cosine_penalty(x: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""CosReg: the sum of cosines over i != j divided by n^2 (Gao et al. 2019; I-STAR's baseline, its Section 4).

    .. math:: \frac{1}{n^2} \sum_i \sum_{j \ne i} \hat x_i^T \hat x_j
        = \frac{\left|\sum_i \hat x_i\right|^2 - n}{n^2}

    Not divided by n (n - 1): for the mean see :func:`mean_cosine`. Shapes: x (..., n, d), mask (..., n) optional;
    returns (...) in [-1/n, 1 - 1/n], to be minimised. Differentiable. A zero row counts in n and adds 0, where the
    official code gives NaN. Errors: fewer than 2 points :class:`~isonb.errors.ShapeError`.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> round(cosine_penalty(x).item(), 6)
    0.31427
    """
    x, mask = check_points(x, mask, look=False)
    along = directions(x)
    n = row_count(x, mask).clamp_min(1)
    return (_resultant(along).square().sum(-1) - count_nonzero_rows(along, 0)) / (n * n)


@validated
def cosine_contributions(x: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""What each dimension adds to the mean cosine (Timkey and van Schijndel, EMNLP 2021), exact over all pairs.

    .. math:: c_k = \frac{\left(\sum_i \hat x_{ik}\right)^2 - \sum_i \hat x_{ik}^2}{n (n - 1)}

    They sum to :func:`mean_cosine`; a share above 1 of that sum means others are negative. One or a few large entries
    are rogue dimensions. Shapes: x (..., n, d), mask (..., n) optional; returns (..., d). Differentiable. Errors and
    limit as :func:`mean_cosine`.

    >>> [round(c, 6) for c in cosine_contributions(torch.tensor([[3.0, 1, 0], [3, -1, 1], [2, 0, -1]])).tolist()]
    [0.838561, -0.031782, -0.044947]
    """
    along = directions(check_points(x, mask, look=False)[0])
    count = count_nonzero_rows(along, 2).unsqueeze(-1)
    unit = along.rows * along.inverse.unsqueeze(-1)
    difference = unit.sum(-2).square() - unit.square().sum(-2)
    return difference / (count * (count - 1)).clamp_min(1)


@validated
def token_uniformity(x: Tensor, mask: Tensor | None = None, *, include_self: bool = False) -> Tensor:
    r"""TokenUni: the mean cosine of the tokens of a sentence (SoftDecay, Yan et al., UAI 2022).

    Over pairs i != j of real tokens. ``include_self=True`` also counts i = j and divides by n^2, as their code for sets
    of sentence vectors does; their plots count padding too, which is what leaving ``mask`` out gives.

    Shapes: x (..., T, d), mask (..., T) optional; returns (...), one value a sentence. Range, differentiability, errors
    and limit as :func:`mean_cosine`; with ``include_self`` in [0, 1], and the limit of one nonzero token is 1.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> round(token_uniformity(x).item(), 6), round(token_uniformity(x, include_self=True).item(), 6)
    (0.471405, 0.647603)
    """
    along = directions(check_points(x, mask, look=False)[0])
    return _pair_mean(_resultant(along).square().sum(-1), count_nonzero_rows(along, 2), include_self)


@validated
def cls_uniformity(x: Tensor, mask: Tensor | None = None, *, include_self: bool = True) -> Tensor:
    r"""The mean cosine of the first token to the tokens of its sentence (SoftDecay, Yan et al., UAI 2022).

    :math:`\frac1n \sum_j \cos(x_0, x_j)`, j = 0 included and adding 1, as in their code; ``include_self=False`` leaves
    it out. With a mask, x_0 is the first real token.

    Shapes: x (..., T, d), mask (..., T) optional; returns (...), one value a sentence, in [-1, 1]. Differentiable.
    Errors: fewer than 2 tokens :class:`~isonb.errors.ShapeError`; the first token zero, or all others,
    :class:`~isonb.errors.DegenerateError`, on an accelerator 0 (1 where the first alone is not zero and counts itself).

    >>> round(cls_uniformity(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).item(), 6)
    0.569036
    """
    x, mask = check_points(x, mask, look=False)
    along = directions(x)
    count = count_nonzero_rows(along, 2)
    if mask is None:
        first, scale = along.rows[..., :1, :], along.inverse[..., :1]
    else:
        index = mask.int().argmax(-1, keepdim=True)
        first = along.rows.gather(-2, index.unsqueeze(-1).expand(*index.shape, x.shape[-1]))
        scale = along.inverse.gather(-1, index)
    if check_values(x) and not bool((scale > 0).all()):
        fail(DegenerateError, "the first token must not be zero", 0.0, "Drop that sentence.")
    total = (_resultant(along).unsqueeze(-2) * first).sum(-1) * scale
    own = (scale > 0).to(x.dtype)
    if include_self:
        return (total / count.unsqueeze(-1).clamp_min(1)).squeeze(-1)
    return ((total - own) / (count.unsqueeze(-1) - own).clamp_min(1)).squeeze(-1)

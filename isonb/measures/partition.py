"""The partition isotropy score of Arora et al. and of Mu and Viswanath."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_points, validated
from isonb.errors import InputError, fail
from isonb.numerics.products import gram, signed
from isonb.numerics.rows import row_count
from isonb.numerics.scale import precise

_SIGNS = ("both", "as_returned", "canonical")


@validated
@torch.no_grad()
def partition_score(x: Tensor, signs: str = "both", *, mask: Tensor | None = None, log: bool = False) -> Tensor:
    r"""How even the partition function is: :math:`I = \min_c Z(c) / \max_c Z(c)`, :math:`Z(c) = \sum_i e^{c^T x_i}`.

    c runs over the unit eigenvectors of :math:`X^T X`, not centred (Arora et al. 2016; Mu and Viswanath, ICLR 2018;
    used in I-STAR). An eigenvector has no sign of its own and Z(c) differs from Z(-c): ``signs="both"`` takes both and
    so depends on nothing else; ``"as_returned"`` takes what the decomposition gives; ``"canonical"`` makes the
    entry of largest size positive. With n < d the other eigenvectors are orthogonal to all points and have Z = n.
    ``log=True`` returns log I, for clouds whose score underflows.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...) in [0, 1], 1 for an isotropic cloud (and for one of
    zeros). Not scale invariant. Not differentiable: runs without gradient. Repeated eigenvalues leave the eigenvectors,
    and so the score, undetermined. Errors: fewer than 2 points :class:`~isonb.errors.ShapeError`; another ``signs``
    :class:`~isonb.errors.InputError`.

    >>> round(partition_score(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).item(), 6)
    0.150469
    """
    x, mask = check_points(x, mask)
    if signs not in _SIGNS:
        fail(InputError, f"signs must be one of {', '.join(_SIGNS)}", repr(signs), "The default is 'both'.")
    axes = _axes(x) if signs != "as_returned" else torch.linalg.svd(x, full_matrices=False).Vh.mT
    along = x @ (signed(axes) if signs == "canonical" else axes)
    both = [along, -along] if signs == "both" else [along]
    if mask is not None:
        both = [item.masked_fill(~mask.unsqueeze(-1), -torch.inf) for item in both]
    heights = torch.cat([item.logsumexp(-2) for item in both], -1)
    if x.shape[-2] < x.shape[-1]:
        heights = torch.cat([heights, row_count(x, mask).log().unsqueeze(-1)], -1)
    score: Tensor = heights.amin(-1) - heights.amax(-1)
    return score if log else score.exp()


def _axes(x: Tensor) -> Tensor:
    """The eigenvectors (..., d, min(n, d)) of X^T X, zero ones where all points are orthogonal to them.

    Points of float32 by their Gram in float64, which tells what their own singular value decomposition can, and costs
    less.
    """
    if x.dtype == torch.float64 or x.device.type == "mps":
        right: Tensor = torch.linalg.svd(x, full_matrices=False).Vh
        return right.mT
    wide, few = precise(x), x.shape[-2] < x.shape[-1]
    squares: Tensor
    basis: Tensor
    squares, basis = torch.linalg.eigh(gram(wide if few else wide.mT))
    if few:
        least = max(x.shape) * torch.finfo(squares.dtype).eps * squares[..., -1:]
        scale = torch.where(squares > least, squares.clamp_min(least).rsqrt(), 0.0)
        basis = wide.mT @ (basis * scale.nan_to_num(posinf=0.0).unsqueeze(-2))
    return basis.to(x)

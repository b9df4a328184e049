"""Measures of the neighbourhood of each point: k-NN, intrinsic dimension (TwoNN, maximum likelihood) and LSDS."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, check_size, check_values, validated
from isonb.errors import DegenerateError, InputError, fail
from isonb.measures.pairs import partners
from isonb.numerics.distances import rows, weighted_rows
from isonb.numerics.given_distances import check_cloud, nearest_in
from isonb.numerics.nearest import check_k, neighbours
from isonb.numerics.rows import center_rows, row_count, unit_rows
from isonb.numerics.scale import precise, square_norms

ROUNDING = 4.0  # times the dtype's epsilon and a point's norm: distances below it are of copies that were rounded apart
RIDGE = 1e-3  # weight of the identity in the barycentre system, as a share of its trace


@validated
def knn(x: Tensor, k: int, *, mask: Tensor | None = None, chunk: int | None = None) -> tuple[Tensor, Tensor]:
    r"""The k nearest other points of every point: ``(distances, indices)``, nearest first, ties by index.

    Exact on the CPU, whatever the offset of the cloud: candidates from a matrix product are ranked by exact
    differences and certified against its rounding. On accelerators the product runs in float64, and of more than four
    points tied with the k-th neighbour any may be taken.

    Shapes: ``x`` (..., n, d), half precision raised to float32, 1 <= k <= n - 1, ``mask`` (..., n) optional; returns
    (..., n, k) in the unit of ``x`` and int64 (..., n, k). Rows off the mask are nobody's neighbours and get distances
    0 and indices -1. Differentiable in the distances (0 at a zero distance), the choice of neighbours a constant.
    ``chunk`` rows are multiplied at a time by all after them (default: a few hundred), memory O(n chunk); with a
    gradient O(n k d) more.

    Raises :class:`~isonb.errors.InputError` for non-finite values, wrong rank or k out of range.

    >>> distances, indices = knn(torch.tensor([[0.0], [1.0], [3.0], [7.0]]), 2)
    >>> distances.tolist(), indices.tolist()
    ([[1.0, 3.0], [1.0, 2.0], [2.0, 3.0], [4.0, 6.0]], [[1, 2], [0, 2], [1, 0], [2, 1]])
    """
    x, mask = check_points(x, mask)
    k, size = check_k(x, k, mask), None if chunk is None else check_size(chunk, "chunk", "It is a number of rows.")
    away, index = neighbours(x, k, mask, size)
    return check_overflow(away, "distances"), index


@validated
@torch.no_grad()
def two_nn(
    x: Tensor, discard: float = 0.1, *, keep: float | None = None, mask: Tensor | None = None, metric: str = "euclidean"
) -> Tensor:
    r"""Intrinsic dimension from the ratio :math:`\mu = r_2 / r_1` of the distances to the two nearest neighbours.

    The slope through the origin of :math:`-\ln(1 - F)` against :math:`\ln\mu`, with the ratios in ascending order and
    :math:`F_i = i / N`, i = 1..int(N (1 - discard)); the point F = 1 is never used. Duplicates (:math:`r_1 = 0`, or
    below the rounding of the point's coordinates) are dropped and not counted in N.

    ``keep`` is the variant of Razzhigaev et al. 2024, which the code of Shrink-the-longest uses with 0.2: the cloud is
    centred and divided by its mean norm, points with :math:`r_1 < 10^{-8}` or :math:`\mu \le 1 + 10^{-8}` leave the
    list but count as the first ranks, and only the smallest ``keep`` of the other ratios are used; ``discard`` is not.

    Shapes: ``x`` (..., n, d), half precision raised to float32, n >= 3, ``mask`` (..., n) optional; returns (...), at
    least 0. With ``metric="precomputed"`` ``x`` (..., n, n) holds distances of any kind, and ``keep`` isn't offered.
    Not differentiable.
    Raises :class:`~isonb.errors.InputError` for a bad cloud, a fraction out of range, fewer than two ratios left, and
    when all of them are 1 (a lattice has no such dimension); on accelerators the last two give inf. Points that look
    like distances: :class:`~isonb.errors.CloudWarning`.

    Source: Facco et al. 2017; the defaults are those of scikit-dimension, which I-STAR uses.

    >>> squares = torch.arange(1.0, 21.0).square().unsqueeze(-1)
    >>> round(two_nn(squares).item(), 4)
    5.4746
    """
    x, mask = check_cloud(x, mask, metric, points=3)
    precomputed = metric == "precomputed"
    if precomputed and keep is not None:
        fail(InputError, "keep needs points, whose mean norm is its unit", "distances", "Use discard.")
    _check_fraction("discard", discard, 0.0 <= discard < 1.0)
    _check_fraction("keep", keep, keep is None or 0.0 < keep <= 1.0)
    away = precise(nearest_in(x, 2, mask) if precomputed else check_overflow(neighbours(x, 2, mask)[0], "distances"))
    if keep is None:
        return two_nn_of(x, away, discard, 0 if precomputed else None)
    ratio, usable = _ratios(away, _rounding(x).squeeze(-1))
    real = torch.ones_like(usable) if mask is None else mask
    usable = (away[..., 0] >= 1e-8 * _mean_norm(x, mask)) & (ratio > 1 + 1e-8) & real
    return _fitted(x, ratio, usable, (real & ~usable).sum(-1), keep)


def two_nn_of(x: Tensor, away: Tensor, discard: float, floor: float | None = None) -> Tensor:
    """:func:`two_nn` of points (..., n, d) from the distances (..., n, 2) to their two nearest."""
    ratio, usable = _ratios(precise(away), _rounding(x).squeeze(-1) if floor is None else floor)
    return _fitted(x, ratio, usable, torch.zeros_like(usable[..., 0], dtype=torch.long), 1 - discard)


def _ratios(away: Tensor, floor: Tensor | float) -> tuple[Tensor, Tensor]:
    """The ratio (..., n) of both distances (..., n, 2), 1 where the first isn't above ``floor``, and where it is."""
    first, second = away.unbind(-1)
    usable = first > floor
    return torch.where(usable, second, 1.0) / torch.where(usable, first, 1.0), usable


def _fitted(x: Tensor, ratio: Tensor, usable: Tensor, before: Tensor, share: float) -> Tensor:
    """The slope of :func:`_slope` in the dtype of the points, or an error where there is none."""
    slope, n_used = _slope(ratio, usable, before, share)
    if check_values(x) and not bool(((n_used >= 2) & torch.isfinite(slope)).all()):
        got = f"{int(n_used.min())} usable ratios" if int(n_used.min()) < 2 else "ratios that are all 1"
        fix = "Duplicates and lattices have no TwoNN dimension; drop duplicates or pass more points."
        fail(DegenerateError, "two or more points must have neighbours at unequal distances", got, fix)
    return slope.to(x.dtype)


def _rounding(x: Tensor) -> Tensor:
    """How far copies of a point may lie apart, (..., n, 1): four units in the last place of its norm."""
    norm = torch.linalg.vector_norm(precise(x), dim=-1, keepdim=True)
    tolerance: Tensor = ROUNDING * torch.finfo(x.dtype).eps * norm
    return tolerance


def _check_fraction(name: str, value: float | None, good: bool) -> None:
    if not good:
        fail(InputError, f"{name} must be a fraction of the points", value, "Pass discard in [0, 1) or keep in (0, 1].")


def _mean_norm(x: Tensor, mask: Tensor | None) -> Tensor:
    """Mean distance of the real rows from their mean, (..., 1), in the precision of the ratios."""
    norms = torch.linalg.vector_norm(precise(center_rows(x, mask)[0]), dim=-1)
    mean: Tensor = norms.sum(-1, keepdim=True) / row_count(x, mask).to(norms.dtype).unsqueeze(-1)
    return mean


def _slope(ratio: Tensor, usable: Tensor, before: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Slope over the smallest ``share`` of the usable ratios, ranked after ``before`` others; and how many it used."""
    count = usable.sum(-1)
    n_used = (precise(count) * share).floor().long()
    n_used = torch.where(before + n_used < before + count, n_used, count - 1).clamp_min(0)
    ordered = torch.where(usable, ratio, torch.inf).sort(-1).values
    rank = torch.arange(1, ratio.shape[-1] + 1, device=ratio.device)
    used = rank <= n_used.unsqueeze(-1)
    whole = (count + before).clamp_min(1).unsqueeze(-1).to(ratio.dtype)
    rise = -torch.log1p(-torch.where(used, (rank + before.unsqueeze(-1)) / whole, 0.0))
    run = torch.where(used, ordered, 1.0).log()
    square = run.square().sum(-1)
    flat = (square == 0) | (n_used < 2)
    return torch.where(flat, torch.inf, (run * rise).sum(-1) / torch.where(flat, 1.0, square)), n_used


@validated
def mle_dimension(x: Tensor, k: int = 20, *, mask: Tensor | None = None) -> Tensor:
    r"""Maximum-likelihood intrinsic dimension of Levina and Bickel, over all points at once.

    :math:`1 / d = \operatorname{mean}_i \frac{1}{k - 1} \sum_{j < k} \ln (r_{ik} / r_{ij})` with :math:`r_{ij}` the
    distance from point i to its j-th neighbour: the inverse of the mean of the inverse local estimates, the right way
    to pool them (MacKay and Ghahramani 2005). Duplicates, neighbours at distance 0 or below the rounding of the point's
    coordinates, are left out, and the sum over all points is divided by the count of all.

    Shapes: ``x`` (..., n, d), half precision raised to float32, 3 <= k + 1 <= n, ``mask`` (..., n) optional; returns
    (...), above 0. Differentiable, the choice of neighbours a constant.
    Raises :class:`~isonb.errors.InputError` for a bad cloud, k out of range, and when all neighbours of every point are
    equally far; on accelerators the dimension is then inf.

    Source: Levina and Bickel 2004; scikit-dimension's ``MLE`` gives the same of clouds without duplicates.

    >>> line = torch.arange(100.0).unsqueeze(-1)
    >>> round(mle_dimension(line, k=20).item(), 2)
    1.14
    """
    return _maximum_likelihood(*check_points(x, mask, points=3), k)[0]


def log_gaps(x: Tensor, k: int, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Of each row, the sum over its neighbours of ln(r_k / r_j), and of how many: (..., n), 0 for masked rows."""
    return log_gaps_of(x, check_overflow(neighbours(x, k, mask)[0], "distances"))


def log_gaps_of(x: Tensor, away: Tensor) -> tuple[Tensor, Tensor]:
    """The same from the distances (..., n, k)."""
    near = (away > _rounding(x).to(away.dtype)) & torch.isfinite(away)
    logs = torch.where(near, away, 1.0).log()
    farthest = torch.where(near, away, 0.0).argmax(-1, keepdim=True)
    gaps = torch.where(near, logs.gather(-1, farthest) - logs, 0.0).sum(-1)
    return gaps, (near.sum(-1) - 1).clamp_min(0)


def _maximum_likelihood(x: Tensor, mask: Tensor | None, k: int) -> tuple[Tensor, int]:
    """The dimension and that of the space."""
    k = check_k(x, k, mask, least=2)
    return dimension_of_gaps(x, *log_gaps(x, k, mask)), x.shape[-1]


def dimension_of_gaps(x: Tensor, gaps: Tensor, count: Tensor) -> Tensor:
    """The dimension (...) from what :func:`log_gaps` gives."""
    gaps, count = gaps.sum(-1), count.sum(-1)
    flat = gaps <= 0
    if check_values(x) and bool(flat.any()):
        fix = "Duplicates and regular lattices have no such dimension; pass more points or another k."
        fail(DegenerateError, "some point must have neighbours at unequal distances", "equal distances only", fix)
    return torch.where(flat, torch.inf, count.to(x.dtype) / torch.where(flat, 1.0, gaps))


@validated
def id_score(x: Tensor, k: int = 20, *, mask: Tensor | None = None) -> Tensor:
    r"""ID score: :func:`mle_dimension` divided by the dimension d of the space, at most 1.

    A comparator of isotropy scores, in (0, 1]. Shapes and errors as :func:`mle_dimension`; 1 where that gives inf.

    Source: Rudman et al. 2022 (IsoScore), comparators.

    >>> line = torch.arange(100.0).unsqueeze(-1) * torch.ones(10)
    >>> round(id_score(line).item(), 3)
    0.114
    """
    dimension, d = _maximum_likelihood(*check_points(x, mask, points=3), k)
    return (dimension / d).clamp(max=1.0)


@validated
def lsds(
    x: Tensor,
    y: Tensor,
    k: int = 12,
    t: float = 0.5,
    mode: str = "paper",
    normalize_weights: bool = False,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Local structure discrepancy: how badly the neighbourhoods of ``x`` rebuild its transform ``y``.

    Rows of both are first brought to unit length (a zero row stays zero). ``mode="paper"``:

    .. math:: \operatorname{mean}_i \Bigl\| y_i - \sum_{j \in N(i)} w_{ij} y_j \Bigr\|^2, \qquad
              w_{ij} = e^{-\|x_i - x_j\|^2 / t}

    over the k nearest neighbours N(i) of :math:`x_i`, itself excluded; ``normalize_weights`` makes the sum of the
    weights 1. With or without it the value of the identity is not 0. ``mode="code"``: the Frobenius norm
    :math:`\| W Y - Y \|_F` with barycentric weights as in locally linear embedding over k neighbours, the point itself
    among them; ``t`` and ``normalize_weights`` play no part.

    Shapes: ``x`` (..., n, d), ``y`` (..., n, c), half precision raised to float32, k <= n - 1 (code: n), ``mask``
    (..., n) optional; returns (...) >= 0. Differentiable in ``y``, and in ``x`` through the weights; the choice of
    neighbours is a constant. Memory O(n k d).
    Raises :class:`~isonb.errors.InputError` for bad clouds, k or t out of range or another mode.

    Source: SoftDecay (Yan et al., UAI 2022), the definition in the text and the official code.

    >>> x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> round(lsds(x, x, k=1).item(), 6)
    0.012521
    """
    if mode not in ("paper", "code"):
        fail(InputError, 'mode must be "paper" or "code"', repr(mode), "They differ in weights and aggregation.")
    x, y, mask = partners(x, y, mask, 2)
    x, y, itself = unit_rows(x), unit_rows(y), int(mode == "code")
    k = check_k(x, k, mask, itself=itself, least=1 + itself)
    if not t > 0:
        fail(InputError, "t must be positive", t, "It is the squared width of the weights.")
    away, index = neighbours(x.detach() if itself else x, k - itself, mask)
    if itself:
        index = torch.cat(
            (torch.arange(x.shape[-2], device=x.device).expand(index.shape[:-1]).unsqueeze(-1), index), -1
        )
        weights = _barycentric(x, index)
    else:
        exponents = -away.square() / t
        weights = exponents.softmax(-1) if normalize_weights else exponents.exp()
    residual = weighted_rows(y, index.clamp_min(0), weights).sub_(y)
    if mask is not None:
        residual = torch.where(mask.unsqueeze(-1), residual, 0.0)
    score: Tensor = torch.linalg.vector_norm(residual, dim=(-2, -1))
    if not itself:
        score = square_norms(residual).sum(-1) / row_count(x, mask).clamp_min(1)
    return score


def _barycentric(x: Tensor, index: Tensor) -> Tensor:
    r"""Weights of sum 1 with which the neighbours rebuild a point: :math:`(C C^T + \epsilon I) w \propto 1`."""
    gap = rows(x, index.clamp_min(0).flatten(-2)).view(*index.shape, x.shape[-1]) - x.unsqueeze(-2)
    gram = gap @ gap.mT
    trace = gram.diagonal(dim1=-2, dim2=-1).sum(-1)
    ridge = RIDGE * torch.where(trace > 0, trace, 1.0)
    gram = gram + ridge[..., None, None] * torch.eye(gram.shape[-1], dtype=x.dtype, device=x.device)
    weights: Tensor = torch.linalg.solve_ex(gram, torch.ones_like(gram[..., 0]))[0]  # positive definite by the ridge
    return weights / weights.sum(-1, keepdim=True)

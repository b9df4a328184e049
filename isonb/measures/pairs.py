"""Two clouds of the same points, several views of each, or points with labels: alignment, CKA, LiDAR, NC1."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, check_values, finite, labels_of, validated
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.measures.rank import effective_number
from isonb.numerics.products import gram
from isonb.numerics.rows import center_rows, directions, row_count
from isonb.numerics.scale import ordinary, precise, size_of, square_norms, unit_sized


def partners(
    x: Tensor, y: Tensor, mask: Tensor | None, points: int = 1, *, look: bool = True
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Both clouds checked, of one dtype and device, and their mask; with ``look=False`` values are the caller's."""
    x, real = check_points(x, mask, points=points, look=look)
    y, _ = check_points(y, mask, name="y", points=points, look=look)
    if x.shape[:-1] != y.shape[:-1]:
        fail(ShapeError, f"y must have the points of x, {tuple(x.shape[:-1])}", tuple(y.shape[:-1]), "Pair the rows.")
    dtype = torch.promote_types(x.dtype, y.dtype)
    return x.to(dtype), y.to(x.device, dtype), real


@validated
def alignment(
    x: Tensor, y: Tensor, power: float = 2.0, normalize: bool = True, *, mask: Tensor | None = None
) -> Tensor:
    r"""How far the two vectors of a pair lie apart, the mean of :math:`|x_i - y_i|^a` (Wang and Isola 2020).

    Rows are brought to unit length first, pairs with a zero row left out; ``normalize=False`` takes points as they are.
    ``power`` is a. Beside it stands the uniformity of all vectors, :func:`rbf_uniformity`.

    Shapes: x and y (..., n, d), row i of one belongs to row i of the other, mask (..., n) optional; returns (...),
    0 where all pairs coincide, at most 2^a of unit rows. Differentiable. Errors: power not positive
    :class:`~isonb.errors.InputError`; clouds of two shapes :class:`~isonb.errors.ShapeError`; no pair of nonzero rows,
    or distances that don't fit the dtype :class:`~isonb.errors.DegenerateError`, on an accelerator 0 for the first.

    >>> alignment(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [3.0, 0.0]])).item()
    1.0
    """
    x, y, mask = partners(x, y, mask, look=not normalize)
    if not power > 0:
        fail(InputError, "power must be positive", power, "2 is the default.")
    if x.shape[-1] != y.shape[-1]:
        fail(ShapeError, f"y must have the {x.shape[-1]} dimensions of x", y.shape[-1], "Compare others by cka.")
    if normalize:
        item, other = directions(x), directions(y, name="y")
        gap = item.rows * item.inverse.unsqueeze(-1) - other.rows * other.inverse.unsqueeze(-1)
        if not (item.whole and other.whole):
            real = (item.inverse > 0) & (other.inverse > 0)
            mask = real if mask is None else real & mask
    else:
        gap = x - y
    square = gap.square().sum(-1)
    if power != 2:
        differing = square > 0  # a power of nothing has no slope
        square = torch.where(differing, torch.where(differing, square, 1.0) ** (power / 2), 0.0)
    if mask is None:
        return check_overflow(square.mean(-1), "distances")
    count = mask.sum(-1)
    if check_values(x) and not bool((count > 0).all()):
        fail(DegenerateError, "a pair must have two vectors that aren't zero", 0, "A zero vector has no direction.")
    return check_overflow(torch.where(mask, square, 0.0).sum(-1) / count.clamp_min(1), "distances")


@validated
def cka(x: Tensor, y: Tensor, *, debiased: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""Linear centred kernel alignment of two clouds of the same points (Kornblith et al. 2019).

    .. math:: \frac{\lVert X^\top Y\rVert_F^2}{\lVert X^\top X\rVert_F\, \lVert Y^\top Y\rVert_F}

    of the centred clouds. Biased upwards where points are few: independent Gaussians, 64 in 768 dimensions, read 0.92.
    ``debiased=True`` (Nguyen, Raghu and Kornblith 2021) takes the unbiased estimate of HSIC (Song et al. 2012) for each
    of the three terms: with the squared lengths k and l of the centred rows it is, up to a factor,

    .. math:: \lVert X^\top Y\rVert_F^2 - \frac{n}{n-2} \sum_i k_i l_i + \frac{\sum_i k_i \sum_i l_i}{(n-1)(n-2)}.

    Shapes: x (..., n, d), y (..., n, c), row i of both the same point, mask (..., n) optional; returns (...) in [0, 1],
    1 for clouds that a turn, a scale and a shift bring together; debiased at most 1, about 0 for independent clouds.
    Differentiable. Errors: other shapes, fewer than 2 points (4 debiased) :class:`~isonb.errors.ShapeError`; a cloud of
    equal points, or one whose debiased term isn't positive :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> x = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]])
    >>> y = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [3.0, 1.0]])
    >>> round(cka(x, y).item(), 6)
    0.541518
    """
    x, y, mask = partners(x, y, mask, 4 if debiased else 2, look=False)
    n, ((x, k), (y, l)) = row_count(x, mask), (_centred(x, mask, "x"), _centred(y, mask, "y"))
    less = (n - 2).clamp_min(1)

    def term(whole: Tensor, p: Tensor, q: Tensor) -> Tensor:
        if debiased:
            whole = whole - n / less * (p * q).sum(-1) + p.sum(-1) * q.sum(-1) / ((n - 1).clamp_min(1) * less)
        return whole

    wholes = _squared_products(x, y)
    first, second, third = (term(*parts) for parts in zip(wholes, (k, l, k), (k, l, l), strict=True))
    floor = 16 * torch.finfo(x.dtype).eps
    usable = (first > floor * k.sum(-1).square()) & (second > floor * l.sum(-1).square())
    if check_values(x) and not bool(usable.all()):
        got = f"{torch.minimum(first, second).min().item():.3g}"
        fix = "Drop clouds of equal points; debiased, give more of them."
        fail(DegenerateError, "both clouds must vary, more than their points are few", got, fix)
    scale = torch.where(usable, first, 1.0).sqrt() * torch.where(usable, second, 1.0).sqrt()
    score = torch.where(usable, third / scale, 0.0)
    return score + (score.clamp(0.0 if not debiased else -torch.inf, 1) - score).detach()  # rounding


def _centred(x: Tensor, mask: Tensor | None, name: str) -> tuple[Tensor, Tensor]:
    """The cloud about its mean, at a size whose fourth powers fit, with its squared norms; values are looked at."""
    centred = center_rows(x, mask)[0]
    norms = square_norms(centred)
    if not (check_values(x) and ordinary(norms.detach().sum(-1).sqrt())):
        centred = center_rows(unit_sized(finite(x, name=name)), mask)[0]
        norms = square_norms(centred)
    return centred, norms


def _squared_products(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of squares of x^T x, y^T y and x^T y, by way of the n x n Gram matrices where these take less."""
    n, d, c = *x.shape[-2:], y.shape[-1]
    if n * (d + c) < d * d + c * c + d * c:
        a, b = gram(x), gram(y)
        pairs = (a, a), (b, b), (a, b)
    else:
        a, b, both = gram(x.mT), gram(y.mT), x.mT @ y
        pairs = (a, a), (b, b), (both, both)
    first, second, third = ((item * other).sum((-2, -1)) for item, other in pairs)
    return first, second, third


@validated
def lidar(views: Tensor, delta: float = 1e-4) -> Tensor:
    r"""LiDAR: how many directions tell objects apart, beside what views of one object differ by (Thilak et al. 2023).

    The exponential of the entropy of the shares of the eigenvalues of :math:`S_w^{-1/2} S_b S_w^{-1/2}`. :math:`S_b` is
    the covariance of the means of the objects (with one less than their number), :math:`S_w` the pooled covariance
    within objects (divided by objects times views less 1) plus ``delta`` in every direction. Views of a text are its
    vectors under several dropout masks, or paraphrases. The public code adds 1e-8 to each share, which isn't done here.

    Shape: views (objects, views, d), two or more of both; returns a scalar in [1, min(d, objects - 1)]. Computed in
    float64. Differentiable. Errors: another shape :class:`~isonb.errors.ShapeError`; delta negative
    :class:`~isonb.errors.InputError`; objects that are all equal, or views that leave a direction without variance
    where delta is 0, :class:`~isonb.errors.DegenerateError`, on an accelerator 1.

    >>> centres = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    >>> views = torch.tensor([[0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5]])
    >>> round(lidar(centres[:, None] + views).item(), 5)
    1.49774
    """
    views, _ = check_points(views, name="views")
    if views.ndim != 3 or len(views) < 2:
        fix = "Stack the views of two objects or more."
        fail(ShapeError, "views must have shape (objects, views, d)", f"shape {tuple(views.shape)}", fix)
    if not delta >= 0:
        fail(InputError, "delta must be at least 0", delta, "1e-4 is the default.")
    exact = precise(views)
    deviations, means = center_rows(exact)
    within = gram(deviations.flatten(0, 1).mT) / (len(views) * (views.shape[1] - 1))
    between = center_rows(means)[0] / (len(views) - 1) ** 0.5
    return spread_of_objects(within, between, delta, factor=True).to(views.dtype)


def spread_of_objects(within: Tensor, between: Tensor, delta: float, *, factor: bool = False) -> Tensor:
    """:func:`lidar` of the two covariances (d, d), or with a ``factor`` F (objects, d) of the second, F^T F."""
    eye = torch.eye(len(within), dtype=within.dtype, device=within.device)
    root, failed = torch.linalg.cholesky_ex(within + delta * eye)
    root = torch.where(failed > 0, eye, root)
    half = torch.linalg.solve_triangular(root, between.mT, upper=False)
    if factor:
        ratio = gram(half.mT if len(between) < len(within) else half)  # the others of their eigenvalues are 0
    else:
        ratio = torch.linalg.solve_triangular(root, half.mT, upper=False)
    values = torch.linalg.eigvalsh(unit_sized((ratio + ratio.mT) / 2)).clamp_min(0)
    total = values.sum(-1)
    if check_values(values) and not bool((failed == 0) & (total > 0) & total.isfinite()):
        got = f"eigenvalues of sum {total.item():.3g}"
        fail(DegenerateError, "objects must differ, and their views in every direction", got, "Raise delta.")
    usable = (failed == 0) & (total > 0)
    return effective_number(torch.where(usable, values / torch.where(usable, total, 1.0), 0.0), 1.0)


@validated
def nc1(x: Tensor, labels: Tensor) -> Tensor:
    r"""NC1: the variability within classes beside the distances between their means (Papyan, Han and Donoho 2020).

    .. math:: \tfrac1K \operatorname{tr}\bigl(\Sigma_w \Sigma_b^{+}\bigr)

    :math:`\Sigma_w` is the covariance of the points about the mean of their class (divided by n), :math:`\Sigma_b` the
    mean over the K classes of :math:`(\mu_c - \bar\mu)(\mu_c - \bar\mu)^\top` with the plain mean of class means
    :math:`\bar\mu`, and :math:`^+` the pseudo-inverse. 0 is full collapse, as of a classifier trained to the end: its
    vectors use K - 1 directions, so a low isotropy is then no fault.

    Shapes: x (n, d), integer labels (n,); returns a scalar >= 0, whatever the scale. Computed in float64.
    Differentiable. Errors: fewer than two classes :class:`~isonb.errors.ShapeError`; labels that aren't integers
    :class:`~isonb.errors.DtypeError`; classes with one mean :class:`~isonb.errors.DegenerateError`, on an accelerator
    0. Which labels occur is read, so a device waits.

    >>> x = torch.tensor([[1.1, 0.0], [0.9, 0.0], [-1.1, 0.0], [-0.9, 0.0]])
    >>> round(nc1(x, torch.tensor([0, 0, 1, 1])).item(), 6)
    0.005
    """
    x, _ = check_points(x, single=True)
    labels = labels_of(labels, len(x)).to(x.device)
    present, place = torch.unique(labels, return_inverse=True)
    if len(present) < 2:
        fail(ShapeError, "labels must be of two classes or more", len(present), "One class has nothing to differ from.")
    exact = precise(x) / size_of(precise(x))
    member = torch.nn.functional.one_hot(place, len(present)).to(exact)
    moved = center_rows(exact)[0]
    means = member.mT @ moved / member.sum(0).unsqueeze(-1)
    deviations = moved - means[place]
    return collapse_of(means, lambda axes: (deviations @ axes).square().mean(0)).to(x.dtype)


def collapse_of(means: Tensor, variance: Callable[[Tensor], Tensor]) -> Tensor:
    """:func:`nc1` of class means (K, d), and of the variance within classes along each column of a matrix (d, K)."""
    between = center_rows(means)[0]
    floor = 16 * max(means.shape) * torch.finfo(means.dtype).eps  # the means of K classes span K - 1 directions
    inverse = torch.linalg.pinv(between, rtol=floor, atol=floor * means.detach().abs().amax())
    if check_values(means) and not bool((inverse != 0).any()):
        got = f"means apart by {between.abs().max().item():.3g}"
        fail(DegenerateError, "the means of the classes must differ", got, "Nothing tells these classes apart.")
    return variance(inverse).sum()

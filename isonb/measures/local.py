"""What lies near a point: the rows of a corpus nearest to queries, and the dimension of a cloud about each point."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_points, check_size, check_values, is_whole, validated
from isonb.errors import DegenerateError, ShapeError, fail
from isonb.measures.neighbors import log_gaps
from isonb.numerics.nearest import check_k
from isonb.numerics.queries import nearest_rows
from isonb.numerics.scale import precise


@validated
def knn_queries(queries: Tensor, corpus: Tensor, k: int, *, chunk: int = 512) -> tuple[Tensor, Tensor]:
    """The k rows of a corpus nearest to each query: ``(distances, indices)``, nearest first, ties by index.

    Exact on the CPU, whatever the offset: candidates are found in the type of the points, differences in float64 rank
    them, and a query whose last neighbour isn't nearer than rounding can tell is compared again with all rows. On
    accelerators the product runs in float64. For the neighbours of a cloud within itself see :func:`knn`; for cosine
    pass unit rows.

    Shapes: queries (m, d), corpus (n, d), float32 beside float64 in the wider, 1 <= k <= n; returns (m, k) in the unit
    of the points, and int64 (m, k). Differentiable in the distances, the choice of neighbours a constant. ``chunk``
    queries are multiplied at a time; beside the corpus that takes a few megabytes with numba, O((m + n) d) in float64
    without it. Raises :class:`~isonb.errors.InputError` for points that aren't finite, other dimensions, or k out of
    range.

    >>> corpus = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    >>> distances, indices = knn_queries(torch.tensor([[2.5], [0.5]]), corpus, 2)
    >>> distances.tolist(), indices.tolist()
    ([[0.5, 1.5], [0.5, 0.5]], [[2, 1], [0, 1]])
    """
    queries, _ = check_points(queries, name="queries", points=0, single=True, look=False)
    corpus, _ = check_points(corpus, name="corpus", points=1, single=True, look=False)  # the search looks
    (m, width), (n, d) = queries.shape, corpus.shape
    if width != d:
        fail(ShapeError, f"queries must have the {d} dimensions of the corpus", width, "Take both from one encoder.")
    if not is_whole(k) or not 1 <= k <= n:
        fail(ShapeError, f"k must be an integer from 1 to the {n} rows of the corpus", repr(k), "Lower k.")
    k, chunk = int(k), check_size(chunk, "chunk", "It is a number of queries.")
    dtype = torch.promote_types(queries.dtype, corpus.dtype)
    queries, corpus = queries.to(corpus.device, dtype).contiguous(), corpus.to(dtype).contiguous()
    if not m:
        return queries.new_empty(0, k), torch.empty(0, k, dtype=torch.long, device=corpus.device)
    index, distances, unit = nearest_rows(queries.detach(), corpus.detach(), k, chunk)
    if torch.is_grad_enabled() and (queries.requires_grad or corpus.requires_grad):
        near = precise(corpus[index.flatten()]).view(*index.shape, -1)
        unit = near.new_ones(()) if unit is None else unit.to(corpus.device)
        distances = (torch.linalg.vector_norm((precise(queries).unsqueeze(1) - near) / unit, dim=-1) * unit).to(dtype)
    return distances, index


@validated
def local_dimension(x: Tensor, k: int = 20, *, mask: Tensor | None = None) -> Tensor:
    r"""The intrinsic dimension about each point, by maximum likelihood (Levina and Bickel 2004).

    :math:`\Bigl(\frac{1}{k - 1} \sum_{j < k} \ln (r_{ik} / r_{ij})\Bigr)^{-1}` with :math:`r_{ij}` the distance from
    point i to its j-th neighbour. Duplicates, neighbours at distance 0 or below the rounding of the point's
    coordinates, are left out of sum and count; without any, the harmonic mean is :func:`mle_dimension`.

    Shapes: x (..., n, d), 3 <= k + 1 <= n, mask (..., n) optional; returns (..., n), above 0, and 0 for masked rows.
    Differentiable, the choice of neighbours a constant. Errors: k out of range :class:`~isonb.errors.ShapeError`; a
    point whose neighbours are all equally far :class:`~isonb.errors.DegenerateError`, on an accelerator inf.

    >>> round(local_dimension(torch.tensor([[0.0], [1.0], [-2.0], [4.0]]), k=3)[0].item(), 6)  # at 1, 2 and 4
    0.961797
    """
    x, mask = check_points(x, mask, points=3)
    k = check_k(x, k, mask, least=2)
    gaps, count = log_gaps(x, k, mask)
    real = torch.ones_like(count, dtype=torch.bool) if mask is None else mask
    flat = real & (gaps <= 0)
    if check_values(x) and bool(flat.any()):
        fix = "Drop duplicates, or pass another k."
        got = f"{int(flat.sum())} points with equal distances only"
        fail(DegenerateError, "every point must have neighbours at unequal distances", got, fix)
    usable = real & ~flat
    return torch.where(
        usable, count.to(x.dtype) / torch.where(usable, gaps, 1.0), torch.where(flat, torch.inf, x.new_zeros(()))
    )

"""What every measure of a cloud keeps: batches, masks, types, gradients, devices, and what it must not notice."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from support import (
    check_asynchronous,
    check_batch_equals_loop,
    check_cuda,
    check_dtypes,
    check_gradient,
    check_invariant,
    check_mask_equals_drop,
    gpu,
    normal,
    some_mask,
    uneven,
)

import isonb

TURNS = ("permutation", "rotation", "reflection")
SHAPE = (*TURNS, "translation", "scale")  # of the cloud about its mean
ANGLES = ("row lengths", "scale", "reflection")


@dataclass(frozen=True)
class Law:
    """A function of a cloud and the changes that it must not notice; ``smooth`` where it has a gradient."""

    measure: Callable[..., Any]
    keeps: tuple[str, ...]
    smooth: bool = True
    waits: bool = False


def extra(x, **options):
    """IsoScore* with a full matrix of its own, made where the points are."""
    cov = torch.diag(torch.linspace(0.3, 2, x.shape[-1], dtype=torch.float64, device=x.device)) + 0.1
    return isonb.isoscore_star(x, 0.3, cov, **options)


def turned(measure):
    """Of the cloud and a copy whose columns are turned round."""
    return lambda x, **options: measure(x, x.flip(-1), **options)


def beside_doubled(measure):
    """Of the cloud and a transform that is exact in every type: its first column twice as long."""
    return lambda x, **options: measure(x, torch.cat([2 * x[..., :1], x[..., 1:]], -1), k=3, **options)


LAWS = {
    "isoscore": Law(isonb.isoscore, SHAPE),
    "participation_ratio": Law(isonb.participation_ratio, SHAPE),
    "isoscore unbiased": Law(partial(isonb.isoscore, unbiased=True), SHAPE),
    "isoscore_star": Law(partial(isonb.isoscore_star, zeta=0.3), SHAPE),
    "isoscore_star auto": Law(partial(isonb.isoscore_star, zeta="auto"), SHAPE),
    "isoscore_star matrix": Law(extra, ("permutation", "translation", "reflection")),
    "shrinkage_intensity": Law(isonb.shrinkage_intensity, SHAPE),
    "shrinkage_intensity oas": Law(partial(isonb.shrinkage_intensity, method="oas"), SHAPE),
    "anisotropy": Law(isonb.anisotropy, (*TURNS, "scale"), waits=True),
    "anisotropy centred": Law(partial(isonb.anisotropy, center=True), SHAPE, waits=True),
    "explained_variance": Law(isonb.explained_variance, (*TURNS, "scale"), waits=True),
    "explained_variance centred": Law(partial(isonb.explained_variance, k=2, center=True), SHAPE, waits=True),
    "varex_score": Law(partial(isonb.varex_score, p=0.5), SHAPE, waits=True),
    "varex_score official": Law(partial(isonb.varex_score, p=0.5, official_index=True), SHAPE, waits=True),
    **{
        f"effective_rank {order}": Law(partial(isonb.effective_rank, order=order), (*TURNS, "scale"), waits=True)
        for order in (0.5, 1, 2, math.inf)
    },
    "NESum": Law(partial(isonb.effective_rank, order=math.inf, squared=True, center=True), SHAPE, waits=True),
    "alpha_req": Law(partial(isonb.alpha_req, first=2), SHAPE, waits=True),
    "alpha_req unweighted": Law(partial(isonb.alpha_req, first=1, weighted=False), SHAPE, waits=True),
    "alignment": Law(turned(isonb.alignment), ("permutation", "row lengths", "scale")),
    "alignment as it is": Law(turned(partial(isonb.alignment, power=3.0, normalize=False)), ("permutation",)),
    "cka": Law(turned(isonb.cka), ("permutation", "translation", "scale")),
    "cka debiased": Law(turned(partial(isonb.cka, debiased=True)), ("permutation", "translation", "scale")),
    "mean_cosine": Law(isonb.mean_cosine, (*TURNS, *ANGLES)),
    "cosine_penalty": Law(isonb.cosine_penalty, (*TURNS, *ANGLES)),
    "cosine_contributions": Law(isonb.cosine_contributions, ("permutation", *ANGLES)),
    "token_uniformity": Law(isonb.token_uniformity, (*TURNS, *ANGLES)),
    "token_uniformity with self": Law(partial(isonb.token_uniformity, include_self=True), (*TURNS, *ANGLES)),
    "cls_uniformity": Law(isonb.cls_uniformity, ("rotation", *ANGLES)),
    "cls_uniformity without self": Law(partial(isonb.cls_uniformity, include_self=False), ("rotation", *ANGLES)),
    "rbf_uniformity": Law(isonb.rbf_uniformity, (*TURNS, "row lengths")),
    "rbf_uniformity raw": Law(partial(isonb.rbf_uniformity, t=2.0, normalize=False), (*TURNS, "translation")),
    "rbf_uniformity in blocks": Law(partial(isonb.rbf_uniformity, chunk=4), (*TURNS, "row lengths")),
    "rbf_uniformity row by row": Law(partial(isonb.rbf_uniformity, chunk=1, normalize=False), (*TURNS, "translation")),
    "partition_score": Law(isonb.partition_score, TURNS, smooth=False, waits=True),
    "two_nn": Law(isonb.two_nn, SHAPE, smooth=False),
    "two_nn keep": Law(partial(isonb.two_nn, keep=0.6), SHAPE, smooth=False),
    "mle_dimension": Law(partial(isonb.mle_dimension, k=3), SHAPE),
    "id_score": Law(partial(isonb.id_score, k=3), SHAPE),
    "lsds": Law(beside_doubled(isonb.lsds), ("permutation",)),
    "lsds code": Law(beside_doubled(partial(isonb.lsds, mode="code")), ("permutation",)),
    "partition_score canonical": Law(partial(isonb.partition_score, signs="canonical"), (), smooth=False, waits=True),
}
NEIGHBOURS = {  # of rows that are sorted, or barcodes: laws of their own, in test_neighbors and test_rips
    "h0_barcode": isonb.h0_barcode,
    "entropy of h0": lambda x, mask=None: isonb.persistent_entropy(isonb.h0_barcode(x, mask=mask)),
    "prominent bars": lambda x, mask=None: isonb.prominent_bars(isonb.h0_barcode(x, mask=mask)),
    "knn": partial(isonb.knn, k=3),
    "local_dimension": partial(isonb.local_dimension, k=4),
}
each = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


@each
@pytest.mark.parametrize("shape", [(3, 9, 4), (3, 9, 20)])  # many rows, and few
def test_batches_and_masks(law, shape):
    x, mask = uneven(*shape), some_mask(*shape[:2])
    check_batch_equals_loop(law.measure, x)
    check_batch_equals_loop(law.measure, x, mask)
    check_mask_equals_drop(law.measure, x[0], mask[0], slope=law.smooth, rtol=1e-7, atol=1e-10)
    check_invariant(law.measure, x, law.keeps)


@pytest.mark.parametrize("law", [law for law in LAWS.values() if law.smooth])
@pytest.mark.parametrize("shape", [(6, 9), (9, 4), (5, 10), (7, 7)])  # every path through the maths
def test_gradients(law, shape):
    x, mask = uneven(*shape), some_mask(shape[0])
    check_gradient(law.measure, x)
    check_gradient(lambda z: law.measure(z, mask=mask), x)


@each
def test_types(law):
    check_dtypes(law.measure, uneven(30, 6))


@pytest.mark.parametrize("name", LAWS | NEIGHBOURS)
def test_nothing_is_read_back(name):
    measure = LAWS[name].measure if name in LAWS else NEIGHBOURS[name]
    for shape in ((2, 20, 5), (3, 20, 70)):
        x, mask = uneven(*shape), torch.ones(shape[:-1], dtype=torch.bool)
        check_asynchronous(measure, x)
        check_asynchronous(measure, x, mask=mask)


def test_a_value_that_is_read_back_is_seen():
    with pytest.raises(Exception, match="meta"):
        check_asynchronous(isonb.rips_barcode, uneven(9, 2))  # H1 is computed on the CPU and has to see the distances


@gpu
@pytest.mark.parametrize("law", [law for law in LAWS.values() if law.smooth and not law.waits])
def test_cuda(law):
    check_cuda(law.measure, uneven(2, 40, 6))
    check_cuda(law.measure, uneven(2, 8, 30))


@gpu
@pytest.mark.parametrize("law", [law for law in LAWS.values() if law.waits])
def test_cuda_where_a_decomposition_waits(law):
    x = normal(2, 40, 6)
    torch.testing.assert_close(law.measure(x.cuda()).cpu(), law.measure(x), rtol=1e-8, atol=1e-10)

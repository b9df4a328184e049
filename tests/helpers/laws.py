"""Every public function of a cloud as ``call(x, mask=None)``, and what it must not notice: one table for all tests.

A name is that of the function, as its errors begin; words after it tell its options.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

import isonb
from isonb.streaming.traces import squared_traces

TURNS = ("permutation", "rotation", "reflection")
SHAPE = (*TURNS, "translation", "scale")  # of the cloud about its mean
ANGLES = ("row lengths", "scale", "reflection")
DIRECTIONS = (*TURNS, *ANGLES)


@dataclass(frozen=True)
class Law:
    """A function of a cloud and the changes that it must not notice.

    ``smooth`` where it has a gradient, ``waits`` where an accelerator has to, ``batched`` where it takes batches,
    ``rows`` where its result has a row a point, ``padded`` where masked rows leave zeros or other numbers of rows in
    it, ``twice`` where its second derivative is promised.
    """

    call: Callable[..., Any]
    keeps: tuple[str, ...] = ()
    smooth: bool = True
    waits: bool = False
    batched: bool = True
    masked: bool = True
    rows: bool = False
    padded: bool = False
    twice: bool = False

    def __call__(self, x: Any, **mask: Any) -> Any:
        return self.call(x, **mask)


def beside(measure, change=lambda x: x.flip(-1), **options):
    """Of the cloud and what a change makes of it."""
    return lambda x, **mask: measure(x, change(x), **options, **mask)


def first_doubled(x):
    """A transform that is exact in every type: the first column twice as long."""
    return torch.cat([2 * x[..., :1], x[..., 1:]], -1)


def with_matrix(x, **mask):
    """IsoScore* with a full matrix of its own, made where the points are."""
    cov = torch.diag(torch.linspace(0.3, 2, x.shape[-1], dtype=torch.float64, device=x.device)) + 0.1
    return isonb.isoscore_star(x, 0.3, cov, **mask)


def of_numbers(function):
    """Of numbers on the last axis, none below 0."""
    return lambda x: function(x.abs())


LOSSES = {
    "IStarLoss": isonb.IStarLoss(weight=-1.0),
    "IStarLoss auto": isonb.IStarLoss(zeta="auto"),
    "IStarLoss unbiased": isonb.IStarLoss(unbiased=True),
    "IsoScoreLoss": isonb.IsoScoreLoss(),
    "IsoScoreLoss unbiased": isonb.IsoScoreLoss(unbiased=True),
    "CosRegLoss": isonb.CosRegLoss(),
    "GaoCosineLoss": isonb.GaoCosineLoss(),
    "SpectrumControlLoss": isonb.SpectrumControlLoss(weight=1.0, prior="polynomial"),
    "GORLoss": isonb.GORLoss(),
    "GORLoss spread-out": isonb.GORLoss(mean_weight=0.0, hinge=False),
    "SIGRegLoss": isonb.SIGRegLoss(slices=8, seed=0),
    "SIGRegLoss of directions": isonb.SIGRegLoss(slices=8, seed=0, normalize=True),
    "PersistentEntropyLoss": isonb.PersistentEntropyLoss(min_points=2),
    "PersistentEntropyLoss all bars": isonb.PersistentEntropyLoss(select=False, normalize=True),
}
PENALTIES = {  # what a loss doesn't notice
    **{name: SHAPE for name in LOSSES if name.startswith(("IStar", "IsoScore", "PersistentEntropy"))},
    **dict.fromkeys(("CosRegLoss", "GaoCosineLoss", "GORLoss", "GORLoss spread-out"), DIRECTIONS),
    "SpectrumControlLoss": TURNS,
    "SIGRegLoss": ("permutation", "reflection"),
    "SIGRegLoss of directions": ("permutation", *ANGLES),
}
ranks = partial(Law, keeps=(*TURNS, "scale"), waits=True)
LAWS = {
    "isoscore": Law(isonb.isoscore, SHAPE, twice=True),
    "isoscore unbiased": Law(partial(isonb.isoscore, unbiased=True), SHAPE),
    "participation_ratio": Law(isonb.participation_ratio, SHAPE),
    "isoscore_star": Law(partial(isonb.isoscore_star, zeta=0.3), SHAPE, twice=True),
    "isoscore_star auto": Law(partial(isonb.isoscore_star, zeta="auto"), SHAPE),
    "isoscore_star matrix": Law(with_matrix, ("permutation", "translation", "reflection"), twice=True),
    "shrinkage_intensity": Law(isonb.shrinkage_intensity, SHAPE),
    "shrinkage_intensity oas": Law(partial(isonb.shrinkage_intensity, method="oas"), SHAPE),
    "anisotropy": ranks(partial(isonb.anisotropy, k=1)),
    "anisotropy centred": Law(partial(isonb.anisotropy, center=True), SHAPE, waits=True),
    "explained_variance": Law(partial(isonb.explained_variance, k=2, center=True), SHAPE, waits=True),
    "explained_variance raw": ranks(isonb.explained_variance),
    "varex_score": Law(partial(isonb.varex_score, p=0.5), SHAPE, waits=True),
    "varex_score official": Law(partial(isonb.varex_score, p=0.5, official_index=True), SHAPE, waits=True),
    "effective_rank": ranks(isonb.effective_rank),
    **{f"effective_rank {q}": ranks(partial(isonb.effective_rank, order=q)) for q in (0.5, 2, math.inf)},
    "effective_rank low": Law(partial(isonb.effective_rank, order=0.2, center=True), SHAPE, waits=True),
    "effective_rank NESum": Law(
        partial(isonb.effective_rank, order=math.inf, squared=True, center=True), SHAPE, waits=True
    ),
    "alpha_req": Law(partial(isonb.alpha_req, first=2), SHAPE, waits=True),
    "alpha_req unweighted": Law(partial(isonb.alpha_req, first=1, weighted=False), SHAPE, waits=True),
    "alignment of two": Law(beside(isonb.alignment), ("permutation", "row lengths", "scale")),
    "alignment as it is": Law(beside(isonb.alignment, power=3.0, normalize=False), ("permutation",)),
    "cka of two": Law(beside(isonb.cka), ("permutation", "translation", "scale")),
    "cka debiased": Law(beside(isonb.cka, debiased=True), ("permutation", "translation", "scale")),
    "mean_cosine": Law(isonb.mean_cosine, DIRECTIONS),
    "cosine_penalty": Law(isonb.cosine_penalty, DIRECTIONS),
    "cosine_contributions": Law(isonb.cosine_contributions, ("permutation", *ANGLES)),
    "token_uniformity": Law(isonb.token_uniformity, DIRECTIONS),
    "token_uniformity with self": Law(partial(isonb.token_uniformity, include_self=True), DIRECTIONS),
    "cls_uniformity": Law(isonb.cls_uniformity, ("rotation", *ANGLES)),
    "cls_uniformity without self": Law(partial(isonb.cls_uniformity, include_self=False), ("rotation", *ANGLES)),
    "rbf_uniformity": Law(isonb.rbf_uniformity, DIRECTIONS, twice=True),
    "rbf_uniformity raw": Law(partial(isonb.rbf_uniformity, t=2.0, normalize=False), (*TURNS, "translation")),
    "rbf_uniformity in blocks": Law(partial(isonb.rbf_uniformity, chunk=4), DIRECTIONS),
    "rbf_uniformity row by row": Law(
        partial(isonb.rbf_uniformity, chunk=1, normalize=False), (*TURNS, "translation"), twice=True
    ),
    "partition_score": Law(isonb.partition_score, TURNS, smooth=False, waits=True),
    "partition_score canonical": Law(partial(isonb.partition_score, signs="canonical"), (), smooth=False, waits=True),
    "two_nn": Law(isonb.two_nn, SHAPE, smooth=False),
    "two_nn keep": Law(partial(isonb.two_nn, keep=0.6), SHAPE, smooth=False),
    "mle_dimension": Law(partial(isonb.mle_dimension, k=3), SHAPE),
    "local_dimension": Law(partial(isonb.local_dimension, k=3), ("rotation", "reflection", "translation"), rows=True),
    "id_score": Law(partial(isonb.id_score, k=3), SHAPE),
    "knn": Law(partial(isonb.knn, k=3), ("rotation", "reflection", "translation"), padded=True),
    "lsds of two": Law(beside(isonb.lsds, first_doubled, k=3), ("permutation", "scale")),
    "lsds code": Law(beside(isonb.lsds, first_doubled, k=3, mode="code"), ("permutation", "scale")),
    "h0_barcode": Law(isonb.h0_barcode, (*TURNS, "translation"), padded=True, twice=True),
    "persistent_entropy of h0": Law(lambda x, **mask: isonb.persistent_entropy(isonb.h0_barcode(x, **mask)), SHAPE),
    "prominent_bars of h0": Law(
        lambda x, **mask: isonb.prominent_bars(isonb.h0_barcode(x, **mask)), SHAPE, smooth=False, padded=True
    ),
    "centered": Law(isonb.centered, ("translation",), rows=True),
    "mean_pool": Law(isonb.mean_pool, ("permutation",)),
    "singular_values": Law(isonb.singular_values, TURNS, waits=True, padded=True),
    "singular_values centred": Law(
        partial(isonb.singular_values, center=True), (*TURNS, "translation"), waits=True, padded=True
    ),
    "soft_decay": Law(partial(isonb.soft_decay, alpha=-0.3), rows=True, waits=True),
    "soft_decay safe": Law(partial(isonb.soft_decay, alpha=-0.3, mode="safe"), rows=True, waits=True),
    "negative_count": Law(isonb.negative_count, TURNS, smooth=False, waits=True),
    "squared_traces of a cloud": Law(squared_traces, TURNS),
    **{name: Law(loss, PENALTIES[name], batched=False, masked="Entropy" not in name, waits="Spectrum" in name)
       for name, loss in LOSSES.items()},
    **{f"{function.__name__} of numbers": Law(of_numbers(function), keeps, masked=False, smooth=smooth)
       for function, keeps, smooth in (
           (isonb.persistent_entropy, ("scale",), True), (isonb.prominent_bars, ("scale",), False),
           (isonb.spectral_cdf, ("scale",), True), (isonb.spectral_median, ("scale",), True),
           (isonb.spectral_skewness, ("scale",), True))},
}  # fmt: skip

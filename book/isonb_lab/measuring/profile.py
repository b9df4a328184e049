"""The profile of a model: what the clouds of its layers look like on a fixed set of sentences.

Sentences pass batch by batch. Of tokens only sums are kept, and a sample for what needs pairs of points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isonb.errors import ShapeError, fail
from isonb.measures.isoscore import isoscore_from_cov
from isonb.measures.registry import attempt
from isonb.points import Mode, pool
from isonb.streaming.moments import Moments
from isonb_lab.measuring.cloud import cloud_measures, number, variance_curves
from isonb_lab.measuring.layers import Sample, SentenceSums, TokenSums, star_from_cov

AXES = ("step", "layer", "k", "dimension", "quantile", "pair")  # first parts of series names

Pairs = list[tuple[float, float]]
Forward = Callable[[Any], tuple[Sequence[Tensor], Tensor, Tensor | None]]


@dataclass(frozen=True)
class Profile:
    """Metrics and series by name. What isn't defined for a cloud is left out, a series without values too."""

    metrics: dict[str, float]
    series: dict[str, Pairs]

    def at(self, where: str) -> Profile:
        """The same under the names it has at ``where``, such as "start" or "end" (see :func:`placed`)."""
        metrics = {placed(name, where): value for name, value in self.metrics.items()}
        return Profile(metrics, {placed(name, where): pairs for name, pairs in self.series.items()})


def placed(name: str, where: str) -> str:
    """``where`` put into a name: behind the axis of a series, in front of a metric.

    >>> placed("layer.tokens.isoscore", "end"), placed("cls.isoscore", "end")
    ('layer.end.tokens.isoscore', 'end.cls.isoscore')
    """
    head, _, rest = name.partition(".")
    return f"{head}.{where}.{rest}" if head in AXES else f"{where}.{name}"


@torch.no_grad()
def profile(
    forward: Forward,
    batches: Iterable[Any],
    *,
    layers: int,
    shrinkage_cov: Tensor | None = None,
    points: Mode = "cls",
    limit: int = 1500,
) -> Profile:
    """Profile of a model with ``layers`` layers (L) on ``batches``.

    ``forward(batch)`` gives hidden states, L + 1 tensors (B, T, d) from the embedding output on, the mask (B, T) of
    real tokens, and what the head sees: (B, d), (B, T, d) (its real tokens count) or None. ``points`` makes the vector
    of a sentence: "cls", "last" for decoders, or a mean. ``shrinkage_cov`` (d, d) is that of IsoScore* of tokens, else
    the scaled identity. Clouds of more than ``limit`` points are measured on so many, drawn with a fixed seed, except
    for what sums suffice for. Measures are those of :func:`~isonb_lab.measuring.cloud.cloud_measures`.

    Metrics: ``cls.<measure>`` and ``tokens.<measure>`` of the last layer, ``features.<measure>`` of what the head sees,
    ``tokens.isoscore_all_layers`` and ``tokens.isoscore_star_all_layers`` of the tokens of layers 1..L together.

    Series: over layers 0..L ``layer.cls.<measure>``, ``layer.tokens.<name>`` with names isoscore, isoscore_star,
    mean_cosine, mean_norm, token_uniformity, cls_uniformity (means over sentences), spectral_skewness and
    spectral_median (of the singular values of all sentences' token matrices); ``k.<cloud>.explained_variance`` and
    ``..._centered`` for k = 1..20 of cls and features; ``dimension.tokens.mean`` of the last layer;
    ``quantile.layer<l>.singular_values``, 51 quantiles of those values over their largest, for each layer.

    Raises :class:`~isonb.errors.ShapeError` for another number of hidden states. Points that can't be measured raise
    nothing.
    """
    depth = range(layers + 1)
    sums, sentences = [TokenSums() for _ in depth], [SentenceSums(points) for _ in depth]
    vectors, tokens, head_sample = [Sample(limit) for _ in depth], Sample(limit), Sample(limit)
    for batch in batches:
        states, mask, features = forward(batch)
        if len(states) != layers + 1:
            fix = "The embedding output comes first."
            fail(ShapeError, f"forward must give {layers + 1} hidden states", len(states), fix)
        mask = mask.bool()
        for layer, state in enumerate(states):
            sums[layer].add(state, mask)
            sentences[layer].add(state, mask)
            vectors[layer].add(pool([state], mask, points))
        tokens.add(pool([states[-1]], mask, "tokens"))
        if features is not None:
            head_sample.add(features if features.ndim == 2 else pool([features], mask, "tokens"))
    measured = [cloud_measures(sample.points) for sample in vectors]
    clouds = {
        "cls": measured[-1],
        "tokens": cloud_measures(tokens.points),
        "features": cloud_measures(head_sample.points),
    }
    clouds["tokens"] |= sums[-1].shares() | sums[-1].measures(shrinkage_cov)  # the sums, of all tokens, win
    if all(total.usable for total in sums[1:]):
        every = Moments()
        for total in sums[1:]:
            every.merge(total.moments)
        clouds["tokens"] |= {
            "isoscore_all_layers": number(lambda: isoscore_from_cov(every.cov)),
            "isoscore_star_all_layers": number(lambda: star_from_cov(every.cov, shrinkage_cov)),
        }
    series: dict[str, list[tuple[float, float | None]]] = {}
    for layer in depth:
        by_kind = {"cls": measured[layer], "tokens": sums[layer].measures(shrinkage_cov) | sentences[layer].measures()}
        for kind, values in by_kind.items():
            for name, value in values.items():
                series.setdefault(f"layer.{kind}.{name}", []).append((float(layer), value))
        series[f"quantile.layer{layer}.singular_values"] = list(sentences[layer].quantiles())
    for kind, sample in (("cls", vectors[-1]), ("features", head_sample)):
        curves = variance_curves(sample.points.double())
        series |= {f"k.{kind}.{name}": list(curve) for name, curve in curves.items()}
    mean = attempt(lambda: sums[-1].moments.mean) if sums[-1].usable else None
    series["dimension.tokens.mean"] = [] if mean is None else [(float(k), y) for k, y in enumerate(mean.tolist())]
    named = {f"{cloud}.{name}": value for cloud, values in clouds.items() for name, value in values.items()}
    finite = {name: [(x, y) for x, y in pairs if y is not None] for name, pairs in series.items()}
    return Profile(
        {name: value for name, value in named.items() if value is not None},
        {name: pairs for name, pairs in finite.items() if pairs},
    )

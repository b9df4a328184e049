"""The measures of one cloud of points, each a number or, where it isn't defined, None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isonb.measures.registry import LEADING, attempt, measure_all
from isonb.measures.spectrum import explained_variance
from isonb.numerics.rows import centered
from isonb.points import label_groups

CURVE = 20  # directions of the curve of explained variance
BY_CLASS = (*(f"anisotropy_{j}" for j in range(1, LEADING + 1)), "isoscore")

Values = dict[str, float | None]


def number(measure: Callable[..., Tensor], *args: Any, **kwargs: Any) -> float | None:
    """:func:`~isonb.measures.registry.attempt` of a scalar, as a float."""
    value = attempt(measure, *args, **kwargs)
    return None if value is None else float(value)


@torch.no_grad()
def cloud_measures(points: Tensor, labels: Tensor | None = None) -> Values:
    """Measures of points (n, d), in float64 on the CPU; None where one isn't defined for them. Never an error.

    Those of :data:`~isonb.measures.registry.MEASURES` by name. With integer ``labels`` (n,) also, each class moved to
    its own mean: ``anisotropy_<j>_class_centered`` and ``isoscore_class_centered``.

    >>> values = cloud_measures(torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]]))
    >>> [round(values[name], 6) for name in ("anisotropy_1", "anisotropy_1_centered", "isoscore")]
    [0.90774, 0.768742, 0.551724]
    >>> values["anisotropy_3"] is None  # there are two dimensions
    True
    """
    x = points.detach().cpu().double()
    values = measure_all(x)
    if labels is not None:
        moved = attempt(_class_centered, x, labels.cpu())
        within = dict.fromkeys(BY_CLASS) if moved is None else measure_all(moved, BY_CLASS)
        values |= {f"{name}_class_centered": value for name, value in within.items()}
    return values


def _class_centered(x: Tensor, labels: Tensor) -> Tensor:
    return torch.cat([centered(group) for _, group in label_groups(x, labels)])


def shares_named(shares: Tensor | None, ending: str) -> Values:
    """Anisotropy and explained variance of the leading directions under their names."""
    alone = [] if shares is None else shares[:LEADING].tolist()
    together = [] if shares is None else shares[:LEADING].cumsum(0).tolist()
    named: Values = {}
    for name, values in (("anisotropy", alone), ("explained_variance", together)):
        for j in range(LEADING):
            named[f"{name}_{j + 1}{ending}"] = values[j] if j < len(values) else None
    return named


def variance_curves(points: Tensor) -> dict[str, list[tuple[float, float]]]:
    """``explained_variance`` and ``explained_variance_centered`` of the first 1 to 20 directions; what is defined.

    >>> variance_curves(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))["explained_variance"]
    [(1.0, 1.0), (2.0, 1.0)]
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    for ending, center in (("", False), ("_centered", True)):
        shares = attempt(explained_variance, points, min(CURVE, *points.shape), center=center)
        if shares is not None:
            curves[f"explained_variance{ending}"] = [(float(k), y) for k, y in enumerate(shares.tolist(), start=1)]
    return curves

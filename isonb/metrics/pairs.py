"""Metrics of two clouds of the same points, of several views of objects, and of points with labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.checks import check_points, labels_of, strict, validated
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.measures.pairs import alignment, collapse_of, partners, spread_of_objects
from isonb.metrics.streaming import Streaming
from isonb.numerics.scale import precise
from isonb.streaming.moments import Moments
from isonb.streaming.streams import Average


class Alignment(Streaming):
    """:func:`isonb.alignment` of all pairs; feed it both vectors of each, (..., n, d) twice."""

    summary = Average

    def __init__(self, power: float = 2.0, normalize: bool = True, **kwargs: Any) -> None:
        super().__init__(None, "Alignment", float(power), normalize, **kwargs)
        self.power, self.normalize = power, normalize

    @validated
    def update(self, x: Tensor, y: Tensor, mask: Tensor | None = None) -> None:  # type: ignore[override]
        """Add pairs: row i of x belongs to row i of y; mask (..., n) marks the real ones."""
        with strict(), torch.no_grad():
            x, y, real = partners(x, y, mask)
            if self.normalize:  # a zero row has no direction
                sides = (x != 0).any(-1) & (y != 0).any(-1)
                real = sides if real is None else sides & real
            x, y = (x.flatten(0, -2), y.flatten(0, -2)) if real is None else (x[real], y[real])
            if len(x):
                self._add(alignment(x.unsqueeze(1), y.unsqueeze(1), self.power, self.normalize))


class CKA(Streaming):
    """:func:`isonb.cka` of all points; feed it both clouds. ``first``: dimensions of the first, if not half of all.

    ``dims``, if given, is the sum of both. The debiased form needs fourth moments of both clouds, which are not kept.
    """

    least, exact = 2, True

    def __init__(self, first: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first = first

    @validated
    def update(self, x: Tensor, y: Tensor, mask: Tensor | None = None) -> None:  # type: ignore[override]
        """Add points (..., n, d) and (..., n, c): row i of x belongs to row i of y; mask (..., n) marks real ones."""
        x, y, mask = partners(x, y, mask)
        if x.shape[-1] != (self.first or y.shape[-1]):
            fix = "Give first, the dimensions of x, where they differ from those of y."
            fail(ShapeError, f"x must have {self.first or y.shape[-1]} dimensions", x.shape[-1], fix)
        super().update(torch.cat([x, y], -1), mask)

    def _value(self, summary: Moments) -> Tensor:
        cov = summary.cov
        d = self.first or len(cov) // 2
        first, second, both = cov[:d, :d].norm(), cov[d:, d:].norm(), cov[:d, d:].square().sum()
        if not bool((first > 0) & (second > 0)):
            fail(DegenerateError, "both clouds must vary", f"{torch.minimum(first, second).item():.3g}", "Add points.")
        score: Tensor = (both / first / second).clamp(max=1)
        return score


class LiDAR(Streaming):
    """:func:`isonb.lidar` of all objects; feed it (objects, ``views``, d), as many views in every call.

    >>> metric = LiDAR(views=2)
    >>> metric.update(torch.tensor([[[0.0, 1.0], [0.0, -1.0]], [[4.0, 0.0], [5.0, 0.0]], [[0.0, 7.0], [1.0, 8.0]]]))
    >>> round(metric.compute().item(), 6)
    1.593705
    """

    def __init__(self, views: int, delta: float = 1e-4, *, dims: int | None = None, **kwargs: Any) -> None:
        super().__init__(dims=dims and 2 * dims, **kwargs)
        if views < 2:
            fail(InputError, "views must be at least 2", views, "It is how often each object is seen.")
        self.views, self.delta, self.least = views, delta, 2 * views

    def update(self, x: Tensor) -> None:  # type: ignore[override]
        """Add objects (objects, views, d)."""
        x, _ = check_points(x, name="views")
        if x.ndim != 3 or x.shape[1] != self.views:
            fail(ShapeError, f"views must have shape (objects, {self.views}, d)", tuple(x.shape), "Stack the views.")
        x = precise(x.detach())
        mean = x.mean(1, keepdim=True)
        super().update(torch.cat([mean.expand_as(x), x - mean], -1))  # one scatter holds both covariances

    def _value(self, summary: Moments) -> Tensor:
        count, _, scatter = summary.state_tensors()
        d, objects = len(scatter) // 2, count / self.views
        within, between = scatter[d:, d:] / (count - objects), scatter[:d, :d] / self.views / (objects - 1)
        return spread_of_objects(within, between, self.delta)


class NC1(Streaming):
    """:func:`isonb.nc1` of all points with labels below ``classes``; those that no point has don't count."""

    least = 2

    def __init__(self, classes: int, *, dims: int | None = None, **kwargs: Any) -> None:
        super().__init__(dims=dims and dims + classes, **kwargs)
        self.classes = classes

    def update(self, x: Tensor, labels: Tensor) -> None:  # type: ignore[override]
        """Add points (n, d) and their integer labels (n,), from 0 below ``classes``."""
        x, _ = check_points(x, points=0, single=True)
        labels = labels_of(labels, len(x)).to(x.device)
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < self.classes:
            got = f"{int(labels.min())} to {int(labels.max())}"
            fail(InputError, f"labels must be from 0 to {self.classes - 1}", got, "Raise classes.")
        x = precise(x)  # whose squares aren't lost beside those of the ones and zeros
        member = torch.nn.functional.one_hot(labels.long(), self.classes).to(x)
        super().update(torch.cat([x, member], -1))  # its scatter holds counts and means of the classes

    def _value(self, summary: Moments) -> Tensor:
        count, mean, scatter = summary.state_tensors()
        k = self.classes
        size = (mean[-k:] * count).round()
        present = size > 0
        if int(present.sum()) < 2:
            fail(ShapeError, "labels must be of two classes or more", int(present.sum()), "Call update with others.")
        means = (scatter[:-k, -k:] / size.clamp_min(1)).mT[present]
        within = (scatter[:-k, :-k] - (means.mT * size[present]) @ means) / count
        return collapse_of(means, lambda axes: ((within @ axes) * axes).sum(0)).clamp_min(0)

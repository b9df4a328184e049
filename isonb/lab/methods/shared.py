"""What several methods share.

A loss that is offered points alone, or joins the task loss as it is, and how a transform fitted on finished
vectors takes part in the stages of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from isonb.errors import ShapeError, fail
from isonb.lab.methods.base import Method, Place, SecondPhase

__all__ = ["Fitted", "FittedModule", "OnFeatures", "OnVectors", "PointsAlone", "RandomDirection", "WithLoss", "fewer"]


class PointsAlone(nn.Module):
    """A loss that takes neither labels nor a shrinkage matrix, so that none is made for it."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, points: Tensor) -> Tensor:
        """Points (n, d); returns a scalar."""
        value: Tensor = self.loss(points)
        return value


class _Turned(torch.autograd.Function):
    """The points as they are; backwards, a gradient of the same length in a random direction."""

    @staticmethod
    def forward(ctx: Any, points: Tensor) -> Tensor:
        """Points of any shape."""
        return points.view_as(points)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """The gradient at the points, turned."""
        noise = torch.randn_like(gradient)
        turned: Tensor = noise * (gradient.norm() / noise.norm())
        return turned


class RandomDirection(nn.Module):
    """The value of a loss with another gradient: as long at the points, in a random direction.

    What is left of the loss's effect is that of a step of this size.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, points: Tensor, shrinkage_cov: Tensor | None = None) -> Tensor:
        """Points (n, d), shrinkage_cov (d, d) or None; returns a scalar."""
        turned: Tensor = _Turned.apply(points)  # type: ignore[no-untyped-call]
        value: Tensor = self.loss(turned, shrinkage_cov)
        return value


class Fitted(Protocol):
    """A transform that has learned: points (n, d) to (n, k)."""

    def transform(self, x: Tensor, /) -> Tensor: ...


class FittedModule(nn.Module):
    """A fitted transform as a module without gradients: vectors (..., d), any leading axes, to (..., k).

    >>> from isonb.transforms import ZeroMean
    >>> FittedModule(ZeroMean().fit(torch.tensor([[1.0, 5.0], [3.0, 7.0]])))(torch.tensor([4.0, 4.0])).tolist()
    [2.0, -2.0]
    """

    def __init__(self, fitted: Fitted) -> None:
        super().__init__()
        self.fitted = fitted.requires_grad_(False) if isinstance(fitted, nn.Module) else fitted

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Float32 or float64, on the device of ``x``."""
        rows = self.fitted.transform(x.reshape(-1, x.shape[-1]))
        return rows.reshape(*x.shape[:-1], rows.shape[-1]).to(x.device)


class WithLoss(Method):
    """A loss on the [CLS] vectors of the last layer joins that of the task; :func:`takes` says which."""

    def penalty(self) -> nn.Module:
        """The loss with the options of the method."""
        made: nn.Module = self.made()
        return made


@dataclass(frozen=True)
class OnFeatures(Method):
    """In fine-tuning: fitted on the training features of the frozen encoder, with a new head on the result."""

    acts_on: ClassVar[Place] = "second"
    two_phases: ClassVar[bool] = True
    post_hoc: ClassVar[bool] = True

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """The transform learned from vectors (n, d)."""
        learned: Fitted = self.made().fit(rows)
        return learned

    def module(self, rows: Tensor, seed: int) -> FittedModule:
        """The fitted transform as a module."""
        return FittedModule(self.fitted(rows, seed))

    def second(self, features: Tensor, seed: int) -> SecondPhase:
        """The transform fitted on the features, and a new head for what it makes of them."""
        return SecondPhase(self.module(features, seed), head="new")


@dataclass(frozen=True)
class OnVectors(OnFeatures):
    """As above; in similarity: fitted on the sentence vectors of both sides of all pairs of the task, as one cloud."""

    def transform(self, first: Tensor, second: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Both sides by the transform fitted on both."""
        change = self.module(torch.cat([first, second]), seed)
        return change(first), change(second)


def fewer(removed: int, rows: Tensor, name: str) -> None:
    """Raises :class:`~isonb.errors.ShapeError` unless fewer directions are removed than there are."""
    if removed >= rows.shape[-1]:
        want = f"{name} must be less than the {rows.shape[-1]} dimensions of the vectors"
        fail(ShapeError, want, removed, "Nothing would be left of them: remove fewer directions.")

"""What several methods share.

Options of a method that what it is about has declared already. A loss that is offered points alone, or joins the task
loss as it is. How a transform fitted on finished vectors takes part in the stages of a run.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor, nn

from isonb.errors import ShapeError, fail
from isonb.options import declared, hints
from isonb_lab.methods.base import Method, Place, SecondPhase

EXCLUDED = ("group",)  # of a loss, not of a run

K = TypeVar("K", bound=type[Any])


def options_from(
    subject: Any, *, without: tuple[str, ...] = (), idle: Mapping[str, Mapping[str, Any]] | None = None, **defaults: Any
) -> Callable[[K], K]:
    """A method with the options of ``subject`` before its own; its ``build()`` is the subject with their values.

    ``defaults`` are those of the method where they differ; ``without`` names options that it settles itself,
    ``idle`` those that do nothing beside an option of the method's own (:func:`isonb.options.meaning`).

    >>> from isonb.losses import CosRegLoss
    >>> @options_from(CosRegLoss, weight=2.0)
    ... class Example(Method):
    ...     pass
    >>> Example()
    Example(weight=2.0)
    """
    types = hints(subject)

    def method(kind: K) -> K:
        options = {name: entry for name, entry in declared(subject).items() if name not in (*EXCLUDED, *without)}
        for name, entry in options.items():
            extra = {"idle": {**entry.metadata["idle"], **(idle or {}).get(name, {})}}
            setattr(kind, name, field(default=defaults.get(name, entry.default), metadata={**entry.metadata, **extra}))
        kind.__annotations__ = {name: types[name] for name in options} | dict(kind.__annotations__)
        kind.subject, kind.taken = staticmethod(subject), tuple(options)
        return typing.cast(K, dataclass(frozen=True)(kind))

    return method


class PointsOnly(nn.Module):
    """A loss that takes no labels, so that none are given to it."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, points: Tensor) -> Tensor:
        value: Tensor = self.loss(points)
        return value


class _Turned(torch.autograd.Function):
    """The points as they are; backwards, a gradient of the same length in a random direction."""

    @staticmethod
    def forward(ctx: Any, points: Tensor) -> Tensor:
        return points.view_as(points)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        noise = torch.randn_like(gradient)
        turned: Tensor = noise * (gradient.norm() / noise.norm())
        return turned


def turn_gradient(loss: nn.Module) -> nn.Module:
    """``loss`` itself, from now on with another gradient: as long at the points, in a random direction.

    What is left of the loss's effect is that of a step of this size.
    """
    loss.register_forward_pre_hook(lambda _, args: (_Turned.apply(args[0]), *args[1:]))  # type: ignore[no-untyped-call]
    return loss


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
        rows = self.fitted.transform(x.reshape(-1, x.shape[-1]))
        return rows.reshape(*x.shape[:-1], rows.shape[-1]).to(x.device)


class WithLoss(Method):
    """A loss on the [CLS] vectors of the last layer joins that of the task; :func:`options_from` says which."""

    def penalty(self) -> nn.Module:
        loss: nn.Module = self.build()
        return loss


@dataclass(frozen=True)
class OnFeatures(Method):
    """In fine-tuning: learned from the training features of the frozen encoder, with a new head on the result."""

    acts_on: ClassVar[Place] = "second"
    read_by: ClassVar[Place] = "second"
    two_phases: ClassVar[bool] = True
    post_hoc: ClassVar[bool] = True

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """The transform learned from vectors (n, d)."""
        learned: Fitted = self.build().fit(rows)
        return learned

    def module(self, rows: Tensor, seed: int) -> nn.Module:
        """What stands before the new head."""
        return FittedModule(self.fitted(rows, seed))

    def second(self, features: Tensor, seed: int) -> SecondPhase:
        return SecondPhase(self.module(features, seed), head="new")


@dataclass(frozen=True)
class OnVectors(OnFeatures):
    """As above; in similarity: fitted on the sentence vectors of both sides of all pairs of the task, as one cloud."""

    def transform(self, first: Tensor, second: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        change = self.module(torch.cat([first, second]), seed)
        return change(first), change(second)


def fewer(removed: int, rows: Tensor, name: str) -> None:
    """Raises :class:`~isonb.errors.ShapeError` unless fewer directions are removed than there are."""
    if removed >= rows.shape[-1]:
        want = f"{name} must be less than the {rows.shape[-1]} dimensions of the vectors"
        fail(ShapeError, want, removed, "Nothing would be left of them: remove fewer directions.")

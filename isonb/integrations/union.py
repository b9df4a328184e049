r"""One penalty over an effective batch that passes through the model in several micro-batches.

Isotropy belongs to a cloud: the penalty of a batch isn't the mean of the penalties of its micro-batches. For the same
update whatever their number, the points of all of them must enter one penalty. Keeping every graph until then would
give up the memory that accumulation saves, so the work is done in two passes:

1. a rehearsal: while the first micro-batch waits with its graph, each other one goes through the model without one and
   leaves its points; the penalty of their union gives a value and a gradient for each (:func:`penalty_gradients`);
2. the training pass: to the loss of a micro-batch is added a term of value zero whose gradient at its points is the
   one of the rehearsal (:func:`carrying`).

By the chain rule the sum over micro-batches is the gradient of the union's penalty. The price is one forward pass more
for each micro-batch but the first, at most a third of a step. Dropout repeats itself: the generators, and buffers such
as running statistics, are put back after the rehearsal, so the training pass runs as if there had been none.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from isonb.errors import FitWarning, InputError, PrecisionWarning, ShapeError, fail
from isonb.losses.istar import IStarLoss

HALF = (torch.float16, torch.bfloat16)

Penalty = Callable[[Tensor, Tensor | None], Tensor]


def asked(penalty: Callable[..., Tensor], **offers: Any) -> dict[str, Any]:
    """Those of ``offers`` that ``penalty`` has a parameter for, by name; compiled, or in a partial that leaves it open.

    An I-STAR that gives ``shrinkage_cov`` no weight, with ``unbiased`` or with zeta "auto" or 0, doesn't ask for it.

    >>> asked(lambda points, labels=None: points.sum(), labels=3, shrinkage_cov=4)
    {'labels': 3}
    """
    bound: set[str] = set()
    while isinstance(penalty, partial):
        bound |= set(penalty.keywords)
        penalty = penalty.func
    call = getattr(penalty, "_orig_mod", penalty).forward if isinstance(penalty, nn.Module) else penalty
    loss = getattr(call, "__self__", None)
    if isinstance(loss, IStarLoss) and (loss.unbiased or loss.zeta in ("auto", 0)):
        bound.add("shrinkage_cov")
    open_ones = set(inspect.signature(call).parameters) - bound
    return {name: offer for name, offer in offers.items() if name in open_ones}


def value_of(penalty: Callable[..., Tensor], points: Tensor, **offers: Any) -> Tensor:
    """What ``penalty`` makes of points (n, d) and of those ``offers`` that it asks for, as :func:`one_number`.

    >>> value_of(lambda points, labels: points.sum() * labels, torch.ones(2, 3), labels=2, shrinkage_cov=None).item()
    12.0
    """
    return one_number(penalty(points, **asked(penalty, **offers)))


@contextmanager
def rehearsal(model: nn.Module) -> Iterator[None]:
    """Run the model without a graph and without a trace: random states and buffers are put back at the end."""
    device = next(model.parameters()).device
    kept = [(buffer, buffer.clone()) for buffer in model.buffers()]
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type=device.type if devices else "cuda"), torch.no_grad():
        try:
            yield
        finally:
            for buffer, before in kept:
                # a graph that waits for its backward pass may hold the buffer: it is as it was
                buffer.data.copy_(before)
            # Weights cast under autocast were cached without their graph; the training pass must cast its own.
            torch.clear_autocast_cache()


def penalty_gradients(penalty: Penalty, seen: Sequence[tuple[Tensor, Tensor | None]]) -> tuple[Tensor, list[Tensor]]:
    """Value of ``penalty`` on the union of points, and its gradient at each of them (float32 for half precision).

    ``seen``: points of each micro-batch and their labels, which go to the penalty where all have some.

    >>> seen = [(torch.tensor([[1.0]]), None), (torch.tensor([[2.0], [3.0]]), None)]
    >>> value, gradients = penalty_gradients(lambda x, labels: x.sum() ** 2, seen)
    >>> value.item(), [g.flatten().tolist() for g in gradients]
    (36.0, [[12.0], [12.0, 12.0]])
    """
    # A loss scaler acts after this point: keep small gradients representable.
    leaves = [(p.float() if p.dtype in HALF else p).detach().requires_grad_() for p, _ in seen]
    labels = [item for _, item in seen if item is not None]
    with torch.enable_grad(), _own_draws(leaves[0]):
        value = one_number(penalty(torch.cat(leaves), torch.cat(labels) if len(labels) == len(leaves) else None))
        if not value.requires_grad:
            return value, [torch.zeros_like(leaf) for leaf in leaves]
        gradients = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return value.detach(), list(gradients)


@contextmanager
def _own_draws(points: Tensor) -> Iterator[None]:
    """On the CPU, random numbers that depend on the points: those of dropout, drawn there too, are left as they are."""
    if points.device.type != "cpu":
        yield
        return
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(int(points.detach().double().sum().view(torch.int64)))
        yield


def warn_of_half_weights(model: nn.Module) -> None:
    """Warn where weights to be trained are in half precision, without a float32 copy for the optimiser.

    AdamW's eps of 1e-8 is 0 in float16, so that small gradients throw the weights; in bfloat16 small steps are lost.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     warn_of_half_weights(nn.Linear(2, 2).half())
    >>> seen[0].category.__name__
    'PrecisionWarning'
    """
    kinds = sorted(
        {str(weight.dtype) for weight in model.parameters() if weight.requires_grad and weight.dtype in HALF}
    )
    if kinds:
        what = f"weights in {', '.join(kinds)} are trained without a float32 copy: steps are lost, or far too long"
        fix = "Load the model with dtype=torch.float32, and train in half precision by bf16=True or fp16=True"
        warnings.warn(f"{what}. {fix}.", PrecisionWarning, stacklevel=3)


def warn_of_no_shrinkage(penalty: Callable[..., Tensor]) -> None:
    """Warn of an I-STAR without the covariance of a larger sample, whose loss keeps the bias of a small batch.

    >>> import warnings
    >>> from isonb.losses import IStarLoss
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     warn_of_no_shrinkage(IStarLoss())
    ...     warn_of_no_shrinkage(IStarLoss(zeta="auto"))
    >>> len(seen)
    1
    """
    if asked(penalty, shrinkage_cov=None):
        what = "without shrinkage_cov the penalty is a function of the batch's IsoScore, low in a small batch"
        fix = "Pass the cov of a ShrinkageCovariance, as in lambda x: penalty(x, shrinkage.cov), or take unbiased=True"
        warnings.warn(f"{what}. {fix}.", FitWarning, stacklevel=3)


def one_number(value: Any) -> Tensor:
    """What a penalty has returned, if it can join a loss; otherwise :class:`~isonb.errors.ShapeError`."""
    if not isinstance(value, Tensor) or value.numel() != 1:
        got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        fail(ShapeError, "a penalty must return a tensor of one number", got, "Take the mean or the sum.")
    return value.reshape(())


def trainable(points: Tensor) -> Tensor:
    """``points``, if a penalty on them can reach any weight; otherwise :class:`~isonb.errors.InputError`."""
    if not points.requires_grad:
        fix = "Unfreeze the encoder, or use gradient checkpointing with use_reentrant=False."
        fail(InputError, "the points must depend on trainable weights", "points without a graph", fix)
    return points


def carrying(points: Tensor, gradient: Tensor) -> Tensor:
    """A scalar of value zero whose gradient at ``points`` is ``gradient``.

    >>> x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    >>> term = carrying(x, torch.tensor([[5.0, 7.0]]))
    >>> term.item(), torch.autograd.grad(term, x)[0].tolist()
    (0.0, [[5.0, 7.0]])
    """
    product = (points.to(gradient.dtype) * gradient).sum()
    return product - product.detach()

"""A training loop with Accelerate, to use or to copy from: the same update on any number of processes.

::

    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    pooling = Pooling("tokens", layers="all")
    cov = ShrinkageCovariance().refresh(model, loader)  # at each epoch's start
    for batches in groups(loader, 4):  # four micro-batches an update
        log = update(accelerator, model, optimizer, batches, IStarLoss(), pooling, shrinkage_cov=cov)
    score = measure(accelerator, model, loader, IsoScore(), pooling).compute()

The effective batch is grouped here, not by the Accelerator, whose ``gradient_accumulation_steps`` must be 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor, nn

from isonb.errors import InputError, fail
from isonb.integrations.hidden_states import Pooling
from isonb.integrations.union import (
    asked,
    carrying,
    penalty_gradients,
    rehearsal,
    trainable,
    value_of,
    warn_of_no_shrinkage,
)
from isonb.losses.istar import quiet

Batch = Mapping[str, Any]
_Pass = tuple[Tensor, Tensor, Tensor | None]  # loss, points and labels of a micro-batch


def groups(loader: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """The loader's batches, ``size`` at a time; the last list may be shorter.

    Raises :class:`~isonb.errors.InputError` for a size below 1.

    >>> list(groups([{"n": 1}, {"n": 2}, {"n": 3}], 2))
    [[{'n': 1}, {'n': 2}], [{'n': 3}]]
    """
    if size < 1:
        fail(InputError, "size must be 1 or more batches", size, "With 1 each batch is an update.")
    batches = iter(loader)
    while group := list(islice(batches, size)):
        yield group


def own_rows(accelerator: Any, size: int) -> int:
    """How many of this process's ``size`` rows aren't copies that fill up the last batch.

    ``gather_for_metrics`` drops those copies; a metric that reduces itself has to leave them out when it is fed.
    """
    state = accelerator.gradient_state
    is_filled = accelerator.even_batches and state.in_dataloader and state.end_of_dataloader
    if not is_filled or state.remainder <= 0:
        return size
    return min(max(int(state.remainder) - int(accelerator.process_index) * size, 0), size)


def update(
    accelerator: Any,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: list[Batch],
    penalty: Callable[..., Tensor],
    pooling: Pooling,
    weight: float = 1.0,
    *,
    max_norm: float | None = None,
    scheduler: Any = None,
    shrinkage_cov: Tensor | None = None,
) -> dict[str, Tensor]:
    """One optimiser step on all ``batches`` of all processes: mean task loss plus ``weight * penalty`` of their union.

    The model must return a mean loss over its rows. ``max_norm`` clips the gradient of both together to that length,
    as :meth:`Accelerator.clip_grad_norm_` does; ``scheduler``, a prepared one, takes a step after the optimiser;
    ``shrinkage_cov`` goes to a penalty that takes one, as ``IStarLoss`` does: the covariance of a
    :class:`~isonb.losses.istar.ShrinkageCovariance`, measured at each epoch's start. Without it an
    :class:`~isonb.errors.FitWarning` says what is lost.

    Returns the task loss, ``weight * penalty`` (what was added), what the penalty logs and, where it is clipped, the
    length of the gradient before. With one batch there is one forward pass; with several each but the first passes
    twice (see :mod:`isonb.integrations.union`), so memory is that of one.
    """
    offered = {} if shrinkage_cov is None else {"shrinkage_cov": shrinkage_cov}
    if len(asked(penalty, **offered)) < len(offered):
        fix = "Leave it out, or pass an IStarLoss with zeta above 0."
        fail(InputError, "the penalty must use a shrinkage_cov where one is given", repr(penalty), fix)
    if (steps := getattr(accelerator, "gradient_accumulation_steps", 1)) != 1:
        fix = "Here one call is one update: leave it at 1, and pass the batches of an update together."
        fail(InputError, "gradient_accumulation_steps of the Accelerator must be 1", steps, fix)
    if shrinkage_cov is None:
        warn_of_no_shrinkage(penalty)
    if without := [number for number, batch in enumerate(batches) if "labels" not in batch]:
        got = f"batch {without[0]} with {', '.join(sorted(batches[without[0]]))}"
        fail(InputError, "each batch must have labels, by which its rows are counted", got, "Add them to the batches.")

    def penalised(points: Tensor, labels: Tensor | None) -> Tensor:
        return weight * value_of(penalty, points, labels=labels, **offered)

    model.train()
    rows = torch.tensor([len(batch["labels"]) for batch in batches], device=accelerator.device)
    shares = rows / (accelerator.reduce(rows.sum(), "sum") / accelerator.num_processes)  # gradients are averaged
    value, gradients = torch.zeros(()), list[Tensor]()
    passes: Iterator[_Pass] = (_forward(accelerator, model, batch, pooling) for batch in batches)
    if len(batches) > 1:  # the penalty of all together, and its gradient at the points of each
        with accelerator.no_sync(model):
            first = next(passes)
        with rehearsal(model):
            others = [_forward(accelerator, model, batch, pooling)[1:] for batch in batches[1:]]
        value, gradients = penalty_gradients(penalised, [first[1:], *others])
        passes = chain([first], passes)
    task = torch.zeros((), device=accelerator.device)
    for step in range(len(batches)):
        with nullcontext() if step == len(batches) - 1 else accelerator.no_sync(model):
            loss, points, labels = next(passes)
            points, share = trainable(points), loss * shares[step]
            extra = carrying(points, gradients[step]) if gradients else penalised(points, labels)
            accelerator.backward(share + extra)
        task = task + share.detach()
    norm = {} if max_norm is None else {"grad_norm": accelerator.clip_grad_norm_(model.parameters(), max_norm)}
    optimizer.step()
    if scheduler is not None:
        scheduler.step()
    optimizer.zero_grad()
    logged = {f"isonb_{name}": number for name, number in getattr(penalty, "logged", {}).items()}
    added = value if gradients else extra.detach()
    return {"task": accelerator.reduce(task, "mean"), "isonb_penalty": added, **logged, **norm}


def _forward(accelerator: Any, model: nn.Module, batch: Batch, pooling: Pooling) -> _Pass:
    with accelerator.autocast(), pooling.watch(model) as states:
        loss: Tensor = model(**batch).loss
    return loss, *pooling.points(states, batch)


def measure(accelerator: Any, model: nn.Module, loader: Iterable[Batch], metric: Any, pooling: Pooling) -> Any:
    """Feed a metric of :mod:`isonb.metrics` the points of every row of ``loader``, each once; returns the metric.

    The model runs in evaluation mode; its training flags and the random states are put back.
    """
    with quiet(model):
        for batch in loader:
            with pooling.watch(model) as states:
                model(**batch)
            metric.update(pooling.points(states, batch, partial(own_rows, accelerator))[0])
    return metric

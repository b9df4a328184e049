"""The shrinkage covariance of I-STAR: hidden states to points, and their covariance over a large sample."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from isonb.checks import border, cloud
from isonb.errors import ShapeError, fail, not_fitted
from isonb.numerics.distributed import Group, all_sum, process_group
from isonb.streaming.moments import Moments

__all__ = ["ShrinkageCovariance", "points_from_hidden_states", "quiet"]

Forward = Callable[[Any, Any], tuple[Sequence[Tensor], Tensor | None]]


@border
def points_from_hidden_states(
    hidden_states: Sequence[Tensor],
    mask: Tensor | None = None,
    layers: str | int | Sequence[int] = "all",
    include_pads: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Token vectors of some layers as one cloud, and which rows are real: I-STAR's points.

    ``layers``: "all" for 1..L (layer 0, the embedding output, is left out as in the official code), a number or
    several; negative ones count from the end. ``include_pads=True`` takes padding for tokens, as the official code
    does. Shapes: L + 1 tensors (B, T, d) and ``mask`` (B, T); returns points (N, d), layer after layer, and a bool mask
    (N,), or None where every row is real. Nothing is dropped, so nothing waits for the device. Differentiable.

    >>> states = [torch.zeros(1, 2, 3), torch.ones(1, 2, 3), torch.ones(1, 2, 3)]
    >>> points, mask = points_from_hidden_states(states, torch.tensor([[1, 0]]))
    >>> tuple(points.shape), mask.tolist()
    ((4, 3), [True, False, True, False])
    """
    wanted = _wanted(layers, len(hidden_states))
    kept = None if include_pads else mask
    parts = [cloud(hidden_states[layer], kept, name="hidden_states", points=0) for layer in wanted]
    points = torch.cat([rows.flatten(0, -2) for rows, _ in parts])
    real = None if kept is None else torch.cat([m.flatten() for _, m in parts if m is not None])
    return points, real


def _wanted(layers: str | int | Sequence[int], depth: int) -> list[int]:
    if isinstance(layers, str):
        if layers != "all":
            fail(ShapeError, 'layers must be "all", a number or several', repr(layers), '"all" means layers 1..L.')
        wanted = list(range(1, depth))
    else:
        wanted = [layers] if isinstance(layers, int) else list(layers)
    if not wanted or any(not -depth <= layer < depth for layer in wanted):
        got = f"layers {layers!r}"
        fail(ShapeError, f"layers must name some of the {depth} hidden states", got, "Layer 0 is the embedding output.")
    return wanted


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Run the model in evaluation mode without gradients; training flags and random states come back as they were."""
    flags = [(module, module.training) for module in model.modules()]
    cuda = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    plain = random.getstate()
    try:
        with torch.random.fork_rng(cuda), torch.no_grad():
            model.eval()
            yield
    finally:
        random.setstate(plain)
        for module, flag in flags:
            module.training = flag


@contextmanager
def _generators_kept(loader: Any) -> Iterator[None]:
    """Put back the generators a data loader draws its order from."""
    holders = [loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)]
    found = [g for holder in holders if isinstance(g := getattr(holder, "generator", None), torch.Generator)]
    states = [g.get_state() for g in found]
    try:
        yield
    finally:
        for generator, state in zip(found, states, strict=True):
            generator.set_state(state)


def _hidden_states(model: Any, batch: Mapping[str, Any]) -> tuple[Sequence[Tensor], Tensor | None]:
    """Run a transformers model on a batch, without its labels."""
    device = next(model.parameters()).device
    inputs = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in batch.items() if k not in ("label", "labels")}
    out = model(**inputs, output_hidden_states=True, return_dict=True)
    return out.hidden_states, inputs.get("attention_mask")


class ShrinkageCovariance:
    r"""The covariance :math:`\Sigma_S` of I-STAR (Rudman and Eickhoff, ICLR 2024), measured anew for each epoch.

    :meth:`refresh` runs batches through the model in evaluation mode, in the order of the loader, until ``max_rows``
    token vectors are seen (an equal share on each process; the batch that reaches it counts whole), and keeps their
    covariance with n - 1. Nothing is stored but count, mean and scatter. ``layers`` and ``include_pads`` as in
    :func:`points_from_hidden_states`: give the loss the same. Training flags, random states and the loader's generators
    are put back, so a run with and without it draws the same numbers.

    ``forward``: a callable of model and batch that returns hidden states and mask, for models other than those of
    transformers. Every process must call :meth:`refresh`, each with its share of the data.

    >>> shrinkage = ShrinkageCovariance(forward=lambda model, batch: ([batch, model(batch)], None))
    >>> shrinkage.refresh(nn.Identity(), [torch.tensor([[[0.0, 0.0]], [[2.0, 4.0]]])]).tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """

    def __init__(
        self,
        layers: str | int | Sequence[int] = "all",
        include_pads: bool = False,
        max_rows: int = 250_000,
        *,
        forward: Forward = _hidden_states,
        group: Group = "world",
    ) -> None:
        self.layers, self.include_pads, self.max_rows = layers, include_pads, max_rows
        self.forward, self.group = forward, group
        self._cov: Tensor | None = None

    @property
    def cov(self) -> Tensor:
        """The covariance (d, d) of the last :meth:`refresh`."""
        if self._cov is None:
            not_fitted("ShrinkageCovariance", "Call refresh with a model and batches first.")
        return self._cov

    @cov.setter
    def cov(self, cov: Tensor) -> None:
        self._cov = cov

    def refresh(self, model: nn.Module, loader: Iterable[Any]) -> Tensor:
        """Measure on ``max_rows`` rows of ``loader``, each process its share, and return the covariance (d, d)."""
        found = process_group(self.group)
        share = self.max_rows if found is None else self.max_rows / torch.distributed.get_world_size(found)
        model = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        moments, dtype = Moments(), torch.float32
        with quiet(model), _generators_kept(loader):
            for batch in loader:
                points, mask = points_from_hidden_states(*self.forward(model, batch), self.layers, self.include_pads)
                moments.update(points, mask)
                dtype = points.dtype
                if int(moments.n) >= share:
                    break
        self._cov = moments.reduced(lambda part: all_sum(part, self.group)).cov.to(dtype)
        return self._cov

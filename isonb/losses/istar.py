"""I-STAR (Rudman and Eickhoff, ICLR 2024): IsoScore* of the token vectors joins the loss, and what it is shrunk to."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from isonb.checks import check_points, check_size, lasting_tensors, validated
from isonb.errors import InputError, fail, not_fitted
from isonb.losses.common import POOLED, Loss, attached_zero, too_few
from isonb.measures.isoscore import plain_score, shrunk_score
from isonb.numerics.distributed import Group, all_sum, process_group
from isonb.options import option
from isonb.points import Layers, points_from_hidden_states
from isonb.streaming.moments import Moments

ROWS = 250_000  # behind a shrinkage covariance, where nothing else is said
STATE = "count", "mean", "scatter"  # what Moments.state_tensors gives

Forward = Callable[[Any, Any], tuple[Sequence[Tensor], Tensor | None]]


@dataclass(eq=False, repr=False)
class IStarLoss(Loss):
    r""":math:`\lambda (1 - \mathrm{IsoScore}^*)` of I-STAR (Rudman and Eickhoff, ICLR 2024, Section 4).

    Points are the tokens of layers 1..L (:func:`isonb.points_from_hidden_states`); ``shrinkage_cov`` (d, d) is the
    covariance of a larger sample, constant for an epoch, from a :class:`ShrinkageCovariance` at its start. Without it
    the identity scaled to the trace of the batch covariance: then the loss is a function of the batch's IsoScore, and
    the bias of a small batch, which I-STAR is there to remove, stays (see :func:`isonb.isoscore_star`). The mask may
    stand second, as a bool vector: ``IStarLoss()(*points_from_hidden_states(states, attention_mask))``.

    Shapes: points (n, d), d >= 2, mask (n,) optional; returns a scalar, of weight 1 in [0, 1] (unbiased: at most 1). 0
    for fewer than 2 points (4 unbiased); where values aren't looked at, a mask that leaves fewer gives a constant.
    Points that have no IsoScore*, all equal say: the errors and limits of :func:`isonb.isoscore_star`, or unbiased of
    :func:`isonb.isoscore`. With ``unbiased`` a ``shrinkage_cov`` is an :class:`~isonb.errors.InputError`.

    >>> import isonb, torch
    >>> points = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])
    >>> round(isonb.IStarLoss(weight=-1.0, zeta=0.3)(points, torch.eye(2)).item(), 6)
    -0.371056
    """

    weight: float = option(1.0, "weight (lambda): below 0 lowers isotropy, above 0 raises it")
    zeta: float | Literal["auto"] = option(
        0.2, "weight of the shrinkage matrix; auto: scaled identity", low=0, high=1, idle={"unbiased": True}
    )
    _: KW_ONLY
    unbiased: bool = option(False, "the unbiased IsoScore of the batch instead of shrinkage")
    group: Group = option("world", POOLED)

    @validated
    def forward(self, points: Tensor, shrinkage_cov: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), shrinkage_cov (d, d) or None for the scaled identity, mask (n,); returns a scalar."""
        if isinstance(shrinkage_cov, Tensor) and shrinkage_cov.dtype == torch.bool and shrinkage_cov.ndim == 1:
            if mask is not None:
                fail(InputError, "there must be one mask", "two, the first for shrinkage_cov", "Name the arguments.")
            shrinkage_cov, mask = None, shrinkage_cov
        if self.unbiased and shrinkage_cov is not None:
            fail(InputError, "unbiased must stand without shrinkage_cov", "both", "It shrinks nothing: leave one out.")
        points, mask = check_points(points, mask, name="points", points=0, dims=2, single=True)
        if too_few(points, mask, 4 if self.unbiased else 2, self.group):
            return attached_zero(points)
        if self.unbiased:
            score = plain_score(points, mask, True, self.group)
        else:
            score = shrunk_score(points, mask, self.zeta, shrinkage_cov, self.group)
        return self.weight * (1 - score)


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Run the model in evaluation mode without gradients; training flags and random states come back as they were."""
    flags = [(module, module.training) for module in model.modules()]
    cuda = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    plain, numpy = random.getstate(), sys.modules.get("numpy")
    drawn = numpy and numpy.random.get_state()
    try:
        with torch.random.fork_rng(cuda), torch.no_grad():
            model.eval()
            yield
    finally:
        random.setstate(plain)
        if numpy:
            numpy.random.set_state(drawn)
        for module, flag in flags:
            module.training = flag


@contextmanager
def _generators_kept(loader: Any) -> Iterator[None]:
    """Put back what a data loader draws its order from: generators, and the epoch that Accelerate's loaders count."""
    holders = [loader]
    for holder in holders:  # which grows: batch samplers hold samplers, and those of Accelerate batch samplers
        parts = (getattr(holder, name, None) for name in ("sampler", "batch_sampler"))
        holders += [part for part in parts if part is not None and all(part is not one for one in holders)]
    kept = [g for holder in holders if isinstance(g := getattr(holder, "generator", None), torch.Generator)]
    states, epoch = [g.get_state() for g in kept], getattr(loader, "iteration", None)
    try:
        yield
    finally:
        if epoch is not None:
            loader.iteration = epoch
        for generator, state in zip(kept, states, strict=True):
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
    :func:`isonb.points_from_hidden_states`: give the loss the same. Training flags, the random states of
    torch, Python and numpy, and the generators and epoch of the loader are put back, so a run with and without it draws
    the same numbers.

    ``forward``: a callable of model and batch that returns hidden states and mask, for models other than those of
    transformers. Every process must call :meth:`refresh`, each with its share of the data:
    :class:`~isonb.errors.InputError` on all where one has no batch, or all together fewer than 2 points.

    :meth:`update` spares the pass of later epochs: points that training passes anyway replace older ones, so that those
    behind the covariance are half a pass old on average, as is a covariance kept for an epoch. With E the difference of
    two shrinkage matrices, and :math:`p = \operatorname{tr} C / \|C\|_F` of the shrunk covariance C,
    :math:`1 + (d - 1) \mathrm{IsoScore}^* = p^2` and

    .. math:: |p' - p| \le \zeta\, (|\operatorname{tr} E| + p \|E\|_F) / \|C'\|_F .

    >>> import isonb, torch
    >>> shrinkage = isonb.ShrinkageCovariance(forward=lambda model, batch: ([batch, model(batch)], None))
    >>> shrinkage.refresh(torch.nn.Identity(), [torch.tensor([[[0.0, 0.0]], [[2.0, 4.0]]])]).tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """

    @validated
    def __init__(
        self,
        layers: Layers = "all",
        include_pads: bool = False,
        max_rows: int = ROWS,
        *,
        forward: Forward = _hidden_states,
        group: Group = "world",
    ) -> None:
        self.layers, self.include_pads = layers, include_pads
        self.max_rows = check_size(max_rows, "max_rows", f"It is {ROWS:,} by default; 10**9 takes all.")
        self.forward, self.group = forward, group
        self._cov: Tensor | None = None
        self._moments: Moments | None = None  # of the rows behind it

    @property
    def cov(self) -> Tensor:
        """The covariance (d, d) of the last :meth:`refresh`."""
        if self._cov is None:
            not_fitted("ShrinkageCovariance", "Call refresh with a model and batches first.")
        return self._cov

    def state_dict(self) -> dict[str, Tensor]:
        """All there is, to be saved: ``accelerator.register_for_checkpointing(shrinkage)`` takes it from here."""
        if self._moments is None:
            return {}
        return {"cov": self.cov} | dict(zip(STATE, self._moments.state_tensors(), strict=True))

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Go on with the covariance of :meth:`state_dict`."""
        names = ("cov", *STATE)
        if state_dict and not state_dict.keys() >= {*names}:
            must = f"a saved ShrinkageCovariance must have {', '.join(names)}"
            fail(InputError, must, ", ".join(state_dict), "An older isonb saved it: begin the training anew.")
        moments = Moments.from_state(*(state_dict[name] for name in STATE)) if state_dict else None
        self._cov, self._moments = state_dict.get("cov"), moments

    @lasting_tensors()
    def refresh(self, model: nn.Module, loader: Iterable[Any]) -> Tensor:
        """Measure on ``max_rows`` rows of ``loader``, each process its share, and return the covariance (d, d)."""
        group = process_group(self.group)
        processes = 1 if group is None else torch.distributed.get_world_size(group)
        model = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        moments, dtype, without = Moments(), torch.float32, 1
        with quiet(model), _generators_kept(loader):
            for batch in loader:
                points, mask = points_from_hidden_states(*self.forward(model, batch), self.layers, self.include_pads)
                moments.update(points, mask)
                dtype, without = points.dtype, 0
                if int(moments.n) >= self.max_rows / processes:
                    break
        place = next(model.parameters(), moments.n).device  # of a process without points, that of the others
        rows, without = self._total(torch.tensor([int(moments.n), without], device=place)).tolist()
        if without or rows < 2:
            must = "refresh must be given a batch on each process, and 2 points in all"
            got = f"{rows} points, no batch on {without} of {processes}"
            fail(InputError, must, got, "A generator is used up after a pass: give a data loader or a list.")
        whole = moments.reduced(self._total)
        self._cov = whole.cov.to(dtype)
        count, mean, scatter = whole.state_tensors()
        self._moments = Moments.from_state(count / 2, mean, scatter / 2)  # so that rows grow half a pass old in it
        return self._cov

    @validated
    @lasting_tensors()
    def update(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Let ``points`` (n, d) of all processes replace as many older ones; returns the covariance (d, d).

        Points that aren't finite, as of a step that a loss scaler skips, change nothing on an accelerator; where values
        are looked at, as on the CPU, they are a :class:`~isonb.errors.DegenerateError`. Raises
        :class:`~isonb.errors.NotFittedError` before :meth:`refresh`.
        """
        dtype, batch = self.cov.dtype, Moments().update(points, mask).reduced(self._total)
        assert self._moments is not None
        new_rows, _, new_scatter = batch.state_tensors()
        self._moments.to(new_scatter.device)  # from a checkpoint it comes on the CPU
        now = count, mean, scatter = self._moments.state_tensors()
        share = (1 - new_rows / count).clamp_min(0)  # of the rows so far, those that stay
        later = Moments.from_state(share * count, mean, share * scatter).merge(batch).state_tensors()
        finite = torch.isfinite(new_scatter).all()
        self._moments = Moments.from_state(*(torch.where(finite, *pair) for pair in zip(later, now, strict=True)))
        self._cov = self._moments.cov.to(dtype)
        return self._cov

    def _total(self, state: Tensor) -> Tensor:
        return all_sum(state, self.group)

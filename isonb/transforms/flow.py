r"""BERT-flow: an invertible map from sentence vectors to a standard normal (Li et al. 2020), after Glow.

A vector of d numbers is an image of one pixel with d channels. Each level applies ``depth`` steps (activation
normalisation, reversed order, additive coupling) and passes half of the channels on to the next level; all that
leaves a level is meant to be standard normal. Only the flow is trained; the encoder stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from isonb.checks import check_overflow, check_points, is_whole, validated
from isonb.errors import InputError, ShapeError, fail, not_fitted
from isonb.numerics.modules import OptionModule
from isonb.numerics.scale import precise
from isonb.options import build, describe, meaning, option
from isonb.transforms.base import read_folder, write_folder

FACTOR = 3.0  # of the logarithm of a scale, over its parameter
DECAY = 0.01  # of each parameter, times the rate


class _Norm(nn.Module):
    """Activation normalisation of d channels: shifted, then scaled by the exponential of ``FACTOR`` times a parameter.

    The factor is that of the released code: a step of the optimiser then moves the scale three times as far.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.shift, self.log_scale = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(d))

    @torch.no_grad()
    def begin(self, x: Tensor) -> None:
        """Start so that this batch leaves with mean 0 and variance 1."""
        spread = precise(x).std(0, correction=0)  # of points of any size
        self.log_scale.copy_(-torch.where(spread > 1e-6 * spread.amax(), spread, 1.0).log() / FACTOR)
        self.shift.copy_(-x.mean(0))

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.shift) * (FACTOR * self.log_scale).exp()

    def inverse(self, z: Tensor) -> Tensor:
        return z * (-FACTOR * self.log_scale).exp() - self.shift


class _Last(nn.Module):
    """The last layer of a coupling: it starts at 0, and its scale has the same factor."""

    def __init__(self, width: int, d: int) -> None:
        super().__init__()
        self.linear, self.log_scale = nn.Linear(width, d), nn.Parameter(torch.zeros(d))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x) * (FACTOR * self.log_scale).exp()
        return out


class _Step(nn.Module):
    """Activation normalisation, reversed order and additive coupling of ``d`` channels."""

    def __init__(self, d: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.cut, self.norm = d // 2, _Norm(d)
        hidden: list[nn.Module] = []
        for wide in (self.cut, width):
            layer = nn.Linear(wide, width, bias=False)
            nn.init.normal_(layer.weight, std=0.05, generator=generator)
            hidden += [layer, _Norm(width), nn.ReLU()]
        self.coupling = nn.Sequential(*hidden, _Last(width, d - self.cut))

    @torch.no_grad()
    def begin(self, x: Tensor) -> None:
        """Start every normalisation from this batch, in the order in which it passes them."""
        self.norm.begin(x)
        x = self.norm(x).flip(-1)[..., : self.cut]
        for layer in self.coupling:
            if isinstance(layer, _Norm):
                layer.begin(x)
            x = layer(x)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = self.norm(x).flip(-1).tensor_split([self.cut], -1)
        return torch.cat([first, second + self.coupling(first)], -1), FACTOR * self.norm.log_scale.sum()

    def inverse(self, z: Tensor) -> Tensor:
        first, second = z.tensor_split([self.cut], -1)
        return self.norm.inverse(torch.cat([first, second - self.coupling(first)], -1).flip(-1))


@dataclass(eq=False, repr=False)
class GlowFlow(OptionModule):
    """An exactly invertible map of d channels: ``levels`` of ``depth`` steps, couplings of ``width`` hidden units.

    BERT-flow's sizes are 3, 3 and 32. ``flow(x)`` gives z (..., d) and the logarithm of the Jacobian's determinant;
    ``flow.inverse(z)`` undoes it; both in the dtype of the flow. The normalisations take their start from the first
    batch given to ``begin`` (:func:`fit_flow` does); before it, ``flow(x)`` is an error. Initial weights come from
    ``seed``. The parametrisation is that of the released code (permutation "true": reversed channels).

    >>> import isonb, torch
    >>> flow = isonb.GlowFlow(4, levels=2, depth=1)
    >>> x = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    >>> z, logdet = flow.begin(x)(x)
    >>> tuple(z.shape), tuple(logdet.shape), bool(torch.allclose(flow.inverse(z), x, atol=1e-5))
    ((8, 4), (8,), True)
    """

    d: int = field(metadata=meaning("channels", low=2))
    levels: int = option(3, "levels, each halving the channels; the dimensions must be at least 2^levels", low=1)
    depth: int = option(3, "steps a level", low=1)
    width: int = option(32, "hidden units of a coupling", low=1)
    seed: int = option(0, "of the initial weights")
    begun: Tensor = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d < 2**self.levels:
            fail(ShapeError, f"{self.levels} levels need {2**self.levels} channels", self.d, "Use fewer levels.")
        generator = torch.Generator().manual_seed(self.seed)
        self.widths = [self.d >> k for k in range(self.levels)]
        self.steps = nn.ModuleList(_Step(d, self.width, generator) for d in self.widths for _ in range(self.depth))
        self.register_buffer("begun", torch.zeros((), dtype=torch.bool))

    @validated
    def begin(self, x: Tensor) -> Self:
        """Start the normalisations from a batch (n, d), n >= 2. Returns self."""
        rows = self._checked(x, 2)
        self.begun.fill_(True)
        self._flow(rows, first=True)
        return self

    def _level(self, k: int) -> list[_Step]:
        steps = self.steps[k * self.depth : (k + 1) * self.depth]
        return [step for step in steps if isinstance(step, _Step)]

    @validated
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Points (..., d) to z (..., d) and log-determinants (...)."""
        if not bool(self.begun):
            not_fitted("GlowFlow", "Call fit_flow, or begin with a batch.")
        rows = self._checked(x, 0)
        z, logdet = self._flow(rows)
        return z.reshape(x.shape), logdet.expand(len(rows)).reshape(x.shape[:-1])

    def _checked(self, x: Tensor, points: int) -> Tensor:
        return _rows(x, self.d, points).to(self.begun.device, next(self.parameters()).dtype)

    def _flow(self, x: Tensor, first: bool = False) -> tuple[Tensor, Tensor]:
        done, logdet = [], x.new_zeros(())
        for level in range(self.levels):
            for step in self._level(level):
                if first:
                    step.begin(x)
                x, part = step(x)
                logdet = logdet + part
            kept = self.widths[level + 1] if level + 1 < self.levels else 0
            x, out = x.tensor_split([kept], -1)
            done.append(out)
        return torch.cat(done, -1), logdet

    @validated
    def inverse(self, z: Tensor) -> Tensor:
        """Points (..., d) whose image is ``z``."""
        rows = self._checked(z, 0)
        sizes = [self.widths[k] - (self.widths[k + 1] if k + 1 < self.levels else 0) for k in range(self.levels)]
        parts = list(torch.split(rows, sizes, -1))
        x = rows[:, :0]
        for level in reversed(range(self.levels)):
            x = torch.cat([x, parts[level]], -1)
            for step in reversed(self._level(level)):
                x = step.inverse(x)
        return x.reshape(z.shape)

    def bits_per_dimension(self, x: Tensor) -> Tensor:
        r"""Mean negative log-likelihood of the points under the flow, :math:`-\log_2 p(x) / d`."""
        z, logdet = self(x)
        nats = (z.square() + math.log(2 * math.pi)).sum(-1) / 2 - logdet
        bits: Tensor = check_overflow(nats.mean() / (self.d * math.log(2)))
        return bits

    @torch.no_grad()
    def transform(self, x: Tensor) -> Tensor:
        """The image z of points (..., d), without a graph: BERT-flow's sentence vectors."""
        return check_overflow(self(x)[0], "image")

    def save(self, folder: str | Path) -> None:
        """Write ``config.json`` and ``weights.safetensors`` to ``folder``."""
        write_folder(folder, {"class": "GlowFlow", "options": describe(self)}, self.state_dict())

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        config, tensors = read_folder(folder)
        if config["class"] != "GlowFlow":
            fail(InputError, f"{folder} must hold a GlowFlow", config["class"], "Use load_transform.")
        dtype = next(tensor.dtype for tensor in tensors.values() if tensor.is_floating_point())
        flow = build(cls, config["options"], "GlowFlow").to(dtype)
        flow.load_state_dict(tensors)
        return flow


def _rows(x: Tensor, d: int, points: int) -> Tensor:
    x, _ = check_points(x, points=points)
    if x.shape[-1] != d:
        fail(ShapeError, f"x must have the {d} dimensions of the flow", x.shape[-1], "Make a flow for this encoder.")
    return x.reshape(-1, d)


@validated
@torch.inference_mode(False)
@torch.enable_grad()
def fit_flow(
    x: Tensor,
    epochs: int = 1,
    lr: float = 1e-3,
    batch_size: int = 32,
    seed: int = 0,
    *,
    flow: GlowFlow | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> GlowFlow:
    r"""Train a flow on sentence vectors (n, d) by maximum likelihood, and return it in evaluation mode.

    The training of BERT-flow (Li et al. 2020) as its code is released: the mean bits per dimension of a batch,
    gradients cut to length 1, and the update

    .. math:: \theta \leftarrow \theta - \eta \left( \frac{m}{\sqrt v + 10^{-6}} + 0.01\, \theta \right)

    with Adam's moments m and v (0.9, 0.999), which start at 0 and aren't corrected for it. The defaults are theirs too;
    a batch there is 32 pairs, whose two sides are added.

    ``flow`` is trained further if given, else a :class:`GlowFlow` of default size (fewer levels for d < 8) is made on
    the device of ``x``. The first batch starts the normalisations. ``progress(step, bits per dimension)`` is called
    after each step. The order of batches comes from ``seed``; a last batch of one row is left out.

    >>> import isonb, torch
    >>> x = torch.randn(256, 4, generator=torch.Generator().manual_seed(0)) * 3
    >>> 3.5 < isonb.fit_flow(x, epochs=2).bits_per_dimension(x).item() < 3.8  # the entropy of N(0, 9) is 3.63 bits
    True
    """
    x, _ = check_points(x, points=2, dims=2, single=True)
    x = x.detach()
    d = x.shape[1]
    if not is_whole(batch_size) or batch_size < 2:
        fail(ShapeError, "batch_size must be at least 2 and an integer", repr(batch_size), "The authors take 32.")
    flow = GlowFlow(d, levels=min(3, d.bit_length() - 1), seed=seed).to(x) if flow is None else flow
    learned = list(flow.parameters())
    moments = [(torch.zeros_like(item), torch.zeros_like(item)) for item in learned]
    for step, batch in enumerate(_batches(x, int(batch_size), epochs, seed), 1):
        if not bool(flow.begun):
            flow.begin(batch)
        loss = flow.bits_per_dimension(batch)
        _update(learned, moments, torch.autograd.grad(loss, learned), lr)
        if progress is not None:
            progress(step, loss.item())
    return flow.eval()


@torch.no_grad()
def _update(
    learned: Sequence[Tensor], moments: Sequence[tuple[Tensor, Tensor]], slopes: Sequence[Tensor], lr: float
) -> None:
    """A step of the released optimiser. torch's AdamW corrects the moments: its first steps are a third as long."""
    length = torch.stack([slope.norm() for slope in slopes]).norm().clamp_min(1)
    for item, (mean, square), slope in zip(learned, moments, slopes, strict=True):
        mean.lerp_(slope / length, 1 - 0.9)
        square.lerp_((slope / length).square(), 1 - 0.999)
        item -= lr * (mean / (square.sqrt() + 1e-6) + DECAY * item)


def _batches(x: Tensor, size: int, epochs: int, seed: int) -> Iterator[Tensor]:
    """The rows in a new order each epoch, at least two at a time."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(x), generator=generator).to(x.device), size):
            if len(rows) > 1:
                yield x[rows]

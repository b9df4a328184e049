"""Layers to put into a model: SoftDecay, IsoBN, the Isotropy Layer. The mathematics is in functions elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from isonb.checks import check_values, fits
from isonb.errors import InputError, ShapeError, fail, not_fitted
from isonb.layers.isobn import isobn_scale, isobn_statistics
from isonb.layers.soft_decay import soft_decay
from isonb.numerics.distributed import Group, process_group, union_rows

__all__ = ["IsoBN", "IsotropyLayer", "SoftDecay"]


class SoftDecay(nn.Module):
    r""":func:`~isonb.layers.soft_decay.soft_decay` with a trainable alpha (Yan et al., UAI 2022).

    Token vectors (B, T, d) are transformed sentence by sentence; pass the attention mask, so that padding stays out and
    a sentence's result doesn't depend on its batch. Sentence vectors (n, d) are one matrix; with ``group`` (not the
    default) that of all its processes, whose rows are gathered.

    Placement. The paper applies it to the output of the last block: call the layer on ``last_hidden_state``, before the
    pooler. The official BERT code has it in the last layer between dropout and LayerNorm,
    ``LayerNorm(SoftDecay(z) + a)``, where ``z = dropout(ffn + a)`` and ``a`` is the attention output, padding included;
    for that, call it there without a mask. ``alpha`` starts at -0.2; the paper's learning rate for it is 2e-3, so give
    it a parameter group of its own. The parameter is called ``raw``; in ``mode="safe"`` alpha is -sigmoid(raw), so that
    it stays in (-1, 0). The result has the dtype of the input; half precision is computed in float32.

    >>> layer = SoftDecay(alpha=-0.6)
    >>> [round(v, 4) for v in layer(torch.diag(torch.tensor([3.0, 1.0, 0.5]))).diagonal().tolist()]
    [3.0, 0.7235, -0.2081]
    >>> [(name, tuple(p.shape)) for name, p in layer.named_parameters()]
    [('raw', ())]
    """

    raw: Tensor

    def __init__(self, alpha: float = -0.2, trainable: bool = True, mode: str = "code", *, group: Group = None) -> None:
        super().__init__()
        if mode == "safe" and not -1 < alpha < 0:
            fail(InputError, 'mode "safe" needs -1 < alpha < 0', alpha, "The paper starts at -0.2.")
        raw = torch.tensor(math.log(-alpha / (1 + alpha)) if mode == "safe" else float(alpha))
        self.mode, self.group = mode, group
        if trainable:
            self.raw = nn.Parameter(raw)
        else:
            self.register_buffer("raw", raw)

    @property
    def alpha(self) -> Tensor:
        """The current alpha, a scalar with its graph."""
        return -self.raw.sigmoid() if self.mode == "safe" else self.raw

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, T, d) and mask (B, T), or (n, d) and mask (n,); returns the shape and dtype of ``x``."""
        if process_group(self.group) is None or x.ndim != 2:
            return soft_decay(x, self.alpha, self.mode, mask).to(x.dtype)
        rows, own = union_rows(x, self.group)
        real = None if mask is None else union_rows(mask, self.group)[0]
        return soft_decay(rows, self.alpha, self.mode, real)[own].to(x.dtype)

    def extra_repr(self) -> str:
        """Mode and alpha."""
        return f"mode={self.mode!r}, alpha={self.alpha.item():.4g}"


class IsoBN(nn.Module):
    r"""Isotropic batch normalisation of pooled sentence vectors (Zhou et al. 2021; baseline of IsoLayer).

    Training: running covariance and standard deviation move towards those of the batch,
    ``running += momentum * (batch - running)``, from zero and without bias correction, as in the official code; then
    every dimension is multiplied by :func:`~isonb.layers.isobn.isobn_scale`, a constant for the gradient. Evaluation
    uses the running values. They are buffers, so they are saved, loaded and moved. A batch of one row (without other
    processes) doesn't move them, and before any larger one it passes unchanged. ``group="world"`` takes the statistics
    over all processes.

    Place: after the pooler (dense and tanh on [CLS]), before dropout and classifier. A result that the dtype can't hold
    (float16 ends at 65,504): :class:`~isonb.errors.DegenerateError`.

    >>> layer = IsoBN(2)
    >>> _ = layer(torch.tensor([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [4.0, 4.0]]))
    >>> [round(v, 6) for v in layer.eval().scale.tolist()]
    [1.112843, 0.938204]
    """

    running_cov: Tensor
    running_std: Tensor
    batches: Tensor

    def __init__(
        self, d: int, momentum: float = 0.05, eps: float = 1e-3, beta: float = 0.5, *, group: Group = None
    ) -> None:
        super().__init__()
        self.d, self.momentum, self.eps, self.beta, self.group = d, momentum, eps, beta, group
        self.register_buffer("running_cov", torch.zeros(d, d))
        self.register_buffer("running_std", torch.zeros(d))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    @property
    def scale(self) -> Tensor:
        """The current factor of each dimension (d)."""
        return isobn_scale(self.running_cov, self.running_std, self.eps, self.beta)

    def forward(self, x: Tensor) -> Tensor:
        """(B, d), or (..., d) with every row a point; returns the shape and dtype of ``x``."""
        if x.shape[-1] != self.d:
            fail(ShapeError, f"x must have {self.d} dimensions", tuple(x.shape), "Make the layer with d=x.shape[-1].")
        if self.training:
            if x[..., 0].numel() > 1 or process_group(self.group) is not None:
                self._update(x)
        elif check_values(self.batches) and int(self.batches) == 0:
            not_fitted("IsoBN", "Train it, or load a state_dict of a trained one.")
        return fits(x * self.scale.to(x.dtype), "normalised size")

    def _update(self, x: Tensor) -> None:
        cov, std = (part.to(self.running_cov) for part in isobn_statistics(x, self.group))
        fits(cov.diagonal().sum())
        self.running_cov.lerp_(cov, self.momentum)
        self.running_std.lerp_(std, self.momentum)
        self.batches += 1

    def extra_repr(self) -> str:
        """Dimension and constants."""
        return f"{self.d}, momentum={self.momentum}, eps={self.eps}, beta={self.beta}"


class IsotropyLayer(nn.Module):
    """A linear map between sentence vector and classifier, trained for isotropy (IsoLayer, Attieh et al., ICDAR 2023).

    Weight d x d and bias. The paper gives neither initialisation nor activation: ``init="identity"`` starts where the
    fine-tuned model stands, ``"default"`` as ``nn.Linear``; ``activation`` is None, "tanh" or any callable. Train it
    with :class:`~isonb.losses.joint.JointLoss` of the task loss and :class:`~isonb.losses.IsoScoreLoss`, encoder and
    head frozen.

    >>> IsotropyLayer(2)(torch.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(
        self, d: int, activation: str | Callable[[Tensor], Tensor] | None = None, init: str = "identity"
    ) -> None:
        super().__init__()
        if init not in ("identity", "default"):
            fail(InputError, 'init must be "identity" or "default"', repr(init), "The paper doesn't say which.")
        if isinstance(activation, str) and activation != "tanh":
            fail(InputError, 'activation must be None, "tanh" or a callable', repr(activation), "Pass torch.relu, say.")
        self.linear = nn.Linear(d, d)
        if init == "identity":
            nn.init.eye_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)
        self.activation = torch.tanh if isinstance(activation, str) else activation

    def forward(self, x: Tensor) -> Tensor:
        """(..., d) to (..., d)."""
        out: Tensor = self.linear(x)
        return out if self.activation is None else self.activation(out)

r"""SoftDecay: pull the singular values of a matrix together with a logarithm, keep the singular vectors.

The transform acts on singular values alone, so it is a function of the smaller Gram matrix: with
:math:`XX^\top = U\Lambda U^\top` the result is :math:`U\varphi(\Lambda)U^\top X`, and its derivative is written with
divided differences of :math:`\varphi`. No term divides by a difference of singular values that may vanish, which is
where the gradient of an SVD breaks.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from isonb.checks import check_overflow, check_points, check_values, validated
from isonb.errors import DegenerateError, InputError, OptionError, ShapeError, fail
from isonb.numerics.distributed import Group, process_group, union_rows
from isonb.numerics.modules import OptionModule
from isonb.numerics.products import left_factors, left_values
from isonb.numerics.scale import size_of, wide
from isonb.options import checked, option

_MODES = ("code", "safe")
_CODE_EPS = 1e-7  # added inside the logarithm by the official code


class _Curve(NamedTuple):
    """f at the singular values: value, slope, slope in alpha."""

    value: Tensor
    slope: Tensor
    by_alpha: Tensor


class _Gain(NamedTuple):
    """The factor of each singular direction, and what its derivative needs, of a matrix of unit size."""

    ratio: Tensor  # phi(s^2) = K f(s) / s, 0 on null directions
    slope: Tensor  # phi'(s^2) at fixed K
    unscaled: Tensor  # f(s) / s
    scale_slope: Tensor  # dK / ds_1, shared between tied largest singular values
    by_alpha: Tensor  # d phi / d alpha, K included


def _log_argument(s: Tensor, alpha: Tensor, mode: str) -> Tensor:
    """The logarithm's argument minus one. ``alpha = 0`` carries no eps, so that its limit is the identity."""
    eps = torch.where(alpha == 0, 0.0, _CODE_EPS if mode == "code" else 0.0)
    return eps - alpha * (s + alpha)


def _curve(s: Tensor, alpha: Tensor, mode: str) -> _Curve:
    inside = _log_argument(s, alpha, mode).clamp_min(_CODE_EPS - 1)
    flat = alpha == 0
    safe = torch.where(flat, 1.0, alpha)
    log = torch.log1p(inside)
    value = torch.where(flat, s, -log / safe)
    slope = 1 / (1 + inside)
    by_alpha = torch.where(flat, 1 + s.square() / 2, log / safe.square() + (s + 2 * alpha) * slope / safe)
    if mode == "code":
        return _Curve(value, slope, by_alpha)
    return _Curve(*(torch.where(value > 0, part, 0.0) for part in (value, slope, by_alpha)))


def _gain(s: Tensor, inverse: Tensor, size: Tensor, alpha: Tensor, mode: str) -> _Gain:
    """All that depends on the singular values alone: ``s`` ascends, in units of ``size``, so that f is a function of
    s * size; ``inverse`` is 1/s and 0 on null directions.
    """
    f = _curve(s * size, alpha, mode)
    f = f._replace(slope=f.slope * size)
    top, peak = s[..., -1:], f.value[..., -1:]
    idle = peak == 0  # nothing to rescale by: the matrix is returned as it is
    peak = torch.where(idle, 1.0, peak)
    scale = top / peak
    unscaled = f.value * inverse
    tied = s >= top * (1 - 1e3 * torch.finfo(s.dtype).eps)
    share = tied / tied.sum(-1, keepdim=True)
    return _Gain(
        ratio=torch.where(idle, 1.0, scale * unscaled),
        slope=torch.where(idle, 0.0, scale * (f.slope - unscaled) * inverse.square() / 2),
        unscaled=unscaled,
        scale_slope=torch.where(idle, 0.0, share * (peak - top * f.slope[..., -1:]) / peak.square()),
        by_alpha=torch.where(idle, 0.0, scale * inverse * (f.by_alpha - f.value * f.by_alpha[..., -1:] / peak)),
    )


def _divided_differences(s: Tensor, gain: _Gain) -> Tensor:
    """(phi(a) - phi(b)) / (a - b) at every pair of eigenvalues of the Gram; for close pairs the mean slope."""
    value, slope = s.square(), gain.slope
    gap = value.unsqueeze(-1) - value.unsqueeze(-2)
    close = gap.abs() <= torch.finfo(s.dtype).eps ** (1 / 3) * (value.unsqueeze(-1) + value.unsqueeze(-2))
    rise = gain.ratio.unsqueeze(-1) - gain.ratio.unsqueeze(-2)
    return torch.where(close, (slope.unsqueeze(-1) + slope.unsqueeze(-2)) / 2, rise / torch.where(close, 1.0, gap))


class _SoftDecay(torch.autograd.Function):
    """Wide matrices (b, m, q), m <= q, and alpha (b, 1)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Tensor, mode: str, looked_at: bool) -> Tensor:
        size = size_of(x)  # X / size goes through f(s * size): the factors, and slopes in s^2, are of unit size
        unit = x / size
        basis, s, inverse = left_factors(unit)
        alpha, size = alpha.to(s.dtype), size.to(s.dtype).squeeze(-1)
        if looked_at:
            _check_domain(s * size, inverse > 0, alpha, mode)
        gain = _gain(s, inverse, size, alpha, mode)
        basis = basis.to(x.dtype)
        lift = (basis * gain.ratio.to(x.dtype).unsqueeze(-2)) @ basis.mT
        ctx.mode = mode
        ctx.save_for_backward(unit, size, alpha, basis, s, inverse, lift)
        return lift @ x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, size, alpha, basis, s, inverse, lift = ctx.saved_tensors
        gain = _gain(s, inverse, size, alpha, ctx.mode)
        inner = basis.mT @ (grad @ x.mT) @ basis
        diagonal = inner.diagonal(dim1=-2, dim2=-1).to(s.dtype)
        by_alpha = (diagonal * gain.by_alpha).sum(-1, keepdim=True) * size
        if not ctx.needs_input_grad[0]:
            return None, by_alpha, None, None
        turn = _divided_differences(s, gain).to(x.dtype) * (inner + inner.mT)
        by_scale = (diagonal * gain.unscaled).sum(-1, keepdim=True) * gain.scale_slope * inverse
        turn.diagonal(dim1=-2, dim2=-1).add_(by_scale.to(x.dtype))
        return torch.baddbmm((basis @ turn @ basis.mT) @ x, lift, grad), by_alpha, None, None


def _check_domain(s: Tensor, alive: Tensor, alpha: Tensor, mode: str) -> None:
    if mode == "safe" and not bool(((alpha > -1) & (alpha <= 0)).all()):
        bad = alpha[~((alpha > -1) & (alpha <= 0))][0].item()
        fail(DegenerateError, 'mode "safe" needs -1 < alpha <= 0', bad, "Use alpha = -sigmoid(w) when it is trained.")
    outside = alive & ~(_log_argument(s, alpha, mode) > -1)
    if bool(outside.any()):
        value, at = s[outside][0].item(), alpha.expand_as(s)[outside][0].item()
        fail(
            DegenerateError,
            "1 - alpha (s + alpha) must be positive at every singular value s",
            f"s = {value:.6g} at alpha = {at:.6g}",
            "Keep -1 < alpha < 0, where every s is allowed.",
        )


def _alpha_for(x: Tensor, alpha: float | Tensor) -> Tensor:
    exact = None if isinstance(alpha, Tensor) and alpha.is_floating_point() else wide(x.device)
    value = torch.as_tensor(alpha, dtype=exact, device=x.device)
    batch = tuple(x.shape[:-2])
    try:
        return value.expand(batch).reshape(-1, 1)
    except RuntimeError:
        want = f"alpha must be a number or broadcast to the batch axes {batch}"
        fail(ShapeError, want, f"shape {tuple(value.shape)}", "Pass one alpha, or one a matrix.")


@validated
def soft_decay(x: Tensor, alpha: float | Tensor = -0.2, mode: str = "code", mask: Tensor | None = None) -> Tensor:
    r"""Compress the singular values of each matrix by a logarithm, keeping the largest one and all singular vectors.

    With the thin SVD :math:`X = U\,\mathrm{diag}(s)V^\top` of the raw (not centred) matrix,

    .. math:: f(s) &= -\tfrac1\alpha\ln\bigl(1 - \alpha(s + \alpha)\bigr), \\
              \tilde X &= U\,\mathrm{diag}\bigl(K f(s)\bigr)V^\top, \qquad K = s_1 / \max_i f(s_i).

    Source: SoftDecay (Yan et al., UAI 2022), soft exponential activation applied to singular values. ``mode="code"``
    is the official code: 1e-7 is added inside the logarithm and negative values stay, so a singular value below
    :math:`|\alpha|` comes out with its sign turned (:func:`negative_count` counts them). ``mode="safe"`` is
    :math:`\max(f, 0)` without the 1e-7 and needs :math:`-1 < \alpha \le 0`.

    Null directions contribute nothing. ``code`` has :math:`f(0) \ne 0`, which multiplies null vectors that are
    arbitrary; here f acts on the row space only, so zero rows stay zero. It counts s above ``max(n, d) * eps * s_1``,
    and above the root of ``max(n, d)`` times the eps of the Gram's dtype (about 4e-7 of s_1 at 768 in float64): where
    every s is, the result equals the official one. The gradient is finite and right for repeated singular values;
    where the largest is repeated, K has a kink and its slope is shared evenly.

    Shapes: ``x`` (..., n, d), rows tokens of one sentence or sentences of one corpus; ``alpha`` a number, a 0-d tensor
    or one a matrix (...), trainable; ``mask`` (..., n) optional, masked rows come back zero. Returns (..., n, d) in
    float32 (float64 for float64 input); the Gram is formed in float64 on CPU and CUDA, where the eigendecomposition of
    torch waits for the device. No second derivative.
    ``alpha = 0`` is the identity, the limit. With every s at or below ``|alpha|`` no f is above 0 to rescale by:
    ``safe`` returns the matrix unchanged; in ``code`` K is then negative, so that no sign turns and the smaller values
    come out larger.

    Raises :class:`~isonb.errors.DegenerateError` where the logarithm's argument is not positive (alpha > 0 or
    alpha < -1) and names the singular value; on accelerators that argument is held at 1e-7 instead.
    :class:`~isonb.errors.InputError` for a wrong rank, mode or shape of alpha.

    >>> import isonb, torch
    >>> x = torch.diag(torch.tensor([3.0, 1.0, 0.5], dtype=torch.float64))
    >>> [round(v, 6) for v in isonb.soft_decay(x, alpha=-0.6).diagonal().tolist()]
    [3.0, 0.723471, -0.208101]
    """
    x, mask = check_points(x, mask, points=1)
    if mode not in _MODES:
        fail(InputError, f"mode must be one of {_MODES}", repr(mode), 'Use "code" (official) or "safe".')
    rows = x.mT if x.shape[-2] > x.shape[-1] else x
    flat = rows.reshape(-1, *rows.shape[-2:])
    out = _SoftDecay.apply(flat, _alpha_for(x, alpha), mode, check_values(x))  # type: ignore[no-untyped-call]
    out = out.reshape(rows.shape) if rows is x else out.reshape(rows.shape).mT
    return check_overflow(out if mask is None else torch.where(mask.unsqueeze(-1), out, 0.0), "image")


@validated
@torch.no_grad()
def negative_count(x: Tensor, alpha: float | Tensor = -0.2, mask: Tensor | None = None) -> Tensor:
    r"""How many non-zero singular values of each matrix lie below :math:`-\alpha`, where f is negative.

    Those directions come out of ``soft_decay(x, alpha)`` with their sign turned (unless all of them do), and of
    ``mode="safe"`` as zero. For alpha >= 0 there are none.
    Shapes: ``x`` (..., n, d), ``alpha`` a number or one a matrix; returns (...) int64. Not differentiable.

    >>> import isonb, torch
    >>> isonb.negative_count(torch.diag(torch.tensor([3.0, 1.0, 0.5])), alpha=-0.6).item()
    1
    """
    x, _ = check_points(x, mask, points=1)
    s = left_values(x.mT if x.shape[-2] > x.shape[-1] else x)
    return ((s > 0) & (s < -_alpha_for(x, alpha).reshape(*s.shape[:-1], 1))).sum(-1)


@dataclass(eq=False, repr=False)
class _SoftDecayOptions(OptionModule):
    alpha: InitVar[float] = option(-0.2, "where the trained alpha starts", low=-1, high=0)
    trainable: bool = option(True, "alpha is a parameter; otherwise a buffer")
    mode: Literal["code", "safe"] = option("code", "code: negative values stay, as released; safe: cut at 0")
    _: KW_ONLY
    group: Group = option(None, "the processes whose rows are one matrix, for sentence vectors")


class SoftDecay(_SoftDecayOptions):
    r""":func:`~isonb.layers.soft_decay.soft_decay` with a trainable alpha (Yan et al., UAI 2022).

    Token vectors (B, T, d) are transformed sentence by sentence; pass the attention mask, so that padding stays out and
    a sentence's result doesn't depend on its batch. Sentence vectors (n, d) are one matrix; with ``group`` (not the
    default) that of all its processes, whose rows are gathered.

    Placement. The paper applies it to the output of the last block: call the layer on ``last_hidden_state``, before the
    pooler. The official BERT code has it in the last layer between dropout and LayerNorm,
    ``LayerNorm(SoftDecay(z) + a)``, where ``z = dropout(dropout(FFN(a)) + a)`` and ``a`` is the attention output,
    padding included; for that, call it there without a mask. ``alpha`` starts at -0.2. The released scripts name a
    learning rate of 2e-3 for it and train it at the model's 2e-5: for 2e-3 give it a parameter group of its own. The
    parameter is called ``raw``; in ``mode="safe"`` alpha is -sigmoid(raw), so that it stays in (-1, 0). The result has
    the dtype of the input; half precision is computed in float32. Where the dtype can't hold it (float16 ends at
    65,504): :class:`~isonb.errors.DegenerateError`.

    >>> import isonb, torch
    >>> layer = isonb.SoftDecay(alpha=-0.6)
    >>> [round(v, 4) for v in layer(torch.diag(torch.tensor([3.0, 1.0, 0.5]))).diagonal().tolist()]
    [3.0, 0.7235, -0.2081]
    >>> [(name, tuple(p.shape)) for name, p in layer.named_parameters()]
    [('raw', ())]
    """

    raw: Tensor

    def __post_init__(self, alpha: float) -> None:
        super().__post_init__()
        alpha = checked(SoftDecay, "alpha", alpha)
        if self.mode == "safe" and not -1 < alpha < 0:
            fail(OptionError, 'mode "safe" needs -1 < alpha < 0', alpha, "The paper starts at -0.2.")
        raw = torch.tensor(math.log(-alpha / (1 + alpha)) if self.mode == "safe" else alpha)
        if self.trainable:
            self.raw = nn.Parameter(raw)
        else:
            self.register_buffer("raw", raw)

    @property
    def alpha(self) -> Tensor:
        """The current alpha, a scalar with its graph."""
        return -self.raw.sigmoid() if self.mode == "safe" else self.raw

    @validated
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, T, d) and mask (B, T), or (n, d) and mask (n,); returns the shape and dtype of ``x``."""
        if process_group(self.group) is None or x.ndim != 2:
            return _in_dtype_of(x, soft_decay(x, self.alpha, self.mode, mask))
        rows, own = union_rows(x, self.group)
        real = None if mask is None else union_rows(mask, self.group)[0]
        return _in_dtype_of(x, soft_decay(rows, self.alpha, self.mode, real)[own])


def _in_dtype_of(x: Tensor, out: Tensor) -> Tensor:
    """What was computed in float32 of half precision, in that again; the rest was looked at as it was made."""
    return out if out.dtype == x.dtype else check_overflow(out.to(x.dtype), "image")

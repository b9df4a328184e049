"""The border of the library: what may come in, and the one kind of error for what may not.

Every public function is wrapped by ``validated`` and passes its tensors through ``check_points``,
``nonnegative`` or ``mask_of`` before any arithmetic. Past that line the code assumes finite floats of the right
shape.

Shape and dtype are checked always. Values (NaN, Inf, zero variance, rows left under a mask) are checked on the CPU. On
an accelerator reading a value stalls the queue, so there they are checked only inside
``with isonb.checks.strict():``; outside it, each entry states the limit that a degenerate cloud gives. The same
limits hold inside ``strict(False)``, and under :func:`torch.compile`, whose graph would break where a value is read.

numpy arrays are taken wherever a tensor is; the results are tensors.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from isonb.errors import DegenerateError, DtypeError, InputError, ShapeError, fail, with_name

P = ParamSpec("P")
R = TypeVar("R")

_strict: contextvars.ContextVar[bool | None] = contextvars.ContextVar("isonb_strict", default=None)


@contextlib.contextmanager
def strict(on: bool = True) -> Iterator[None]:
    """Check values on accelerators too (each check waits for the device); ``strict(False)``: not on the CPU either.

    >>> from isonb.checks import check_values
    >>> with strict():
    ...     check_values(torch.ones(1))
    True
    """
    token = _strict.set(on)
    try:
        yield
    finally:
        _strict.reset(token)


def check_values(x: Tensor) -> bool:
    """Whether the values of ``x`` may be looked at: on the CPU, or as :func:`strict` says; never under a compiler."""
    if torch.compiler.is_compiling():
        return False
    strict_now = _strict.get()
    return x.is_cpu if strict_now is None else strict_now


def tensor_of(x: Any) -> Any:
    """A numpy array as a tensor, on the same memory where torch can; anything else as it is.

    A tensor that torch has yet to negate (``z.conj().imag``) is negated here, since loops read its memory.

    >>> import numpy
    >>> tensor_of(numpy.ones(2)), tensor_of("all")
    (tensor([1., 1.], dtype=torch.float64), 'all')
    """
    if isinstance(x, Tensor):
        return x if torch.compiler.is_compiling() else x.resolve_neg()
    if not hasattr(x, "__array_interface__") or not getattr(x, "ndim", 0):
        return x
    shared = x.flags.writeable and x.flags.aligned and x.dtype.isnative and min(x.strides) >= 0
    try:
        return torch.as_tensor(x if shared else x.astype(x.dtype.newbyteorder("="), order="C"))
    except (TypeError, ValueError):
        fail(DtypeError, "an array must hold numbers of a type torch has", x.dtype, "Convert it: x.astype('float32').")


def _has_autocast(kind: str) -> bool:
    """Whether this kind of device has autocast; under a compiler yes, since some versions of torch can't trace this."""
    return torch.compiler.is_compiling() or torch.amp.is_autocast_available(kind)


def _default_elsewhere() -> bool:
    """Whether what is made without a device lies elsewhere than on the CPU; a compiler traces the usual case."""
    return not torch.compiler.is_compiling() and not torch.empty(0).is_cpu  # a third of what asking for it costs


def usual_device() -> contextlib.AbstractContextManager[Any]:
    """Inside, what is made without a device is on the CPU, wherever :func:`torch.set_default_device` puts it."""
    return torch.device("cpu") if _default_elsewhere() else contextlib.nullcontext()


def validated(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function: numpy arrays become tensors, and the function's name is put in front of every input
    error; of ``forward`` and ``__init__`` that of the class. Inside, autocast is off (float32 maths), and what is
    made without a device is on the CPU, wherever :func:`torch.set_default_device` puts it outside; a new module lies
    where that says. A method's ``mask`` of integers comes in as bool; of one axis it must be named, since labels look
    the same and stand in the same place.
    """
    name = function.__name__
    names = list(inspect.signature(function).parameters)
    place = names.index("mask") if "mask" in names and names[0] == "self" else None

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if name != "__init__" and _default_elsewhere():
            with torch.device("cpu"):
                return wrapped(*args, **kwargs)
        try:
            values: Any = [tensor_of(a) for a in args]
            options: Any = {key: tensor_of(a) for key, a in kwargs.items()}
            if place is not None and len(values) > place:
                values[place] = _bool_mask(values[place], named=False)
            elif place is not None and "mask" in options:
                options["mask"] = _bool_mask(options["mask"])
            kinds = {a.device.type for a in (*values, *options.values()) if isinstance(a, Tensor)}
            on = [kind for kind in kinds if _has_autocast(kind) and torch.is_autocast_enabled(kind)]
            if not on:
                return function(*values, **options)
            with contextlib.ExitStack() as stack:
                for kind in on:
                    stack.enter_context(torch.autocast(kind, enabled=False))
                return function(*values, **options)
        except InputError as error:
            if error.named:
                raise
            raise with_name(error, type(args[0]).__name__ if name in ("forward", "__init__") else name) from None

    return wrapped


@contextlib.contextmanager
def lasting_tensors() -> Iterator[None]:
    """Inside, no gradient is recorded, and what is made may be changed or trained with later: it is no tensor of
    :func:`torch.inference_mode`, even within that.

    >>> with torch.inference_mode(), lasting_tensors():
    ...     torch.ones(1).is_inference()
    False
    """
    with torch.inference_mode(False), torch.no_grad():
        yield


def check_overflow(value: Tensor, power: str = "squared scale", points: Tensor | None = None) -> Tensor:
    """``value`` as it is; :class:`DegenerateError` where the points were too large for their dtype to hold it.

    With ``points`` that haven't been looked at: a finite value tells that they are finite, or else the error is theirs.
    """
    if check_values(value) and not _all_finite(value.detach()):
        if points is not None:
            finite(points)
        bad = value.detach()[~torch.isfinite(value.detach())][0].item()
        fail(DegenerateError, f"the {power} of the points must fit {value.dtype}", bad, "Rescale them or pass float64.")
    return value


def _all_finite(x: Tensor) -> bool:
    """A finite sum has finite terms, and costs a tenth of looking at each; a sum that overflows is looked into."""
    return math.isfinite(x.sum().item()) or bool(torch.isfinite(x).all())


def _as_float(x: Any, name: str) -> Tensor:
    x = tensor_of(x)
    if not isinstance(x, Tensor):
        fix = f"Convert it: torch.as_tensor({name}), of a frame torch.as_tensor({name}.to_numpy())."
        fail(DtypeError, f"{name} must be a torch.Tensor", type(x).__name__, fix)
    if not x.is_floating_point():
        fix = (
            f"Call torch.view_as_real({name}).flatten(-2)."
            if x.is_complex()
            else f"Call {name}.float() or {name}.double()."
        )
        fail(DtypeError, f"{name} must be a floating-point tensor", x.dtype, fix)
    if x.layout != torch.strided:
        fail(DtypeError, f"{name} must be a dense tensor", x.layout, f"Call {name}.to_dense().")
    if x.dtype.itemsize < 2:  # torch stores them and computes nothing in them
        fail(DtypeError, f"{name} must be a floating-point tensor of 16 bits or more", x.dtype, f"Call {name}.float().")
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _bool_mask(mask: Any, named: bool = True) -> Any:
    """A mask of integers as bool, anything else as it is; :class:`DtypeError` for what may be labels."""
    if not isinstance(mask, Tensor) or mask.dtype == torch.bool or mask.is_floating_point() or mask.is_complex():
        return mask
    fix = "True marks a real row. Labels aren't a mask: pass them by name to what takes labels."
    if mask.ndim == 1 and not named:
        got = f"{mask.dtype} of shape {tuple(mask.shape)}"
        fail(DtypeError, "a mask of integers, one a point, must be named, mask=, as labels look the same", got, fix)
    if mask.numel() and check_values(mask):
        low, high = (int(end) for end in mask.aminmax())
        if not 0 <= low <= high <= 1:
            fail(DtypeError, "mask must be bool or hold integers 0 and 1", f"integers from {low} to {high}", fix)
    return mask.bool()


def mask_of(x: Tensor, mask: Tensor | None, *, name: str = "x") -> Tensor | None:
    """``mask`` as a bool tensor of shape ``x.shape[:-1]``; True marks a real row.

    Raises :class:`~isonb.errors.ShapeError` for another shape and :class:`~isonb.errors.DtypeError` unless it is bool
    or integer 0/1 (other integers, such as labels, where values are looked at).
    """
    mask = tensor_of(mask)
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or mask.is_floating_point() or mask.is_complex():
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        fix = "Pass torch.as_tensor(mask).bool(); True marks a real row."
        fail(DtypeError, "mask must be a bool (or 0/1 integer) tensor", got, fix)
    if mask.shape != x.shape[:-1]:
        fail(
            ShapeError,
            f"mask must have one entry a row of {name}, shape {tuple(x.shape[:-1])}",
            tuple(mask.shape),
            "Give mask the shape of the points without their last axis.",
        )
    checked: Tensor = _bool_mask(mask)
    return checked.to(x.device)


def check_points(
    x: Tensor,
    mask: Tensor | None = None,
    *,
    name: str = "x",
    points: int = 2,
    dims: int = 1,
    single: bool = False,
    look: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Points ``(..., n, d)`` ready for arithmetic: float32/float64, finite, rows off the mask set to zero.

    ``points`` and ``dims`` are the fewest allowed, counted under the mask; ``single`` refuses batch axes; with
    ``look=False`` it is the caller who makes sure that they are finite. float16 and bfloat16 are raised to float32.

    >>> check_points(torch.ones(1, 3))
    Traceback (most recent call last):
    ...
    isonb.errors.ShapeError: x must hold at least 2 points; got 1 (shape (1, 3)). Pass (..., n, d) with n >= 2.
    """
    x = _as_float(x, name)
    shape = tuple(x.shape)
    if x.ndim < 2 or (single and x.ndim != 2):
        expected = "(n, d)" if single else "(..., n, d)"
        fix = "Add the missing axis with unsqueeze." if x.ndim < 2 else "Loop over the batch axes."
        fail(ShapeError, f"{name} must have shape {expected}", f"shape {shape}", fix)
    n, d = shape[-2:]
    if n < points:
        fix = f"Pass (..., n, d) with n >= {points}."
        fail(ShapeError, f"{name} must hold at least {points} points", f"{n} (shape {shape})", fix)
    if d < dims:
        fix = f"Pass (..., n, d) with d >= {dims}, points as rows."
        fail(ShapeError, f"{name} must have at least {dims} dimensions", f"{d} (shape {shape})", fix)
    mask = mask_of(x, mask, name=name)
    if mask is not None:
        x = torch.where(mask.unsqueeze(-1), x, x.new_zeros(()))
    if look:
        finite(x, name=name)
    if mask is not None and x.numel() and check_values(x) and int((few := mask.sum(-1)).min()) < points:
        fix = "Drop the clouds with too few real rows."
        fail(ShapeError, f"the mask must leave at least {points} points a cloud", int(few.min()), fix)
    return x, mask


def finite(x: Tensor, *, name: str = "x") -> Tensor:
    """``x`` as it is; :class:`DegenerateError` for a NaN or an infinity where values may be looked at."""
    if x.numel() and check_values(x) and not _all_finite(x.detach()):
        row = (~torch.isfinite(x)).nonzero()[0].tolist()
        fix = "Drop or mask the bad rows (torch.isfinite finds them)."
        fail(DegenerateError, f"{name} must be finite", f"{x[tuple(row)].item()} at index {tuple(row)}", fix)
    return x


def flatten_points(x: Tensor, mask: Tensor | None = None, *, points: int = 2) -> tuple[Tensor, Tensor | None]:
    """Points (..., d), all leading axes one cloud: rows (n, d) and their mask (n), checked as by :func:`check_points`.

    ``points`` is the fewest of the whole: some rows or batches may be empty under the mask.

    >>> flatten_points(torch.ones(2, 3, 4))[0].shape
    torch.Size([6, 4])
    """
    x, mask = check_points(x, mask, points=0)
    rows, real = x.reshape(-1, x.shape[-1]), None if mask is None else mask.reshape(-1)
    return check_points(rows, real, points=points, look=False)


def is_whole(number: Any) -> bool:
    """Whether it is an integer, one of numpy too; a bool is none.

    >>> import numpy
    >>> is_whole(numpy.int64(3)), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(number, Integral) and not isinstance(number, bool)


def is_number(number: Any) -> bool:
    """Whether it is a real number, one of numpy too; a bool is none."""
    return isinstance(number, Real) and not isinstance(number, bool)


def check_size(number: Any, name: str, fix: str) -> int:
    """An integer of at least 1, such as the rows of a block; :class:`InputError` for anything else."""
    if not is_whole(number) or number < 1:
        fail(InputError, f"{name} must be at least 1 and an integer", repr(number), fix)
    return int(number)


def labels_of(labels: Any, points: int) -> Tensor:
    """One integer label a point: :class:`DtypeError` for another kind, :class:`ShapeError` for another number.

    >>> labels_of(torch.tensor([0, 1]), 2)
    tensor([0, 1])
    """
    labels = tensor_of(labels)
    kind = labels.dtype if isinstance(labels, Tensor) else None
    if kind is None or kind == torch.bool or kind.is_floating_point or kind.is_complex:
        fix = "Pass torch.as_tensor(labels).long()."
        fail(DtypeError, "labels must be integers", kind or type(labels).__name__, fix)
    if labels.shape != (points,):
        want = f"labels must have shape ({points},), one a point"
        fail(ShapeError, want, tuple(labels.shape), "Give one label a row of points.")
    checked: Tensor = labels
    return checked


def nonnegative(x: Tensor, *, name: str) -> Tensor:
    """Numbers on the last axis (bars, singular values): floating, at least one, finite and >= 0."""
    x = _as_float(x, name)
    if x.ndim < 1 or x.shape[-1] < 1:
        fix = "Pass the numbers along the last axis."
        fail(ShapeError, f"{name} must hold at least one number on its last axis", f"shape {tuple(x.shape)}", fix)
    if x.numel() and check_values(x):
        least, most = (end.item() for end in x.detach().aminmax())
        if not 0 <= least <= most < math.inf:
            bad = x[~((x >= 0) & torch.isfinite(x))][0].item()
            fail(DegenerateError, f"{name} must be finite and >= 0", bad, "Drop infinite bars; pass lengths.")
    return x

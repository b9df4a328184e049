"""The checks that every measure, loss and transform has to pass, written once.

Each ``check_*`` takes the function under test as a callable of one cloud (and ``mask=`` where the check needs it), so a
keyword is bound with ``functools.partial`` or a lambda. Outputs may be a tensor or a tuple of tensors.
"""

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from isonb.errors import InputError

Function = Callable[..., Any]
# Two small clouds whose numbers were worked out by hand.
P4 = torch.tensor([[2, 0], [0, 1], [1, 3], [4, 4]], dtype=torch.float64)
Q8 = torch.tensor(
    [[3, 0, 0], [-3, 0, 1], [0, 2, 0], [0, -2, -1], [1, 1, 1], [-1, -1, -1], [2, 1, 0], [-2, -1, 0]],
    dtype=torch.float64,
)


def interruptible(command: Iterable[Any]) -> list[str]:
    """The command as one that Ctrl-C ends, also where the tests run in a shell that ignores interrupts."""
    reset = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-I", "-S", "-c", reset, *map(str, command)]


def gpu(test: Function) -> Function:
    """Mark a test that needs a CUDA device; it is skipped where there is none."""
    return pytest.mark.gpu(pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")(test))


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers, the same on every machine."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def uneven(*shape: int, seed: int = 0, mean: float = 0.5) -> Tensor:
    """A float64 cloud (..., n, d) with a decaying spectrum, turned off the axes and moved off the origin."""
    d = shape[-1]
    rotation = torch.linalg.qr(normal(d, d, seed=seed + 1))[0]
    return normal(*shape, seed=seed) * 0.8 ** torch.arange(d) @ rotation + mean


def some_mask(*shape: int, keep: int = 4, seed: int = 0) -> Tensor:
    """A bool mask (..., n) in no particular order with at least ``keep`` real rows a cloud and at least one padded."""
    noise = torch.rand(*shape, generator=torch.Generator().manual_seed(seed))
    rank = noise.argsort(-1).argsort(-1)
    mask = (noise > 0.5) | (rank < keep)
    return mask & (rank != shape[-1] - 1)


def tensors(out: Any) -> tuple[Tensor, ...]:
    """The tensors of a result, in order."""
    if isinstance(out, Tensor):
        return (out,)
    return tuple(part for item in out for part in tensors(item))


def assert_same(got: Any, want: Any, *, rtol: float = 1e-9, atol: float = 1e-12, dtype: bool = True) -> None:
    """Two results equal to tolerance, tensor by tensor. NaN never passes."""
    got, want = tensors(got), tensors(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, check_dtype=dtype)


def leaf(x: Tensor) -> Tensor:
    """A fresh copy that asks for its gradient."""
    return x.detach().clone().requires_grad_()


def gradient(function: Function, x: Tensor) -> Tensor:
    """The gradient of a fixed linear functional of every floating output of ``function`` at ``x``."""
    x = leaf(x)
    parts = [out for out in tensors(function(x)) if out.is_floating_point()]
    weights = [torch.linspace(1, 2, out.numel(), dtype=out.dtype, device=out.device).view_as(out) for out in parts]
    total = torch.stack([(out * w).sum() for out, w in zip(parts, weights, strict=True)]).sum()
    return torch.autograd.grad(total, x)[0]


def check_gradient(function: Function, *inputs: Tensor, twice: bool = False) -> None:
    """The derivative equals central differences in float64; ``twice`` also checks the second derivative.

    The first that is derived again may be computed another way: it is the same.
    """
    inputs = tuple(leaf(x.double()) for x in inputs)
    assert torch.autograd.gradcheck(function, inputs)
    if twice:
        assert torch.autograd.gradgradcheck(function, inputs)
        total = torch.stack([out.sum() for out in tensors(function(*inputs))]).sum()
        plain = torch.autograd.grad(total, inputs, retain_graph=True)
        assert_same(torch.autograd.grad(total, inputs, create_graph=True), plain)


def check_finite_gradient(function: Function, x: Tensor) -> None:
    """Value and gradient are finite: for duplicates, zero rows, rank one and other clouds where roots are steep."""
    assert all(bool(torch.isfinite(out).all()) for out in tensors(function(x)))
    assert bool(torch.isfinite(gradient(function, x)).all())


def check_batch_equals_loop(function: Function, x: Tensor, mask: Tensor | None = None) -> None:
    """A batch (b, n, d), and the same under two batch axes, gives what each of its clouds gives alone."""
    assert x.ndim == 3
    if mask is None:
        alone = [tensors(function(cloud)) for cloud in x]
        batch, nested = function(x), function(x.unsqueeze(1))
    else:
        alone = [tensors(function(cloud, mask=keep)) for cloud, keep in zip(x, mask, strict=True)]
        batch, nested = function(x, mask=mask), function(x.unsqueeze(1), mask=mask.unsqueeze(1))
    stacked = tuple(torch.stack(parts) for parts in zip(*alone, strict=True))
    assert_same(batch, stacked)
    assert_same(nested, tuple(part.unsqueeze(1) for part in stacked))


def check_mask_equals_drop(
    function: Function, x: Tensor, mask: Tensor, *, rows: bool = False, slope: bool = True, **tolerances: float
) -> None:
    """Masked rows change nothing, whatever they hold: value and gradient equal those of the cloud without them.

    x (n, d), mask (n,). ``rows`` compares outputs that have one row a point; ``slope=False`` for no gradient.
    """
    assert not bool(mask.all())
    want = function(x[mask])
    for filler in (0.0, 1e3, float("nan")):
        padded = torch.where(mask.unsqueeze(-1), x, x.new_full((), filler))
        got = function(padded, mask=mask)
        got = tuple(out[mask] for out in tensors(got)) if rows else got
        assert_same(got, want, **tolerances)
        if slope:
            full = gradient(lambda z: tuple(o[mask] if rows else o for o in tensors(function(z, mask=mask))), padded)
            assert_same(full[mask], gradient(function, x[mask]), **tolerances)
            assert bool((full[~mask] == 0).all())


def moved(x: Tensor, change: str) -> Tensor:
    """The cloud after a named change that some measure must not notice."""
    if change == "permutation":
        return x[..., torch.randperm(x.shape[-2], generator=torch.Generator().manual_seed(7)).to(x.device), :]
    if change == "rotation":
        return x @ torch.linalg.qr(normal(x.shape[-1], x.shape[-1], seed=8))[0].to(x)
    if change == "translation":
        return x + 3.0 * normal(x.shape[-1], seed=9).to(x)
    if change == "scale":
        return x * 2.75
    if change == "row lengths":
        return x * (0.5 + torch.rand(x.shape[-2], 1, generator=torch.Generator().manual_seed(10)).to(x))
    if change == "reflection":
        return -x
    raise KeyError(change)


def check_invariant(function: Function, x: Tensor, changes: Iterable[str]) -> None:
    """The value stays under each named change of the cloud (see :func:`moved`)."""
    want = function(x)
    for change in changes:
        assert_same(function(moved(x, change)), want, rtol=1e-8, atol=1e-10)


def check_dtypes(function: Function, x: Tensor) -> None:
    """float32 agrees with float64 to 1e-3; half precision is raised to float32 first, exactly; autocast is off."""
    x32 = x.float()
    assert_same(function(x32), function(x32.double()), rtol=1e-3, atol=1e-5, dtype=False)
    for half in (torch.bfloat16, torch.float16):
        assert_same(function(x.to(half)), function(x.to(half).float()), rtol=0, atol=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = function(x32)
    assert_same(inside, function(x32), rtol=1e-5, atol=1e-6)
    floats = [out.dtype for out in tensors(inside) if out.is_floating_point()]
    assert all(dtype == torch.float32 for dtype in floats)


def check_rejects(function: Function, kind: type[InputError], match: str, *args: Any, **kwargs: Any) -> None:
    """The call raises ``kind`` with ``match`` in a message that starts with the function's name."""
    with pytest.raises(kind, match=match) as caught:
        function(*args, **kwargs)
    name = getattr(function, "__name__", None)
    assert name is None or str(caught.value).startswith(f"{name}: ")


def as_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch value checks off in every loaded module, to see the documented limits without the device."""
    for name, module in list(sys.modules.items()):
        if name.startswith("isonb.") and hasattr(module, "check_values"):
            monkeypatch.setattr(module, "check_values", lambda x: False)


@contextlib.contextmanager
def no_values() -> Iterator[None]:
    """Let functions run on the meta device, which knows no autocast: there any step that reads a value fails."""
    import torch._dynamo  # noqa: F401  # the compiler looks torch's functions up once: not while one is replaced

    with mock.patch("torch.is_autocast_enabled", return_value=False):
        yield


def check_asynchronous(function: Function, x: Tensor, *, mask: Tensor | None = None) -> None:
    """No step reads a value back: the function runs, and keeps its shapes, on a device that has no values at all."""
    masks = ({}, {}) if mask is None else ({"mask": mask}, {"mask": mask.to("meta")})
    want = function(x, **masks[0])
    with no_values():
        got = function(x.to("meta"), **masks[1])
    assert [out.shape for out in tensors(got)] == [out.shape for out in tensors(want)]


@contextlib.contextmanager
def never_waiting() -> Iterator[None]:
    """On a CUDA device a step that makes the host wait is an error inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def check_cuda(function: Function, x: Tensor) -> None:
    """Value and gradient on CUDA equal those on the CPU in float64, and no step waits for the device."""
    want, slope = function(x), gradient(function, x)
    on_device = x.cuda()
    function(on_device)  # compile and load outside the guarded call
    with never_waiting():
        got = function(on_device)
    assert_same(tuple(out.cpu() for out in tensors(got)), want, rtol=1e-9, atol=1e-11)
    assert_same(gradient(function, on_device).cpu(), slope, rtol=1e-9, atol=1e-11)


def nasty(x: Tensor, kind: str) -> Tensor:
    """The cloud with ties, copies, tight clusters, a mean or a point far away, on a curve, of no extent at all."""
    n = x.shape[-2]
    half = (torch.arange(n) < n // 2).to(x.dtype).unsqueeze(1)
    turn = 2 * torch.pi * torch.arange(n, dtype=x.dtype).unsqueeze(1) / n
    return {
        "normal": x,
        "grid": x.round(),
        "equal": torch.ones_like(x),
        "copies": x[..., torch.arange(n) // 3, :],
        "clusters": 1e-3 * x + half,
        "offset": x + 1e4,
        "far point": torch.where(torch.arange(n).unsqueeze(1) == n - 1, 1e4, x),
        "line": x[..., :1] * torch.linspace(1, 2, x.shape[-1], dtype=x.dtype),
        "circle": torch.cat([turn.cos(), turn.sin()], 1),
        "tight": 1e-6 * x + 1,
        "tiny": x * 1e-30,
        "huge": x * 1e30,
    }[kind]


def columns_of(config):
    """The settings of a run as the columns of a recording hold them: names joined by dots, nothing where none is."""
    from isonb_lab.runs.table import flat

    return {name: value for name, value in flat(config).items() if value is not None}

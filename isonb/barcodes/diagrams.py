"""Barcodes in the arrays of other libraries, and back: the same numbers in another order."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from isonb.barcodes.rips import Persistence
from isonb.checks import tensor_of, validated
from isonb.errors import DegenerateError, InputError, ShapeError, fail

LAYOUTS = ("ripser", "gudhi")
Pair = tuple[Tensor, Tensor]


@validated
def to_diagrams(barcode: Sequence[Any], layout: str = "ripser") -> Any:
    """A barcode of :func:`rips_barcode` as other libraries hold it, least persistent bars first; without a gradient.

    ============  ============================================================================================
    ``layout``    what is returned
    ============  ============================================================================================
    ``"ripser"``  a list of arrays (bars, 2) by dimension: ripser's and giotto-ph's ``dgms``, and what
                  ``gudhi.representations``, ``gudhi.wasserstein`` and persim take
    ``"gudhi"``   a list of ``(dimension, (birth, death))``, highest dimension and longest bar first, as
                  ``SimplexTree.persistence`` gives it
    ============  ============================================================================================

    Raises :class:`~isonb.errors.InputError` for another layout, or what is no barcode.

    Source: the documentation of ripser.py and gudhi.

    >>> from isonb import rips_barcode
    >>> barcode = rips_barcode(torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 4.0]]))
    >>> to_diagrams(barcode)[1].tolist(), to_diagrams(barcode, "gudhi")[0]
    ([[4.0, 5.0]], (1, (4.0, 5.0)))
    """
    if layout not in LAYOUTS:
        fail(InputError, f"layout must be one of {', '.join(LAYOUTS)}", repr(layout), "See the table of the docstring.")
    diagrams = _diagrams(barcode)
    if layout == "ripser":
        return [diagram.numpy() for diagram in diagrams]
    pairs = [(k, tuple(bar)) for k, diagram in enumerate(diagrams) for bar in diagram.tolist()]
    return pairs[::-1]


@validated
def from_diagrams(diagrams: Any, *, keep_infinite: bool = False) -> list[Any]:
    """Diagrams of another library as :func:`rips_barcode` gives them: ``(birth, death)`` by dimension, longest first.

    Takes each layout of :func:`to_diagrams`, which it tells from the form. Infinite bars are left out unless
    ``keep_infinite``. Floating-point tensors and arrays keep their type, tensors their gradient; all else is float64.

    Raises :class:`~isonb.errors.InputError` for another form, and for a bar that ends before its birth.

    Source: the documentation of ripser.py and gudhi.

    >>> from_diagrams([(1, (4.0, 5.0)), (0, (0.0, float("inf"))), (0, (0.0, 4.0))])
    [(tensor([0.], dtype=torch.float64), tensor([4.], dtype=torch.float64)),
     (tensor([4.], dtype=torch.float64), tensor([5.], dtype=torch.float64))]
    """
    if isinstance(diagrams, Tensor):
        got = f"a tensor of shape {tuple(diagrams.shape)}"
        fail(ShapeError, "diagrams must be a list by dimension", got, "Put a single diagram (bars, 2) into a list.")
    try:
        if all(isinstance(entry, tuple) and isinstance(entry[0], Integral) for entry in diagrams):
            top = max((entry[0] for entry in diagrams), default=-1) + 1
            diagrams = [[bar for dimension, bar in diagrams if dimension == k] for k in range(top)]
        return [_bars(_floating(diagram), keep_infinite) for diagram in diagrams]
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        fix = "Pass a list of arrays (bars, 2) by dimension, or gudhi's persistence."
        fail(InputError, "diagrams must be in a layout of to_diagrams", f"{type(diagrams).__name__} ({error})", fix)


def _diagrams(barcode: Sequence[Any]) -> list[Tensor]:
    """The diagrams (bars, 2) of a barcode on the CPU, least persistent first."""
    try:
        pairs = [entry.diagram if isinstance(entry, Persistence) else torch.stack(entry, -1) for entry in barcode]
        return [pair.detach().flip(0).cpu() for pair in pairs]
    except (TypeError, RuntimeError) as error:
        fix = "Pass what rips_barcode returns."
        fail(InputError, "a barcode must hold (birth, death) or a Persistence for each dimension", str(error), fix)


def _floating(diagram: Any) -> Tensor:
    diagram = tensor_of(diagram)
    if isinstance(diagram, Tensor) and diagram.is_floating_point():
        return diagram
    return torch.as_tensor(diagram, dtype=torch.float64)


def _bars(diagram: Tensor, keep_infinite: bool) -> Pair:
    """Births and deaths of a diagram (bars, 2), longest first."""
    if diagram.numel() and (diagram.ndim != 2 or diagram.shape[1] != 2):
        fail(ShapeError, "a diagram must have shape (bars, 2)", f"shape {tuple(diagram.shape)}", "Pass (birth, death).")
    birth, death = diagram.reshape(-1, 2).unbind(-1)
    if not bool((death >= birth).all()):
        fix = "Pass births in the first column and deaths in the second."
        fail(DegenerateError, "no bar may end before its birth", diagram[~(death >= birth)][0].tolist(), fix)
    selected = torch.ones_like(birth, dtype=torch.bool) if keep_infinite else torch.isfinite(death)
    order = (death - birth).detach()[selected].argsort(descending=True, stable=True)
    return birth[selected][order], death[selected][order]

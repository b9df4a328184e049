"""Do what the report advises: leave out rows and dimensions, fit a remedy; what is written is fitted on all rows."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.defects import CENTRING, Finding
from isonb.auditing.remedies import Change, Remedy, candidates
from isonb.auditing.rows import CHUNK, numbers
from isonb.errors import InputError, fail
from isonb.numerics.rows import unit_rows
from isonb.runtime.files import replace
from isonb.runtime.terminal import printable
from isonb.runtime.told import Code, Section, counted
from isonb.transforms.base import AffineTransform

EXCLUDED = ("not finite", "zero rows")  # findings whose rows go, whatever their severity
TREATED = (*EXCLUDED, "duplicates", "dead dimensions", "long rows")  # what is treated where it is worse than a note
UNIT = "each row is divided by its length"


@dataclass(frozen=True)
class Fix:
    """What was done and written; ``steps``: in words.

    ``path``: the vectors, one row for each of the ``n`` that stayed. ``map_path``: an archive with ``rows`` and
    ``dims``, the numbers of those that stayed, ``unit``, whether each row was first divided by its length, and
    ``weight`` and ``bias``: y = x[dims] @ weight.T + bias.
    """

    steps: tuple[str, ...]
    n: int
    path: str
    map_path: str

    @property
    def code(self) -> tuple[str, ...]:
        """Python that does the same to queries."""
        length = ("q = q / numpy.linalg.norm(q, axis=1, keepdims=True)",) if UNIT in self.steps else ()
        return (
            f"import numpy; m = numpy.load({self.map_path!r}); q = queries[:, m['dims']]",
            *length,
            "q = q @ m['weight'].T + m['bias']  # queries as the rows were treated",
        )


def fix_section(fix: Fix) -> Section:
    """What was fixed, and how to do the same to queries."""
    done = "; ".join(fix.steps) or "nothing is known to help, so the rows are as they were"
    message = f"{counted(fix.n, 'row')} in {printable(fix.path)}: {done}."
    return Section("What was fixed", [message, Code(fix.code)], shown=True)


def advises(findings: Sequence[Finding], tried: Sequence[Remedy]) -> bool:
    """Whether there is something that :func:`fix_vectors` does."""
    centring = not any(item.gain for item in tried)  # where pairs don't say otherwise
    bad = [item for item in findings if item.severity != "note"]
    helps = any(item.gain and item.gain[1] > 0 for item in tried)
    return helps or any(item.name in TREATED or (centring and item.remedy == CENTRING) for item in bad)


def next_steps(origin: str, pairs: bool) -> tuple[str, ...]:
    """Lines of Python that do what is advised; ``origin`` is what the vectors are read from, as Python."""
    words = f"{origin}, pairs=pairs" if pairs else origin
    return (
        f'import isonb; isonb.audit({words}, fix="fixed.npy")  # does what is advised here',
        'print(isonb.audit("fixed.npy").headline)',
    )


def check_path(path: str | Path, *inputs: Any) -> Path:
    """The path of what is written: a new .npy file in a folder that is there, and none of the inputs."""
    place = Path(path).expanduser()
    if place.suffix != ".npy":
        fail(InputError, "fix must name a .npy file", repr(str(path)), "It gets the vectors.")
    if not place.parent.is_dir():
        fail(InputError, f"the folder of {place} must exist", str(place.parent), "Make it first.")
    for item in inputs:
        if isinstance(item, str | Path) and Path(item).exists() and place.exists() and Path(item).samefile(place):
            fail(InputError, "fix must be another file than what is audited", str(path), "Name a new one.")
    return place


def fix_vectors(
    source: Any,
    x: Tensor,
    findings: Sequence[Finding],
    path: Path,
    tried: Sequence[Remedy] = (),
    names: Sequence[int] | None = None,
) -> Fix:
    """Fix the rows of ``source`` (n, d) by the ``findings`` and write them; ``x`` is the sample of the audit.

    ``tried``: what helped on labelled pairs. ``names``: what the rows are called, where that isn't their number.
    """
    named = {item.name: item for item in findings}
    warned = {item.name for item in findings if item.severity != "note"}
    out = {row for name in (*EXCLUDED, *({"duplicates"} & warned)) if name in named for row in named[name].rows}
    dead = set(named["dead dimensions"].dims) if "dead dimensions" in warned else set()
    rows = torch.tensor([row for row in range(source.shape[0]) if row not in out])
    dims = torch.tensor([dim for dim in range(source.shape[1]) if dim not in dead])
    unit = "long rows" in warned

    def taken(y: Tensor) -> Tensor:
        return unit_rows(y[:, dims]) if unit else y[:, dims]

    name, remedy = _advised(taken(x), findings, tried)
    weight, bias = torch.eye(len(dims), dtype=torch.float64), torch.zeros(len(dims), dtype=torch.float64)
    if remedy is not None:
        dense = remedy.to_dense(torch.float64)
        weight, bias = dense.weight.detach(), dense.bias.detach()
    steps = [f"{counted(len(out), 'row')} left out"] * bool(out)
    steps += [f"{counted(len(dead), 'dimension')} left out"] * bool(dead)
    steps += [UNIT] * unit + [f"{name}, fitted on {len(x):,} rows"] * bool(name)
    map_file = path.with_suffix(".map.npz")
    row_numbers = rows if names is None else torch.tensor(names)[rows]
    _save_map(map_file, rows=row_numbers, dims=dims, unit=torch.tensor(unit), weight=weight, bias=bias)
    _save_rows(path, source, rows, x.dtype, lambda y: taken(y) @ weight.to(y.dtype).mT + bias.to(y.dtype), len(bias))
    return Fix(tuple(steps), len(rows), str(path), str(map_file))


def _advised(x: Tensor, findings: Sequence[Finding], tried: Sequence[Remedy]) -> tuple[str, AffineTransform | None]:
    """What helps most on labelled pairs, or without them centring where a warning asks for it; fitted on x (n, d)."""
    gains = [item.gain for item in tried if item.gain]
    best = max(range(len(gains)), key=lambda place: gains[place][0], default=0)
    centring = any(item.remedy == CENTRING for item in findings if item.severity == "warning")
    if not (gains[best][1] > 0 if gains else centring):
        return "", None
    name, _, transform = candidates(x)[best]  # centring is the first
    return name, transform.fit(x)


def _save_map(path: Path, **tensors: Tensor) -> None:
    import numpy as np

    content = io.BytesIO()
    arrays: dict[str, Any] = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
    np.savez(content, **arrays)
    replace(path, content.getvalue())


def _save_rows(path: Path, source: Any, rows: Tensor, dtype: torch.dtype, change: Change, d: int) -> None:
    """Write the changed rows in pieces, whole or not at all."""
    import numpy as np

    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    kind = "float64" if dtype == torch.float64 else "float32"
    try:
        output = np.lib.format.open_memmap(part, mode="w+", dtype=kind, shape=(len(rows), d))
        for start in range(0, len(rows), CHUNK):
            piece = numbers(source, rows[start : start + CHUNK]).to(dtype)
            output[start : start + CHUNK] = change(piece).numpy()
        output.flush()
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)

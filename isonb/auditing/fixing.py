"""Do what the report advises: leave out broken rows and dimensions and, with labelled pairs, fit a remedy that helps.

One half of the pairs chooses the remedy and the other half judges it; beside them stand measures of rows that nothing
was fitted on. What is written is fitted on all rows. Without pairs no row is changed: isotropy is no score.
"""

from __future__ import annotations

import glob
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from isonb.auditing.defects import Finding
from isonb.auditing.measured import Change, Pairs, first_half, pair_score
from isonb.auditing.remedies import Remedy, candidates, gain_of
from isonb.auditing.rows import CHUNK, RowSource, numbers
from isonb.errors import FitWarning, InputError, ShapeError, fail
from isonb.measures.registry import MEASURES
from isonb.runtime.files import replace, replacing
from isonb.runtime.terminal import printable
from isonb.runtime.told import Code, Columns, Section, counted, fixed
from isonb.transforms.base import AffineTransform

EXCLUDED = ("not finite", "zero rows")  # findings whose rows go, whatever their severity
TREATED = (*EXCLUDED, "duplicates", "dead dimensions")  # what is treated where it is worse than a note
JUDGED = ("mean_cosine", "isoscore_unbiased")
WITHOUT_PAIRS = "Nothing else is changed without labelled pairs."
PAIRS = "pairs: (first, second, labels) of yours, 1 for a match, 0 for none"
LEAST = 20  # rows, for an audit as for a fix


@dataclass(frozen=True)
class Effect:
    """A number before and after, of rows or pairs that nothing was fitted on."""

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class Fix:
    """What was done and written. ``steps``: in words; ``effects`` by pairs: before and after, of ``judged``, in words.

    ``path``: the vectors, one row for each of the ``n`` that stayed. ``map_path``: an archive with ``rows`` and
    ``dims``, the numbers of those that stayed, ``weight`` and ``bias``: y = x[dims] @ weight.T + bias.
    """

    steps: tuple[str, ...]
    effects: tuple[Effect, ...]
    judged: str
    n: int
    path: str
    map_path: str

    @property
    def code(self) -> tuple[str, ...]:
        """Python that does the same to queries."""
        return (
            f"import numpy; m = numpy.load({self.map_path!r}); q = queries[:, m['dims']]",
            "q = q @ m['weight'].T + m['bias']  # queries as the rows were treated",
        )


def fix_section(fix: Fix) -> Section:
    """What was fixed, before and after, and how to do the same to queries."""
    done = "; ".join(fix.steps) or "nothing is known to help, so the rows are as they were"
    message = f"{counted(fix.n, 'row')} in {printable(fix.path)}: {done}."
    if not fix.effects:
        return Section("What was fixed", [message, WITHOUT_PAIRS, Code(fix.code)], shown=True)
    caption = f"Before and after, on {fix.judged} that nothing was fitted on"
    rows = [[item.name, fixed(item.before), fixed(item.after)] for item in fix.effects]
    changed = Columns(caption, [f"held out: {fix.judged}", "before", "after"], rows)
    return Section("What was fixed", [message, changed, Code(fix.code)], shown=True)


def advises(findings: Sequence[Finding], tried: Sequence[Remedy]) -> bool:
    """Whether there is something that :func:`fix_vectors` does."""
    helps = any(item.gain and item.gain[1] > 0 for item in tried)
    return helps or any(item.name in TREATED for item in findings if item.severity != "note")


def next_steps(origin: str, options: Sequence[str], fix: bool) -> tuple[str, ...]:
    """Lines of Python that do what is advised, or that ask labelled pairs what to do.

    ``origin``: what the vectors are read from; ``options`` of the audit.
    """
    if not fix:
        return (f"import isonb; print(isonb.audit({', '.join([origin, 'pairs=pairs', *options])}))  # {PAIRS}",)
    return (
        f'import isonb; isonb.audit({", ".join([origin, *options])}, fix="fixed.npy")  # does what is advised here',
        'print(isonb.audit("fixed.npy").headline)',
    )


def check_path(path: str | Path, *inputs: Any) -> Path:
    """The path of what is written: a .npy file in a folder that is there, neither it nor its map one of the inputs."""
    place = Path(os.path.expanduser(path))
    if place.suffix != ".npy":
        fail(InputError, "fix must name a .npy file", repr(str(path)), "It gets the vectors.")
    if not place.parent.is_dir():
        fail(InputError, f"the folder of {place} must exist", str(place.parent), "Make it first.")
    for file in (file for item in inputs for file in _files(item)):
        written = [item for item in (place, _map_of(place)) if item.exists()]
        if place.resolve().is_relative_to(file.resolve()) or any(map(file.samefile, written)):
            fail(InputError, "fix must lie outside of what is audited", str(path), "Name a new file.")
    return place


def _map_of(path: Path) -> Path:
    return path.with_suffix(".map.npz")


def _files(thing: Any) -> Iterator[Path]:
    """The files and folders that an input names, or that its rows are read from."""
    if isinstance(thing, str | Path):
        path = os.path.expanduser(thing)
        yield from map(Path, [path] if os.path.exists(path) else glob.glob(path))
    elif isinstance(thing, np.memmap):
        yield from _files(thing.filename)
    elif isinstance(thing, np.ndarray):
        yield from _files(thing.base)
    elif isinstance(thing, RowSource):
        for item in thing.sources:
            yield from _files(item)


def fix_vectors(
    source: Any,
    x: Tensor,
    numbered: Tensor,
    findings: Sequence[Finding],
    path: Path,
    draw: torch.Generator,
    pairs: Pairs | None = None,
    names: Sequence[int] | None = None,
) -> Fix:
    """Fix the rows of ``source`` (n, d) by the ``findings`` and write them.

    ``x`` is the sample of the audit, ``numbered`` the number of each of its rows: those that are left out are not
    fitted on either. ``names``: what the rows are called, where that isn't their number.
    """
    named = {item.name: item for item in findings}
    warned = {item.name for item in findings if item.severity != "note"}
    out = {row for name in (*EXCLUDED, *({"duplicates"} & warned)) if name in named for row in named[name].rows}
    dead = set(named["dead dimensions"].dims) if "dead dimensions" in warned else set()
    rows = torch.tensor([row for row in range(source.shape[0]) if row not in out])
    dims = torch.tensor([dim for dim in range(source.shape[1]) if dim not in dead])
    if len(dims) < 2:
        got = f"{len(dims)} beside the dead ones"
        fail(ShapeError, "2 dimensions or more must remain in a fix", got, "Look at what makes the vectors.")
    x = x[~torch.isin(numbered, torch.tensor([*out], dtype=torch.long))]
    if len(x) < LEAST:
        fix = "Look at what makes the vectors."
        fail(ShapeError, f"{LEAST} rows or more must remain in a fix", f"{len(x)} beside the repeats", fix)

    def taken(y: Tensor) -> Tensor:
        return y[:, dims]

    name, judged, effects, remedy = "", "", tuple[Effect, ...](), None
    if pairs is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # few rows are told of by the audit itself
            name, remedy, effects, judged = _chosen(x, pairs, taken, draw)
    weight, bias = torch.eye(len(dims), dtype=torch.float64), torch.zeros(len(dims), dtype=torch.float64)
    if remedy is not None:
        dense = remedy.to_dense(torch.float64)
        weight, bias = dense.weight.detach(), dense.bias.detach()
    steps = [f"{counted(len(out), 'row')} left out"] * bool(out)
    steps += [f"{counted(len(dead), 'dimension')} left out"] * bool(dead)
    steps += [f"{name}, fitted on {len(x):,} rows"] * bool(name)
    map_file = _map_of(path)
    row_numbers = rows if names is None else torch.tensor(names)[rows]
    book = {"rows": row_numbers, "dims": dims, "weight": weight, "bias": bias}
    with replacing(path) as file:
        _write(file, source, rows, x.dtype, lambda y: taken(y) @ weight.to(y.dtype).mT + bias.to(y.dtype), len(bias))
        save(map_file, np.savez, **{name: tensor.detach().numpy() for name, tensor in book.items()})
    return Fix(tuple(steps), effects, judged, len(rows), str(path), str(map_file))


def _chosen(
    x: Tensor, pairs: Pairs, taken: Change, draw: torch.Generator
) -> tuple[str, AffineTransform | None, tuple[Effect, ...], str]:
    """The remedy, fitted on all rows, or nothing; and the effects of ``taken`` and it on what it wasn't fitted on."""
    fitting, judging = (x[half] for half in torch.randperm(len(x), generator=draw).chunk(2))
    every = taken(x)
    tried = {item: transform for item, _, transform in candidates(every)}
    half = first_half(pairs.group, draw)
    choosing, judged_pairs = pairs.part(half), pairs.part(~half)
    gains = {name: gain_of(item.fit(every).transform, choosing.changed(taken)) for name, item in tried.items()}
    best = max(gains, key=lambda item: gains[item][0])
    name = best if gains[best][1] > 0 else ""
    change: Change = tried[name].fit(taken(fitting)).transform if name else _same
    after = change(taken(judging))
    effects = [
        Effect(item.title, float(item(judging)), float(item(after))) for item in map(MEASURES.__getitem__, JUDGED)
    ]
    remedy = tried[name].fit(every) if name else None
    whole: Change = remedy.transform if remedy else _same
    fixed_pairs = judged_pairs.changed(lambda y: whole(taken(y)))
    scores = [pair_score(item.cosines(), item.labels, pairs.binary) for item in (judged_pairs, fixed_pairs)]
    effects.append(Effect("AUC" if pairs.binary else "Spearman", *scores))
    return name, remedy, tuple(effects), f"{len(judging):,} rows and {len(judged_pairs.labels):,} pairs"


def _same(x: Tensor) -> Tensor:
    return x


def save(path: Path, write: Callable[..., None], *arrays: Any, **named: Any) -> None:
    """Write arrays by a function of numpy, whole or not at all."""
    content = io.BytesIO()
    write(content, *arrays, **named)
    replace(path, content.getvalue())


def _write(file: BinaryIO, source: Any, rows: Tensor, dtype: torch.dtype, change: Change, d: int) -> None:
    """The changed rows in pieces, to the disk: written, not mapped, so that a full one is an error and no signal."""
    kind = np.dtype("float64" if dtype == torch.float64 else "float32")
    header = {"descr": kind.str, "fortran_order": False, "shape": (len(rows), d)}
    np.lib.format.write_array_header_1_0(file, header)
    for start in range(0, len(rows), CHUNK):
        piece = numbers(source, rows[start : start + CHUNK]).to(dtype)
        file.write(np.ascontiguousarray(change(piece).numpy(), kind).data)
    file.flush()
    os.fsync(file.fileno())

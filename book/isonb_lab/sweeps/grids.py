"""The runs of a grid (:mod:`isonb_lab.runs.grid_files`), checked before any of them starts."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb_lab.runs.grid_files import SIZES, GridError, about_grid, combinations, grid_blocks, grid_sizes, plan_digest
from isonb_lab.runs.protocols import protocol_of
from isonb_lab.runs.settings import USUAL_MODEL, Planned, check_names, plan

__all__ = ["MAX_RUNS", "SIZES", "GridError", "about_grid", "grid_sizes", "load_grid", "plan_digest"]

MAX_RUNS = 20_000


def load_grid(path: str | Path, size: str) -> list[Planned]:
    """The runs of one size of a grid, in the order they are written, each once.

    ``path`` as in :func:`~isonb_lab.runs.grid_files.grid_blocks`. Raises :class:`GridError` for what isn't a grid, and
    for any setting that :func:`~isonb_lab.runs.settings.plan` refuses. Nothing has been started then.
    """
    cells: list[tuple[str, dict[str, Any]]] = []
    for where, block in grid_blocks(path, size):
        with _located(where):  # names come first: a list under a wrong name is a wrong name
            check_names((key for key in block if isinstance(key, str)) if isinstance(block, dict) else (), "a block")
        some = itertools.islice(combinations(where, block), MAX_RUNS + 1 - len(cells))
        cells += [(where, cell) for cell in some]
    if len(cells) > MAX_RUNS:
        fail(GridError, f"{path}, {size} must name at most {MAX_RUNS} runs", "more", "Take values out of its lists.")
    runs: dict[str, Planned] = {}
    cited = plan_digest(path)
    for where, settings in cells:
        with _located(where):
            run = plan({"protocol": protocol_of(settings.get("model", USUAL_MODEL), size)} | settings)
        runs.setdefault(run.run_id, replace(run, plan=cited))
    return list(runs.values())


@contextlib.contextmanager
def _located(where: str) -> Iterator[None]:
    """An error of a setting says its place."""
    try:
        yield
    except InputError as error:
        raise GridError(f"{where}: {error}") from error

"""What planned runs without a record would cost: of a printed table, of a claim, of a whole grid."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence

from isonb_lab.claims.design import Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import training_of
from isonb_lab.runs.settings import Planned
from isonb_lab.runs.table import flat
from isonb_lab.sweeps.cost import Estimate, estimate
from isonb_lab.sweeps.grids import load_grid

from .arms import OWN_CELLS
from .paper_tables import Chosen, Lack, is_plain, printed_task


def lacks(study: Study, methods: Mapping[str, Chosen]) -> Lack:
    """What a table says of its columns without runs of a task: what those that are planned would cost.

    Of a method of which no run is planned, what plain runs of the task took, if some are recorded.

    Args:
        study: whose runs are recorded.
        methods: by column whether a run has its method.
    """
    recorded = set(study.runs["run_id"])

    def on(task: str, method: Chosen) -> Chosen:
        return lambda run: printed_task(run) == task and method(run)

    def of(task: str, method: Chosen) -> str:
        if any(map(on(task, method), study.settings.values())):
            return "ran, without this number or without plain training beside it"
        if cost := price(on(task, method), recorded):
            return f"not run, planned: {cost.runs} runs, {cost.cpu_hours:.1f} h of one core"
        plain = [run for run, settings in study.settings.items() if on(task, is_plain)(settings)]
        hours = study.numbers("manifest.seconds", plain).dropna() / 3600
        ends = dict.fromkeys(f"{end:.2f}" for end in (hours.min(), hours.max()))
        return "not run, not planned" + f"; a plain run there took {' to '.join(ends)} h" * bool(len(hours))

    def told(task: str, columns: Sequence[str]) -> str:
        texts: dict[str, list[str]] = {}
        for name in columns:
            texts.setdefault(of(task, methods[name]), []).append(name)
        if len(columns) == len(methods) and len(texts) == 1:
            return next(iter(texts))
        return "; ".join(f"{' and '.join(names)} {text}" for text, names in texts.items())

    return told


def price(chosen: Chosen, recorded: Collection[str] = ()) -> Estimate | None:
    """What planned runs of the papers' own cells cost, with the plain ones trained alike; those recorded aside.

    None where none is planned and left.
    """
    alike = {training_of(settings) for _, settings in own_cells() if chosen(settings)}
    return cost(lambda run: chosen(run) or (is_plain(run) and training_of(run) in alike), recorded)


def cost(chosen: Chosen, recorded: Collection[str] = ()) -> Estimate | None:
    """The same of the chosen runs alone."""
    left = {run.run_id: run for run, settings in own_cells() if run.run_id not in recorded and chosen(settings)}
    return estimate(left.values()) if left else None


@functools.cache
def own_cells() -> list[tuple[Planned, Settings]]:
    """The planned runs of the papers' own cells, with their settings as a recording names them."""
    return [(run, flat(run.config)) for grid in OWN_CELLS for run in planned(grid, "full")]


@functools.cache
def planned(grid: str, size: str) -> list[Planned]:
    """The runs of a grid of the book, read once: no run changes it."""
    return load_grid(grid, size)

"""What planned runs without a record would cost: of a printed table, of a claim, of a whole grid."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence

from isonb_lab.claims.design import Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import training_of
from isonb_lab.data.tasks import TASKS
from isonb_lab.methods import methods as every_method
from isonb_lab.runs.settings import Planned, plan
from isonb_lab.runs.table import flat
from isonb_lab.sweeps.cost import Estimate, estimate
from isonb_lab.sweeps.grids import load_grid

from .arms import OWN_CELLS
from .paper_tables import Chosen, Lack, is_plain, printed_task


def lacks(study: Study, methods: Mapping[str, Chosen]) -> Lack:
    """What a table says of its columns without runs of a task: what those that are planned would cost.

    Of a method of which no run is planned, what its runs :func:`elsewhere` would cost on that task.

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
        ours = price(on(task, method), recorded)
        cost = ours or elsewhere(method, task, methods.values(), recorded)
        text = "not run, planned" if ours else "not run, not planned"
        return f"{text}: {cost.runs} runs, {cost.cpu_hours:.1f} h of one core" if cost else text

    def told(task: str, columns: Sequence[str]) -> str:
        texts: dict[str, list[str]] = {}
        for name in columns:
            texts.setdefault(of(task, methods[name]), []).append(name)
        each = {text: text + " each" * (len(names) > 1 and ":" in text) for text, names in texts.items()}
        if len(columns) == len(methods) and len(texts) == 1:
            return next(iter(each.values()))
        return "; ".join(f"{' and '.join(names)} {each[text]}" for text, names in texts.items())

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


def elsewhere(
    chosen: Chosen, task: str, beside: Iterable[Chosen] = (), recorded: Collection[str] = ()
) -> Estimate | None:
    """What a method would cost on a task where none of its runs is planned, with plain runs; those recorded aside.

    Its first design in the papers' own cells counts, brought to the task. A method without one takes the design of the
    first ``beside`` it that has one, at its own usual options. None where none has.
    """
    for like in (chosen, *beside):
        if designs := [settings for _, settings in own_cells() if like(settings)]:
            break
    else:
        return None
    design = min(designs, key=lambda settings: printed_task(settings) != task)  # the task's own, if there is one
    there = design["task"] if printed_task(design) == task else _task_printed(task)
    alike = training_of(design)
    runs = [({**run.config, "task": there}, item) for run, item in own_cells() if training_of(item) == alike]
    treated = [config for config, settings in runs if like(settings)]
    if like is not chosen:
        name = next(name for name in every_method() if chosen(flat(plan(treated[0] | {"method": name}).config)))
        treated = [config | {"method": name} for config in treated]
    every = map(plan, [*treated, *(config for config, settings in runs if is_plain(settings))])
    left = {run.run_id: run for run in every if run.run_id not in recorded}
    return estimate(left.values()) if left else None


def _task_printed(name: str) -> str:
    return next(task for task in TASKS if printed_task({"task": task}) == name)


@functools.cache
def own_cells() -> list[tuple[Planned, Settings]]:
    """The planned runs of the papers' own cells, with their settings as a recording names them."""
    return [(run, flat(run.config)) for grid in OWN_CELLS for run in planned(grid, "full")]


@functools.cache
def planned(grid: str, size: str) -> list[Planned]:
    """The runs of a grid of the book, read once: no run changes it."""
    return load_grid(grid, size)

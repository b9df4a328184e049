"""How much of each table and figure of the papers is shown: declared by axis, counted from the recordings.

An item declares what the paper prints along each axis: its tasks, its encoders, its settings, its points. What the
named page shows is counted from the runs of the study that the page draws; what is recorded, from all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from isonb_lab.claims.design import PLAIN, Design, Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.treatment import Treatment, canonical
from isonb_lab.sweeps.cost import Estimate, estimate

from . import arms
from .prices import planned, price

NAMES = {"000": "Shrink", "001": "I-STAR", "002": "SoftDecay", "003": "IsoLayer"}
GRIDS = {"000": "shrink_the_longest", "001": "istar", "002": "softdecay", "003": "isolayer"}
SAME = {"sst2_joint": "sst2", "stsb_test": "stsb"}  # the same task on more rows, and in similarity


@dataclass(frozen=True)
class Axis:
    """One way in which an item has several values.

    Args:
        name: "tasks", "models", "settings", "points" or "steps": the column of the table.
        values: what the paper has, as a column of the runs would have it; of a line, how many points, or its last step.
        column: of the runs; of a line the series whose values a run has.
        word: before the numbers, where several axes share a name.
        of_encoder: whether the encoder decides how many there are, as of its layers.
        plain: the value that plain training stands for, if any.
    """

    name: str
    values: tuple[Any, ...]
    column: str
    word: str = ""
    of_encoder: bool = False
    plain: float | None = None

    @property
    def of_line(self) -> bool:
        """Whether it counts along the lines of a figure, not among the runs."""
        return self.name in ("points", "steps")


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper and its counterpart.

    Args:
        paper: its number in the list of papers.
        item: "Table 1".
        shows: what it shows, in words.
        page: where the counterpart is.
        caption: how the caption of the counterpart begins there.
        axes: what the paper has; none for a diagram, or a table whose printed values the page repeats.
        study: whose runs the page draws.
        own: the design at the paper's own settings whose runs it draws, too.
        pool: the study whose runs are counted as recorded.
        arms: those of the study that the counterpart draws; all by default.
        suites: those of a study that the counterpart has; all by default.
        treatment: of the runs that would fill it.
        rivals: of the runs of other methods that it compares; plain runs trained alike needn't be named.
        why: no run is planned that would fill it.
        kind: "runs", "diagram" or "printed".
    """

    paper: str
    item: str
    shows: str
    page: str
    caption: str
    axes: tuple[Axis, ...] = ()
    study: str = ""
    pool: str = arms.TRAINED
    arms: tuple[str, ...] = ()
    suites: Callable[[Study], Collection[str]] | None = None
    treatment: Treatment | None = field(default=None, hash=False)
    rivals: tuple[Treatment, ...] = field(default=(), hash=False)
    kind: str = "runs"
    own: Design | None = field(default=None, hash=False)
    why: str = ""

    def has(self, settings: Settings) -> bool:
        """Whether a run is on a task of the item and has its treatment or that of a rival."""
        treated = any(treatment.has(settings) for treatment in (self.treatment, *self.rivals) if treatment)
        return treated and self.is_on(settings.get("task"))

    def is_on(self, task: Any) -> bool:
        """Whether a task is one of the item's; without an axis of tasks any is."""
        tasks = [_same(value) for axis in self.axes if axis.name == "tasks" for value in axis.values]
        return not tasks or _same(task) in tasks


@dataclass(frozen=True)
class Counted:
    """An axis of an item: how many of the ``printed`` values are ``shown`` on its page, and how many ``recorded``."""

    axis: Axis
    shown: int
    recorded: int
    printed: int

    def __str__(self) -> str:
        word = f"{self.axis.word} " if self.axis.word else ""
        more = f" ({self.recorded} recorded)" if self.recorded > self.shown else ""
        return f"{word}{self.shown} of {self.printed}{more}"


def counted(item: Item, studies: Mapping[str, Study]) -> list[Counted]:
    """Each axis of an item with what its page shows of it, and what runs with its treatment record of it.

    ``studies``: by name.
    """
    if item.kind != "runs":
        return []
    drawn, every = [studies[item.study]], studies[item.pool]
    drawn += [own] if item.own and len((own := studies[item.own.name]).runs) else []  # none is recorded at first
    chosen = [study.runs[study.runs["arm"].isin(item.arms)] if item.arms else study.runs for study in drawn]
    if item.suites:
        chosen = [runs[runs["suite"].isin(item.suites(study))] for study, runs in zip(drawn, chosen, strict=True)]
    treated = every.runs
    if item.treatment:
        treated = treated[treated["run_id"].isin([run for run, one in every.settings.items() if item.has(one)])]
    results = []
    for axis in item.axes:
        runs = [_of_method(axis, item, some) for some in chosen]
        if axis.of_line:  # which is of one study, and on the item's tasks
            runs = [some[[item.is_on(task) for task in some["task"]]] for some in runs]
            shown = max(_count(axis, study.series, some) for study, some in zip(drawn, runs, strict=True))
        else:
            shown = _count(axis, every.series, pd.concat(runs))
        results.append(Counted(axis, shown, max(shown, _count(axis, every.series, treated)), _of(axis)))
    return results


def extent(found: Sequence[Counted]) -> str:
    """How much is shown of what another encoder leaves as it is: "whole", "part", or "none": an axis has nothing."""
    here = [one for one in found if not one.axis.of_encoder]
    if all(one.shown == one.printed for one in here):
        return "whole"
    return "part" if all(one.shown for one in here) else "none"


def _of_method(axis: Axis, item: Item, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the item's method, where an axis is an option or a task: another method's don't fill the item."""
    of_method = axis.name in ("tasks", "settings") and axis.column != "method.name"
    if not of_method or item.treatment is None:
        return runs
    treated = runs[runs["method.name"] == item.treatment.method]
    if axis.plain is None:
        return treated
    plain = runs[runs["method.name"] == PLAIN].assign(**{axis.column: axis.plain})
    return pd.concat([treated, plain])


def _of(axis: Axis) -> int:
    return int(axis.values[0]) if axis.of_line else len(axis.values)


def _count(axis: Axis, series: pd.DataFrame, runs: pd.DataFrame) -> int:
    if axis.of_line:
        logged = series[(series["name"] == axis.column) & series["run_id"].isin(runs["run_id"])]
        logged = logged[logged["step"] > 0] if axis.of_encoder else logged  # what goes into the first layer is none
        steps = logged.groupby("run_id")["step"]
        found = steps.max() if axis.name == "steps" else steps.nunique()
        return 0 if found.empty else min(int(found.median()), _of(axis))
    if axis.column not in runs:
        return 0
    present = {canonical(_same(value)) for value in runs[axis.column].dropna().unique()}
    return sum(canonical(_same(value)) in present for value in axis.values)


def _same(value: Any) -> Any:
    """A value of an axis, or of a run; a task that has two names by one."""
    return SAME.get(value, value)


def missing(item: Item, studies: Mapping[str, Study]) -> Estimate | None:
    """What the planned runs of all arms of an item would cost that have no record yet; None without such runs."""
    return price(item.has, set(studies[arms.TRAINED].runs["run_id"]))


def paper_cost(paper: str) -> Estimate:
    """What the runs of a paper's own grid would cost, with its encoders."""
    return estimate(planned(GRIDS[paper], "paper"))

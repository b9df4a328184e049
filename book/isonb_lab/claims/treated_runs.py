"""The setting that a claim speaks of, and the recorded runs that have it: found by what they were, not by a name.

A paper's claim is about its own treatment: its weights, layers, head and tasks. A run that differs from it can show the
claimed effect or fail to; it can't contradict the paper. So a claim declares its treatment, and a new recording with
these settings is evidence as soon as it is there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from isonb_lab.claims.design import Settings, task_name
from isonb_lab.claims.table import settings_of_rows, task_and_encoder
from isonb_lab.claims.treatment import Treatment, canonical
from isonb_lab.claims.verdicts import Value, Values, by_detail

# What a run is watched by, and what a study adds to it: no settings of training.
WATCHED = ("seed", "cloud_examples", "track_every", "experiment")
ADDED = ("arm", "suite", "source", "metric", "score", "majority", "rows", "failed")


@dataclass(frozen=True)
class Treated:
    """Evidence by settings: a number of the runs of ``treatment`` less that of ``base``, all else and the seed equal.

    Args:
        value: a column of the runs, or ``value(study, run_ids)`` by run; or several of these by the detail of a cell.
        treatment: of the runs.
        base: of those that they are compared with; None: the number itself.
        may_differ: settings, besides those of the method, in which the two may differ.
    """

    value: Values = field(hash=False)
    treatment: Treatment
    base: Treatment | None = None
    may_differ: tuple[str, ...] = ()

    def __call__(self, study: Any, suites: Sequence[str]) -> dict[tuple[str, int], float]:
        """One number a cell and seed; a cell is a task and encoder, with the settings that the paper varies."""
        cells = self.cells(study.settings)
        runs = [run for pairs in cells.values() for pair in pairs for run in pair if run]
        results = {}
        for detail, value in by_detail(self.value).items():
            numbers = {"": 0.0} | _numbers(study, value, runs)  # "": without a base
            for name, pairs in cells.items():
                for run, other in pairs:
                    if run in numbers and other in numbers:
                        seed = int(study.settings[run]["seed"])
                        results[f"{name}{detail}", seed] = numbers[run] - numbers[other]
        return results

    def cells(self, every: Mapping[str, Settings]) -> dict[str, list[tuple[str, str]]]:
        """The treated runs by their cell, each with the run that it is compared with; without a base that is ""."""
        arm = treated_runs(every, self.treatment)
        base = treated_runs(every, self.base) if self.base else []
        base_runs = {(self._others(settings), settings["seed"]): run for run, settings in base}
        pairs = []
        for run, settings in arm:
            other = base_runs.get((self._others(settings), settings["seed"]), "")
            if other or self.base is None:
                pairs.append((run, other, settings))
        if not pairs:
            return {}
        rows = [settings for _, _, settings in pairs]
        names = _names(rows, self.treatment.varied)
        names = distinguished(names, list(map(options, rows)), names)  # what the paper leaves open may differ
        cells: dict[str, list[tuple[str, str]]] = {}
        for (run, other, _), name in zip(pairs, names, strict=True):
            cells.setdefault(name, []).append((run, other))
        return cells

    def _others(self, settings: Settings) -> frozenset[tuple[str, str]]:
        """What two runs of a pair share: the settings of training, and of one method those that both have."""
        shared = training_of(settings, self.may_differ)
        if self.base is None or self.base.method != self.treatment.method:
            return shared
        mine, other = self.treatment.settings, self.base.settings
        varied = {c for c in mine.keys() | other.keys() if mine.get(c) != other.get(c)}
        return shared | unordered({c: value for c, value in options(settings).items() if c not in varied})


def settings_by_run(runs: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The settings of the runs of a study by their id, without what the study adds."""
    settings = settings_of_rows(runs.drop(columns=list(ADDED), errors="ignore"))
    return dict(zip(runs["run_id"].astype(str), settings, strict=True))


def treated_runs(settings: Mapping[str, Settings], treatment: Treatment) -> list[tuple[str, Settings]]:
    """The run ids and settings of the runs that have a treatment."""
    return [(run, item) for run, item in settings.items() if treatment.has(item)]


def runs_of_cells(
    evidence: Any, treatment: Treatment, every: Mapping[str, Settings], cells: Sequence[str]
) -> dict[str, list[tuple[str, str]]]:
    """The treated runs of each cell, each with the run that it is compared with, "" where there is none.

    They are found by what they were: the suites of a study may have other names than cells. As :class:`Treated` pairs
    them; of other evidence those whose settings have all words of the cell's name.
    """
    if isinstance(evidence, Treated):
        details = by_detail(evidence.value)
        named = {f"{name}{it}": pairs for name, pairs in evidence.cells(every).items() for it in details}
        return {cell: named[cell] for cell in cells if cell in named}
    treated = treated_runs(every, treatment)
    columns = {column for _, settings in treated for column in settings}
    words = {
        run: {task_and_encoder(item), *(in_short(column, _value(item, column)) for column in columns)}
        for run, item in treated
    }
    found = {cell: [(run, "") for run in words if words[run].issuperset(cell.split(", "))] for cell in cells}
    return {cell: runs for cell, runs in found.items() if runs}


def by_regime(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Run ids by the task, encoder and settings of training that they share, whatever their method and seed."""
    listed = list(rows)
    names = _names([settings for _, settings in listed], ())
    groups: dict[str, list[str]] = {}
    for (run, _), name in zip(listed, names, strict=True):
        groups.setdefault(name, []).append(run)
    return groups


def setting_in_words(rows: Sequence[Settings], treatments: Sequence[Treatment]) -> str:
    """The encoders and tasks of runs, and what in them isn't as in the treatments of a claim, or was held out.

    >>> istar = Treatment("istar", ("sst2",), {"method.weight": (-5, -3, -1)})
    >>> weak = {"model": "tiny", "method.name": "istar", "method.weight": -0.1}
    >>> setting_in_words([weak | {"task": "sst2"}, weak | {"task": "sst5"}], [istar])
    'tiny; SST-2, SST-5; weight -0.1'
    >>> setting_in_words([weak | {"task": "sst2", "holdout": 0.1}], [istar])
    'tiny; SST-2; 10% of rows held out; weight -0.1'
    >>> setting_in_words([weak | {"task": "sst2", "holdout": 0.1}, weak | {"task": "sst2"}], [istar])
    'tiny; SST-2; 10% of rows held out; no rows held out; weight -0.1'
    """
    if not rows:
        return ""
    models = dict.fromkeys(str(row["model"]) for row in rows if row.get("model") is not None)
    tasks = dict.fromkeys(task_name(str(row["task"])) for row in rows if row.get("task") is not None)
    apart = _apart(treatments)
    untold = any(row.get("holdout") for row in rows) and not any("holdout" in item.settings for item in treatments)
    others: dict[str, dict[str, None]] = {}
    for row in rows:
        shown = {
            c: row[c] for treatment in treatments if treatment.has(row) for c in (*treatment.varied, *apart) if c in row
        }
        held_out = {"holdout": row.get("holdout")} if untold else {}
        for column, value in (shown | held_out | _nearest(row, treatments)).items():
            name, _, number = in_short(column, value).rpartition(" ")
            others.setdefault(name, {})[number] = None
    lines = [f"{name} {', '.join(sorted(values, key=_by_size))}".strip() for name, values in sorted(others.items())]
    return "; ".join(filter(None, [", ".join(models), ", ".join(tasks), *lines]))


def _apart(treatments: Sequence[Treatment]) -> list[str]:
    """The settings of the method in which some treatments of one method differ."""
    values: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for treatment in treatments:
        for column, allowed in treatment.settings.items():
            values.setdefault((treatment.method, column), set()).add(tuple(map(canonical, allowed)))
    return [column for (_, column), sets in values.items() if len(sets) > 1 and column.startswith("method.")]


def _by_size(text: str) -> tuple[float, str]:
    try:
        return float(text), ""
    except ValueError:
        return 0.0, text


def _nearest(row: Settings, treatments: Sequence[Treatment]) -> dict[str, Any]:
    """How a run differs from that of several treatments of its method that it is nearest to."""
    method = row.get("method.name", "none")
    return min(
        (treatment.differences(row) for treatment in treatments if treatment.method == method), key=len, default={}
    )


def in_short(column: str, value: Any) -> str:
    """A setting in words.

    >>> in_short("method.weight", -1.0), in_short("head", "linear"), in_short("method.include_pads", True)
    ('weight -1', 'linear head', 'padding counted')
    """
    name = column.removeprefix("method.").replace("_", " ")
    if isinstance(value, bool):
        return SWITCHES.get(column, {}).get(value, f"{name} {value}")
    if column == "head":
        return f"{value} head"
    if column == "holdout":
        return f"{float(value):.0%} of rows held out" if value else "no rows held out"
    try:
        return f"{name} {float(value):g}"
    except (TypeError, ValueError):
        return f"{name} {'none' if value is None else value}"


TOLD_FIRST = ("head", "holdout", "epochs")
BEFORE = {"pooling": "cls", "readers": False}  # what runs were made with before there was an option
SWITCHES = {
    "method.include_pads": {True: "padding counted", False: "padding left out"},
    "method.select": {True: "selected bars", False: "all bars"},
}


def _names(rows: Sequence[Mapping[str, Any]], varied: Sequence[str]) -> list[str]:
    """A name a row: task and encoder, ``varied`` settings, and what tells it from others that would share the name."""
    several = [c for c in varied if len({canonical(row.get(c)) for row in rows}) > 1]
    short = [
        ", ".join([task_and_encoder(row), *(in_short(c, row[c]) for c in several if row.get(c) is not None)])
        for row in rows
    ]
    return distinguished(short, [training(row) | {c: row[c] for c in PADDING if c in row} for row in rows], short)


PADDING = ("method.include_pads",)  # which the papers leave open: runs with and without it are cells of their own


def distinguished(names: Sequence[str], settings: Sequence[Settings], groups: Sequence[Hashable]) -> list[str]:
    """Each name with settings in which the members of its group differ: as few as tell them all apart.

    >>> distinguished(["none", "none"], [{"epochs": 3, "head": "pooler"}, {"epochs": 5, "head": "linear"}], [0, 0])
    ['none, pooler head', 'none, linear head']
    >>> distinguished(["none", "none"], [{"pooling": "cls"}, {}], [0, 0])  # a run older than the option
    ['none', 'none']
    """
    members: dict[Hashable, list[Settings]] = {}
    for group, item in zip(groups, settings, strict=True):
        members.setdefault(group, []).append(item)
    columns = {group: _differing(some) for group, some in members.items()}
    return [
        ", ".join([name, *(in_short(column, _value(item, column)) for column in columns[group])])
        for name, item, group in zip(names, settings, groups, strict=True)
    ]


def _differing(settings: Sequence[Settings]) -> list[str]:
    """The fewest columns that tell settings apart, those first that a reader knows."""
    known = [column for column in TOLD_FIRST if any(column in item for item in settings)]
    others = sorted({column for item in settings for column in item} - set(known))
    chosen: list[str] = []
    told = 1
    for column in (*known, *others):
        rows = {tuple(canonical(_value(item, name)) for name in (*chosen, column)) for item in settings}
        if len(rows) > told:
            chosen.append(column)
            told = len(rows)
    return chosen


def _value(settings: Settings, column: str) -> Any:
    return settings.get(column, BEFORE.get(column))


def options(settings: Settings) -> dict[str, Any]:
    """The settings of the method, its name among them."""
    return {column: value for column, value in settings.items() if column.startswith("method.")}


def training(settings: Settings) -> dict[str, Any]:
    """The settings of training: not those of the method, nor of what is watched."""
    return {c: value for c, value in settings.items() if not c.startswith("method.") and c not in WATCHED}


def unordered(settings: Settings) -> frozenset[tuple[str, str]]:
    """Settings as one value to compare."""
    return frozenset((column, canonical(value)) for column, value in settings.items())


def training_of(settings: Settings, may_differ: Sequence[str] = ()) -> frozenset[tuple[str, str]]:
    """The settings of :func:`training` as one value to compare."""
    return unordered({column: value for column, value in training(settings).items() if column not in may_differ})


def _numbers(study: Any, value: Value, runs: Sequence[str]) -> dict[str, float]:
    if callable(value):
        return {run: float(number) for run, number in value(study, runs).items()}
    return dict(study.numbers(value, runs).dropna())

"""The long table of a study: what a grid asks for, which recorded rows are that, live runs beside them, who failed.

A block of a grid names settings, as conditions on columns; all others have their defaults. So a cell of the plan is
filled by the row whose settings differ from the defaults in what the cell names, and in nothing else. The defaults are
those that the recording states of its own options. An option that is newer than the recording isn't among its columns:
with its default, which no cell has to name, it changes nothing; a cell that names it is filled by no row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats as scipy_stats

from isonb_lab.claims.design import Design, Settings, task_name
from isonb_lab.claims.treatment import canonical
from isonb_lab.data.tasks import TASKS
from isonb_lab.runs.grid_files import combinations, grid_blocks
from isonb_lab.runs.protocols import protocol_of, start
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import Recorded, recorded, scored
from isonb_lab.runs.table import FIRST, series_table, table
from isonb_lab.statistics.seeds import LEVEL, Interval, finite

PLAN = ["cell", "arm", "suite", "run_id"]
SERIES = ["run_id", "name", "step", "value"]
NO_RUNS = Recorded(pd.DataFrame(columns=["run_id", "task", "seed"]), pd.DataFrame(columns=SERIES), {}, {})
CORRELATIONS = ("matthews", "pearson", "spearman")
NAMED_FIRST = ("experiment", "task", "model", "method.name")  # of what a cell says; the seed is the last


@dataclass(frozen=True, eq=False)
class PlannedCell:
    """One run that a grid asks for: the settings that it names, by column, and those in words."""

    settings: Settings
    name: str = ""


def plan_of(grid: str | Path, size: str) -> list[PlannedCell]:
    """The cells of one size of a grid, in the order they are written.

    ``grid`` and what is raised: :func:`~isonb_lab.runs.grid_files.grid_blocks`.
    """
    blocks = grid_blocks(grid, size)
    cells = [_spelled_out(settings, size) for where, block in blocks for settings in combinations(where, block)]
    return [PlannedCell(settings, in_words(settings)) for settings in cells]


def in_words(settings: Settings) -> str:
    """Settings as a line that tells a run from all others of its grid.

    >>> in_words({"seed": 1, "task": "cola", "method.name": "istar", "method.weight": -1})
    'task cola, method istar, weight -1, seed 1'
    """
    rest = sorted(settings.keys() - {*NAMED_FIRST, "seed"})
    ordered = {column: settings[column] for column in (*NAMED_FIRST, *rest, "seed") if column in settings}
    if ordered.get("experiment") == "finetune":
        del ordered["experiment"]
    labels = {column: column.removeprefix("method.") for column in ordered} | {"method.name": "method"}
    return ", ".join(f"{labels[column]} {value}" for column, value in ordered.items())


def _spelled_out(settings: dict[str, Any], size: str) -> dict[str, Any]:
    """A cell with the values of its protocol, by column."""
    protocol = settings.pop("protocol", protocol_of(settings.get("model", "tiny"), size))
    task = str(settings.get("task"))
    kind = TASKS[task].kind if task in TASKS else ""
    settings = {"experiment": "similarity" if kind == "similarity" else "finetune"} | settings
    method = settings.pop("method", {})
    options = method if isinstance(method, dict) else {"name": method}
    columns = {f"method.{name}": value for name, value in options.items()}
    return start(protocol, settings["experiment"], task) | settings | columns


def long_tables(
    design: Design, cells: Sequence[PlannedCell], folder: Path, live: Mapping[str, Iterable[Record]]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """``runs``, ``series`` and ``plan`` of a :class:`~isonb_lab.claims.study.Study`: recorded runs, then live ones.

    A recording that isn't there counts as empty: the cells that its rows should fill are absent.
    """
    recordings = [recorded(name, folder) for name in design.recordings if (folder / name).is_dir()] or [NO_RUNS]
    every = pd.concat([item.runs for item in recordings], ignore_index=True)
    every = every.drop_duplicates("run_id", ignore_index=True)
    settings = dict(zip(every["run_id"], settings_of_rows(every), strict=True))
    defaults = _defaults(recordings)
    rows = []
    for cell, run in filled(cells, recordings).items():
        of_cell = settings[run] if run else _without_nothing({**_usual(cell.settings, defaults), **cell.settings})
        if (arm := design.arm(of_cell)) is not None:
            rows.append((cell.name, arm, design.suite(of_cell), run))
    plan = pd.DataFrame(rows, columns=PLAN)
    places = plan.dropna(subset="run_id").set_index("run_id")[["arm", "suite"]]
    runs = every[every["run_id"].isin(places.index)].copy().join(places, on="run_id").assign(source="recorded")
    logged = pd.concat([item.series for item in recordings], ignore_index=True).drop_duplicates(SERIES[:3])
    return joined_tables(design, runs, logged, plan, live)


def joined_tables(
    design: Design, runs: pd.DataFrame, logged: pd.DataFrame, plan: pd.DataFrame, live: Mapping[str, Iterable[Record]]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """``runs`` with their arm and suite, then live ones, all with scores; the series of these; the plan as it is."""
    tables = [(runs, logged), *(_live(design, suite, list(new), set(runs["run_id"])) for suite, new in live.items())]
    frames = [frame.dropna(axis=1, how="all") for frame, _ in tables if len(frame)]
    runs = _with_scores(pd.concat(frames, ignore_index=True).copy() if frames else runs)
    series = pd.concat([item for _, item in tables], ignore_index=True)
    return runs, series.merge(runs[["run_id", "suite", "seed", "arm"]], on="run_id"), plan


def task_and_encoder(settings: Settings) -> str:
    """The suite of a study with several encoders: the task, with the encoder behind it where it isn't minilm.

    >>> task_and_encoder({"task": "sst2", "model": "minilm"}), task_and_encoder({"task": "sst2", "model": "tiny"})
    ('SST-2', 'SST-2 (tiny)')
    """
    task = task_name(settings["task"])
    return task if settings["model"] == "minilm" else f"{task} ({settings['model']})"


def settings_of_rows(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """The settings of each row of a table of runs; what a row lacks is left out."""
    columns = [name for name in runs if name not in FIRST and not name.startswith(("metric.", "manifest."))]
    rows = runs[columns].astype(object).to_dict("records")
    return [_without_nothing({str(name): value for name, value in row.items()}) for row in rows]


def filled(plan: Sequence[PlannedCell], recordings: Sequence[Recorded]) -> dict[PlannedCell, str | None]:
    """The cells, each once, and the run id of the recorded row that fills it; None where none does.

    Of several recordings that have such a row the first counts, and of several such rows of one the first.
    """
    every = _defaults(recordings)
    cells: dict[frozenset[tuple[str, str]], PlannedCell] = {}
    for cell in plan:
        cells.setdefault(_set(cell.settings, every), cell)
    ids: dict[PlannedCell, str | None] = dict.fromkeys(cells.values())
    for recording in recordings:
        present: dict[frozenset[tuple[str, str]], str] = {}
        for run, settings in zip(recording.runs["run_id"], settings_of_rows(recording.runs), strict=True):
            unset = {name: None for name in _usual(settings, recording.defaults) if name in recording.runs}
            present.setdefault(_set(unset | settings, recording.defaults), str(run))
        ids = {cell: run or present.get(_set(cell.settings, recording.defaults)) for cell, run in ids.items()}
    return ids


def _defaults(recordings: Sequence[Recorded]) -> dict[str, Settings]:
    """What several recordings say of the defaults; the first has the word."""
    return {name: options for recording in recordings[::-1] for name, options in recording.defaults.items()}


def _usual(settings: Settings, defaults: Mapping[str, Settings]) -> dict[str, Any]:
    """The defaults of the experiment and the method that these settings name."""
    experiment, method = settings["experiment"], settings.get("method.name", "none")
    plain = {} if experiment == "synthetic" else {"method.name": "none"}
    return {**plain, **defaults.get(experiment, {}), **defaults.get(f"method.{method}", {})}


def _set(settings: Settings, defaults: Mapping[str, Settings]) -> frozenset[tuple[str, str]]:
    """The settings that aren't at their default, as one value to compare."""
    usual = _usual(settings, defaults)
    parts = ((name, canonical(value)) for name, value in settings.items())
    return frozenset((name, word) for name, word in parts if name not in usual or word != canonical(usual[name]))


def _without_nothing(settings: Settings) -> dict[str, Any]:
    """The settings that have a value; NaN is how a table holds none."""
    return {name: value for name, value in settings.items() if value is not None and value == value}


def _live(
    design: Design, suite: str, records: list[Record], taken: Collection[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and series of live records; a run that was recorded too, with the same settings and id, gets another id."""
    runs, series = table(records), series_table(records)
    runs = runs.assign(arm=[design.arm(settings) for settings in settings_of_rows(runs)], suite=suite, source="live")
    ids = {run: f"{suite}: {run}" if run in taken else run for run in runs["run_id"]}
    runs = runs[runs["arm"].notna()]
    return runs.assign(run_id=runs["run_id"].map(ids)), series.assign(run_id=series["run_id"].map(ids))


def _with_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """Scores as :func:`~isonb_lab.runs.recordings.scored` reads them, and which runs failed."""
    runs = scored(runs)
    by_suite = [failed(some) for _, some in runs.groupby("suite", sort=False)]
    return runs.assign(failed=pd.concat(by_suite) if by_suite else False)


def row_error(metric: str, score: float, rows: int) -> float:
    """Standard error of a score over the rows it was measured on.

    sqrt(s (1 - s) / n) for shares; (1 - s^2) / sqrt(n - 1) for correlations, as of a normal pair (for Matthews, that
    of two labels, an approximation).

    >>> round(row_error("accuracy", 0.8, 400), 3), round(row_error("pearson", 0.8, 1501), 4)
    (0.02, 0.0093)
    """
    if metric in CORRELATIONS:
        return (1 - score**2) / math.sqrt(rows - 1)
    return math.sqrt(max(score * (1 - score), 0.0) / rows)


def at_baseline(runs: pd.DataFrame) -> pd.Series[bool]:
    """Which runs of one task haven't learned it: their score isn't above the majority baseline by more than 1.96 of the
    baseline's :func:`row_error`. So far the rows alone can carry a model that answers the same for every example.

    Columns: ``score``, ``majority``, ``metric``, ``rows``. Of a run without a score nothing is known.
    """
    base = runs["majority"].astype(float).fillna(0.0)
    chance = [row_error(*row) for row in zip(runs["metric"], base, runs["rows"], strict=True)]
    floor = base + scipy_stats.norm.ppf((1 + LEVEL) / 2) * pd.Series(chance, index=runs.index, dtype=float)
    return runs["score"] <= floor


def failed(runs: pd.DataFrame) -> pd.Series[bool]:
    """Which runs of one task failed: those at the majority baseline, or below half of the task's best score.

    Columns and what isn't known: as of :func:`at_baseline`.

    >>> runs = pd.DataFrame({"score": [0.80, 0.69, 0.71], "majority": 0.684, "metric": "accuracy", "rows": 408})
    >>> failed(runs).tolist()
    [False, True, True]
    >>> runs = pd.DataFrame({"score": [0.76, 0.71, 0.27], "majority": 0.0, "metric": "pearson", "rows": 1500})
    >>> failed(runs).tolist()
    [False, False, True]
    """
    return at_baseline(runs) | (runs["score"] < runs["score"].max() / 2)


def lead(scores: Sequence[float], baseline: float, metric: str, rows: int) -> Interval:
    """How far the mean score lies above ``baseline``, the score of the majority baseline.

    The interval speaks of new seeds and new rows: the half-width is the root of the sum of the squares of Student's
    over seeds and the normal one over rows. One seed alone has that of the rows only.

    >>> ahead = lead([0.80, 0.82, 0.81], 0.684, "accuracy", 408)
    >>> round(ahead.estimate, 3), ahead.low > 0
    (0.126, True)
    """
    x = finite(list(scores), "scores", 1)
    mean, n = float(x.mean()), len(x)
    tail = (1 + LEVEL) / 2
    over_rows = scipy_stats.norm.ppf(tail) * row_error(metric, mean, rows)
    over_seeds = scipy_stats.t.ppf(tail, n - 1) * x.std(ddof=1) / math.sqrt(n) if n > 1 else 0.0
    half = float(math.hypot(over_rows, over_seeds))
    return Interval(mean - baseline, mean - baseline - half, mean - baseline + half, LEVEL, n, "seeds and rows")

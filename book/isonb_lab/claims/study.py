"""One way from runs to an answer: the recorded and the live runs of a paper as one table, its claims judged on them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from isonb_lab.claims import verdicts
from isonb_lab.claims.design import PLAIN, Design
from isonb_lab.claims.table import PlannedCell, at_baseline, lead, long_tables, plan_of, settings_of_rows
from isonb_lab.claims.treated_runs import runs_of_cells, setting_in_words, settings_by_run, training_of
from isonb_lab.claims.treatment import Treatment, canonical
from isonb_lab.claims.verdicts import (
    JudgedCell,
    Judgement,
    Prediction,
    PredictionJudgement,
    Reason,
    Units,
    Value,
    difference,
)
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import FOLDER
from isonb_lab.statistics.seeds import LEVEL, Interval, share, student

TAIL = 0.3  # of the updates


@dataclass(frozen=True)
class Study:
    """A design with its runs.

    Args:
        design: what is compared.
        runs: one row a run: the columns of the table of records and ``arm``, ``suite``, ``score`` (the task's main
            metric), ``majority`` (that metric of the majority baseline), ``failed`` (by
            :func:`~isonb_lab.claims.table.failed`), ``source`` ("recorded" or "live").
        series: run_id, name, step, value, and suite, arm, seed.
        plan: one row a run that the grid asks for: ``cell`` (what it asks for, in words), ``arm``, ``suite``, and the
            ``run_id`` of the recorded row that is it; none where no row is.
        live_suites: those of the live runs.
        no_setting: the (arm, suite) where every setting that was tried failed.
        others: the studies whose runs judge predictions of this one, by name.
    """

    design: Design
    runs: pd.DataFrame
    series: pd.DataFrame
    plan: pd.DataFrame
    live_suites: tuple[str, ...] = ()
    no_setting: frozenset[tuple[str, str]] = frozenset()
    others: Mapping[str, Study] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        design: Design,
        *,
        cells: Sequence[PlannedCell] | None = None,
        live: Mapping[str, Iterable[Record]] | None = None,
        folder: str | Path | None = None,
        others: Mapping[str, Study] | None = None,
    ) -> Study:
        """A study with its recorded runs, and with ``live`` records by their suite.

        Args:
            design: what the study compares.
            cells: of the plan, by default those of the design's grids.
            live: records of runs that were just made.
            folder: holds the recordings, by default those of the book.
            others: the studies that the design refers to, by name.

        Raises
            RecordedError: for a recording that can't be read.
        """
        if cells is None:
            grids = ((design.plan, design.size), *design.more)
            cells = [cell for grid, size in grids for cell in plan_of(grid, size)]
        live = live or {}
        tables = long_tables(design, cells, FOLDER if folder is None else Path(folder), live)
        return cls(design, *tables, tuple(live), frozenset(design.no_setting()), others or {})

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that are planned, in the order of the grid."""
        return tuple(self.plan["suite"].unique())

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that are planned, in the order of the grid."""
        return tuple(self.plan["arm"].unique())

    @property
    def absent(self) -> list[str]:
        """The planned cells that no recorded row fills, in words."""
        return list(self.plan.loc[self.plan["run_id"].isna(), "cell"])

    def coverage(self) -> pd.DataFrame:
        """Recorded and planned runs: one row an arm, one column a suite, "3 of 5"; a dash where none is planned."""
        planned = Counter(zip(self.plan["arm"], self.plan["suite"], strict=True))
        recorded = Counter(zip(self.recorded["arm"], self.recorded["suite"], strict=True))
        return pd.DataFrame(
            [
                {"arm": arm}
                | {s: f"{recorded[arm, s]} of {planned[arm, s]}" if planned[arm, s] else "–" for s in self.suites}
                for arm in self.arms
            ]
        )

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The settings of each run, by its id."""
        return settings_by_run(self.runs)

    @property
    def recorded(self) -> pd.DataFrame:
        """The runs that were recorded."""
        return self.runs[self.runs["source"] == "recorded"]

    def units(
        self, value: Value, arm: str, suites: Sequence[str] | None = None, detail: str = ""
    ) -> dict[tuple[str, int], float]:
        """One number a run of an arm, keyed by (cell, seed): a column of ``runs``, or ``value(study, run_ids)`` by run.

        ``detail`` is put behind the suite.
        """
        runs = self._of(self.runs, arm, suites)
        if callable(value):
            numbers = runs["run_id"].map(value(self, list(runs["run_id"])))
        elif value in runs:
            numbers = runs[value]
        else:
            return {}
        cells = zip(runs["suite"], runs["seed"], numbers, strict=True)
        return {(f"{suite}{detail}", int(seed)): float(number) for suite, seed, number in cells if pd.notna(number)}

    def numbers(self, column: str, runs: Sequence[str]) -> pd.Series[float]:
        """A column of the runs with these ids, by run id; NaN where it wasn't recorded."""
        values = self.runs.reindex(columns=["run_id", column]).set_index("run_id")[column]  # of hundreds of columns
        return values.reindex(list(dict.fromkeys(runs))).astype(float)

    def means(self, column: str, suite: str) -> pd.Series[float]:
        """The mean of a column over the runs of each arm on a suite; NaN for the arms that have none."""
        runs = self.runs[self.runs["suite"] == suite].reindex(columns=["arm", column])
        arms = dict.fromkeys([*self.arms, *self.design.acts_on, PLAIN])
        return runs.groupby("arm")[column].mean().reindex(list(arms)).astype(float)

    def logged(self, name: str, arm: str, suites: Sequence[str] | None = None) -> pd.DataFrame:
        """The series ``name`` of an arm's runs: run_id, step, value, suite, seed."""
        return self._of(self._named(name), arm, suites)

    def _named(self, name: str, runs: Sequence[str] | None = None) -> pd.DataFrame:
        logged = self.series.iloc[self._places.get(name, [])]
        return logged if runs is None else logged[logged["run_id"].isin(list(runs))]

    @cached_property
    def _places(self) -> dict[str, Any]:
        """The rows of each series by its name."""
        return dict(self.series.groupby("name").indices)

    @cached_property
    def _last_steps(self) -> pd.Series[float]:
        """The last update of each run that has a series by updates."""
        return self.series[self.series["name"].str.startswith("step.")].groupby("run_id")["step"].max()

    def by_layer(self, name: str, runs: Sequence[str]) -> dict[str, pd.Series[float]]:
        """A series of the runs with these ids that has a value a layer, by run id."""
        wide = self._named(name, runs).pivot(index="run_id", columns="step", values="value")
        return {str(run): layers.dropna() for run, layers in wide.iterrows()}

    def tails(self, name: str, runs: Sequence[str]) -> dict[str, float]:
        """The mean of a series over the last 30% of the updates, by run.

        A value counts if its update lies above 0.7 times the last one of its run, whichever series has that.
        """
        logged = self._named(name, runs)
        late = logged[logged["step"] > (1 - TAIL) * logged["run_id"].map(self._last_steps).astype(float)]
        return {str(run): float(mean) for run, mean in late.groupby("run_id")["value"].mean().items()}

    def ends(self, arm: str, measure: str, suites: Sequence[str] | None = None) -> tuple[Units, Units]:
        """A measure of the vectors that an arm acts on, and of the same vectors of plain training, a number a seed.

        The output of a second stage is compared with the [CLS] vectors that it starts from; it is measured on up to
        1,500 rows, they on ``cloud_examples``, and a biased measure reads higher on more. A measure of the tokens of
        all layers is read there, whatever the arm acts on.
        """
        mine = "tokens" if measure.endswith("_all_layers") else self.design.acts_on.get(arm, "cls")
        plain = "cls" if mine == "second" else mine
        after = self.units(f"metric.end.{mine}.{measure}", arm, suites)
        return after, self.units(f"metric.end.{plain}.{measure}", PLAIN, suites)

    def changed(self, arm: str, measure: str, suites: Sequence[str] | None = None) -> Units:
        """What an arm changes in a measure of the vectors that it acts on, a number a seed (:meth:`ends`)."""
        return difference(*self.ends(arm, measure, suites))

    def values(self, column: str = "score") -> pd.DataFrame:
        """A long table of one column: suite, arm, seed, source, value."""
        runs = self.runs.dropna(subset=column)
        values = runs[["suite", "arm", "seed", "source"]].assign(value=runs[column].astype(float))
        return values.reset_index(drop=True)

    def paired(
        self,
        column: str,
        arm: str,
        base: str = PLAIN,
        suites: Sequence[str] | None = None,
        *,
        alpha: float = 1 - LEVEL,
        fewest: int = verdicts.FEWEST,
    ) -> pd.DataFrame:
        """What an arm changes against another at the same seed: suite, n, mean, low, high, mde.

        From ``fewest`` seeds on; below 3 a mean has no interval. ``mde`` is the minimum detectable effect of these
        seeds at ``alpha``, the level of the verdict.
        """
        rows = []
        changes = difference(self.units(column, arm, suites), self.units(column, base, suites))
        for suite, values in verdicts.by_cell(changes).items():
            if len(values) >= verdicts.FEWEST:
                mean = student(values)
                rows.append((suite, mean.n, *mean.ends, verdicts.smallest_visible(mean, alpha)))
            elif len(values) >= fewest:
                rows.append((suite, len(values), fmean(values), math.nan, math.nan, math.nan))
        return pd.DataFrame(rows, columns=["suite", "n", "mean", "low", "high", "mde"])

    def failures(self, suites: Sequence[str] | None = None) -> pd.DataFrame:
        """How many runs failed: suite, arm, n, failed, share, and the exact 95% interval low to high of the share."""
        runs = self.runs.dropna(subset="score")
        runs = runs if suites is None else runs[runs["suite"].isin(list(suites))]
        rows = []
        for (suite, arm), some in runs.groupby(["suite", "arm"], sort=False):
            failed = share(int(some["failed"].sum()), len(some))
            rows.append((suite, arm, failed.n, int(some["failed"].sum()), *failed.ends))
        return pd.DataFrame(rows, columns=["suite", "arm", "n", "failed", "share", "low", "high"])

    def lead(self, arm: str, suite: str) -> Interval | None:
        """How far an arm's mean score lies above the majority baseline; None without runs.

        The interval speaks of new seeds and new rows: :func:`isonb_lab.claims.table.lead`.
        """
        runs = self._of(self.runs, arm, [suite]).dropna(subset=["score"])
        if runs.empty:
            return None
        base = float(runs["majority"].mean()) if runs["majority"].notna().any() else 0.0
        return lead(runs["score"].tolist(), base, runs["metric"].iloc[0], int(runs["rows"].iloc[0]))

    def unlearned(self, suite: str) -> Reason | None:
        """Why nothing can be said of a suite; None where some arm learned the task in most of its runs."""
        return self._unlearned.get(suite, Reason.NO_RUNS)

    @property
    def decisive(self) -> tuple[str, ...]:
        """The planned suites on which something learned, so that methods can be compared there."""
        return tuple(suite for suite in self.suites if not self.unlearned(suite))

    @cached_property
    def _unlearned(self) -> dict[str, Reason | None]:
        shares = self.failures().groupby("suite", sort=False)["share"].min()
        return {str(suite): Reason.UNLEARNED if least >= 0.5 else None for suite, least in shares.items()}

    def verdicts(self) -> list[Judgement]:
        """Every claim of the design, judged on the runs of the planned suites."""
        judged = []
        for claim in self.design.claims:
            premise, parts = (
                [self.home(part)._tested(part) for part in some] for some in (claim.premise, claim.predictions)
            )
            verdict = verdicts.judge(claim, parts, premise)
            judged.append(replace(verdict, setting=self._setting(verdict)))
        return judged

    def _setting(self, verdict: Judgement) -> str:
        """The encoders, tasks and other settings of the runs behind a verdict, in words."""
        rows: list[Mapping[str, Any]] = []
        counts: set[int] = set()  # of seeds behind a cell
        for item in verdict.deciding:
            home, part = self.home(item.prediction), item.prediction
            cells = [cell for cell in item.cells if cell.outcome not in verdicts.UNTESTABLE]
            if part.treatment:
                pairs = home.treated(part, [cell.name for cell in cells]).values()
                rows += [home.settings[run] for of_cell in pairs for run, _ in of_cell]
                counts |= {cell.n for cell in cells if cell.interval and cell.interval.method != "printed"}
            else:
                some = home.runs[home.runs["suite"].isin({home.suite_of(cell.name) for cell in cells})]
                chosen = some[some["arm"].isin([arm for arm in part.arms if arm != PLAIN] or [PLAIN])]
                rows += settings_of_rows(chosen if part.arms else some)
        if not rows:  # cells that are no suite of the study: their names say what they are of
            names = [cell.name for item in verdict.deciding for cell in item.cells if cell.interval is not None]
            return ", ".join(dict.fromkeys(name.partition(",")[0] for name in names if verdict.claim.kind == "runs"))
        text = setting_in_words(rows, verdict.claim.treatments)
        if not counts:
            return text
        least, most = min(counts), max(counts)
        return f"{text}; {least} seeds" if least == most else f"{text}; {least} to {most} seeds"

    def home(self, prediction: Prediction) -> Study:
        """The study whose runs judge a prediction of this one."""
        return self.others[prediction.runs_of] if prediction.runs_of else self

    def suite_of(self, cell: str) -> str:
        """The suite of a cell, which may have a detail behind it: "CoLA" of "CoLA, raw"; a cell of no suite itself."""
        names = [suite for suite in self.suites if cell == suite or cell.startswith(f"{suite},")]
        return max(names, key=len, default=cell)

    def _tested(self, prediction: Prediction) -> PredictionJudgement:
        suites = self._suites_of(prediction)
        evidence = prediction.evidence(self, suites)
        cells = [f"{suite}{detail}" for suite in suites for detail in prediction.details]
        if prediction.on == ():
            cells = list(dict.fromkeys(key[0] if isinstance(key, tuple) else key for key in evidence))
        treated = self.treated(prediction, cells)
        untestable = {name: cell for name in cells if (cell := self._untestable(prediction, name, treated.get(name)))}
        whole = verdicts.judge_prediction(prediction, evidence, cells, untestable)
        encoders: dict[str, list[str]] = {}
        for name, pairs in treated.items():
            encoders.setdefault(str(self.settings[pairs[0][0]]["model"]), []).append(name)
        if len(encoders) < 2:
            return replace(whole, by_encoder=dict.fromkeys(encoders, whole))
        parts = {it: verdicts.judge_prediction(prediction, evidence, some, untestable) for it, some in encoders.items()}
        return replace(whole, by_encoder=parts)

    def _suites_of(self, prediction: Prediction) -> Sequence[str]:
        """The suites of a prediction: each that it names, with whatever setting stands behind it.

        Where another encoder ran than the one that is named, the suites of the same task.
        """
        if not prediction.on:
            return self.suites
        chosen: list[str] = []
        for name in prediction.on:
            same = [suite for suite in self.suites if suite == name or suite.startswith(f"{name}, ")]
            task = name.partition(" (")[0]
            chosen += same or [suite for suite in self.suites if re.split(r" \(|, | with ", suite)[0] == task] or [name]
        return list(dict.fromkeys(chosen))

    def treated(self, prediction: Prediction, cells: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """The runs behind the cells of a prediction with a treatment, each with the one that it is compared with."""
        treatment = prediction.treatment
        return runs_of_cells(prediction.evidence, treatment, self.settings, cells) if treatment else {}

    def _untestable(
        self, prediction: Prediction, cell: str, pairs: Sequence[tuple[str, str]] | None
    ) -> JudgedCell | None:
        """The cell where a prediction can't tell: on a task that nothing learned, or of a method without a setting.

        A method that was tuned may have none; the setting of a treatment is given, and wasn't among what was tried.
        """
        if not prediction.trained:
            return None
        suites = dict.fromkeys(self.suite_by_run[run] for run, _ in pairs) if pairs else [self.suite_of(cell)]
        tuned = () if prediction.treatment else prediction.arms
        if broken := [arm for arm in tuned for suite in suites if (arm, suite) in self.no_setting]:
            return JudgedCell(cell, verdicts.NO_SETTING, Reason.UNTUNED, broken[0])
        reasons = [self.unlearned(suite) for suite in suites]
        why = reasons[0] if all(reasons) else None
        if prediction.treatment and pairs:
            why = why or self._untaught(prediction.treatment, pairs)
        return JudgedCell(cell, verdicts.NOT_TESTABLE, why) if why else None

    def _untaught(self, treatment: Treatment, pairs: Sequence[tuple[str, str]]) -> Reason | None:
        """Why the runs of a cell decide nothing: those at each setting, those that they are compared with, or plain
        ones that were trained alike, ended at the majority baseline in half of their number or more. Runs of another
        recipe may have learned.
        """
        settings: dict[tuple[str, ...], list[str]] = {}
        for run, _ in pairs:
            varied = tuple(canonical(self.settings[run].get(column)) for column in treatment.varied)
            settings.setdefault(varied, []).append(run)
        if self.collapsed(self.trained_alike([run for run, _ in pairs])):
            return Reason.UNTAUGHT
        if all(map(self.collapsed, settings.values())):
            return Reason.COLLAPSED
        return Reason.NOTHING_TO_LOSE if self.collapsed([base for _, base in pairs if base]) else None

    @cached_property
    def suite_by_run(self) -> dict[str, str]:
        """The suite of each run, by its id."""
        return dict(zip(self.settings, self.runs["suite"], strict=True))

    def trained_alike(self, runs: Iterable[str]) -> list[str]:
        """The plain runs that were trained as some runs were."""
        recipes = dict.fromkeys(training_of(self.settings[run]) for run in runs)
        return [run for recipe in recipes for run in self._plain.get(recipe, ())]

    @cached_property
    def _plain(self) -> dict[frozenset[tuple[str, str]], list[str]]:
        """The plain runs by how they were trained."""
        recipes: dict[frozenset[tuple[str, str]], list[str]] = {}
        for run, settings in self.settings.items():
            if settings.get("method.name", PLAIN) == PLAIN:
                recipes.setdefault(training_of(settings), []).append(run)
        return recipes

    def collapsed(self, runs: Collection[str]) -> bool:
        """Whether half or more of some runs ended at the majority baseline; of none, no."""
        return len(runs) > 0 and fmean(self.at_baseline[run] for run in runs) >= 0.5

    @cached_property
    def at_baseline(self) -> dict[str, bool]:
        """By run id whether a run ended at the majority baseline."""
        return dict(zip(self.settings, at_baseline(self.runs), strict=True))

    def _of(self, frame: pd.DataFrame, arm: str, suites: Sequence[str] | None) -> pd.DataFrame:
        chosen = frame[frame["arm"] == arm] if len(frame) else frame
        return chosen if suites is None or not len(chosen) else chosen[chosen["suite"].isin(list(suites))]

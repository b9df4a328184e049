"""One way from runs to an answer: the recorded and the live runs of a paper as one table, its claims judged on them."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pandas as pd

from isonb.errors import fail
from isonb.lab.runs.record import Record
from isonb.lab.runs.recordings import FOLDER, RecordedError
from isonb.lab.statistics.intervals import Interval
from isonb.lab.statistics.seeds import share, student
from isonb.lab.studies import designs
from isonb.lab.studies import verdicts as rules
from isonb.lab.studies.assembly import assemble
from isonb.lab.studies.competence import failed, lead
from isonb.lab.studies.design import PLAIN, Design, StudyError
from isonb.lab.studies.plan import PlannedCell, plan_of
from isonb.lab.studies.verdicts import LEVEL, NO_SETTING, NOT_TESTABLE, Cell, Claim, Judgement, Part, PartJudgement

__all__ = ["PLAIN", "STUDIES", "Design", "Study", "StudyError", "design_of", "tail_means"]

STUDIES = tuple(sorted(module.name for module in pkgutil.iter_modules(designs.__path__)))


@dataclass(frozen=True)
class Study:
    """A design with its runs.

    ``runs``: one row a run: the columns of the table of records and ``arm``, ``suite``, ``score`` (the task's main
    metric), ``majority`` (that metric of the majority baseline), ``failed`` (by
    :func:`~isonb.lab.studies.competence.failed`), ``source`` ("recorded" or "live"). ``series``: run_id, name, step,
    value, and suite, arm, seed. ``plan``: one row a run that the grid asks for: ``cell`` (what it asks for, in words),
    ``arm``, ``suite``, and the ``run_id`` of the recorded row that is it; none where no row is.
    """

    design: Design
    runs: pd.DataFrame
    series: pd.DataFrame
    plan: pd.DataFrame
    live_suites: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        name: str | Design,
        *,
        live: Mapping[str, Iterable[Record]] | None = None,
        folder: str | Path | None = None,
        grid: str | Path | None = None,
    ) -> Study:
        """The study ``name``, or of a design, with its recorded runs, and with ``live`` records by their suite.

        ``folder`` holds the recordings and ``grid`` the plan, by default those of the book. Raises
        :class:`StudyError` for a name that isn't one of :data:`STUDIES`, and what loading a recording raises.
        """
        design = name if isinstance(name, Design) else design_of(name)
        home = FOLDER if folder is None else Path(folder)
        return cls.of(design, plan_of(grid or design.grid or design.name, design.size), home, live or {})

    @classmethod
    def of(
        cls, design: Design, cells: Sequence[PlannedCell], folder: Path, live: Mapping[str, Iterable[Record]]
    ) -> Study:
        """The study of a design, the cells of a plan and a folder of recordings."""
        runs, series, plan = assemble(design, cells, folder, live)
        told = [failed(part) for _, part in runs.groupby("suite", sort=False)]
        runs = runs.assign(failed=pd.concat(told) if told else False)
        return cls(design, runs, series, plan, tuple(live))

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

    @property
    def in_order(self) -> pd.DataFrame:
        """The runs in the order of the plan, those that aren't in it last."""
        place = {run: at for at, run in enumerate(self.plan["run_id"])}
        return self.runs.sort_values("run_id", key=lambda ids: ids.map(place), kind="stable")

    def coverage(self) -> pd.DataFrame:
        """Recorded and planned runs: one row an arm, one column a suite, "3 of 5"; a dash where none is planned."""
        planned = Counter(zip(self.plan["arm"], self.plan["suite"], strict=True))
        there = Counter(zip(self.recorded["arm"], self.recorded["suite"], strict=True))
        return pd.DataFrame(
            [
                {"arm": arm}
                | {s: f"{there[arm, s]} of {planned[arm, s]}" if planned[arm, s] else "–" for s in self.suites}
                for arm in self.arms
            ]
        )

    def once(self, table: Callable[[Study], pd.DataFrame]) -> pd.DataFrame:
        """What ``table`` makes of this study, made when it is first asked for; not to be changed."""
        if table not in self._made:
            self._made[table] = table(self)
        return self._made[table]

    @cached_property
    def _made(self) -> dict[Callable[[Study], pd.DataFrame], pd.DataFrame]:
        return {}

    @property
    def recorded(self) -> pd.DataFrame:
        """The runs that were recorded."""
        return self.runs[self.runs["source"] == "recorded"]

    def units(
        self, column: str, arm: str, suites: Sequence[str] | None = None, cell: str = ""
    ) -> dict[tuple[str, int], float]:
        """One number a run of an arm, keyed by (cell, seed): a column of ``runs``. ``cell`` is put behind the suite."""
        if column not in self.runs:
            return {}
        part = self._of(self.runs[["arm", "suite", "seed", column]], arm, suites).dropna(subset=column)
        return {
            (f"{s}{cell}", int(k)): float(v) for s, k, v in zip(part["suite"], part["seed"], part[column], strict=True)
        }

    def logged(self, name: str, arm: str, suites: Sequence[str] | None = None) -> pd.DataFrame:
        """The series ``name`` of an arm's runs: run_id, step, value, suite, seed."""
        return self._of(self.series[self.series["name"] == name], arm, suites)

    def first(
        self, name: str, arm: str, suites: Sequence[str] | None = None, cell: str = ""
    ) -> dict[tuple[str, int], float]:
        """The first value of a series, one a run."""
        return _keyed(self.logged(name, arm, suites).sort_values("step").groupby("run_id").first(), cell)

    def tail(
        self, name: str, arm: str, suites: Sequence[str] | None = None, cell: str = "", share: float = 0.3
    ) -> dict[tuple[str, int], float]:
        """The mean of a series over the last ``share`` of the updates, one a run."""
        keys = self.runs[["run_id", "suite", "seed"]].set_index("run_id")
        found = self._tails(share)
        found = found[(found["name"] == name) & found["run_id"].isin(self._of(self.runs, arm, suites)["run_id"])]
        return _keyed(found.set_index("run_id").join(keys), cell)

    def tail_score(self, arm: str, suites: Sequence[str] | None = None) -> dict[tuple[str, int], float]:
        """The main metric on the watched rows over the last 30% of the updates, one a run."""
        found: dict[tuple[str, int], float] = {}
        for suite, metric in self.runs[["suite", "metric"]].drop_duplicates().itertuples(index=False):
            if suites is None or suite in suites:
                found |= self.tail(f"step.validation.{metric}", arm, [suite])
        return found

    def values(self, column: str = "score") -> pd.DataFrame:
        """A long table of one column: suite, arm, seed, source, value."""
        found = self.runs.dropna(subset=column)
        return (
            found[["suite", "arm", "seed", "source"]].assign(value=found[column].astype(float)).reset_index(drop=True)
        )

    def paired(
        self,
        column: str,
        arm: str,
        base: str = PLAIN,
        suites: Sequence[str] | None = None,
        *,
        alpha: float = 1 - LEVEL,
    ) -> pd.DataFrame:
        """What an arm changes against another at the same seed: suite, n, mean, low, high, visible; from 3 seeds on.

        ``visible`` is the minimum detectable effect of these seeds at ``alpha``, the level of the verdict.
        """
        rows = []
        changes = rules.difference(self.units(column, arm, suites), self.units(column, base, suites))
        for suite, values in rules.by_cell(changes).items():
            if len(values) >= rules.FEWEST:
                found = student(values)
                ends = (found.estimate, found.low, found.high, rules.smallest_visible(found, alpha))
                rows.append((suite, found.n, *ends))
        return pd.DataFrame(rows, columns=["suite", "n", "mean", "low", "high", "visible"])

    def failures(self, suites: Sequence[str] | None = None) -> pd.DataFrame:
        """How many runs failed: suite, arm, n, failed, share, and the exact 95% interval low to high of the share."""
        runs = self.runs.dropna(subset="score")
        runs = runs if suites is None else runs[runs["suite"].isin(list(suites))]
        rows = []
        for (suite, arm), part in runs.groupby(["suite", "arm"], sort=False):
            found = share(int(part["failed"].sum()), len(part))
            rows.append((suite, arm, found.n, int(part["failed"].sum()), found.estimate, found.low, found.high))
        return pd.DataFrame(rows, columns=["suite", "arm", "n", "failed", "share", "low", "high"])

    def lead(self, arm: str, suite: str) -> Interval | None:
        """How far an arm's mean score lies above the majority baseline; None without runs.

        The interval speaks of new seeds and new rows: :func:`isonb.lab.studies.competence.lead`.
        """
        return _lead(self._of(self.runs, arm, [suite]))

    def learned(self, suite: str) -> str:
        """Empty where some arm learned the task in most of its runs; otherwise why nothing can be said there."""
        return self._learned.get(suite, "no runs")

    @property
    def decisive(self) -> tuple[str, ...]:
        """The planned suites on which something learned, so that methods can be compared there."""
        return tuple(suite for suite in self.suites if not self.learned(suite))

    @cached_property
    def _learned(self) -> dict[str, str]:
        shares = self.failures().groupby("suite", sort=False)["share"].min()
        why = "nothing learned the task: each arm ends at the majority baseline in half of its runs or more"
        return {str(suite): why if least >= 0.5 else "" for suite, least in shares.items()}

    def verdicts(self, source: str = "recorded") -> list[Judgement]:
        """Every claim of the design, judged on the recorded or on the live runs."""
        if source not in ("recorded", "live"):
            fail(StudyError, "the source must be recorded or live", repr(source), "Choose one of these.")
        return [self._judged(claim, source) for claim in self.design.claims]

    def _judged(self, claim: Claim, source: str) -> Judgement:
        """Live runs are judged by the parts that speak of the study's own runs."""
        parts = [part for part in claim.parts if source == "recorded" or not part.runs_of]
        homes = [_borrowed(part.runs_of) if part.runs_of else self for part in parts]
        return rules.judge(claim, [home._part(part, source) for home, part in zip(homes, parts, strict=True)])

    def _part(self, part: Part, source: str) -> PartJudgement:
        suites = self.live_suites if source == "live" else part.on or self.suites
        evidence = part.evidence(self, suites)
        cells = [f"{suite}{detail}" for suite in suites for detail in part.details]
        if part.on == ():
            cells = list(dict.fromkeys(key[0] if isinstance(key, tuple) else key for key in evidence))
        return rules.judge_part(part, evidence, cells, lambda name: self._silent(part, name, source))

    def _silent(self, part: Part, cell: str, source: str) -> Cell | None:
        """The cell of a part that can't tell: of models that weren't taught, or a method without a working setting."""
        if not part.gated:
            return None
        if self.design.reservation and source == "recorded":
            return Cell(cell, NOT_TESTABLE, self.design.reservation)
        known = [s for s in (*self.suites, *self.live_suites) if cell == s or cell.startswith(f"{s},")]
        suite = max(known, key=len, default=cell)
        if broken := [arm for arm in part.arms if (arm, suite) in self._no_setting]:
            return Cell(cell, NO_SETTING, f"each setting of {broken[0]} that was tried ended at the majority baseline")
        why = self.learned(suite)
        return Cell(cell, NOT_TESTABLE, why) if why else None

    @cached_property
    def _no_setting(self) -> frozenset[tuple[str, str]]:
        return frozenset(self.design.no_setting())

    def _of(self, frame: pd.DataFrame, arm: str, suites: Sequence[str] | None) -> pd.DataFrame:
        chosen = frame[frame["arm"] == arm] if len(frame) else frame
        return chosen if suites is None or not len(chosen) else chosen[chosen["suite"].isin(list(suites))]

    @cached_property
    def _tail_cache(self) -> dict[float, pd.DataFrame]:
        return {}

    def _tails(self, share: float) -> pd.DataFrame:
        if share not in self._tail_cache:
            self._tail_cache[share] = tail_means(self.series[["run_id", "name", "step", "value"]], share)
        return self._tail_cache[share]


def design_of(name: str) -> Design:
    """The design of a study, by name; :class:`StudyError` names them all."""
    if name not in STUDIES:
        fail(StudyError, f"the study must be one of {', '.join(STUDIES)}", repr(name), "Choose one of these.")
    found: Design = importlib.import_module(f"{designs.__name__}.{name}").DESIGN
    return found


@cache
def _borrowed(name: str) -> Study:
    """A study whose runs judge claims of others."""
    return Study.load(name)


def _lead(runs: pd.DataFrame) -> Interval | None:
    """How far the mean score of these runs of one task lies above the majority baseline; None without runs."""
    runs = runs.dropna(subset=["score"])
    if runs.empty:
        return None
    base = float(runs["majority"].mean()) if runs["majority"].notna().any() else 0.0
    return lead(runs["score"].tolist(), base, runs["metric"].iloc[0], int(runs["rows"].iloc[0]))


def _keyed(frame: pd.DataFrame, cell: str) -> dict[tuple[str, int], float]:
    return {
        (f"{s}{cell}", int(k)): float(v) for s, k, v in zip(frame["suite"], frame["seed"], frame["value"], strict=True)
    }


def tail_means(series: pd.DataFrame, share: float = 0.3) -> pd.DataFrame:
    """The mean of each run's ``step.`` series over the last ``share`` of its updates: run_id, name, value.

    A value counts if its update lies above (1 - share) times the run's last one, whatever the series.
    """
    if not 0 < share <= 1:
        raise RecordedError(f"share must be in (0, 1]; got {share}. Pass 0.3 for the last 30%.")
    series = series[series["name"].str.startswith("step.")]
    last = series.groupby("run_id")["step"].transform("max")
    late = series[series["step"] > (1 - share) * last]
    return late.groupby(["run_id", "name"], as_index=False)["value"].mean()

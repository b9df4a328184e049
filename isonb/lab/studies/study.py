"""One way from runs to an answer: the recorded and the live runs of a paper as one table, its claims judged on them."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

import pandas as pd

from isonb.errors import fail
from isonb.lab.runs.record import Record
from isonb.lab.statistics.intervals import Interval
from isonb.lab.statistics.seeds import student
from isonb.lab.studies import designs
from isonb.lab.studies import verdicts as rules
from isonb.lab.studies.assembly import assemble
from isonb.lab.studies.competence import lead
from isonb.lab.studies.design import PLAIN, Design, StudyError
from isonb.lab.studies.recorded import FOLDER, tail_means
from isonb.lab.studies.verdicts import Claim, Judgement, Part, PartJudgement
from isonb.lab.sweeps.grids import Planned, load_grid

__all__ = ["PLAIN", "STUDIES", "Design", "Study", "StudyError", "design_of"]

STEADY = 3.0  # half-widths that the plain model must lead by
STUDIES = tuple(sorted(module.name for module in pkgutil.iter_modules(designs.__path__)))


@dataclass(frozen=True)
class Study:
    """A design with its runs.

    ``runs``: one row a run: the columns of the table of records and ``arm``, ``suite``, ``score`` (the task's main
    metric), ``majority`` (that metric of one answer for every example), ``source`` ("recorded" or "live"). ``series``:
    run_id, name, step, value, and suite, arm, seed. ``planned``: what the grid asks for.
    """

    design: Design
    runs: pd.DataFrame
    series: pd.DataFrame
    planned: Sequence[Planned]
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
        planned = load_grid(grid or design.grid or design.name, design.size)
        return cls.of(design, planned, home, live or {})

    @classmethod
    def of(
        cls, design: Design, planned: Sequence[Planned], folder: Path, live: Mapping[str, Iterable[Record]]
    ) -> Study:
        """The study of a design, a plan and a folder of recordings."""
        runs, series = assemble(design, planned, folder, live)
        return cls(design, runs, series, planned, tuple(live))

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that are planned, in the order of the grid."""
        return tuple(dict.fromkeys(suite for _, suite in self._places.values()))

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that are planned, in the order of the grid."""
        return tuple(dict.fromkeys(arm for arm, _ in self._places.values()))

    @cached_property
    def _places(self) -> dict[str, tuple[str, str]]:
        named = ((run.run_id, self.design.arm(run.config), self.design.suite_of(run.config)) for run in self.planned)
        return {run_id: (arm, suite) for run_id, arm, suite in named if arm is not None}

    @cached_property
    def absent(self) -> list[Planned]:
        """The planned runs that have no record."""
        there = set(self.runs["run_id"]) if len(self.runs) else set()
        return [run for run in self.planned if run.run_id not in there]

    def coverage(self) -> pd.DataFrame:
        """Recorded and planned runs: one row an arm, one column a suite, "3 of 5"; a dash where none is planned."""
        planned = Counter(self._places.values())
        there = Counter(self._places[run] for run in self.recorded["run_id"] if run in self._places)
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

    def paired(self, column: str, arm: str, base: str = PLAIN, suites: Sequence[str] | None = None) -> pd.DataFrame:
        """What an arm changes against another at the same seed: suite, n, mean, low, high, visible; from 3 seeds on.

        ``visible`` is the smallest true effect that these seeds would have shown in four of five repetitions.
        """
        rows = []
        changes = rules.difference(self.units(column, arm, suites), self.units(column, base, suites))
        for suite, values in rules.by_cell(changes).items():
            if len(values) >= rules.FEWEST:
                found = student(values)
                rows.append((suite, found.n, found.estimate, found.low, found.high, rules.smallest_visible(found)))
        return pd.DataFrame(rows, columns=["suite", "n", "mean", "low", "high", "visible"])

    def lead(self, arm: str, suite: str) -> Interval | None:
        """How far an arm's mean score lies above one answer for every example; None without runs.

        The interval speaks of new seeds and new rows: :func:`isonb.lab.studies.competence.lead`.
        """
        return _lead(self._of(self.runs, arm, [suite]))

    def learned(self, suite: str) -> str:
        """Empty where the plain model has learned its task; otherwise why it can't be said.

        It has where its lead over one answer for every example is :data:`STEADY` times half the lead's interval: with
        less, plain training fails on some seeds, and a method's gain is the luck of those.
        """
        return self._learned.get(suite, "no plain runs")

    @property
    def decisive(self) -> tuple[str, ...]:
        """The planned suites that the plain model has learned, so that gains and losses can be told there."""
        return tuple(suite for suite in self.suites if not self.learned(suite))

    @cached_property
    def _learned(self) -> dict[str, str]:
        leads = {str(suite): _lead(part) for suite, part in self.design.plain(self).groupby("suite", sort=False)}
        return {suite: _why_not(ahead) for suite, ahead in leads.items() if ahead is not None}

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
        named = [f"{suite}{detail}" for suite in suites for detail in part.details]
        cells = list(evidence) if part.on == () else named
        return rules.judge_part(part, evidence, cells, partial(_gate, self))

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


def _why_not(ahead: Interval) -> str:
    ends = f"{ahead.estimate:+.3f} [{ahead.low:+.3f}, {ahead.high:+.3f}]"
    if ahead.low <= 0:
        return f"the plain model is not clearly above one answer for every example, {ends}"
    steady = ahead.estimate >= STEADY * (ahead.high - ahead.estimate)
    return "" if steady else f"the plain model's lead over one answer for every example is too unsure, {ends}"


def _gate(study: Study, cell: str) -> str:
    """Why a cell can't tell gains: the design's reservation, or what :meth:`Study.learned` says of the cell's suite."""
    if study.design.reservation:
        return study.design.reservation
    known = [s for s in (*study.suites, *study.live_suites) if cell == s or cell.startswith(f"{s},")]
    return study.learned(max(known, key=len, default=cell))


def _lead(runs: pd.DataFrame) -> Interval | None:
    """How far the mean score of these runs of one task lies above one answer for every example; None without runs."""
    runs = runs.dropna(subset=["score"])
    if runs.empty:
        return None
    base = float(runs["majority"].mean()) if runs["majority"].notna().any() else 0.0
    return lead(runs["score"].tolist(), base, runs["metric"].iloc[0], int(runs["rows"].iloc[0]))


def _keyed(frame: pd.DataFrame, cell: str) -> dict[tuple[str, int], float]:
    return {
        (f"{s}{cell}", int(k)): float(v) for s, k, v in zip(frame["suite"], frame["seed"], frame["value"], strict=True)
    }

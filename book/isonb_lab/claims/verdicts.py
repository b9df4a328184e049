"""Claims of the papers and what runs say of them: judged in one way for every paper.

A claim makes predictions; a prediction says on which side of a border the mean of a number lies, over several cells
(tasks, say). A cell is shown as what it is; the verdict is of the mean over the cells: its 95% interval lies wholly in
the claimed range (supported), wholly on the other side (contradicted), or neither (inconclusive). No single cell may
carry it: the mean must lie there whichever cell is left out. Cells that all lie on one side by themselves agree, too.
Where some cells lie on one side and some on the other, no mean speaks for them: the answer *depends on* what the cells
differ in. A claim can't be tested where there are fewer than three seeds, or where nothing learned its task.

A claim speaks of a treatment: weights, layers, a head, tasks. Runs that have it support or contradict the claim. Where
there are none, runs at another setting say whether the effect was *seen here* or *not seen here*; they contradict
nothing, and what they leave open is *not tested at its setting*.

Cells that share seeds have the mean of their seeds' means, with Student's interval: it speaks of new seeds in these
cells. Others have the mean of random effects, which speaks of cells like these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from scipy import stats as scipy_stats

from isonb.errors import InputError, fail
from isonb_lab.claims.treatment import Treatment
from isonb_lab.statistics.resampling import bootstrap
from isonb_lab.statistics.seeds import (
    DIGITS,
    LEVEL,
    POWER,
    STUDENTS,
    Interval,
    at_level,
    constant,
    finite,
    holm,
    minimum_detectable,
    random_effects,
    standard_error,
    student,
    upper_tail,
)

OUTCOMES = SUPPORTED, CONTRADICTED, DEPENDS, OBSERVED, NOT_OBSERVED, INCONCLUSIVE, UNTESTED, NOT_TESTABLE = (
    "supported",
    "contradicted",
    "depends",
    "seen here",
    "not seen here",
    "inconclusive",
    "not tested at its setting",
    "not testable",
)
# What runs at another setting than the claim's say of it.
ELSEWHERE = {
    SUPPORTED: OBSERVED,
    CONTRADICTED: NOT_OBSERVED,
    INCONCLUSIVE: UNTESTED,
    NOT_TESTABLE: UNTESTED,
    DEPENDS: DEPENDS,
}
NO_SETTING = "no working setting"  # of a cell: every setting that was tried failed there
UNTESTABLE = (NOT_TESTABLE, NO_SETTING)  # cells that say nothing about a claim
DIRECTIONS = ("greater", "less", "at least", "at most", "equal")
KINDS = ("runs", "identity", "printed")
DECIDERS = ("mean", "all", "most", "agree")
FEWEST = 3  # seeds
MANY = 20  # seeds from which the expanded bootstrap decides; below, Student's interval

Units: TypeAlias = Mapping[tuple[str, int], float]
Evidence: TypeAlias = "Units | Mapping[str, Sequence[float] | Interval]"
# A column of the runs, or what ``value(study, run_ids)`` says, by run; or several of these by the detail of a cell.
Value: TypeAlias = "str | Callable[[Any, Sequence[str]], Mapping[str, float]]"
Values: TypeAlias = "Value | Mapping[str, Value]"


class ClaimError(InputError):
    """A claim that says nothing, or numbers that it can't be judged by."""


class Reason(StrEnum):
    """Why a cell has its outcome; the text is what a table says, with the cell's numbers in the braces."""

    CLAIMED = "{ends} lies on the claimed side of {about}"
    OTHER = "{ends} lies on the other side of {about}"
    NEGLIGIBLE = "{ends} is negligible: it lies within {about} of 0"
    BOTH = "{ends} lies on both sides of {about}"
    NO_RUNS = "no runs"
    FEW = f"replicates: {{n}}; at least {FEWEST} are needed"
    SAME = "all {n} values are {about}: the seeds varied nothing"
    UNLEARNED = "nothing learned the task: half of the runs of each arm or more failed"
    UNTAUGHT = "plain training, as these runs were trained, ends at the majority baseline in half of its runs or more"
    COLLAPSED = "the method, at this setting, ends at the majority baseline in half of its runs or more"
    NOTHING_TO_LOSE = "what it is compared with ends at the majority baseline in half of its runs or more"
    UNTUNED = "each setting of {about} that was tried failed"


@dataclass(frozen=True)
class JudgedCell:
    """What the runs say in one cell.

    ``reason``: why it has its outcome; ``about``: the border, value or arm that the reason names. ``mde`` is the
    minimum detectable effect: the smallest true distance from the border that so many seeds of this spread would show
    in four of five repetitions. ``p_opposite``: the one-sided p-value of lying on the other side.
    """

    name: str
    outcome: str
    reason: Reason
    about: str = ""
    n: int = 0
    interval: Interval | None = None
    mde: float | None = None
    p_opposite: float = 1.0

    @property
    def explanation(self) -> str:
        """The reason as a table says it."""
        interval = self.interval
        ends = "" if interval is None else f"{interval.level:.0%} interval [{interval.low:.4g}, {interval.high:.4g}]"
        return str(self.reason).format(ends=ends, about=self.about, n=self.n)


def less(column: str, other: str) -> Value:
    """A column of the runs less another one of the same run."""
    return lambda study, runs: dict((study.numbers(column, runs) - study.numbers(other, runs)).dropna())


def tail(name: str) -> Value:
    """The mean of a series over the last 30% of the updates."""
    return lambda study, runs: study.tails(name, runs)


@dataclass(frozen=True)
class Change:
    """Evidence: a value of the runs of ``arm`` less that of ``base``, seed by seed; without a base the value itself."""

    value: Values = field(hash=False)
    arm: str
    base: str = "none"

    def __call__(self, study: Any, suites: Sequence[str]) -> Units:
        """One number a cell and seed, of the seeds that both arms have."""
        arm, *base = (
            {
                unit: number
                for detail, value in by_detail(self.value).items()
                for unit, number in study.units(value, arm, suites, detail).items()
            }
            for arm in (self.arm, self.base)
            if arm
        )
        return difference(arm, *base) if base else arm


def by_detail(values: Values) -> Mapping[str, Value]:
    """Values by the detail of a cell; of a single one it is empty."""
    return values if isinstance(values, Mapping) else {"": values}


@dataclass(frozen=True)
class Prediction:
    """``what`` lies in a range, over the cells.

    Args:
        what: the number, in words.
        evidence: ``evidence(study, suites)`` gives one number a cell and seed, or an interval a cell.
        direction: "greater" (above ``margin``), "less" (below -margin), "at least" (above -margin), "at most" (below
            margin), "equal" (between -margin and margin).
        margin: the smallest difference that counts. A "greater" that is clear but within the margin is neither
            supported nor contradicted: it is negligible.
        details: a cell is a suite with one of them behind it ("CoLA, raw").
        trained: it speaks of trained models, so a suite counts only where something learned its task.
        decided_by: the "mean" over cells; "all" cells must hold (identities), "most" (counted cells), or they must
            "agree": each lies on the same side by itself.
        on: the suites that the claim speaks of; all by default. With none, ``()``, the keys of the evidence are cells.
        runs_of: the study whose recorded runs judge it, where it isn't the claim's own.
        depends: what the cells differ in, for a claim that holds in some and fails in others.
        arms: the arms whose runs are compared; a cell where one of them has no working setting says nothing.
        needs: what it would take to decide it, where more runs of the same settings wouldn't.
        expected_effect: of "greater" and "less", what the claim is about: an interval without room for it contradicts.
            At the claim's own ``treatment`` one on the claimed side supports all the same, as ``own_cells_plan.md`` has
            it.
        ranks: the numbers are of ranks, which have few values: the same at each seed is agreement.
        treatment: of the claim, which all runs of ``evidence`` have. None in a claim whose other predictions have one:
            the runs have another setting.
    """

    what: str
    evidence: Callable[[Any, Sequence[str]], Evidence]
    direction: str = "less"
    margin: float = 0.0
    details: tuple[str, ...] = ("",)
    trained: bool = False
    decided_by: str = "mean"
    on: tuple[str, ...] | None = None
    runs_of: str = ""
    depends: str = "the task"
    arms: tuple[str, ...] = ()
    needs: str = ""
    expected_effect: float = 0.0
    ranks: bool = False
    treatment: Treatment | None = None

    def __post_init__(self) -> None:
        _one_of("direction", self.direction, DIRECTIONS)
        _one_of("decided_by", self.decided_by, DECIDERS)
        if not 0 <= self.margin < math.inf or (self.direction == "equal" and self.margin == 0):
            fix = "Pass the smallest difference that counts."
            fail(ClaimError, 'the margin must be >= 0, for "equal" above 0', self.margin, fix)

    @property
    def claimed(self) -> tuple[float, float]:
        """The range in which the mean should lie."""
        m = self.margin
        return {
            "greater": (m, math.inf),
            "less": (-math.inf, -m),
            "at least": (-m, math.inf),
            "at most": (-math.inf, m),
            "equal": (-m, m),
        }[self.direction]

    @property
    def tolerated(self) -> tuple[float, float]:
        """The range outside of which the claim is contradicted: a negligible effect doesn't contradict a direction."""
        low, high = self.claimed
        sides = {"greater": (self.expected_effect, high), "less": (low, -self.expected_effect)}
        return sides.get(self.direction, (low, high))

    def shown(self, interval: Interval) -> Interval:
        """An interval as a reader sees it: of correlations it ends at -1 and 1, though its whole width is tested."""
        return replace(interval, low=max(interval.low, -1.0), high=min(interval.high, 1.0)) if self.ranks else interval


@dataclass(frozen=True)
class Claim:
    """A numbered claim of a paper. ``kind``: judged on "runs", an "identity" of mathematics, or "printed" numbers.

    ``premise``: what the claim takes for granted. Where runs with its treatment don't show that, it says nothing.
    """

    number: int | str  # the papers' are numbered; the contradictions have names
    statement: str
    predictions: tuple[Prediction, ...]
    kind: str = "runs"
    remark: str = ""  # why it can't be tested here, or how it is judged
    needs: str = ""  # what it would take to test it
    premise: tuple[Prediction, ...] = ()

    @property
    def treatments(self) -> tuple[Treatment, ...]:
        """Those of its predictions, and of what these compare them with."""
        parts = [item for item in (*self.premise, *self.predictions) if item.treatment]
        every = [item.treatment for item in parts] + [getattr(item.evidence, "base", None) for item in parts]
        return tuple(item for item in every if item)

    def __post_init__(self) -> None:
        _one_of("kind", self.kind, KINDS)


def claim(number: int | str, statement: str, *predictions: Prediction, **more: Any) -> Claim:
    """A claim and what it predicts; ``more``: the other fields of :class:`Claim`."""
    return Claim(number, statement, predictions, **more)


def _one_of(name: str, value: str, names: Sequence[str]) -> None:
    if value not in names:
        fail(ClaimError, f"{name} must be one of {', '.join(names)}", repr(value), "Choose one of these.")


@dataclass(frozen=True)
class PredictionJudgement:
    """The outcome of one prediction, and its cells.

    ``mean``: over the cells that can tell, with its interval. ``mde``: the minimum detectable effect of that mean.
    ``without``: the means with one cell left out, of a prediction that the mean decides. ``by_encoder``: the same
    prediction judged in the cells of one encoder alone, where runs have a claim's treatment.
    """

    prediction: Prediction
    outcome: str
    cells: tuple[JudgedCell, ...]
    mean: Interval | None = None
    mde: float | None = None
    p_opposite: float = 1.0
    without: tuple[Interval, ...] = ()
    by_encoder: Mapping[str, PredictionJudgement] = field(default_factory=dict, hash=False)

    @property
    def ends(self) -> tuple[float, float, float]:
        """The mean with the ends of its interval; NaN where no cell can tell."""
        return (math.nan, math.nan, math.nan) if self.mean is None else self.prediction.shown(self.mean).ends


@dataclass(frozen=True)
class Judgement:
    """The outcome of a claim, and those of its predictions.

    ``deciding``: those that gave it: of runs with the claim's treatment, or where there are none, of all others.
    ``setting``: of the runs behind these, in words.
    """

    claim: Claim
    outcome: str
    predictions: tuple[PredictionJudgement, ...] = ()
    deciding: tuple[PredictionJudgement, ...] = ()
    setting: str = ""

    @property
    def cells(self) -> tuple[JudgedCell, ...]:
        """The cells of all predictions."""
        return tuple(cell for prediction in self.predictions for cell in prediction.cells)

    @property
    def by_encoder(self) -> dict[str, str]:
        """The outcome with each encoder alone, where several have runs with the claim's treatment; else nothing.

        A premise is asked of all of them together.
        """
        encoders = dict.fromkeys(name for part in self.deciding for name in part.by_encoder)
        if len(encoders) < 2 or self.outcome == NOT_TESTABLE:
            return {}
        return {
            name: together([part.by_encoder.get(name) or replace(part, outcome=NOT_TESTABLE) for part in self.deciding])
            for name in encoders
        }

    def outcome_of(self, part: PredictionJudgement, outcome: str = "") -> str:
        """An outcome of a prediction, or of one of its cells: of runs at another setting it was seen here, or not."""
        outcome = outcome or part.outcome
        elsewhere = self.claim.treatments and not part.prediction.treatment
        return ELSEWHERE[outcome] if elsewhere and outcome in (SUPPORTED, CONTRADICTED) else outcome

    @property
    def decided(self) -> bool:
        """Whether runs with the claim's treatment settle it."""
        at_setting = not self.claim.treatments or any(item.prediction.treatment for item in self.deciding)
        return at_setting and self.outcome in (SUPPORTED, CONTRADICTED, DEPENDS)

    @property
    def label(self) -> str:
        """The outcome in words: "depends on the encoder" names what on."""
        if self.outcome != DEPENDS:
            return self.outcome
        on = dict.fromkeys(item.prediction.depends for item in self.deciding if item.outcome == DEPENDS)
        return f"{DEPENDS} on {' and '.join(on)}"


def difference(a: Units, b: Units) -> dict[tuple[str, int], float]:
    """Subtract b from a for the units that both have, to 12 digits: what a method changed, run by run.

    >>> difference({("cola", 0): 0.5, ("cola", 1): 0.25}, {("cola", 0): 0.25})
    {('cola', 0): 0.25}
    """
    return {unit: round(a[unit] - b[unit], DIGITS) for unit in sorted(set(a) & set(b))}


def by_cell(units: Units) -> dict[str, list[float]]:
    """The numbers of each cell, in the order of their seeds.

    >>> by_cell({("cola", 1): 0.5, ("cola", 0): 0.25})
    {'cola': [0.25, 0.5]}
    """
    cells: dict[str, list[float]] = {}
    for (cell, _), value in sorted(units.items()):
        cells.setdefault(cell, []).append(value)
    return cells


def smallest_visible(interval: Interval, alpha: float = 1 - LEVEL) -> float:
    """The minimum detectable effect behind an interval: shown at ``alpha`` in four of five repetitions.

    ``alpha`` is the level at which the verdict is given: of one test, or in a family of m tests alpha / m, the step of
    Holm's method that a first rejection needs. Where Student's law is behind it by
    :func:`~isonb_lab.statistics.seeds.minimum_detectable`; for others by the normal law.

    >>> round(smallest_visible(Interval(0.0, -1.96, 1.96, 0.95, 1000, "percentile")), 2)
    2.8
    """
    error = standard_error(interval)
    if interval.method in STUDENTS:
        return minimum_detectable(error * math.sqrt(interval.n), interval.n, alpha=alpha)
    return float(error * (scipy_stats.norm.ppf(1 - alpha / 2) + scipy_stats.norm.ppf(POWER)))


def judge_cell(prediction: Prediction, name: str, evidence: Sequence[float] | Interval | None) -> JudgedCell:
    """The outcome of one cell, from one number a seed or from an interval.

    >>> gain = Prediction("gain", lambda study, suites: {}, "greater")
    >>> judge_cell(gain, "cola", [0.1, 0.12, 0.14]).outcome, judge_cell(gain, "cola", [0.1, -0.2, 0.14]).outcome
    ('supported', 'inconclusive')
    >>> judge_cell(gain, "cola", [-0.1, -0.12, -0.14]).outcome, judge_cell(gain, "cola", [0.1]).outcome
    ('contradicted', 'not testable')
    """
    if isinstance(evidence, Interval):
        return _placed(prediction, name, evidence)
    values = finite([] if evidence is None else list(evidence), "values", 0)
    if len(values) < FEWEST:
        return JudgedCell(name, NOT_TESTABLE, Reason.FEW if len(values) else Reason.NO_RUNS, n=len(values))
    if constant(values) and not prediction.ranks:
        return JudgedCell(name, NOT_TESTABLE, Reason.SAME, f"{values[0]:.4g}", len(values))
    interval = student(values, level=LEVEL) if len(values) < MANY else bootstrap(values, level=LEVEL)
    return _placed(prediction, name, interval)


def judge_prediction(
    prediction: Prediction, evidence: Evidence, cells: Iterable[str], untestable: Mapping[str, JudgedCell]
) -> PredictionJudgement:
    """Judge one prediction in ``cells``. ``untestable``: by name the cells that can't tell."""
    units: dict[Any, Any] = {key: value for key, value in evidence.items() if isinstance(key, tuple)}
    by_name: Mapping[Any, Any] = by_cell(units) if units else evidence
    judged = [untestable.get(name) or judge_cell(prediction, name, by_name.get(name)) for name in cells]
    informative = [cell for cell in judged if cell.outcome not in UNTESTABLE]
    if not informative:
        return PredictionJudgement(prediction, NOT_TESTABLE, tuple(judged))
    mean = _over(informative, units)
    whole = _placed(prediction, "", mean)
    outcomes = [cell.outcome for cell in informative]
    p_opposite = min(holm({cell.name: cell.p_opposite for cell in informative}).values())
    without: tuple[Interval, ...] = ()
    if prediction.decided_by == "mean":
        if len(informative) > 1:
            without = tuple(
                _over([cell for cell in informative if cell is not omitted], units) for omitted in informative
            )
        outcome = _decided(prediction, informative, without, whole)
        # as the outcome: by the mean, or by every cell by itself
        surest = min(whole.p_opposite, max(cell.p_opposite for cell in informative))
        p_opposite = surest if outcome == CONTRADICTED else 1.0
    elif prediction.decided_by == "agree":
        outcome = outcomes[0] if len(set(outcomes)) == 1 else INCONCLUSIVE
        outcome = DEPENDS if _two_sided(prediction, informative) else outcome
        p_opposite = max(cell.p_opposite for cell in informative) if outcome == CONTRADICTED else 1.0
    elif prediction.decided_by == "all":
        every = set(outcomes) == {SUPPORTED}
        outcome = CONTRADICTED if p_opposite <= (1 - LEVEL) / 2 else SUPPORTED if every else INCONCLUSIVE
    else:
        most = (item for item in (SUPPORTED, CONTRADICTED) if 2 * outcomes.count(item) > len(outcomes))
        outcome = next(most, INCONCLUSIVE)
        p_opposite = float(outcome != CONTRADICTED)
    return PredictionJudgement(prediction, outcome, tuple(judged), mean, whole.mde, p_opposite, without)


def _decided(
    prediction: Prediction, informative: Sequence[JudgedCell], without: Sequence[Interval], whole: JudgedCell
) -> str:
    """What the mean over cells says, if it says so whichever cell is left out; or what all cells say by themselves."""
    outcomes = {cell.outcome for cell in informative}
    if prediction.direction != "equal" and _two_sided(prediction, informative):
        return DEPENDS  # "equal" has no sides: what is small in one cell and large in another is an effect
    if len(informative) == 1 or outcomes in ({SUPPORTED}, {CONTRADICTED}):
        return informative[0].outcome
    stands = all(_placed(prediction, "", mean).outcome == whole.outcome for mean in without)
    return whole.outcome if stands else INCONCLUSIVE


def _two_sided(prediction: Prediction, cells: Sequence[JudgedCell]) -> bool:
    """Whether some cells lie on one side and some on the other, with intervals that hold for all cells at once."""
    level = 1 - (1 - LEVEL) / len(cells)
    outcomes = {_placed(prediction, "", at_level(cell.interval, level)).outcome for cell in cells if cell.interval}
    return {SUPPORTED, CONTRADICTED} <= outcomes


def judge(
    claim: Claim, predictions: Sequence[PredictionJudgement], premise: Sequence[PredictionJudgement] = ()
) -> Judgement:
    """The outcome of a claim, by the runs that have its treatment; else what was seen at other settings.

    These runs decide where each prediction has some, or where one contradicts the claim. A prediction that ``needs``
    what isn't here doesn't wait for it: the others decide, but can't support the claim alone. A claim whose ``premise``
    they don't show isn't testable: there is no gain that could be lost.
    """
    every = (*premise, *predictions)
    bound = [item for item in predictions if item.prediction.treatment] if claim.treatments else list(predictions)
    outcome = together(bound)
    missing = [item for item in bound if item.outcome == NOT_TESTABLE and not item.prediction.needs]
    if not claim.treatments or outcome == CONTRADICTED or (outcome != NOT_TESTABLE and not missing):
        shown = all(item.outcome == SUPPORTED for item in premise)
        return Judgement(claim, outcome if shown else NOT_TESTABLE, every, tuple(bound))
    rest = [item for item in predictions if not item.prediction.treatment]
    outcome = together(rest)
    deciding = [item for item in rest if item.outcome == outcome] if outcome in (CONTRADICTED, DEPENDS) else rest
    return Judgement(claim, ELSEWHERE[outcome], every, tuple(deciding))


def together(predictions: Sequence[PredictionJudgement]) -> str:
    """What predictions say together: contradicted if one is, supported if each is, not testable without a test.

    A claim holds only if all its predictions hold, so each may contradict it; their p-values are adjusted by Holm's
    method first. What depends on something in a prediction does so in the claim. Predictions that differ otherwise
    leave it inconclusive: what can be tested doesn't settle it.
    """
    outcomes = [item.outcome for item in predictions]
    p_values = {f"{k}": item.p_opposite for k, item in enumerate(predictions) if item.outcome != NOT_TESTABLE}
    adjusted = holm(p_values) if p_values else {}
    if any(predictions[int(k)].outcome == CONTRADICTED and p <= (1 - LEVEL) / 2 for k, p in adjusted.items()):
        return CONTRADICTED
    if DEPENDS in outcomes:
        return DEPENDS
    if not p_values:
        return NOT_TESTABLE
    return SUPPORTED if all(item == SUPPORTED for item in outcomes) else INCONCLUSIVE


def _over(informative: Sequence[JudgedCell], units: Units) -> Interval:
    """The mean over cells: of the seeds that all have, or of random effects where cells share fewer than three."""
    if len(informative) == 1 and informative[0].interval is not None:
        return informative[0].interval
    seeds = [{seed for name, seed in units if name == cell.name} for cell in informative]
    common = sorted(set.intersection(*seeds))
    means = [float(np.mean([units[cell.name, seed] for cell in informative])) for seed in common]
    if len(means) >= FEWEST and not constant(np.array(means)):
        return student(means, level=LEVEL)
    return random_effects([cell.interval for cell in informative if cell.interval is not None], level=LEVEL)


def _placed(prediction: Prediction, name: str, interval: Interval) -> JudgedCell:
    """The cell of an interval: on the claimed side, on the other, or neither."""
    (low, high), (least, most) = prediction.claimed, prediction.tolerated
    margin = prediction.margin
    border, edge = (
        " and ".join(f"{end + 0.0:.4g}" for end in ends if math.isfinite(end))  # a border of -0 is 0
        for ends in (prediction.claimed, prediction.tolerated)
    )
    claimed = low < interval.low and interval.high < high
    too_small = interval.low > most or interval.high < least  # or clear, but smaller than the expected effect
    if too_small and not (claimed and prediction.treatment):
        outcome, reason, about = CONTRADICTED, Reason.OTHER, edge
    elif claimed:
        outcome, reason, about = SUPPORTED, Reason.CLAIMED, border
    elif margin and -margin <= interval.low and interval.high <= margin:
        outcome, reason, about = INCONCLUSIVE, Reason.NEGLIGIBLE, f"{margin:g}"
    else:
        outcome, reason, about = INCONCLUSIVE, Reason.BOTH, border
    # the one-sided p-value of lying beyond the nearer end
    error, gaps = standard_error(interval), [interval.estimate - most, least - interval.estimate]
    beyond = [upper_tail(interval, gap / error) if error else float(gap <= 0) for gap in gaps if math.isfinite(gap)]
    p_opposite = min(beyond)
    return JudgedCell(name, outcome, reason, about, interval.n, interval, smallest_visible(interval), p_opposite)

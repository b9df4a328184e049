"""What would decide the claims that are open: seeds, runs and hours, by the spread and times of the runs there are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import fmean, stdev
from typing import Any

from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import WATCHED, Treated, unordered
from isonb_lab.claims.verdicts import (
    INCONCLUSIVE,
    NOT_OBSERVED,
    NOT_TESTABLE,
    OBSERVED,
    SUPPORTED,
    UNTESTABLE,
    UNTESTED,
    Change,
    Claim,
    Judgement,
    Prediction,
    PredictionJudgement,
    by_cell,
)
from isonb_lab.statistics.paired import seeds_needed
from isonb_lab.statistics.seeds import Interval, minimum_detectable, standard_error

from .arms import TRAINED
from .prices import cost

OPEN = (INCONCLUSIVE, NOT_TESTABLE)
ELSEWHERE = (OBSERVED, NOT_OBSERVED, UNTESTED)  # judged by no run at the paper's setting
FIRST_THAT = "first what it takes for granted: "  # of a claim whose premise is not shown
ARMS = 2  # whose difference is read
MOST = 1000  # replicates; a mean that would need more is as good as on the border
FIRST = 5  # seeds whose spread says how many the printed effect takes, as own_cells_plan.md has it
REPLICATES = {"student": "seeds", "expanded": "seeds", "random effects": "tasks"}  # what a mean is taken over


def distance(prediction: Prediction, mean: Interval) -> float:
    """How far a mean lies from the border at which it would decide: of two borders the farther one.

    >>> gain = Prediction("gain", lambda study, suites: {}, "greater", expected_effect=0.01)
    >>> round(distance(gain, Interval(0.002, -0.01, 0.014, 0.95, 5, "student")), 3)
    0.008
    """
    (low, high), (least, most) = prediction.claimed, prediction.tolerated
    supports = min(mean.estimate - low, high - mean.estimate)
    contradicts = max(least - mean.estimate, mean.estimate - most)
    return max(supports, contradicts, 0.0)


def needs(study: Study, judged: Sequence[Judgement]) -> list[dict[str, Any]]:
    """One row a claim about methods that is open: ``claim``, ``what``, ``runs`` and ``hours`` of one core.

    ``what`` has the number of seeds, or of tasks, with which a mean over the cells would decide in four of five
    repetitions, whichever cell is left out, if means and spreads stay what they are; or what is needed where no such
    number would do. The runs are those that aren't recorded yet; one that several parts or cells share counts once.
    """
    rows = []
    for item in judged:
        if item.claim.kind == "runs" and item.outcome in ELSEWHERE:
            rows.append({"claim": item.claim.number, **at_its_setting(study, item.claim)})
        if item.claim.kind == "runs" and item.outcome in OPEN:
            premise = [part for part in item.predictions[: len(item.claim.premise)] if part.outcome != SUPPORTED]
            parts = [_needed(study, part) for part in premise or item.deciding if part.outcome in OPEN]
            closed = [f"{part.prediction.what} ({part.outcome})" for part in premise if part.outcome not in OPEN]
            needed = dict.fromkeys([item.claim.needs, *(what for what, _ in parts), *closed])
            most: dict[Hashable, tuple[int, float]] = {}
            for _, missing in parts:
                most |= {arm: max(cost, most.get(arm, cost)) for arm, cost in missing.items()}
            runs, hours = sum(n for n, _ in most.values()), sum(n * seconds for n, seconds in most.values()) / 3600
            what = FIRST_THAT * bool(premise) + "; ".join(filter(None, needed))
            rows.append({"claim": item.claim.number, "what": what, "runs": runs or None, "hours": hours or None})
    return rows


def for_printed_effects(study: Study, judged: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Of open claims about an effect that is printed, a row a cell: spread, seeds run and seeds that it would take.

    Power 0.8, level 0.05, by the spread of the first five seeds: ``own_cells_plan.md``, "Seeds and margins".
    """
    rows = []
    for item in judged:
        parts = item.deciding if item.claim.kind == "runs" and item.outcome in OPEN else ()
        for part in parts:
            prediction, home = part.prediction, study.home(part.prediction)
            if not (prediction.treatment and prediction.expected_effect):
                continue
            units: Any = prediction.evidence(home, home.suites)
            values = by_cell(units)
            for cell in part.cells:
                if cell.outcome not in UNTESTABLE:
                    spread = stdev(values[cell.name][:FIRST])
                    row = {"claim": item.claim.number, "what": prediction.what, "cell": cell.name}
                    needed = seeds_needed(spread, prediction.expected_effect)
                    rows.append({**row, "spread": spread, "seeds": cell.n, "needed": needed})
    return rows


def at_its_setting(study: Study, claim: Claim) -> dict[str, Any]:
    """What, runs and hours: the planned runs that have a claim's treatment and no record yet."""
    pool = next((treatment for name, treatment in study.others.items() if name == TRAINED), None)
    recorded = set() if pool is None else set(pool.runs["run_id"])
    left = cost(lambda run: any(treatment.has(run) for treatment in claim.treatments), recorded)
    if left is None:
        return {"what": claim.needs or "a grid at its setting", "runs": None, "hours": None}
    return {"what": "runs at its paper's setting, as planned", "runs": left.runs, "hours": left.cpu_hours}


def _needed(study: Study, part: PredictionJudgement) -> tuple[str, dict[Hashable, tuple[int, float]]]:
    """What one part needs, in words, with the runs that each arm lacks and the seconds of one."""
    if part.mean is None:
        return part.prediction.needs or "runs where there are none yet", {}
    prediction, home = part.prediction, study.home(part.prediction)
    means = [mean for mean in (part.mean, *part.without) if mean.method == part.mean.method]
    if prediction.decided_by == "agree":  # each cell by itself
        means = [cell.interval for cell in part.cells if cell.interval]
    counts = [_replicates(prediction, mean) for mean in means]
    if not all(counts):
        moving = prediction.margin and prediction.direction in ("greater", "less")
        setting = f"a setting that moves it by more than {prediction.margin:g}" if moving else "another setting"
        return f"{setting}: {prediction.what}", {}
    count, unit = max(counts), REPLICATES[means[0].method]
    seconds = home.runs.groupby("suite")["manifest.seconds"].median()
    cells = [cell for cell in part.cells if cell.outcome not in UNTESTABLE]
    if unit == "seeds":
        arms = _arms(home, part)
        lacking = {arm: (max(count - n, 0), float(seconds[suite])) for arm, (suite, n) in arms.items()}
    else:  # tasks like these: with as many runs as the cells have on average
        over_runs = all(cell.interval is not None and cell.interval.method == "percentile" for cell in cells)
        each = fmean(float(seconds[home.suite_of(cell.name)]) for cell in cells)
        new = round(max(count - len(cells), 0) * fmean(cell.n for cell in cells))
        lacking = {("new tasks", k): (new, each) for k in range(1 if over_runs else ARMS)}
    return f"{count} {unit}: {prediction.what}", lacking


def _arms(home: Study, part: PredictionJudgement) -> dict[Hashable, tuple[str, int]]:
    """The arms behind a part's cells that tell, each once: its suite, and how many seeds it has."""
    cells = {cell.name: cell.n for cell in part.cells if cell.outcome not in UNTESTABLE}
    evidence = part.prediction.evidence
    if isinstance(evidence, Change):
        names = [(home.suite_of(cell), n) for cell, n in cells.items()]
        return {(suite, arm): (suite, n) for suite, n in names for arm in (evidence.arm, evidence.base) if arm}
    if not part.prediction.treatment:
        return {(cell, k): (home.suite_of(cell), n) for cell, n in cells.items() for k in range(ARMS)}
    arms: dict[Hashable, tuple[str, set[int]]] = {}
    for pairs in home.treated(part.prediction, list(cells)).values():
        treated, base = zip(*pairs, strict=True)
        others = base if isinstance(evidence, Treated) else home.trained_alike(treated)
        for run in filter(None, (*treated, *others)):  # "" where there is no base
            settings = home.settings[run]
            arm = unordered({column: value for column, value in settings.items() if column not in WATCHED})
            arms.setdefault(arm, (home.suite_by_run[run], set()))[1].add(settings["seed"])
    return {arm: (suite, len(seeds)) for arm, (suite, seeds) in arms.items()}


def _replicates(prediction: Prediction, mean: Interval) -> int:
    """The replicates with which a mean decides; 0 where :data:`MOST` wouldn't do, or nothing says of what they are."""
    spread, gap = standard_error(mean) * mean.n**0.5, distance(prediction, mean)
    if mean.method not in REPLICATES or gap == 0 or minimum_detectable(spread, MOST) > gap:
        return 0
    return seeds_needed(spread, gap)

"""What would decide the claims that are open: seeds, runs and hours, by the spread and times of the runs there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from isonb_lab.claims.design import Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import (
    INCONCLUSIVE,
    NOT_OBSERVED,
    NOT_TESTABLE,
    OBSERVED,
    UNTESTABLE,
    UNTESTED,
    Claim,
    Judgement,
    Prediction,
    PredictionJudgement,
)
from isonb_lab.runs.table import flat
from isonb_lab.statistics.paired import seeds_needed
from isonb_lab.statistics.seeds import Interval, minimum_detectable, standard_error
from isonb_lab.sweeps.cost import Estimate, estimate
from isonb_lab.sweeps.grids import load_grid

from .arms import OWN_CELLS, TRAINED

OPEN = (INCONCLUSIVE, NOT_TESTABLE)
ELSEWHERE = (OBSERVED, NOT_OBSERVED, UNTESTED)  # judged by no run at the paper's setting
ARMS = 2  # whose difference is read
MOST = 1000  # replicates; a mean that would need more is as good as on the border
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
    number would do. The runs and hours of several parts of a claim add up.
    """
    rows = []
    for item in judged:
        if item.claim.kind == "runs" and item.outcome in ELSEWHERE:
            rows.append({"claim": item.claim.number, **at_its_setting(study, item.claim)})
        if item.claim.kind == "runs" and item.outcome in OPEN:
            parts = [_needed(study, part) for part in item.deciding if part.outcome in OPEN]
            needed = dict.fromkeys([item.claim.needs, *(what for what, _, _ in parts)])
            row = {"claim": item.claim.number, "what": "; ".join(filter(None, needed))}
            runs, hours = sum(part[1] for part in parts), sum(part[2] for part in parts)
            rows.append({**row, "runs": runs or None, "hours": hours or None})
    return rows


def at_its_setting(study: Study, claim: Claim) -> dict[str, Any]:
    """What, runs and hours: the planned runs that have a claim's treatment and no record yet."""
    pool = next((treatment for name, treatment in study.others.items() if name == TRAINED), None)
    recorded = set() if pool is None else set(pool.runs["run_id"])
    cost = planned_cost(lambda run: any(treatment.has(run) for treatment in claim.treatments), recorded)
    if cost is None:
        return {"what": claim.needs or "a grid at its setting", "runs": None, "hours": None}
    return {"what": "runs at its paper's setting, as planned", "runs": cost.runs, "hours": cost.cpu_hours}


def planned_cost(chosen: Callable[[Settings], bool], recorded: Collection[str] = ()) -> Estimate | None:
    """What the planned runs of the papers' own cells with chosen settings cost; those that are recorded aside."""
    planned = {
        run.run_id: run
        for grid in OWN_CELLS
        for run in load_grid(grid, "full")
        if run.run_id not in recorded and chosen(flat(run.config))
    }
    return estimate(planned.values()) if planned else None


def _needed(study: Study, part: PredictionJudgement) -> tuple[str, int, float]:
    """What one part needs, in words, with the runs and hours that are known."""
    if part.prediction.needs or part.mean is None:
        return part.prediction.needs or "runs where there are none yet", 0, 0.0
    prediction, home = part.prediction, study.home(part.prediction)
    means = [mean for mean in (part.mean, *part.without) if mean.method == part.mean.method]
    if prediction.decided_by == "agree":  # each cell by itself
        means = [cell.interval for cell in part.cells if cell.interval]
    counts = [_replicates(prediction, mean) for mean in means]
    if not all(counts):
        moving = prediction.margin and prediction.direction in ("greater", "less")
        setting = f"a setting that moves it by more than {prediction.margin:g}" if moving else "another setting"
        return f"{setting}: {prediction.what}", 0, 0.0
    count, unit = max(counts), REPLICATES[means[0].method]
    cells = [cell for cell in part.cells if cell.outcome not in UNTESTABLE]
    seconds = home.runs.groupby("suite")["manifest.seconds"].median()
    of_cells = [float(seconds[home.suite_of(cell.name)]) for cell in cells]
    if unit == "seeds":
        runs = ARMS * count * len(cells)
    else:  # tasks like these: with as many runs as the cells have on average
        over_runs = all(cell.interval is not None and cell.interval.method == "percentile" for cell in cells)
        runs = round(count * sum(cell.n for cell in cells) / len(cells)) * (1 if over_runs else ARMS)
    return f"{count} {unit}: {prediction.what}", runs, runs * sum(of_cells) / len(cells) / 3600


def _replicates(prediction: Prediction, mean: Interval) -> int:
    """The replicates with which a mean decides; 0 where :data:`MOST` wouldn't do, or nothing says of what they are."""
    spread, gap = standard_error(mean) * mean.n**0.5, distance(prediction, mean)
    if mean.method not in REPLICATES or gap == 0 or minimum_detectable(spread, MOST) > gap:
        return 0
    return seeds_needed(spread, gap)

"""What would decide the claims that are open: seeds, runs and hours, by the spread and times of the runs there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isonb.lab.statistics.paired import seeds_needed
from isonb.lab.statistics.seeds import Interval, minimum_detectable, standard_error
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import INCONCLUSIVE, NOT_TESTABLE, SILENT, Judgement, Prediction, PredictionJudgement

__all__ = ["distance", "needs"]

OPEN = (INCONCLUSIVE, NOT_TESTABLE)
ARMS = 2  # whose difference is read
MOST = 1000  # seeds; a mean that would need more is as good as on the border
BORDER = "other settings: a mean lies on its border, or there are no seeds behind it"


def distance(prediction: Prediction, mean: Interval) -> float:
    """How far a mean lies from the border at which it would decide: of two borders the farther one.

    >>> gain = Prediction("gain", lambda study, suites: {}, "greater", room=0.01)
    >>> round(distance(gain, Interval(0.002, -0.01, 0.014, 0.95, 5, "student")), 3)
    0.008
    """
    (low, high), (least, most) = prediction.claimed, prediction.tolerated
    supports = min(mean.estimate - low, high - mean.estimate)
    contradicts = max(least - mean.estimate, mean.estimate - most)
    return max(supports, contradicts, 0.0)


def needs(study: Study, judged: Sequence[Judgement]) -> list[dict[str, Any]]:
    """One row a claim about methods that is open: ``claim``, ``what``, ``seeds``, ``runs`` and ``hours`` of one core.

    The seeds are those with which the mean over the cells would decide in four of five repetitions, if it and its
    spread stay what they are; ``what`` says what is needed where no seeds of these runs would do. Several parts of a
    claim add up.
    """
    rows = []
    for one in judged:
        if one.claim.kind != "runs" or one.outcome not in OPEN:
            continue
        parts = [part for part in one.predictions if part.outcome in OPEN]
        words = [one.claim.needs, *(part.prediction.needs for part in parts)]
        counted = [found for part in parts if (found := _counted(study, part)) is not None]
        what = [*words, *("more seeds" for _ in counted[:1]), *(BORDER for _ in parts[len(counted) :])]
        rows.append(
            {
                "claim": one.claim.number,
                "what": "; ".join(dict.fromkeys(filter(None, what))),
                "seeds": max((seeds for seeds, _, _ in counted), default=None),
                "runs": sum(runs for _, runs, _ in counted) or None,
                "hours": sum(hours for _, _, hours in counted) or None,
            }
        )
    return rows


def _counted(study: Study, part: PredictionJudgement) -> tuple[int, int, float] | None:
    """Seeds, runs and hours of a part that more seeds decide; None for one that :data:`MOST` seeds wouldn't."""
    home = study.others[part.prediction.runs_of] if part.prediction.runs_of else study
    if part.mean is None or part.mean.method != "student" or not (gap := distance(part.prediction, part.mean)):
        return None
    spread = standard_error(part.mean) * part.mean.n**0.5
    if minimum_detectable(spread, MOST) > gap:
        return None
    seeds = seeds_needed(spread, gap)
    cells = [cell.name for cell in part.cells if cell.outcome not in SILENT]
    suites = [suite for suite in home.suites if any(cell == suite or cell.startswith(f"{suite},") for cell in cells)]
    seconds = home.runs.groupby("suite")["manifest.seconds"].median()
    hours = sum(float(seconds[suite]) for suite in suites) * ARMS * seeds / 3600
    return seeds, ARMS * seeds * len(suites), hours

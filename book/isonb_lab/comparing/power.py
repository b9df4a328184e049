"""A plan for runs of one's own: how many seeds, and how many hours, from a pilot of a few seeds."""

from __future__ import annotations

import statistics
from typing import Any

import pandas as pd
from scipy import stats as scipy_stats

from isonb.errors import fail
from isonb_lab.comparing.comparison import FEWEST, compare
from isonb_lab.comparing.result import Pair
from isonb_lab.comparing.runs import CompareError, Runs, read_runs, setting_names, table_of
from isonb_lab.statistics.paired import seeds_needed
from isonb_lab.statistics.seeds import POWER

COLUMNS = ("setting", "arm", "pilot_seeds", "spread", "seeds", "seeds_high", "minutes_a_pair", "hours", "reason")


def plan_seeds(runs: Runs, *, gain: float, level: float = 0.95, power: float = POWER) -> pd.DataFrame:
    """How many seeds each pair of a pilot needs to show a ``gain`` of so many points, and how long that takes.

    The spread of the pilot's paired differences stands for that of the whole study. A pilot of three seeds knows it
    roughly: ``seeds_high`` is the number by the upper end of its 80% interval (chi-squared).

    Args:
        runs: the pilot, as :func:`~isonb_lab.comparing.compare` takes it: at least 3 seeds of each arm and control.
        gain: in points.
        level: of the verdicts; Holm's first step over the pairs divides what it leaves.
        power: share of the studies that show the gain.

    Columns: setting, arm, pilot_seeds, spread (points), seeds, seeds_high, minutes_a_pair, hours (of ``seeds``, less
    what the pilot ran; a control that several arms share counts once, beside the arm that needs most of it), reason.
    From a pair that :func:`~isonb_lab.comparing.compare` doesn't judge, or that is equal at every seed, no number of
    seeds follows: its ``reason`` says why. Raises :class:`~isonb_lab.comparing.CompareError` where all pairs are such.
    """
    pilot = table_of(runs)
    pairs = compare(pilot, level=level, power=power).pairs
    if all(pair.reason for pair in pairs):
        fix = f"Run each arm and its control with {FEWEST} seeds first, so that isonb compare judges them."
        fail(CompareError, "a pilot needs a pair whose seeds differ and can be judged", pairs[0].reason, fix)
    alpha = (1 - level) / sum(pair.judged for pair in pairs)
    rows = [_planned(pair, gain, alpha, power) for pair in pairs]
    done, paid = _done(read_runs(pilot)), set[tuple[str, str]]()
    for row in sorted((row for row in rows if not row["reason"]), key=lambda row: -row["seeds"]):
        both = [(row["setting"], row[side]) for side in ("arm", "control")]
        row["minutes_a_pair"] = sum(done[runs][1] for runs in both)
        more = [max(row["seeds"] - done[runs][0], 0) * done[runs][1] for runs in both if runs not in paid]
        row["hours"] = sum(more) / 60
        paid.update(both)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"seeds": "Int64", "seeds_high": "Int64"})


def _planned(pair: Pair, gain: float, alpha: float, power: float) -> dict[str, Any]:
    """A pair, and how many seeds it needs where its pilot can say."""
    values = list(pair.differences.values())
    row = {"setting": pair.setting, "arm": pair.arm, "pilot_seeds": len(values), "reason": pair.reason}
    if pair.reason:
        return row
    spread, free = statistics.stdev(values), len(values) - 1
    high = spread * float(free / scipy_stats.chi2.ppf(0.1, free)) ** 0.5
    seeds, most = (max(FEWEST, seeds_needed(s, gain, alpha=alpha, power=power)) for s in (spread, high))
    return row | {"control": pair.control, "spread": spread, "seeds": seeds, "seeds_high": most}


def _done(frame: pd.DataFrame) -> dict[tuple[str, str], tuple[int, float]]:
    """Of each setting, named as those of pairs are, and arm: how many seeds have run, and the minutes of a run."""
    words = frame["setting"].map(setting_names(frame))
    whole = frame.assign(words=words, minutes=frame.get("manifest.seconds", 0.0) / 60)[frame["status"] == "complete"]
    groups = whole.groupby(["words", "arm"])
    return {(str(key[0]), str(key[1])): (some["seed"].nunique(), some["minutes"].mean()) for key, some in groups}

"""A plan for runs of one's own: how many seeds, and how many hours, from a pilot of a few seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from scipy import stats as scipy_stats

from isonb.errors import fail
from isonb_lab.comparing.comparison import FEWEST, compare
from isonb_lab.comparing.runs import CompareError, Runs, read_runs, setting_names, table_of
from isonb_lab.statistics.paired import seeds_needed
from isonb_lab.statistics.seeds import POWER

COLUMNS = ("setting", "arm", "pilot_seeds", "spread", "seeds", "seeds_high", "minutes_a_pair", "hours")


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
    what the pilot ran). Raises :class:`~isonb_lab.comparing.CompareError` where no pair has 3 seeds.
    """
    pilot = table_of(runs)
    compared = compare(pilot, level=level, power=power)
    pairs = [pair for pair in compared.pairs if len(pair.differences) >= FEWEST]
    if not pairs:
        fix = f"Run each arm and its control with {FEWEST} seeds first."
        fail(CompareError, f"a pilot has {FEWEST} seeds of an arm and its control", "fewer", fix)
    alpha = (1 - level) / len(pairs)
    frame = read_runs(pilot)
    names = setting_names(frame)  # of all runs, as the pairs are named
    frame = frame[frame["status"] == "complete"]
    minutes = _minutes(frame.assign(words=frame["setting"].map(names)))
    rows = []
    for pair in pairs:
        values = pd.Series(list(pair.differences.values()))
        spread, free = float(values.std()), len(values) - 1
        high = spread * float(free / scipy_stats.chi2.ppf(0.1, free)) ** 0.5
        seeds, most = (seeds_needed(s, gain, alpha=alpha, power=power) for s in (spread, high))
        cost = minutes.get((pair.setting, pair.arm), 0.0) + minutes.get((pair.setting, pair.control), 0.0)
        rows.append(
            (pair.setting, pair.arm, len(values), spread, seeds, most, cost, max(seeds - len(values), 0) * cost / 60)
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _minutes(frame: pd.DataFrame) -> Mapping[tuple[Any, Any], float]:
    if "manifest.seconds" not in frame:
        return {}
    means = frame.groupby(["words", "arm"])["manifest.seconds"].mean() / 60
    return {(str(setting), str(arm)): float(value) for (setting, arm), value in means.items()}

"""Reached isotropy as the dose: the levels of ``evidence_dose`` and hypotheses D1 to D5 of ``evidence_plan.md``.

A level is a weight with all its seeds. What the plan fixes stands here as constants. What it leaves open was decided
here when some of its runs had been seen: its table of changes says what, and when.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from isonb_lab.claims.table import failed
from isonb_lab.statistics.paired import paired_tests
from isonb_lab.statistics.seeds import share, student

from .heads import participation
from .hypotheses import Answer, outcome, with_ends

SEEDS, LEVELS = frozenset(range(1, 11)), 12  # of a level; levels of a task, the family of its tests
ALPHA, POINT = 0.05, 1.0  # the gain that counts, in points of 0.01
DISTINCT, LOWEST, HIGHEST = 5, 0.5, 4.0  # D1: levels apart, and how far they must reach, in times the plain value
NEAR, MISSED = (0.65, 1.5), 1.5  # D5: levels near plain, and the ratio at which a level counts as missed
PLACES: Mapping[str, tuple[str, str]] = {
    "tokens": ("istar", "metric.end.tokens.isoscore_all_layers"),
    "[CLS]": ("log_isoscore", "metric.end.cls.isoscore_unbiased"),
}


def task_runs(runs: pd.DataFrame, task: str) -> pd.DataFrame:
    """The runs of a task, with what the levels need: ``weight`` (0 is plain), ``place`` (of plain: both), ``lost``.

    ``read`` is the participation ratio of what the head reads, wherever isotropy was moved.
    """
    mine = runs[runs["task"] == task].reset_index(drop=True)
    of = {method: place for place, (method, _) in PLACES.items()}
    return mine.assign(
        weight=mine["method.weight"].astype(float).where(mine["method.name"] != "none", 0.0),
        place=mine["method.name"].map(of).fillna("plain"),
        lost=failed(mine),
        read=participation(mine),
    )


def search(runs: pd.DataFrame, place: str) -> pd.DataFrame:
    """The single runs of the search on ``place``, plain training among them, by ``reached`` isotropy.

    One seed each, so they get no verdict. They go further than the levels do.
    """
    tried = runs[(runs["seed"] == 0) & runs["place"].isin([place, "plain"])]
    return tried.assign(reached=tried[PLACES[place][1]]).sort_values("reached", ignore_index=True)


def levels(runs: pd.DataFrame, place: str) -> pd.DataFrame:
    """One row a level of ``place`` that has all its seeds, plain training among them, by reached isotropy.

    Gains are paired by seed with plain training, in points. ``p`` is corrected by Holm's method over the levels of the
    task; those that aren't whole count as 1, so that later levels can only lower it. ``times`` is the mean of the
    reached isotropy over that of plain training, from ``times least`` to ``times most`` when one run is left out.

    Args:
        runs: of one task, as :func:`task_runs` gives them.
        place: "tokens" or "[CLS]".
    """
    column = PLACES[place][1]
    cells = {
        (where, weight): rows.set_index("seed").sort_index()
        for (where, weight), rows in runs[runs["seed"] > 0].groupby(["place", "weight"])
        if set(rows["seed"]) == SEEDS
    }
    plain = cells.get(("plain", 0.0))
    if plain is None:
        return pd.DataFrame()
    gains = {key: 100 * (rows["score"] - plain["score"]) for key, rows in cells.items() if key[0] != "plain"}
    tests = paired_tests(gains, family=LEVELS, level=1 - ALPHA)
    lines = []
    for key, rows in cells.items():
        if key[0] not in (place, "plain"):
            continue
        reached, score, read = (student(rows[name]) for name in (column, "score", "read"))
        scale = float(plain[column].mean())
        without = (rows[column].sum() - rows[column]) / (len(rows) - 1) / scale
        lost = share(int(rows["lost"].sum()), len(rows))
        line = {"weight": key[1], **with_ends("reached", reached), "times": reached.estimate / scale}
        line |= {"times least": without.min(), "times most": without.max()}
        line |= with_ends("read", read) | with_ends("score", score) | with_ends("failed", lost)
        line["failed"] = int(rows["lost"].sum())
        if key in gains:
            test = tests[key]
            line |= with_ends("gain", test.interval) | {"p": test.p, "detectable": test.visible}
        lines.append(line)
    return pd.DataFrame(lines).sort_values("reached", ignore_index=True)


def separate(table: pd.DataFrame) -> int:
    """How many levels have intervals of isotropy that don't overlap: of those left, the lowest upper end goes next."""
    count, border = 0, float("-inf")
    for low, high in sorted(zip(table["reached low"], table["reached high"], strict=True), key=lambda ends: ends[1]):
        if low > border:
            count, border = count + 1, high
    return count


def hypotheses(table: pd.DataFrame) -> list[Answer]:
    """D1 to D5 for the levels of one place; none before all of them are whole. "open": the levels show too little."""
    treated = table[table["weight"] != 0]
    if len(treated) < LEVELS // len(PLACES):
        return []
    shown = treated[treated["p"] <= ALPHA]
    above, below = treated[treated["times"] > 1], treated[treated["times"] < 1]
    count, least, most = separate(treated), float(treated["times"].min()), float(treated["times"].max())
    scale = float((table["times"] / table["reached"]).max())  # IsoScore ends at 1, so many times the plain value
    wide = least < LOWEST and (most > HIGHEST or scale <= HIGHEST)
    text = f"{count} levels apart, {least:.2f} to {most:.3f} times the plain value"
    answers = [Answer("D1", outcome(count < DISTINCT, wide), text)]  # "fewer levels" would contradict it
    for name, side, phrase in (("D2", above, "above"), ("D3", below, "below")):
        gained = side.index.isin(shown.index) & (side["gain"] >= POINT)
        detected = (side["gain high"] < POINT) | (side["detectable"] <= POINT)
        best = f"best gain {phrase} plain: {side['gain'].max():+.1f} points"
        text = best if len(side) else f"no level {phrase} plain"
        answers.append(Answer(name, outcome(gained.any(), len(side) > 0 and detected.all()), text))
    ends = treated.loc[[treated["reached"].idxmin(), treated["reached"].idxmax()]]
    losses = ends.index.isin(shown.index) & (ends["gain"] < 0)
    detected = ends["detectable"] <= POINT
    text = " and ".join(f"{gain:+.1f}" for gain in ends["gain"])
    text = f"the lowest and the highest level: {text} points"
    answers.append(Answer("D4", outcome((~losses & detected).any(), losses.all()), text))
    near = {target: _nearest(treated, target) for target in NEAR}
    present = [row for row in near.values() if row is not None]
    lost = [row for row in present if row["p"] <= ALPHA and row["gain"] <= -POINT]
    flat = len(present) == len(NEAR) and all(row["gain low"] > -POINT for row in present)
    text = "; ".join(
        f"{target:g}: no level near it whichever run is left out"
        if row is None
        else f"{row['times']:.2f} times: {row['gain']:+.1f} points"
        for target, row in near.items()
    )
    return [*answers, Answer("D5", outcome(bool(lost), flat), text)]


def _nearest(treated: pd.DataFrame, target: float) -> pd.Series | None:
    """The level nearest to ``target`` times the plain isotropy by ratio, or none within the plan's factor of 1.5.

    A level that is near by one of its runs alone is none: it must be within the factor whichever run is left out.
    """
    ratio = np.exp(np.abs(np.log(treated[["times", "times least", "times most"]] / target)))
    nearest = ratio["times"].idxmin()
    return None if ratio.loc[nearest].max() > MISSED else treated.loc[nearest]

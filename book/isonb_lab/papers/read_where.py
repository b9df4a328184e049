"""Round where it is read: doses, failures, weight and length of ``read_where_plan.md``, judged as it says.

A dose is plain training and six levels, each a weight of ``log_isoscore`` on what the classifier reads. Levels are
named by the participation ratio that they reached there. A part is judged on the seeds that all its arms have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from isonb.runtime.told import between
from isonb_lab.claims.comparing import joint_intervals
from isonb_lab.claims.table import failed
from isonb_lab.runs.recordings import FOLDER, scored
from isonb_lab.statistics.paired import PairedTest, paired_tests
from isonb_lab.statistics.seeds import Interval, StatsError, holm, paired_p, share, student

from .hypotheses import NOT_RUN, OPEN, Answer, outcome, rows_with, with_ends
from .own_runs import tables_of

READ = "metric.end.features.participation_ratio_unbiased"
POINT, LEVEL = 1.0, 0.95
STEP = 100.0  # points in a score of 1


@dataclass(frozen=True)
class Dose:
    """Where a dose is given: the levels wanted, of how many dimensions, by how many seeds."""

    task: str
    model: str
    head: str
    targets: tuple[int, ...]
    width: int
    seeds: int


SST2 = (2, 5, 15, 40, 70, 95)
DOSES: Mapping[str, Dose] = {
    "SST-2, linear head": Dose("sst2_joint", "tiny", "linear", SST2, 128, 30),
    "SST-2, pooler": Dose("sst2_joint", "tiny", "pooler", SST2, 128, 30),
    "STS-B, linear head": Dose("stsb", "minilm", "linear", (3, 10, 30, 80, 140, 200), 384, 8),
}

# The arms of the failures: by method, or by what plain training has in place of the grid's value.
ARMS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"method.name": "none", "learning_rate": 1e-3, "max_grad_norm": 1.0, "warmup": 0.1},
    "CosReg": {"method.name": "cosreg"},
    "SoftDecay": {"method.name": "softdecay"},
    "spectrum control": {"method.name": "spectrum_control"},
    "entropy": {"method.name": "entropy"},
    "half the rate": {"method.name": "none", "learning_rate": 5e-4},
    "gradients cut at 0.3": {"method.name": "none", "max_grad_norm": 0.3},
    "three times the warm-up": {"method.name": "none", "warmup": 0.3},
}
FAILING = 60  # seeds of the failures
BRAKES = ("half the rate", "gradients cut at 0.3", "three times the warm-up")


REGULARISERS = tuple(arm for arm in ARMS if arm not in ("plain", *BRAKES))
FEWER = {"F1": REGULARISERS, "F2": BRAKES}


def runs(folder: str | Path = FOLDER / "read_where") -> pd.DataFrame:
    """The runs of a recording, or of a folder of records, with score and ``weight`` (0 is plain training)."""
    frame = scored(tables_of(Path(folder))[0])
    weight = frame["method.weight"] if "method.weight" in frame else pd.Series(np.nan, index=frame.index)
    return frame.assign(weight=weight.astype(float).where(frame["method.name"] != "none", 0.0))


def on_shared_seeds(cells: Mapping[Any, pd.DataFrame], by: str = "seed") -> dict[Any, pd.DataFrame]:
    """The runs of each arm, by seed, of the seeds that all arms have; ``by``: the column that pairs runs."""
    indexed = {name: rows.set_index(by) for name, rows in cells.items()}
    shared = sorted(set.intersection(*(set(rows.index) for rows in indexed.values()))) if indexed else []
    return {name: rows.loc[rows.index.isin(shared)].sort_index() for name, rows in indexed.items()}


def doses(frame: pd.DataFrame, dose: Dose) -> dict[float, pd.DataFrame]:
    """The runs of a dose by weight, plain training among them, of the seeds that all its arms have; no search."""
    mine = rows_with(frame, task=dose.task, model=dose.model, head=dose.head)
    mine = mine[(mine["seed"] > 0) & mine["method.name"].isin(["none", "log_isoscore"])]
    if dose.task == "sst2_joint":  # three passes of plain training belong to the question of length
        mine = mine[mine["epochs"] == 2]
    cells = {float(str(weight)): rows for weight, rows in mine.groupby("weight")}
    return on_shared_seeds(cells) if 0.0 in cells and len(cells) > 1 else {}


def levels(cells: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """One row a weight, plain training among them, by the participation ratio reached.

    Gains are over plain training with the same seed, in points, with intervals that hold for all levels together
    (Bonferroni); ``p`` is corrected by Holm's method over the levels. ``equivalent``: the interval lies within a point.
    """
    treated = {weight: rows for weight, rows in cells.items() if weight != 0}
    gains = {weight: STEP * (rows["score"] - cells[0.0]["score"]) for weight, rows in treated.items()}
    tests, joint = paired_tests(gains), joint_intervals(gains)
    lines = []
    for weight, rows in cells.items():
        line: dict[str, float | None] = {"weight": weight, "seeds": len(rows)}
        line |= with_ends("reached", student(rows[READ])) | with_ends("score", student(rows["score"]))
        if weight in gains:
            gain, test = joint[weight], tests[weight]
            line |= with_ends("gain", gain) | {"p": test.p, "detectable": test.visible}
            line |= {"equivalent": gain.low > -POINT and gain.high < POINT}
        lines.append(line)
    return pd.DataFrame(lines).sort_values("reached", ignore_index=True)


@dataclass(frozen=True)
class Slope:
    """Points of score a doubling of the participation ratio: mean over seeds, its test, and over how many doublings."""

    interval: Interval
    p: float
    doublings: float


def slopes(cells: Mapping[float, pd.DataFrame]) -> Slope:
    """The slope of each seed over plain training and the levels, by least squares on log2 of the ratio; its mean.

    :class:`~isonb_lab.statistics.seeds.StatsError` for fewer than two seeds.
    """
    reached = np.log2(np.stack([rows[READ].to_numpy(float) for rows in cells.values()]))
    score = STEP * np.stack([rows["score"].to_numpy(float) for rows in cells.values()])
    if reached.shape[1] < 2:
        raise StatsError(f"a slope over seeds needs at least 2; got {reached.shape[1]}. Record more of its arms.")
    away = reached - reached.mean(0)
    each = (away * (score - score.mean(0))).sum(0) / (away**2).sum(0)
    ends = reached.mean(1)
    return Slope(student(each), paired_p(each), float(ends.max() - ends.min()))


def failures(frame: pd.DataFrame) -> pd.DataFrame:
    """Failed runs of each arm on sentiment, with exact intervals and Fisher's test against plain training by Holm.

    ``gain``: the mean score over that of plain training with the same seed, in points, which the plan doesn't judge.
    """
    mine = frame[(frame["task"] == "english_sentiment") & (frame["seed"] > 40)].reset_index(drop=True)
    if mine.empty:
        return pd.DataFrame()
    mine = mine.assign(failed=failed(mine))
    cells = on_shared_seeds({arm: rows_with(mine, **settings) for arm, settings in ARMS.items()})
    counts = {arm: (int(rows["failed"].sum()), len(rows)) for arm, rows in cells.items()}
    if counts["plain"][1] == 0:
        return pd.DataFrame()
    against = {
        arm: float(scipy_stats.fisher_exact([[k, n - k] for k, n in (pair, counts["plain"])]).pvalue)
        for arm, pair in counts.items()
        if arm != "plain"
    }
    adjusted = holm(against)
    lines = []
    for arm, (lost, n) in counts.items():
        interval, scores = share(lost, n), cells[arm]["score"]
        gain = None if arm == "plain" else student(STEP * (scores - cells["plain"]["score"]))
        line: dict[str, Any] = {"arm": arm, "failed": lost, "seeds": n}
        line |= {"share": interval.estimate, "low": interval.low, "high": interval.high, "p": adjusted.get(arm)}
        line |= with_ends("score", student(scores)) | with_ends("gain", gain)
        lines.append(line | {"read": float(cells[arm][READ].mean())})
    return pd.DataFrame(lines)


def power(plain: float, seeds: int) -> float:
    """How often an arm that never fails would differ from plain training of this share, at Holm's first step.

    >>> round(power(0.27, 60), 2), round(power(0.05, 60), 2)
    (1.0, 0.01)
    """
    counts = np.arange(seeds + 1)
    shows = [
        scipy_stats.fisher_exact([[k, seeds - k], [0, seeds]]).pvalue <= (1 - LEVEL) / (len(ARMS) - 1) for k in counts
    ]
    return float(scipy_stats.binom.pmf(counts, seeds, plain)[shows].sum())


def weights(frame: pd.DataFrame) -> dict[tuple[str, float], PairedTest]:
    """W1 and W2: I-STAR on tokens at each weight less plain training, a task, in points, by Holm over the four."""
    gains = {}
    for task, seeds in (("sst2_joint", range(1, 31)), ("english_sentiment", range(11, 41))):
        mine = rows_with(frame, task=task, head="pooler")
        mine = mine[mine["seed"].isin(seeds) & mine["method.name"].isin(["none", "istar"])]
        if task == "english_sentiment":
            mine = mine[mine["learning_rate"] == 5e-4]
        cells = on_shared_seeds({float(str(weight)): rows for weight, rows in mine.groupby("weight")})
        for weight, rows in cells.items():
            if weight and 0.0 in cells and len(rows) > 1:
                gains[task, weight] = list(STEP * (rows["score"] - cells[0.0]["score"]))
    return paired_tests(gains, family=4)


def hypotheses(table: pd.DataFrame, slope: Slope, p_slope: float, seeds: int) -> list[Answer]:
    """R1 to R4 for one dose: its levels, its slope, the slope's p by Holm over the doses, the seeds that are planned.

    Levels that overlap before all seeds are there may be apart with them, so R4 is open until then.
    """
    treated = table.dropna(subset="p")
    best = treated["gain"].abs().max()
    room = slope.doublings * max(abs(slope.interval.low), abs(slope.interval.high))
    text = f"{slope.interval.estimate:+.2f} points a doubling, at most {room:.1f} over the range"
    answers = [Answer("R1", outcome(p_slope <= 1 - LEVEL, room < POINT), text)]
    moved = (treated["p"] <= 1 - LEVEL) & (treated["gain"].abs() >= POINT)
    detected = treated["equivalent"].astype(bool) | (treated["detectable"] <= POINT)
    text = f"the largest change of a level is {best:.1f} points"
    answers.append(Answer("R2", outcome(moved.any(), detected.all()), text))
    outside = (treated["gain low"] > POINT) | (treated["gain high"] < -POINT)
    text = f"{int(treated['equivalent'].sum())} of {len(treated)} levels lie within one point"
    answers.append(Answer("R3", outcome(outside.any(), treated["equivalent"].all()), text))
    ends = treated.sort_values("reached")
    separate = bool((ends["reached low"].to_numpy()[1:] > ends["reached high"].to_numpy()[:-1]).all())
    span = f"from {ends['reached'].iloc[0]:.1f} to {ends['reached'].iloc[-1]:.1f} dimensions"
    return [*answers, Answer("R4", outcome(not separate and table["seeds"].min() >= seeds, separate), span)]


def length(frame: pd.DataFrame) -> PairedTest | None:
    """H3: IsoLayer after two passes less three passes of plain training on SST-2, in points; None without both."""
    mine = rows_with(frame[frame["seed"] > 0], task="sst2_joint", head="linear")
    plain = rows_with(mine, epochs=3, **{"method.name": "none"})
    cells = on_shared_seeds({"plain": plain, "layer": mine[mine["method.name"] == "isolayer"]})
    if len(cells["plain"]) < 2:
        return None
    gains = STEP * (cells["layer"]["score"] - cells["plain"]["score"])
    return paired_tests({"layer": list(gains)})["layer"]


def answers(frame: pd.DataFrame) -> pd.DataFrame:
    """Every hypothesis of the plan: name, where it was asked, outcome ("open" without its runs), and why."""
    every = {name: doses(frame, dose) for name, dose in DOSES.items()}
    cells = {name: some for name, some in every.items() if some and len(some[0.0]) > 1}
    results = {name: slopes(some) for name, some in cells.items()}
    waiting = {name: 1.0 for name in DOSES if name not in results}  # a dose without runs counts as p = 1
    adjusted = holm({name: slope.p for name, slope in results.items()} | waiting)
    rows = [
        (hypothesis.name, name, hypothesis.outcome, hypothesis.why)
        for name, slope in results.items()
        for hypothesis in hypotheses(levels(cells[name]), slope, adjusted[name], DOSES[name].seeds)
    ]
    rows += [(f"R{k}", name, OPEN, NOT_RUN) for name in waiting for k in (1, 2, 3, 4)]
    tests = weights(frame)
    tests_of_weights = (("W1", ("sst2_joint", 0.3)), ("W1", ("sst2_joint", 3.0)), ("W2", ("english_sentiment", 0.3)))
    rows += [(name, f"weight {key[1]:g}", *_no_loss(tests.get(key))) for name, key in tests_of_weights]
    rows += [(name, "failed runs", *_fewer(failures(frame), some)) for name, some in FEWER.items()]
    rows.append(("H3", "length", *_no_gain(length(frame))))
    return pd.DataFrame(rows, columns=["name", "where", "outcome", "why"])


def _in_points(test: PairedTest) -> str:
    return f"{between(*test.interval.ends, sign='+', unit=' points')}, {test.interval.n} seeds"


def _no_loss(test: PairedTest | None) -> tuple[str, str]:
    """Whether a weight costs no point: contradicted by a significant loss of a point, shown by the interval."""
    if test is None:
        return OPEN, NOT_RUN
    lost = test.p <= 1 - LEVEL and test.interval.estimate <= -POINT
    return outcome(lost, test.interval.low > -POINT), _in_points(test)


def _no_gain(test: PairedTest | None) -> tuple[str, str]:
    """Whether plain training as long gains as much: contradicted by a significant gain of the other."""
    if test is None:
        return OPEN, NOT_RUN
    gained = test.p <= 1 - LEVEL and test.interval.estimate > 0
    return outcome(gained, test.interval.high < POINT), _in_points(test)


def _fewer(table: pd.DataFrame, arms: Sequence[str]) -> tuple[str, str]:
    """Whether each of some arms fails significantly less than plain training; open while seeds are missing.

    By the plan a share that isn't lower contradicts, whatever the test can show; ``why`` says both.
    """
    if table.empty:
        return OPEN, NOT_RUN
    by_arm = table.set_index("arm")
    lower = [arm for arm in arms if by_arm["p"][arm] <= 1 - LEVEL and by_arm["share"][arm] < by_arm["share"]["plain"]]
    seeds = int(table["seeds"].min())
    text = f"{len(lower)} of {len(arms)} arms fail significantly less, on {seeds} of {FAILING} seeds"
    plain = by_arm.loc["plain"]
    high = [arm for arm in arms if by_arm["share"][arm] >= plain["share"]]
    if high:
        counts = ", ".join(f"{by_arm['failed'][arm]:.0f} with {arm}" for arm in high)
        text += f". Runs failed: {plain['failed']:.0f} with plain training, {counts}; "
        text += "by the plan a share that isn't lower contradicts"
    text += f". An arm that never fails would show in {power(plain['share'], seeds):.0%} of such experiments"
    return outcome(bool(high) and seeds >= FAILING, len(lower) == len(arms)), text


def nearest(search: pd.DataFrame, targets: Sequence[float]) -> dict[float, tuple[float, float]]:
    """The weight of the search that each target takes and the ratio it reached: nearest by ratio, none twice.

    ``search``: weight and :data:`READ` of single runs. Targets choose in the order of how near they are.
    """
    reached_by = {float(row["weight"]): float(row[READ]) for row in search.to_dict("records") if row["weight"]}
    chosen: dict[float, tuple[float, float]] = {}
    ranked = sorted(
        (abs(np.log(reached / target)), target, weight) for target in targets for weight, reached in reached_by.items()
    )
    for _, target, weight in ranked:
        if target not in chosen and weight not in {w for w, _ in chosen.values()}:
            chosen[target] = (weight, reached_by[weight])
    return dict(sorted(chosen.items()))

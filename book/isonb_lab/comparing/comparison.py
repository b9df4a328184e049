"""Every method against its matched control: paired by seed, judged together, refused where nothing can be said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from isonb.errors import fail
from isonb_lab.claims.table import failed
from isonb_lab.comparing.faults import ROWS, fault
from isonb_lab.comparing.result import BROKEN, Pair, RunComparison
from isonb_lab.comparing.runs import RUN_KEYS, CompareError, Runs, differing, read_runs, setting_names
from isonb_lab.methods import acting_place, control_of, label
from isonb_lab.runs.settings import method_flags
from isonb_lab.statistics.paired import paired_tests, seeds_needed
from isonb_lab.statistics.seeds import DIGITS, POWER, Interval, constant, share, student

FEWEST = 3  # seeds that both runs of a pair must share
VERSIONS = ("torch", "transformers", "isonb")  # whose versions must agree within a pair
CORRELATION_UNITS = "similarity"  # scores of this experiment are printed times 100


def compare(
    runs: Runs,
    against: Runs | None = None,
    *,
    where: Mapping[str, Any] | None = None,
    gain: float | None = None,
    level: float = 0.95,
    power: float = POWER,
) -> RunComparison:
    r"""Compare each method of the runs with its matched control, or the same runs of two versions of one's code.

    The design follows from the runs: a setting is all of a configuration but method and seed, an arm is a method with
    the options in which its runs differ. An arm and its control are paired at each seed they share. Student's paired
    test of every pair, with Holm's method over all pairs that aren't refused, keeps the chance of any wrong gain or
    loss at 1 - ``level``.

    A pair is refused, in words, where fewer than 3 seeds are shared, the control is missing or hasn't learned (half of
    its runs or more failed or ended with an error), the main metric is undefined or another one in
    some of the runs, the rows, the weights or the versions of torch, transformers and isonb differ between the two
    runs of a seed, or the difference is the same at every seed, which then says nothing of how sure it is. (Where all
    runs are equal, the method changes nothing: that is not significant.) Runs that ended with an error have no score:
    they count as failed.

    A pair is broken where the runs themselves are at fault: more of them ended with an error than accidents of a
    machine explain, so that the others are survivors, or runs of several inputs lie together
    (:func:`~isonb_lab.comparing.faults.fault`).

    Args:
        runs: the folder of a sweep or of records, a recording, a table of ``isonb collect``, or records.
        against: the runs of another version of the code: then each run is paired with the same run there.
        where: conditions on columns of the table, such as {"task": "cola"}: only these runs are compared.
        gain: a gain in points, to be told how many seeds would show it.
        level: of the intervals, and 1 minus the chance of any wrong verdict.
        power: share of the studies that show the minimum detectable effect.

    Raises :class:`CompareError` for runs that can't be read, or among which nothing can be paired.
    """
    mine = read_runs(runs, where)
    theirs = None if against is None else read_runs(against, where)
    names = setting_names(mine if theirs is None else pd.concat([mine, theirs], ignore_index=True))
    pairs = _pairs(mine, theirs, names)
    if not pairs:
        fix = "Run the control with the same seeds: isonb run ... --method none."
        fail(CompareError, "two arms of one setting are needed", f"{len(mine)} runs of {sorted(set(mine['arm']))}", fix)
    results = _judged(pairs, gain, level, power)
    return RunComparison(tuple(results), tuple(_notes(mine, theirs)), level, power, gain)


def _pairs(mine: pd.DataFrame, theirs: pd.DataFrame | None, names: Mapping[str, str]) -> list[Pair]:
    """Each arm of ``mine`` beside its control, or beside the same arm of ``theirs``."""
    pairs = []
    for (setting, arm), rows in mine.groupby(["setting", "arm"], sort=False):
        config = rows["config"].iloc[0]
        if theirs is not None:
            here = theirs[theirs["setting"] == setting]
            base = here[[not differing(other["method"], config["method"]) for other in here["config"]]]
            title, missing = "the same there", "the other runs have none of these"
        else:
            control = control_of(config)
            if _is(config["method"], control) or config["method"]["name"] == "none":
                continue
            here = mine[mine["setting"] == setting]
            base = here[[_is(other["method"], control) for other in here["config"]]]
            title = label(control, [name for name in control if name != "name"])
            title = title if base.empty else str(base["arm"].iloc[0])
            missing = _missing(mine, rows, control) if base.empty else ""
        pair = _paired(names[str(setting)], str(arm), title, rows, base, config, () if theirs is not None else VERSIONS)
        if base.empty and pair.verdict != BROKEN:
            pair = replace(pair, reason=missing)
        pairs.append(pair)
    return pairs


def _is(method: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    return all(method.get(name) == value for name, value in options.items())


def _paired(
    setting: str,
    arm: str,
    control: str,
    rows: pd.DataFrame,
    base: pd.DataFrame,
    config: Mapping[str, Any],
    versions: Sequence[str],
) -> Pair:
    """The pair, with the reason for which it can't be judged, if there is one."""
    points = 1.0 if config.get("experiment") == CORRELATION_UNITS else 100.0
    whole = [frame[frame["status"] == "complete"] for frame in (rows, base)]
    treated, other = (frame.drop_duplicates("seed").set_index("seed") for frame in whole)
    seeds = sorted(set(treated.index) & set(other.index))
    changes = {int(seed): round(float(treated.score[seed] - other.score[seed]), DIGITS) for seed in seeds}
    differences = {seed: points * value for seed, value in changes.items() if value == value}
    metric = str(next(iter(whole[0]["metric"].dropna()), ""))
    place = acting_place(config["method"]["name"], str(config.get("experiment")))
    pair = Pair(setting, arm, control, metric, differences, place=place)
    both = pd.concat([rows, base], ignore_index=True)
    lost = (both["status"] != "complete").to_numpy()
    if config.get("experiment") != CORRELATION_UNITS:
        lost = lost | failed(both).to_numpy()
    if len(base) and (config.get("experiment") != CORRELATION_UNITS or lost.any()):
        counts = (int(lost[: len(rows)].sum()), len(rows)), (int(lost[len(rows) :].sum()), len(base))
        pair = replace(pair, failed=share(*counts[0]), control_failed=share(*counts[1]))
    pair = replace(pair, isotropy=_isotropy(treated, other, seeds, place))
    if reason := fault(rows, base):
        return replace(pair, verdict=BROKEN, reason=reason)
    return replace(pair, reason=_refusal(pair, treated, other, seeds, versions))


def _refusal(
    pair: Pair, treated: pd.DataFrame, other: pd.DataFrame, seeds: Sequence[int], versions: Sequence[str]
) -> str:
    if len(seeds) < FEWEST:
        return f"too few seeds: {len(seeds)} in common, {FEWEST} are needed"
    both = pd.concat([treated.loc[list(seeds)], other.loc[list(seeds)]])
    if both["rows"].isna().any():
        return "neither the records nor files here say by which metric and on how many rows the runs were scored"
    if len(metrics := sorted(set(both["metric"].astype(str)))) > 1:
        return f"other metrics: some runs have {metrics[0]}, some {metrics[1]}"
    if nothing := int(both["score"].isna().sum()):
        return f"{pair.metric} is undefined in {nothing} of the {len(both)} runs, and no other metric stands in for it"
    for kind, names in (("data", ROWS), ("versions", versions)):
        for name in names:
            column = f"manifest.{kind}.{name}"
            if column in treated and column in other and (differ := _differ(treated, other, column, seeds)):
                what = "other weights" if name == "model" else "other rows" if kind == "data" else "other versions"
                return f"{what}: {name} is {differ[0]} here and {differ[1]} in the control"
    if pair.control_failed is not None and pair.control_failed.estimate >= 0.5:
        return "the control hasn't learned: half of its runs or more failed or ended with an error"
    if pair.mean and constant(np.array(list(pair.differences.values()))):
        same = f"the same at every seed: {pair.mean:+.2f} points at each of {len(seeds)}"
        return f"{same}. Seeds don't change it, so they can't say how sure it is: compare on other rows or tasks"
    return ""


def _differ(treated: pd.DataFrame, other: pd.DataFrame, column: str, seeds: Sequence[int]) -> tuple[str, str] | None:
    """The first two values that differ at one seed, cut to a word."""
    for seed in seeds:
        a, b = treated[column][seed], other[column][seed]
        if a == a and b == b and a is not None and b is not None and a != b:
            return str(a)[:12], str(b)[:12]
    return None


def _isotropy(treated: pd.DataFrame, other: pd.DataFrame, seeds: Sequence[int], place: str) -> Interval | None:
    """How IsoScore changed where the method acts; the output of a second stage is compared with what it starts from."""
    mine, plain = (f"metric.end.{at}.isoscore" for at in (place, "cls" if place == "second" else place))
    if mine not in treated or plain not in other or len(seeds) < FEWEST:
        return None
    changes = (treated[mine].reindex(seeds) - other[plain].reindex(seeds)).dropna()
    return student(changes.tolist()) if len(changes) >= FEWEST else None


def _missing(runs: pd.DataFrame, rows: pd.DataFrame, control: Mapping[str, Any]) -> str:
    """Why there is no control: none was run, or it was run with other settings."""
    like = runs[(runs["task"] == rows["task"].iloc[0]) & (runs["model"] == rows["model"].iloc[0])]
    controls = [config for config in like["config"] if _is(config["method"], control)]
    if controls:
        mine, control_config = rows["config"].iloc[0], controls[0]
        names = [
            name
            for name in {**mine, **control_config}
            if name not in (*RUN_KEYS, "method") and mine.get(name) != control_config.get(name)
        ]
        differ = ", ".join(f"{name} {mine.get(name)} here and {control_config.get(name)} there" for name in names)
        return f"its control was run with other settings: {differ}"
    if rows["config"].iloc[0].get("experiment") == "doses":
        return "a doses run has no control: its doses are compared within it"
    return f"its control wasn't run: {method_flags(control, [name for name in control if name != 'name'])}"


def _judged(pairs: Sequence[Pair], gain: float | None, level: float, power: float) -> list[Pair]:
    family = {i: list(pair.differences.values()) for i, pair in enumerate(pairs) if not pair.reason}
    tests = paired_tests(family, level=level, power=power)
    results = []
    for i, pair in enumerate(pairs):
        values = list(pair.differences.values())
        same = len(values) > 1 and constant(np.array(values))
        if i not in tests:
            interval = student(values, level=level) if len(values) > 1 and not same else None
            results.append(replace(pair, interval=interval))
            continue
        test = tests[i]
        judged = replace(pair, interval=test.interval, p=test.p, verdict=test.verdict)
        if same:
            results.append(replace(judged, reason="equal at every seed"))
            continue
        alpha = (1 - level) / len(family)
        needed = None if gain is None else seeds_needed(test.spread, gain, alpha=alpha, power=power)
        results.append(replace(judged, visible=test.visible, needed=needed))
    return results


def _notes(mine: pd.DataFrame, theirs: pd.DataFrame | None) -> list[str]:
    """What differs between runs without making them incomparable, and what their records warn of."""
    frame = mine if theirs is None else pd.concat([mine, theirs], ignore_index=True)
    results = {
        "manifest.code.sha256": "versions of isonb's own code",
        "manifest.hardware.cpu": "kinds of processor",
        "manifest.hardware.bfloat16": "arithmetics (bfloat16, float32)",
    }
    counts = {noun: frame[column].nunique() for column, noun in results.items() if column in frame}
    notes = [f"The runs come from {count} {noun}." for noun, count in counts.items() if count > 1]
    if "manifest.warnings" in frame:
        warned = frame.dropna(subset="manifest.warnings").groupby(["arm", "manifest.warnings"], sort=False).size()
        for (arm, texts), n in warned.items():
            notes += [f"{arm}, {n} run{'s' * (n > 1)}: {text}" for text in json.loads(texts)]
    return notes

"""What a comparison says, as data, as text for a terminal, as a picture, and as a page that needs no network."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from isonb.runtime.told import Columns, Picture, Printed, Section
from isonb_lab.statistics.paired import GAIN, LOSS, OPEN
from isonb_lab.statistics.seeds import Interval

REFUSED, BROKEN = "refused", "broken"
HEAD = ("p", "detectable", "failed", "IsoScore", "verdict")


@dataclass(frozen=True)
class Pair:
    """An arm beside its control in one setting. Differences are in points: hundredths of a score from 0 to 1.

    ``differences``: by seed. ``verdict``: "gain", "loss" or "not significant"; "refused" where these runs can't say,
    "broken" where the runs themselves are at fault, each with the ``reason``.
    ``visible``: the minimum detectable effect of these seeds at the level of the verdict; ``needed``: how many seeds
    would show the gain that was named. ``failed``, ``control_failed``: shares of runs that didn't learn or ended
    with an error. ``isotropy``: how IsoScore changed where the method acts, in its own unit.
    """

    setting: str
    arm: str
    control: str
    metric: str
    differences: Mapping[int, float]
    verdict: str = REFUSED
    reason: str = ""
    interval: Interval | None = None
    p: float = math.nan
    visible: float = math.nan
    needed: int | None = None
    failed: Interval | None = None
    control_failed: Interval | None = None
    place: str = ""
    isotropy: Interval | None = None

    @property
    def judged(self) -> bool:
        """Whether there is a verdict on the method."""
        return self.verdict not in (REFUSED, BROKEN)

    @property
    def mean(self) -> float:
        """The mean difference in points; NaN without a seed in common."""
        return statistics.fmean(self.differences.values()) if self.differences else math.nan


@dataclass(frozen=True, repr=False)
class RunComparison(Printed):
    """What :func:`compare` says: one :class:`Pair` a method and setting, and what the reader should know of them all.

    ``level`` and ``power`` as given; ``gain``: the gain in points that ``needed`` speaks of, or None.
    """

    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]
    level: float
    power: float
    gain: float | None

    def to_frame(self) -> pd.DataFrame:
        """One row a pair; intervals as their ends."""
        return pd.DataFrame([_row(pair) for pair in self.pairs], columns=list(COLUMNS))

    def to_csv(self) -> str:
        """The rows as CSV."""
        return str(self.to_frame().to_csv(index=False))

    def to_json(self) -> str:
        """The rows and notes as JSON."""
        rows = json.loads(self.to_frame().to_json(orient="records"))
        about = {"level": self.level, "power": self.power, "gain": self.gain, "notes": list(self.notes)}
        return json.dumps({**about, "pairs": rows}, indent=1) + "\n"

    def values(self) -> dict[str, float | None]:
        """What ``--fail-on`` may name: counts of the verdicts, and the extremes over the pairs.

        While a pair has no verdict, nobody knows what it would be: then only the counts of pairs that are refused or
        broken, and the largest share of runs that failed, are defined.
        """
        counts = {name: float(sum(pair.verdict == verdict for pair in self.pairs)) for name, verdict in COUNTED.items()}
        shares = [pair.failed.estimate for pair in self.pairs if pair.failed]
        intervals = [pair.interval for pair in self.pairs if pair.interval]
        verdicts: dict[str, float | None] = {
            **{name: counts[name] for name in ("gains", "losses", "open")},
            "gain": min((pair.mean for pair in self.pairs), default=None),
            "high": min((interval.high for interval in intervals), default=None),
            "p": min((pair.p for pair in self.pairs), default=None),
        }
        if not all(pair.judged for pair in self.pairs):
            verdicts = dict.fromkeys(verdicts)
        about = {"refused": counts["refused"], "broken": counts["broken"]}
        return {**verdicts, **about, "failed": max(shares, default=None)}

    def fault(self) -> str:
        """Why no build should pass on this, whatever its rules: pairs that are broken, or nothing judged; else ""."""
        if count := sum(pair.verdict == BROKEN for pair in self.pairs):
            return f"{count} of {len(self.pairs)} comparisons broken: the last column says why"
        if not any(pair.judged for pair in self.pairs):
            return "nothing could be judged: the last column says why"
        return ""

    def _heads(self) -> tuple[str, str]:
        return "Methods against their controls", ""

    def _sections(self, full: bool) -> Iterator[Section]:
        if full and any(pair.interval for pair in self.pairs):
            yield Section("", [Picture(self.plot())])
        head = ["arm", "control", "seeds", "gain", f"{self.level:.0%} interval", *HEAD]
        for setting in dict.fromkeys(pair.setting for pair in self.pairs):
            rows = [_cells(pair, self.gain) for pair in self.pairs if pair.setting == setting]
            yield Section(setting, [Columns("", head, rows, words=(0, 1, 9))], shown=True)
        judged = sum(pair.judged for pair in self.pairs)
        summary = (
            "gain: mean difference from the control with the same seed, in points. p: Student's paired test, adjusted "
            f"by Holm's method over all that are judged ({judged}). detectable: the true gain that these seeds would "
            f"have shown in {self.power:.0%} of such studies. failed: runs that didn't learn or ended with an error, "
            "of the arm and of its control. IsoScore: its change where the method acts."
        )
        yield Section("", [summary, *self.notes])

    def plot(self) -> Any:
        """The differences with their intervals, and what could have shown, as an Altair chart."""
        import altair as alt

        frame = self.to_frame()
        base = alt.Chart(frame[frame["gain"].notna()]).encode(alt.Y("arm:N", title=None, sort=None))
        bar = base.transform_calculate(least="-datum.visible").mark_bar(color="#bbbbbb", opacity=0.35, height=12)
        colour = alt.Color("verdict:N", title=None, scale=alt.Scale(scheme="dark2"))
        x = alt.X("gain:Q", title="difference from the control, points")
        tips = ["arm", "gain", "low", "high", "p", "verdict"]
        layers = (
            bar.encode(alt.X("least:Q"), alt.X2("visible:Q"))
            + base.mark_rule().encode(alt.X("low:Q"), alt.X2("high:Q"), colour)
            + base.mark_point(filled=True, size=60).encode(x, colour, tooltip=tips)
        )
        return layers.properties(width=460).facet(alt.Row("setting:N", title=None)).resolve_scale(y="independent")


COUNTED = {"gains": GAIN, "losses": LOSS, "open": OPEN, "refused": REFUSED, "broken": BROKEN}
COLUMNS = (
    "setting", "arm", "control", "metric", "seeds", "gain", "low", "high", "p", "visible", "needed",
    "failed", "failed_low", "failed_high", "control_failed", "place", "isotropy", "isotropy_low", "isotropy_high",
    "verdict", "reason",
)  # fmt: skip


def _cells(pair: Pair, gain: float | None) -> list[str]:
    """A pair as its row on a screen or a page."""
    verdict = f"{pair.verdict}: {pair.reason}" if pair.reason else pair.verdict
    needed = f", {pair.needed} seeds would show {gain:g}" if pair.needed and pair.verdict == OPEN else ""
    return [
        pair.arm,
        pair.control,
        str(len(pair.differences)),
        "" if pair.mean != pair.mean else f"{pair.mean:+.2f}",
        "" if pair.interval is None else f"{pair.interval.low:+.2f} to {pair.interval.high:+.2f}",
        "" if pair.p != pair.p else "< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}",
        "" if pair.visible != pair.visible else f"{pair.visible:.2f}",
        _share(pair.failed, pair.control_failed),
        "" if pair.isotropy is None else f"{pair.isotropy.estimate:+.3f}",
        verdict + needed,
    ]


def _share(first: Interval | None, second: Interval | None) -> str:
    if first is None or second is None:
        return ""
    return f"{first.estimate * first.n:.0f} of {first.n}, {second.estimate * second.n:.0f} of {second.n}"


def _row(pair: Pair) -> dict[str, Any]:
    summary = vars(pair) | {"seeds": len(pair.differences)}
    intervals = {"gain": pair.interval, "failed": pair.failed, "isotropy": pair.isotropy}
    for name, first in (intervals | {"control_failed": pair.control_failed}).items():
        ends = (math.nan,) * 3 if first is None else first.ends
        summary |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    summary |= {"gain": pair.mean, "low": summary["gain_low"], "high": summary["gain_high"]}
    return {name: summary[name] for name in COLUMNS}

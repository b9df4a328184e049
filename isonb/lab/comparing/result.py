"""What a comparison found, as data, as text for a terminal, as a picture, and as a page that needs no network."""

from __future__ import annotations

import html
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from isonb.lab.statistics.paired import GAIN, LOSS, OPEN
from isonb.lab.statistics.seeds import Interval

REFUSED = "refused"
WIDE = 100
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
div { overflow-x: auto; } table { border-collapse: collapse; } svg { max-width: 100%; height: auto; background: #fff; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #8885; vertical-align: top; }
th:first-child, td:first-child, td:last-child { text-align: left; }
"""
HEAD = ("arm", "control", "seeds", "gain", "95% interval", "p", "detectable", "failed", "IsoScore", "verdict")


@dataclass(frozen=True)
class Pair:
    """An arm beside its control in one setting. Differences are in points: hundredths of a score from 0 to 1.

    ``differences``: by seed. ``verdict``: "gain", "loss", "not significant" or "refused", with the ``reason``.
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


@dataclass(frozen=True)
class RunComparison:
    """What :func:`compare` found: one :class:`Pair` a method and setting, and what the reader should know of them all.

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
        """What ``--fail-on`` may name: counts of gains, losses and refusals, and the extremes over the pairs."""
        intervals = [pair.interval for pair in self.pairs if pair.interval]
        counts = {name: float(sum(pair.verdict == verdict for pair in self.pairs)) for name, verdict in COUNTED.items()}
        shares = [pair.failed.estimate for pair in self.pairs if pair.failed]
        return {
            **counts,
            "gain": min((interval.estimate for interval in intervals), default=None),
            "high": min((interval.high for interval in intervals), default=None),
            "p": min((pair.p for pair in self.pairs if pair.p == pair.p), default=None),
            "failed": max(shares, default=None),
        }

    def __repr__(self) -> str:
        return _screen(self)

    def html(self) -> str:
        """A page with table and picture that opens without a network."""
        return _page(self)

    def plot(self) -> Any:
        """The differences with their intervals, and what could have shown, as an Altair chart."""
        return _chart(self)


COUNTED = {"gains": GAIN, "losses": LOSS, "open": OPEN, "refused": REFUSED}
COLUMNS = (
    "setting", "arm", "control", "metric", "seeds", "gain", "low", "high", "p", "visible", "needed",
    "failed", "failed_low", "failed_high", "control_failed", "place", "isotropy", "isotropy_low", "isotropy_high",
    "verdict", "reason",
)  # fmt: skip


def _table_rows(found: RunComparison) -> list[tuple[str, list[str]]]:
    """Each pair as its setting and the cells under :data:`HEAD`."""
    return [(pair.setting, _cells(pair, found)) for pair in found.pairs]


def _screen(found: RunComparison) -> str:
    """What a terminal shows: one table a setting, then what the numbers mean."""
    rows = _table_rows(found)
    head = [f"{found.level:.0%} interval" if cell == "95% interval" else cell for cell in HEAD]
    widths = [max(len(cells[i]) for cells in (head, *(cells for _, cells in rows))) for i in range(len(head) - 1)]

    def line(cells: Sequence[str]) -> str:
        first = f"{cells[0]:{widths[0]}}  {cells[1]:{widths[1]}}"
        rest = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells[2:-1], widths[2:], strict=True))
        return f"{first}  {rest}  {cells[-1]}".rstrip()

    lines = []
    for setting in dict.fromkeys(setting for setting, _ in rows):
        lines += [setting, line(head), *(line(cells) for name, cells in rows if name == setting), ""]
    return "\n".join([*lines, *(part for text in _told(found) for part in textwrap.wrap(text, WIDE))])


def _page(found: RunComparison) -> str:
    """The same as HTML, with the picture in it."""
    import vl_convert

    parts = []
    rows = _table_rows(found)
    for setting in dict.fromkeys(setting for setting, _ in rows):
        cells = "".join(_tr("td", cells) for name, cells in rows if name == setting)
        parts.append(f"<h2>{html.escape(setting)}</h2><div><table>{_tr('th', HEAD)}{cells}</table></div>")
    if any(pair.interval for pair in found.pairs):
        parts.insert(0, f"<div>{vl_convert.vegalite_to_svg(_chart(found).to_json())}</div>")
    words = "".join(f"<p>{html.escape(text)}</p>" for text in _told(found))
    title = "Methods against their controls"
    top = f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style><title>{title}</title>'
    return f"{top}<h1>{title}</h1>{''.join(parts)}{words}</html>\n"


def _chart(found: RunComparison) -> Any:
    """Each difference as a dot with its interval, the minimum detectable effect as a pale bar around zero."""
    import altair as alt

    frame = found.to_frame()
    base = alt.Chart(frame[frame["gain"].notna()]).encode(alt.Y("arm:N", title=None, sort=None))
    bar = base.transform_calculate(least="-datum.visible").mark_bar(color="#bbbbbb", opacity=0.35, height=12)
    colour = alt.Color("verdict:N", title=None, scale=alt.Scale(scheme="dark2"))
    x = alt.X("gain:Q", title="difference from the control, points")
    layers = (
        bar.encode(alt.X("least:Q"), alt.X2("visible:Q"))
        + base.mark_rule().encode(alt.X("low:Q"), alt.X2("high:Q"), colour)
        + base.mark_point(filled=True, size=60).encode(
            x, colour, tooltip=["arm", "gain", "low", "high", "p", "verdict"]
        )
    )
    return layers.properties(width=460).facet(alt.Row("setting:N", title=None)).resolve_scale(y="independent")


def _cells(pair: Pair, found: RunComparison) -> list[str]:
    refused = f"{pair.verdict}: {pair.reason}" if pair.reason else pair.verdict
    needed = f", {pair.needed} seeds would show {found.gain:g}" if pair.needed and pair.verdict == OPEN else ""
    return [
        pair.arm,
        pair.control,
        str(len(pair.differences)),
        "" if pair.interval is None else f"{pair.interval.estimate:+.2f}",
        "" if pair.interval is None else f"{pair.interval.low:+.2f} to {pair.interval.high:+.2f}",
        "" if pair.p != pair.p else "< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}",
        "" if pair.visible != pair.visible else f"{pair.visible:.2f}",
        _share(pair.failed, pair.control_failed),
        "" if pair.isotropy is None else f"{pair.isotropy.estimate:+.3f}",
        refused + needed,
    ]


def _share(one: Interval | None, other: Interval | None) -> str:
    if one is None or other is None:
        return ""
    return f"{one.estimate * one.n:.0f} of {one.n}, {other.estimate * other.n:.0f} of {other.n}"


def _told(found: RunComparison) -> list[str]:
    judged = sum(not pair.reason for pair in found.pairs)
    return [
        "gain: mean difference from the control with the same seed, in points. p: Student's paired test, adjusted by "
        f"Holm's method over all that are judged ({judged}). detectable: the true gain that these seeds would have "
        f"shown in {found.power:.0%} of such studies. failed: runs that didn't learn or ended with an error, of the "
        "arm and of its control. IsoScore: its change where the method acts.",
        *found.notes,
    ]


def _tr(kind: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"


def _row(pair: Pair) -> dict[str, Any]:
    told = vars(pair) | {"seeds": len(pair.differences)}
    intervals = {"gain": pair.interval, "failed": pair.failed, "isotropy": pair.isotropy}
    for name, one in (intervals | {"control_failed": pair.control_failed}).items():
        ends = (math.nan,) * 3 if one is None else (one.estimate, one.low, one.high)
        told |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    told |= {"low": told["gain_low"], "high": told["gain_high"]}
    return {name: told[name] for name in COLUMNS}

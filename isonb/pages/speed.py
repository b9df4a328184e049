"""The record of ``make bench`` as tables and pictures: ratios by peer, growth with the number of points, memory.

Every function takes a record that lacks suites, or is empty, and says so in place of numbers.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import CLOUD, GREY, OKABE_ITO, dash
from isonb.pages.evidence import joined
from isonb.pages.speed_pieces import held_back, largest
from isonb.pages.speed_record import (
    CARD,
    FLOORS,
    NOTHING,
    PEERS,
    STARTS,
    Bench,
    aims,
    exponent,
    furthest,
    grown,
    load,
    spent,
)

__all__ = [
    "CARD",
    "NOTHING",
    "Bench",
    "answer",
    "goals",
    "grown",
    "growth",
    "held_back",
    "load",
    "machine",
    "memory",
    "ratios",
    "slopes",
    "took",
    "unmeasured",
]

HOW = "The command make bench measures it, and python -m tests.benchmarks --publish puts it here."
POWERS = [10.0**power for power in range(-4, 8)]  # no lines between them, however few there are
VERDICTS = {"goal reached": OKABE_ITO["green"], "goal missed": OKABE_ITO["vermillion"], "no goal": GREY}


def answer(bench: Bench) -> str:
    """What the record says, in a few sentences."""
    rows = bench.compared
    if rows.empty:
        return f"Of speed {NOTHING} yet. {HOW}"
    others = rows[rows["kind"] == PEERS]
    faster = others[others["faster"] > 1]
    told = []
    if len(others):
        told.append(
            f"isonb is faster than the other code in {len(faster)} of {len(others)} comparisons, at the median "
            f"{times(others['faster'].median())} as fast, at best {times(others['faster'].max())}, "
            f"at worst {times(others['faster'].min())}."
        )
    aims = rows[rows["verdict"].isin(["reached", "missed"])]
    if len(aims):
        told.append(f"It reaches {(aims['verdict'] == 'reached').sum()} of {len(aims)} goals.")
    wrong = int((rows["verdict"] == "WRONG").sum())
    told.append(f"Results disagree in {wrong or 'none'} of these rows. Measured on {place(bench)}.")
    return " ".join(told)


def place(bench: Bench) -> str:
    """The card it was measured on, else the processor."""
    return str(bench.about["accelerator"] or bench.about["processor"])


def took(bench: Bench, what: str, size: str) -> str:
    """Our least time for one thing, in words; a dash where it wasn't measured."""
    rows = bench.rows[(bench.rows["what"] == what) & (bench.rows["size"] == size)]
    return f"{rows['ours_ms'].min():.2g} ms" if len(rows) else "–"


def times(factor: float) -> str:
    """A factor in words, two digits.

    >>> times(12.34), times(0.5), times(0.0123)
    ('12 times', '0.5 times', '0.012 times')
    """
    return f"{factor:.0f} times" if factor >= 10 else f"{factor:.2g} times"


def ratios(bench: Bench) -> Any:
    """A dot a row of the record, by peer, on a logarithmic axis: how many times faster we are. Dashed, equally fast."""
    rows = bench.compared
    if rows.empty:
        return blank()
    names = {"reached": "goal reached", "missed": "goal missed", "": "no goal", "WRONG": "no goal"}
    shown = rows.assign(
        aim=rows["verdict"].map(names),
        ours=[spent(t) for t in rows["ours_rounds_ms"]],
        theirs=[spent(t) for t in rows["peer_rounds_ms"]],
    )
    shown = shown[["what", "size", "peer", "kind", "aim", "faster", "ours", "theirs", "error"]]
    order = shown.groupby("peer")["faster"].median().sort_values(ascending=False).index.tolist()
    base = alt.Chart(width=420, height=alt.Step(20))
    line = base.mark_rule(strokeDash=[5, 3], color=GREY, aria=False).encode(x=alt.datum(1))
    x = alt.X("faster:Q", scale=alt.Scale(type="log"), title="their time / ours", axis=alt.Axis(tickCount=5))
    same: dict[str, Any] = {"sort": list(VERDICTS), "title": None}
    dots = base.mark_point(**{**CLOUD, "size": 70}).encode(
        x,
        alt.Y("peer:N", sort=order, title=None),
        alt.Color("aim:N", scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())), **same),
        alt.Shape("aim:N", scale=alt.Scale(domain=list(VERDICTS), range=["circle", "triangle-down", "square"]), **same),
        tooltip=["what", "size", "peer", alt.Tooltip("faster", format=".3g"), "ours", "theirs", "error"],
    )
    row = alt.Row(
        "kind:N", sort=[PEERS, FLOORS, STARTS], title=None, header=alt.Header(labelOrient="top", labelAnchor="start")
    )
    return alt.layer(line, dots, data=shown).facet(row=row).resolve_scale(y="independent")


def growth(bench: Bench) -> Any:
    """A panel a measure: time against the number of points, both logarithmic, ours and the peer's, a dash a d."""
    frame = grown(bench)
    if frame.empty:
        return blank()
    colors = alt.Scale(domain=["isonb", "peer"], range=[OKABE_ITO["blue"], OKABE_ITO["vermillion"]])
    chart = alt.Chart(frame, width=250, height=170).mark_line(point={"size": 35})
    chart = chart.encode(
        alt.X("n:Q", scale=alt.Scale(type="log", base=2), title="points", axis=alt.Axis(tickCount=6, format="d")),
        alt.Y("ms:Q", scale=alt.Scale(type="log"), title="milliseconds", axis=alt.Axis(values=POWERS)),
        alt.Color("by:N", scale=colors, title="code"),  # a title, as the dimensions beside it have
        dash("d:O", title="dimensions", legend=alt.Legend(symbolType="stroke", symbolStrokeColor=GREY, symbolSize=300)),
        tooltip=["measure", "name", "n", "d", "rounds", "error"],
    )
    facet = alt.Facet("measure:N", title=None, sort=list(frame["measure"].unique()))
    return chart.facet(facet, columns=2).resolve_scale(y="independent")


def slopes(bench: Bench) -> list[dict[str, Any]]:
    """Exponents of n over the larger half of the sizes, ours beside the peer's, and the ratio at the largest n."""
    found = []
    for (measure, d), part in grown(bench).groupby(["measure", "d"], sort=False):
        largest = part[part["n"] == part["n"].max()].set_index("by")
        one = {"measure": measure, "d": d, "isonb": exponent(part, "isonb"), "against": largest.loc["peer", "name"]}
        one |= {"theirs": exponent(part, "peer"), "largest n": int(part["n"].max())}
        found.append(one | {"times faster there": float(largest.loc["peer", "ms"] / largest.loc["isonb", "ms"])})
    return found or [{"measure": NOTHING}]


def goals(bench: Bench, most: int = 12) -> list[dict[str, str]]:
    """At most ``most`` goals: those missed first, the furthest on top, then those reached by the least."""
    order = furthest(bench).head(most)
    if order.empty:
        return [{"comparison": NOTHING}]
    return [
        aims(row)
        | {
            "verdict": row["verdict"],
            "what takes longest": largest(row) if row["verdict"] == "missed" else "–",
            "largest error": f"{row['error']:.0e}" if row["error"] else "0",
        }
        for row in order.to_dict("records")
    ]


def memory(bench: Bench) -> list[dict[str, str]]:
    """What calls need beside their input, and the bounds."""
    found = [
        {
            "call": row["what"],
            "size": row["size"],
            "MB": f"{row['mb']:.0f}",
            "at most": f"{row['bound_mb']:.0f}",
            "verdict": row["verdict"],
            "where it goes": row["limit"] or "–",
            "largest error": f"{row['error']:.0e}" if row["error"] else "0",
        }
        for row in bench.memory.to_dict("records")
    ]
    return found or [{"call": NOTHING}]


def machine(bench: Bench) -> list[dict[str, str]]:
    """What it was measured on."""
    about = bench.about
    if not about:
        return [{"what": "machine", "value": NOTHING}]
    versions = joined(f"{name} {version}" for name, version in about.get("packages", {}).items())
    told = {
        "processor": f"{about['processor']}, {about['cores']} cores, {about['threads']} thread used",
        "memory": f"{about['memory_gib']} GiB",
        "system": f"{about['system']}, {about['machine']}",
        "graphics card": about["accelerator"] or "none",
        "load before it began": str(about["load"]),
        "versions": f"Python {about['python']}, torch {about['torch']}, {versions}",
    }
    return [{"what": what, "value": value} for what, value in told.items()]


def unmeasured(bench: Bench, card: Bench | None = None) -> str:
    """What the record lacks, in a sentence or two, with that of a ``card`` beside it."""
    if not bench.about:
        return f"everything: {NOTHING} yet. {HOW}"
    about = bench.about
    parts = [] if card is not None and card.about else ["times on a graphics card"]
    if about.get("missing"):
        parts.append(f"the suites {joined(about['missing'])}, which did not run")
    if about.get("absent"):
        parts.append(f"what isn't installed where it was measured: {joined(about['absent'])}")
    small = " The sizes are those for trying the code, and the times mean nothing." if about["sizes"] != "full" else ""
    return ("; ".join(parts) or "nothing that the suites know of") + "." + small


def blank() -> Any:
    """A picture that says that there is nothing to draw."""
    words = alt.Chart(pd.DataFrame({"text": [f"{NOTHING} yet"]}), width=420, height=60)
    return words.mark_text(fontSize=14, color=GREY).encode(text="text:N")

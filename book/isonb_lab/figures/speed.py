"""Tables and pictures of *Speed*, from the record of ``make bench``: ratios, growth, memory, the pieces of a call.

A published record is whole: every suite ran at full size, and all results agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from isonb.errors import InputError, fail
from isonb_lab.pages.charts import CLOUD, GREY, OKABE_ITO, dash
from isonb_lab.pages.charts.comparisons import ZERO
from isonb_lab.pages.evidence import joined
from isonb_lab.places import RECORDINGS_FOLDER

RECORD, CARD = RECORDINGS_FOLDER / "bench.json", RECORDINGS_FOLDER / "bench_gpu.json"
GROWTH = {"n": "growth", "d": "widths"}  # how names of suites begin that measure it: by points, or by dimensions
AXES = {"n": "points", "d": "dimensions"}
STARTING = "starting"  # the suite of fresh processes
BEHIND = 0.8  # of the speed of the fastest peer: rows below it are named
PEERS, FLOORS, STARTS = "other code for the same numbers", "floors", "starting a process"


@dataclass(frozen=True)
class Bench:
    """``rows``: one a comparison; ``memory``: one a measured peak; ``readings``: those without a peer."""

    rows: pd.DataFrame
    memory: pd.DataFrame
    readings: pd.DataFrame
    about: Mapping[str, Any]

    @property
    def compared(self) -> pd.DataFrame:
        """The rows that stand for themselves, with ``faster``, the time of the other over ours, and their ``kind``."""
        rows = self.rows[~self.rows["suite"].str.startswith(tuple(GROWTH.values()))]
        kind = rows["yardstick"].map({True: FLOORS, False: PEERS}).where(rows["suite"] != STARTING, STARTS)
        return rows.assign(faster=rows["peer_ms"] / rows["ours_ms"], kind=kind)

    @property
    def best(self) -> pd.DataFrame:
        """Of each comparison with other code the row of the fastest peer, the slowest of ours first."""
        rows = self.compared
        rows = rows[rows["kind"] == PEERS].sort_values("faster", kind="stable")
        return rows.drop_duplicates(["what", "size"])

    def reading(self, suite: str) -> pd.DataFrame:
        return self.readings[self.readings["suite"] == suite]


def load(path: Path = RECORD) -> Bench:
    """A whole record; raises :class:`~isonb.errors.InputError` for any other file."""
    must, fix = "the record must be a whole one", "Run `make bench` and name _build/bench.json."
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        rows, memory, readings = (pd.DataFrame(record.pop(name, [])) for name in ("rows", "memory", "readings"))
        card = record["accelerator"] is not None
    except (OSError, ValueError, TypeError, KeyError) as error:
        fail(InputError, must, f"{type(error).__name__}: {error}", fix)
    if rows.empty or (not card and (memory.empty or readings.empty)):  # a card has no readings
        fail(InputError, must, f"{path}, of which parts are empty", fix)
    return Bench(rows, memory, readings, record)


def furthest(bench: Bench) -> pd.DataFrame:
    """The compared rows that have a goal, those furthest from it first."""
    rows = bench.compared
    rows = rows[rows["verdict"].isin(["reached", "missed"])]
    lead = np.where(rows["yardstick"], rows["goal"] / rows["ratio"], rows["ratio"] / rows["goal"]).astype(float)
    return rows.assign(lead=lead).sort_values("lead", kind="stable")


def spent(rounds: list[float]) -> str:
    """Least time of the rounds, their median and their range.

    >>> spent([2.0, 1.0, 4.0])
    '1 ms (median 2, range 1 to 4)'
    """
    return f"{min(rounds):.3g} ms (median {np.median(rounds):.3g}, range {min(rounds):.3g} to {max(rounds):.3g})"


def grown(bench: Bench, along: str = "n") -> pd.DataFrame:
    """Least times by size: measure, n, d, error, by ("isonb" or "peer"), name (of the peer), ms, rounds (in words)."""
    rows = bench.rows[bench.rows["suite"].str.startswith(GROWTH[along])]
    results = []
    for row in rows.to_dict("records"):
        n, d = map(int, row["size"].split(" x "))
        same = {"measure": row["what"], "n": n, "d": d, "error": row["error"]}
        for by, name, part in (("isonb", "isonb", "ours"), ("peer", row["peer"], "peer")):
            timing = {"ms": row[f"{part}_ms"], "rounds": spent(row[f"{part}_rounds_ms"])}
            results.append(same | {"by": by, "name": name} | timing)
    return pd.DataFrame(results, columns=["measure", "n", "d", "error", "by", "name", "ms", "rounds"])


def exponent(part: pd.DataFrame, by: str, along: str = "n") -> float | None:
    """The slope of log ms on log n (or d) over the larger half of the sizes; None for fewer than two.

    >>> frame = pd.DataFrame({"by": "isonb", "n": [1, 2, 4, 8], "ms": [5.0, 5.0, 20.0, 80.0]})
    >>> exponent(frame, "isonb")
    2.0
    """
    mine = part[part["by"] == by].sort_values(along)
    late = mine.iloc[len(mine) // 2 :] if len(mine) > 3 else mine
    if len(late) < 2:
        return None
    return round(float(np.polyfit(np.log(late[along].astype(float)), np.log(late["ms"].astype(float)), 1)[0]), 3)


def shares(parts: Sequence[Mapping[str, Any]], whole_ms: float) -> str:
    """Each piece in percent of the whole, and what is left over.

    >>> shares([{"what": "product", "ms": 3.0}, {"what": "choice", "ms": 1.0}], 5.0)
    'product 60%, choice 20%, the rest 20%'
    """
    if not parts:
        return "not measured"
    rest = max(0.0, 1 - sum(part["ms"] for part in parts) / whole_ms)
    return ", ".join([*(f"{part['what']} {part['ms'] / whole_ms:.0%}" for part in parts), f"the rest {rest:.0%}"])


def needed_alone(row: Mapping[str, Any]) -> str:
    """Their time over ours if all but the needed pieces took none."""
    needed = sum(part["ms"] for part in row["parts"] if part["needed"])
    return f"{row['peer_ms'] / needed:.2g}" if needed else "–"


def largest(row: Mapping[str, Any]) -> str:
    """The piece that takes most of the time, in words; where none is timed, the limit that the suite names.

    >>> largest({"limit": "", "parts": [{"what": "trees", "ms": 1.0}, {"what": "product", "ms": 3.0}], "ours_ms": 4.0})
    'product, 75%'
    """
    parts = row["parts"]
    if not parts:
        return row["limit"] or "not found out"
    most = max(parts, key=lambda part: part["ms"])
    return f"{most['what']}, {most['ms'] / row['ours_ms']:.0%}"


POWERS = [10.0**power for power in range(-4, 8)]  # no lines between them, however few there are
VERDICTS = {"goal reached": OKABE_ITO["green"], "goal missed": OKABE_ITO["vermillion"], "no goal": GREY}


def answer(bench: Bench) -> str:
    """What the record says, in a few sentences; of the peers the fastest counts alone."""
    best = bench.best
    slow = best[best["faster"] < BEHIND]
    long = slow[slow["ours_ms"] >= 1]
    wrong = int((bench.compared["verdict"] == "WRONG").sum())
    worst, slowest = (
        joined((f"{row['what']} ({row['faster']:.2g})" for row in part.to_dict("records")), none="none")
        for part in (long.head(3), slow.head(1))
    )
    lines = [
        f"isonb is faster than the fastest other code in {(best['faster'] > 1).sum()} of {len(best)} comparisons.",
        f"At the median it is {times(best['faster'].median())} as fast.",
        f"It has less than 0.8 of their speed in {len(slow)}.",
        f"Of these {len(slow) - len(long)} take less than a millisecond, where checks count.",
        f"The worst of them is {slowest}.",
        f"The worst that take longer are {worst}.",
        f"Results disagree in {wrong or 'none'} of these rows. Measured on {place(bench)}.",
    ]
    return " ".join(lines)


def overheads(bench: Bench) -> list[dict[str, str]]:
    """What a term adds to a step of training, or a way of training to a whole run, in percent."""
    rows = bench.rows[bench.rows["suite"].isin(["step_overhead", "card_step_overhead", "fine_tuning"])]
    return [
        {"added": row["what"], "to": f"{row['peer']}, {row['size']}", "costs": f"{(row['ratio'] - 1) * 100:+.0f} %"}
        for row in rows.to_dict("records")
    ]


def million(bench: Bench) -> list[dict[str, str]]:
    """CPU time and memory at the largest size, how they grow, and what a million rows would take at that exponent."""
    results = []
    for what, part in bench.reading("scaling").groupby("what", sort=False):
        part = part.sort_values("n")
        last, power = part.iloc[-1], rise(part, "seconds")
        whole = lasting(last["seconds"] * (1e6 / last["n"]) ** power)
        results.append(
            {
                "call": what,
                "vectors": last["size"],
                "CPU time": f"{last['seconds']:.3g} s",
                "exponent of n": f"{power:.2f}",
                "memory beside them, at most": f"{last['mb']:.0f} MB, of {last['input_mb']:.0f} MB",
                "exponent of memory": f"{rise(part, 'mb'):.2f}",
                # what a sample bounds goes on otherwise
                "a million vectors, if it goes on so": whole if power > 1 else "–",
            }
        )
    return results


def rise(part: pd.DataFrame, column: str) -> float:
    """The slope of the logarithm of a column on that of n, over the larger half of the sizes."""
    late = part[part[column] > 0].iloc[-(len(part) // 2 + 1) :].astype({"n": float, column: float})
    return float(np.polyfit(np.log(late["n"]), np.log(late[column]), 1)[0]) if len(late) > 1 else float("nan")


def lasting(seconds: float) -> str:
    """Seconds in the unit that one would say.

    >>> lasting(40), lasting(600), lasting(7200)
    ('40 s', '10 minutes', '2 hours')
    """
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} minutes" if seconds < 5400 else f"{seconds / 3600:.3g} hours"


def sent(bench: Bench) -> list[dict[str, object]]:
    """Of each loss with its gradient the operators, those that wait for a value, and what a compiler makes of it."""
    columns = {"what": "loss", "operators": "operators", "waits": "waits", "compiled": "compiled"}
    rows = bench.reading("kernels").reindex(columns=list(columns)).rename(columns=columns)
    return list(rows.astype({"operators": int, "waits": int}).to_dict("records"))


def behind(bench: Bench) -> list[dict[str, str]]:
    """Every comparison in which the fastest peer is clearly faster, and what our time is made of."""
    rows = bench.best[bench.best["faster"] < BEHIND]
    return [
        {
            "comparison": f"{row['what']}, {row['size']}",
            "fastest other code": row["peer"],
            "their time / ours": f"{row['faster']:.2f}",
            "our time": f"{row['ours_ms']:.3g} ms",
            "share of each piece": shares(row["parts"], row["ours_ms"]),
            "needed pieces alone": needed_alone(row),
        }
        for row in rows.to_dict("records")
    ] or [{"comparison": "none"}]


def by_boxes(bench: Bench) -> str:
    """How much faster trees of boxes are where they are taken, by the number of dimensions."""
    rows = bench.rows[bench.rows["what"] == "neighbours by boxes"]
    each = [f"{times(row['peer_ms'] / row['ours_ms'])} at {row['size']}" for row in rows.to_dict("records")]
    return joined(each)


def place(bench: Bench) -> str:
    """The card it was measured on, else the processor."""
    return str(bench.about["accelerator"] or bench.about["processor"])


def took(bench: Bench, what: str, size: str) -> str:
    """Our least time for one thing, in words."""
    rows = bench.rows[(bench.rows["what"] == what) & (bench.rows["size"] == size)]
    return f"{rows['ours_ms'].min():.2g} ms"


def times(factor: float) -> str:
    """A factor in words, two digits.

    >>> times(12.34), times(0.5), times(0.0123)
    ('12 times', '0.5 times', '0.012 times')
    """
    return f"{factor:.0f} times" if factor >= 10 else f"{factor:.2g} times"


def ratios(bench: Bench) -> Any:
    """A dot a row of the record, by peer, on a logarithmic axis: how many times faster we are. Dashed, equally fast."""
    rows = bench.compared
    names = {"reached": "goal reached", "missed": "goal missed", "": "no goal", "WRONG": "no goal"}
    shown = rows.assign(
        aim=rows["verdict"].map(names),
        ours=[spent(t) for t in rows["ours_rounds_ms"]],
        theirs=[spent(t) for t in rows["peer_rounds_ms"]],
    )
    shown = shown[["what", "size", "peer", "kind", "aim", "faster", "ours", "theirs", "error"]]
    order = shown.groupby("peer")["faster"].median().sort_values(ascending=False).index.tolist()
    base = alt.Chart(width=420, height=alt.Step(20))
    line = base.mark_rule(**ZERO).encode(x=alt.datum(1))
    x = alt.X("faster:Q", scale=alt.Scale(type="log"), title="their time / ours", axis=alt.Axis(tickCount=5))
    same: dict[str, Any] = {"sort": list(VERDICTS), "title": None}
    dots = base.mark_point(**{**CLOUD, "size": 70}).encode(
        x,
        alt.Y("peer:N", sort=order, title=None),
        alt.Color("aim:N", scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())), **same),
        alt.Shape("aim:N", scale=alt.Scale(domain=list(VERDICTS), range=["circle", "triangle-down", "square"]), **same),
        tooltip=["what", "size", "peer", alt.Tooltip("faster", format=".3g"), "ours", "theirs", "error"],
    )
    header = alt.Header(labelOrient="top", labelAnchor="start")
    row = alt.Row("kind:N", sort=[PEERS, FLOORS, STARTS], title=None, header=header)
    return alt.layer(line, dots, data=shown).facet(row=row).resolve_scale(y="independent")


def growth(bench: Bench, along: str = "n") -> Any:
    """A panel a measure: time against the points (or dimensions), both logarithmic, ours and the peer's, a dash a d."""
    frame, other = grown(bench, along), "d" if along == "n" else "n"
    colors = alt.Scale(domain=["isonb", "peer"], range=[OKABE_ITO["blue"], OKABE_ITO["vermillion"]])
    ticks = alt.Axis(tickCount=6, format="d")
    strokes = alt.Legend(symbolType="stroke", symbolStrokeColor=GREY, symbolSize=300)
    chart = alt.Chart(frame, width=250, height=170).mark_line(point={"size": 35})
    chart = chart.encode(
        alt.X(f"{along}:Q", scale=alt.Scale(type="log", base=2), title=AXES[along], axis=ticks),
        alt.Y("ms:Q", scale=alt.Scale(type="log"), title="milliseconds", axis=alt.Axis(values=POWERS)),
        alt.Color("by:N", scale=colors, title="code"),  # a title, as the dimensions beside it have
        dash(f"{other}:O", title=AXES[other], legend=strokes),
        tooltip=["measure", "name", "n", "d", "rounds", "error"],
    )
    facet = alt.Facet("measure:N", title=None, sort=list(frame["measure"].unique()))
    return chart.facet(facet, columns=2).resolve_scale(y="independent")


def slopes(bench: Bench, along: str = "n") -> list[dict[str, Any]]:
    """Exponents of n (or d) over the larger half of the sizes, ours beside the peer's, and the ratio at the largest."""
    result, other = [], "d" if along == "n" else "n"
    for (measure, size), part in grown(bench, along).groupby(["measure", other], sort=False):
        largest = part[part[along] == part[along].max()].set_index("by")
        items = {"measure": measure, other: size, "isonb": exponent(part, "isonb", along)}
        items |= {"against": largest.loc["peer", "name"], "theirs": exponent(part, "peer", along)}
        items |= {f"largest {along}": int(part[along].max())}
        result.append(items | {"times faster there": float(largest.loc["peer", "ms"] / largest.loc["isonb", "ms"])})
    return result


def goals(bench: Bench) -> list[dict[str, str]]:
    """At most twelve goals: those missed first, the furthest on top, then those reached by the least."""
    return [
        {
            "comparison": f"{row['what']}, {row['size']}",
            "against": row["peer"],
            "goal": f"{'≤' if row['yardstick'] else '≥'} {row['goal']:.3g}",
            "ratio": f"{row['ratio']:.3g}",
            "verdict": row["verdict"],
            "what takes longest": largest(row) if row["verdict"] == "missed" else "–",
            "largest error": f"{row['error']:.0e}" if row["error"] else "0",
        }
        for row in furthest(bench).head(12).to_dict("records")
    ]


def memory(bench: Bench) -> list[dict[str, str]]:
    """What calls need beside their input, and the bounds."""
    return [
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


def machine(bench: Bench) -> list[dict[str, str]]:
    """What it was measured on."""
    about = bench.about
    versions = joined(f"{name} {version}" for name, version in about["packages"].items())
    facts = {
        "processor": f"{about['processor']}, {about['cores']} cores, {about['threads']} thread used",
        "memory": f"{about['memory_gib']} GiB",
        "system": f"{about['system']}, {about['machine']}",
        "graphics card": about["accelerator"] or "none",
        "load before it began": str(about["load"]),
        "versions": f"Python {about['python']}, torch {about['torch']}, {versions}",
    }
    return [{"what": what, "value": value} for what, value in facts.items()]


def unmeasured(bench: Bench) -> str:
    """The peers that the record lacks, in a sentence."""
    if absent := bench.about["absent"]:
        return f"what isn't installed where it was measured: {joined(absent)}."
    return "nothing that the suites know of."

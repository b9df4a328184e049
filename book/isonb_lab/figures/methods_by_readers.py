"""The picture, the tables and the words of methods by readers, from whatever runs are there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from isonb.runtime.told import between
from isonb_lab.claims.design import PLAIN
from isonb_lab.data import fetched
from isonb_lab.pages.charts.comparisons import crosses, nothing_run
from isonb_lab.pages.evidence import in_points, joined
from isonb_lab.papers import dial
from isonb_lab.papers import methods_by_readers as study
from isonb_lab.papers.hypotheses import CONTRADICTED, HOLDS, OPEN
from isonb_lab.papers.methods_by_readers import COSINE, HEAD, METHODS, PARTS, READERS, RIDGE, Part, Runs
from isonb_lab.statistics.seeds import LEVEL

SECOND = "trained head, second task"
COSINE_AND_HEAD = {
    HOLDS: "Over these methods, what helps a cosine hurts the trained head.",
    CONTRADICTED: "What helps a cosine helps the trained head, too, with one of the models at least.",
    OPEN: "Whether what helps a cosine hurts the trained head stays open.",
}
GAIN = {
    HOLDS: "On SST-2 no method gains a point with the trained head",
    CONTRADICTED: "On SST-2 some method gains a point with the trained head",
    OPEN: "On SST-2 it stays open whether any method gains a point with the trained head",
}
SECOND_GAIN = {HOLDS: "none does", CONTRADICTED: "some method does", OPEN: "that stays open"}
METRICS = (
    "Scores: accuracy on SST-2 of the trained head, of the ridge head and of ten neighbours; Matthews correlation on "
    "CoLA of the fresh head and of the second task; Spearman's correlation on STS-B of the cosine; nDCG at 10 on SQuAD "
    "of the search."
)


def answer(measured: Mapping[Part, Runs], missing: str) -> str:
    """What the runs say of the question, and on which seeds; ``missing``: what those that aren't there would cost."""
    waiting = f" Not all are recorded: {missing}." if missing else ""
    shown = [part for part in PARTS[:2] if part in measured]
    if not shown:
        return f"These runs aren't made yet.{waiting}"
    outcomes = {item.name: item.outcome for item in study.answers(measured)}
    seeds = joined(f"{len(measured[part][PLAIN])} of {part.seeds} seeds of {part.model}" for part in shown)
    low = "".join(f" {model} decides nothing here: {why}." for model, why in study.unlearned(measured).items())
    cells = study.head_cells(measured, "A")
    if (cells["excluded"] != "").any() and outcomes["M1"] == OPEN:
        counted = cells[cells["excluded"] == ""]
        low += f" Of {len(cells)} cells of SST-2 {int(counted['ruled_out'].sum())} rule a gain of a point out."
        idle, unsure = ((cells["excluded"] == reason).sum() for reason in (study.DID_NOT_ACT, study.STILL_LEARNED))
        low += f" In {idle} the method didn't act." * bool(idle)
        low += f" In {unsure} the head still learned when its training ended: they decide nothing." * bool(unsure)
    second = f"; on the second task {SECOND_GAIN[outcomes['M2']]}" if any(p.letter == "C" for p in measured) else ""
    gain = f"{GAIN[outcomes['M1']]}{second}."
    return f"{COSINE_AND_HEAD[outcomes['M4']]} {gain} This rests on {seeds} on SST-2.{low}{waiting}"


def losses(measured: Mapping[Part, Runs]) -> str:
    """The significant losses of the trained head by task, and the cells whose training a method destroyed."""
    texts = []
    for letter, task in (("A", "SST-2"), ("C", "the second task")):
        cells = study.head_cells(measured, letter)
        lost = cells[(cells["excluded"] == "") & (cells["p"] <= 1 - LEVEL) & (cells["gain"] < 0)].sort_values("gain")
        if lost.empty:
            continue
        named = [f"{row['arm']} with {row['model']} {_ends(row)}" for row in lost.to_dict("records")]
        texts.append(f"Significant losses of the trained head on {task}: {'; '.join(named)}.")
        texts += [destroyed(measured, Part(letter, row["model"]), row["arm"]) for row in lost.to_dict("records")]
    return " ".join(filter(None, texts))


def destroyed(measured: Mapping[Part, Runs], part: Part, arm: str) -> str:
    """Of an arm that most runs of a part failed with: how many, and what it gives other readers after SST-2; or ""."""
    cells = measured[part]
    lost, seeds = study.failures(cells, arm), len(cells[arm])
    if 2 * lost <= seeds:
        return ""
    plain, score = (cells[name]["score"].mean() for name in (PLAIN, arm))
    text = f"{arm} destroyed that training with {part.model}: {lost} of {seeds} runs failed. "
    text += f"Their mean score is {score:.3f}, and {plain:.3f} with plain training."
    first = next(other for other in PARTS[:2] if other.model == part.model)
    others = study.table({first: measured[first]} if first in measured else {})
    others = others[(others["arm"] == arm) & (others["gain"] > 0) & (others["p"] <= 1 - LEVEL)]
    gained = joined(f"{row['reader']} {_ends(row)}" for row in others.to_dict("records") if row["reader"] != RIDGE)
    return text if gained == "none" else f"{text} After SST-2 other readers gain with it: {gained}."


def _ends(row: Mapping[str, Any]) -> str:
    return in_points(*(row[name] for name in ("gain", "gain low", "gain high")))


def cut(measured: Mapping[Part, Runs]) -> str:
    """How many layers of the language model are kept, of how many: "16 of 30"; "" without its runs."""
    part, layers = study.SMOLLM2, dial.LAYERS["smollm2"][-1]
    return f"{measured[part][PLAIN]['layers'].iloc[0]:.0f} of {layers}" if part in measured else ""


def idle(measured: Mapping[Part, Runs], score: Mapping[str, float]) -> str:
    """Of models on which I-STAR didn't act at any weight: the IsoScore* that it sees."""
    istar = {arm for arm in METHODS if arm.startswith("I-STAR")}
    texts = [
        f"At none of its weights does I-STAR change what {model} learns: its term takes the tokens of all layers, and "
        f"their IsoScore* is {score[model]:.6f}. One direction holds nearly all of their variance, and there the term "
        f"has hardly a gradient."
        for model in score
        if istar <= {arm for name, arm in study.idle_arms(measured) if name == model}
    ]
    return " ".join(texts)


def lost_cosine(measured: Mapping[Part, Runs]) -> str:
    """What training takes from a model's cosine, and the method that gives most back and costs the head no point.

    Of models whose layer the dial has, too, since a cosine of another layer is no beginning, and of two seeds or more.
    """
    texts = []
    rows = study.table(measured)
    for part in (part for part in PARTS[:2] if part in measured and len(measured[part][PLAIN]) > 1):
        of_model = rows[(rows["part"] == part.letter) & (rows["model"] == part.model)].set_index(["arm", "reader"])
        before = study.frozen_cosine(part, int(measured[part][PLAIN]["layers"].iloc[0]))
        after, gains = of_model.loc[(PLAIN, COSINE), "score"], of_model["gain"].unstack()
        unsure = [arm for model, arm in study.cut_runs(measured) if model == part.model]
        sure = gains.drop(index=unsure)
        harmless = sure[(sure[HEAD] > -1) & (sure[COSINE] > 0)][COSINE]
        if before is None or after >= before or harmless.empty:
            continue
        best = harmless.idxmax()
        ends = (of_model.loc[(best, reader), ["gain", "gain low", "gain high"]] for reader in (COSINE, HEAD))
        back, head = (in_points(*some) for some in ends)
        used, kept = (of_model.loc[(arm, COSINE), "directions"] for arm in (PLAIN, best))
        texts.append(
            f"Training on SST-2 takes the cosine of {part.model} from {before:.3f} to {after:.3f} (STS-B). Of the "
            f"methods that cost the trained head less than a point, {best} gives most back: {back}, which makes "
            f"{of_model.loc[(best, COSINE), 'score']:.3f}. With it the "
            f"trained head's score changes by {head}. What the cosine reads has a participation ratio of {used:.0f} "
            f"after plain training, and of {kept:.0f} with {best}. No hypothesis asked this."
        )
        for arm in unsure:
            row = of_model.loc[(arm, COSINE)]
            texts.append(
                f"{arm.capitalize()} changes the cosine by {_ends(row)}, which makes {row['score']:.3f}; what it costs "
                "the trained head isn't known."
            )
    return " ".join(texts)


def cut_short(measured: Mapping[Part, Runs]) -> str:
    """What was done to the vectors of arms whose head still learned at its end, its course, and what a ridge head says.

    "" where no head was cut short.
    """
    texts, rows = [], study.table(measured)
    rows = rows[rows["part"] == "A"].set_index(["model", "arm", "reader"])
    for (model, arm), runs in study.cut_runs(measured).items():
        every = measured[next(part for part in PARTS[:2] if part.model == model)][arm]
        width, kept = fetched.recorded()[model]["width"], runs["method.k"].iloc[0]
        first, half, last = (f"{runs[when].mean():.0%}" for when in ("first", "half", "last"))
        ridge = in_points(*rows.loc[(model, arm, RIDGE), ["gain", "gain low", "gain high"]])
        texts.append(
            f"{arm.capitalize()} of {model} keeps {width if math.isnan(kept) else int(kept)} of {width} dimensions, "
            "as the held-out accuracy of such a head on another seed chose. "
            f"{len(runs)} of {len(every)} heads still learned after the last of {runs['updates'].max():.0f} updates. "
            f"After the first pass their accuracy on held-out rows was {first}. Half-way it was {half}, "
            f"at the end {last}. A ridge head on the same vectors changes by {ridge}."
        )
    return " ".join([*texts, "So the cells with a † decide nothing for the trained head."] if texts else "")


def cosine_and_head(measured: Mapping[Part, Runs]) -> Any:
    """Each method's gain with a cosine and with the trained head, a panel a model: means, intervals over seeds."""
    sides, cut = [], study.cut_runs(measured)
    for part in PARTS[:2]:
        if part in measured:
            x, y = (study.gains(measured[part], READERS[name]).melt() for name in (COSINE, HEAD))
            names = {arm: f"{arm} †" for model, arm in cut if model == part.model}
            sides.append(
                x.rename(columns={"value": "x"}).assign(
                    arm=x["variable"].replace(names), y=y["value"], suite=part.model
                )[~x["variable"].isin(study.without_effect(part, measured[part]))]
            )
    if not sides:
        return nothing_run()
    return crosses(
        pd.concat(sides),
        arms=[*METHODS, *dict.fromkeys(f"{arm} †" for _, arm in cut)],
        suites=[part.model for part in PARTS[:2]],
        x="gain with a cosine, points",
        y="gain with the trained head, points",
        zero=True,
        scheme="category20",
    )


def rows(measured: Mapping[Part, Runs], cell: str) -> tuple[list[dict[str, str]], dict[int, list[str]]]:
    """A row a model and arm, a column a reader, and the lines above the parts, which say the setting and its seeds.

    ``cell``: "gain", with its interval and a star where it is significant, below the scores of plain training; or
    "read", the minimum detectable effect and the participation ratio of what the reader reads.
    """
    every, cut = study.table(measured), study.cut_runs(measured)
    cells = {(row["part"], row["model"], row["arm"], row["reader"]): row for row in every.to_dict("records")}
    lines: list[dict[str, str]] = []
    heads = {}
    second_task = any(part.letter == "C" for part in measured)
    for part in (part for part in PARTS if part.letter != "C" and part in measured):
        second = Part("C", part.model)
        heads[len(lines)] = [study.setting(part, measured)]
        if part.letter == "A" and second in measured:
            heads[len(lines)][0] += f"; second task: {study.task_and_seeds(second, measured[second])}"
        for arm in part.arms:
            of_readers = {reader: cells[part.letter, part.model, arm, reader] for reader in part.readers}
            beside = cells.get(("C", part.model, arm, HEAD)) if part.letter == "A" else None
            line = {"method": "plain" + ", score" * (cell == "gain") if arm == PLAIN else arm}
            line |= {reader: _text(row, cell) for reader, row in of_readers.items()}
            line |= {SECOND: _text(beside, cell) if beside else "–"} if second_task else {}
            for column in (HEAD, SECOND) if (part.model, arm) in cut and cell == "gain" else ():
                line |= {column: line[column].replace("*", "") + " †"} if line.get(column, "–") != "–" else {}
            lines.append(line)
    return lines, heads


def _text(row: Mapping[str, Any], cell: str) -> str:
    if cell == "read":
        detectable = "–" if row["arm"] == PLAIN or not row["acted"] else f"{row['detectable']:.1f}"
        return detectable + ("" if math.isnan(row["directions"]) else f"; {row['directions']:.0f}")
    if row["arm"] == PLAIN:
        return f"{row['score']:.3f}"
    if not row["acted"]:
        return study.DID_NOT_ACT
    star = "*" * (row["reader"] != RIDGE and row["p"] <= 1 - LEVEL)
    return between(row["gain"], row["gain low"], row["gain high"], 1, "+", star)

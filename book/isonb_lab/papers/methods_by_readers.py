"""Methods by readers on models that people use, judged as ``real_models_plan.md`` says.

A cell is an arm less plain training, paired by seed on one kind of processor, for one model and one reader of its
trained vectors. A part of the plan is judged on the seeds that all its arms have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError, fail
from isonb.runtime.told import between
from isonb_lab.claims.comparing import joint_intervals
from isonb_lab.claims.design import PLAIN, TASK_NAMES
from isonb_lab.claims.table import failed
from isonb_lab.data import reader_rows
from isonb_lab.methods import SecondPhase
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.recordings import FOLDER, scored
from isonb_lab.statistics.paired import GAIN, LOSS, PairedTest, paired_tests
from isonb_lab.statistics.resampling import correlation_of_means
from isonb_lab.statistics.seeds import LEVEL, Interval, minimum_detectable

from . import dial
from .head_to_head import NAMES
from .hypotheses import NOT_RUN, OPEN, Answer, outcome, rows_with, with_ends
from .own_runs import tables_of
from .read_where import POINT, STEP, on_shared_seeds
from .real_models import FIRST_TOKEN, ISTAR, OPTIONS, POOLING, SECOND_SEEDS, SEEDS, TASK

RECORDING = FOLDER / "real_models"
HEAD, FRESH, NEIGHBOURS, COSINE, SEARCH = "trained head", "fresh head", "ten neighbours", "cosine", "search"
RIDGE = "ridge head"  # on the same task; the plan calls it exploratory
READERS = {  # the column of each reader's score
    HEAD: "score",
    RIDGE: "metric.reader.linear_head.sst2",
    FRESH: "metric.reader.linear_head.cola",
    NEIGHBOURS: "metric.reader.neighbours.sst2",
    COSINE: f"metric.reader.cosine.{reader_rows.PAIRS}",
    SEARCH: f"metric.reader.search.{reader_rows.SEARCH}",
}
Runs = dict[str, pd.DataFrame]  # of one part by arm, indexed by what pairs them
ROUNDER = ("whitening", "CosReg", "I-STAR 1")  # M3: what makes rounder what is read
FEWEST = 5  # seeds whose draws have an interval: of fewer there are too few different draws
OF_THE_CONTROL = ("M1", "M2", "M4")  # which a model decides only if its plain training has learned
PENALTY = "step.train.penalty"  # the series of a method's term of the loss
FIRST, MOST = 5, 1.5  # seeds whose spread says whether there are enough, and the points that must show
UNCHANGED = 0.01  # points that no reader's score moves by where a method didn't act
DID_NOT_ACT, STILL_LEARNED, UNTAUGHT = "didn't act", "still learned", "plain training hasn't learned"

MEASURED = {  # and of the directions that it reads; part C has none
    reader: f"{column if reader != HEAD else f'metric.reader.trained_head.{TASK}'}.participation_ratio"
    for reader, column in READERS.items()
}
COLUMNS = ["part", "model", "reader", "arm", "score", "gain", "joint high", "p", "acted"]  # of a table without runs
NEEDED = ["model", "pooling", "task", "arm", "kind", "seed", *READERS.values(), *MEASURED.values()]


def arm_of(method: str, weight: float) -> str:
    """An arm as tables name it.

    >>> arm_of("istar", -0.1), arm_of("cosreg", 0.3)
    ('I-STAR -0.1', 'CosReg')
    """
    return f"I-STAR {weight:g}" if method == "istar" else NAMES.get(method, method)


METHODS = (*(arm_of("istar", float(arm["weight"])) for arm in ISTAR), *(arm_of(name, 0) for name in OPTIONS))


@dataclass(frozen=True)
class Part:
    """A part of the plan, with one model: A and B on SST-2 for all readers, C on the second task for the head alone."""

    letter: str
    model: str

    @property
    def arms(self) -> tuple[str, ...]:
        """Plain training, and what is compared with it."""
        return (PLAIN, *(METHODS if self.letter != "B" else (arm_of(name, 0) for name in FIRST_TOKEN)))

    @property
    def readers(self) -> tuple[str, ...]:
        """Who reads the vectors."""
        return tuple(READERS) if self.letter != "C" else (HEAD,)

    @property
    def seeds(self) -> int:
        """How many seeds are planned."""
        return len(SEEDS if self.letter != "C" else SECOND_SEEDS)

    @property
    def pooling(self) -> str:
        """Which tokens a sentence vector is the mean of."""
        return "mean" if self.letter == "B" else POOLING[self.model]

    def runs(self, frame: pd.DataFrame) -> Runs:
        """The runs of each arm on the seeds that all arms have; none where these are fewer than two."""
        mine = frame[(frame["model"] == self.model) & (frame["pooling"] == self.pooling)]
        mine = mine[(mine["task"] == TASK) == (self.letter != "C")]
        mine = mine.dropna(subset=[READERS[reader] for reader in self.readers])
        mine = mine.assign(pair=mine["kind"].astype(str) + ", " + mine["seed"].astype(str))
        cells = on_shared_seeds({arm: mine[mine["arm"] == arm] for arm in self.arms}, "pair")
        return cells if len(cells[PLAIN]) > 1 else {}


PARTS = (*(Part("A", model) for model in POOLING), Part("B", "smollm2"), *(Part("C", model) for model in POOLING))
SMOLLM2, MPNET, FIRST_TOKEN_PART = PARTS[:3]


def runs(folder: str | Path = RECORDING) -> pd.DataFrame:
    """The runs of the arms in a recording, or in a folder of records.

    ``arm``; ``kind`` of processor; ``score``; the :func:`second_phases`. The runs of seed 0, which chose the options,
    are left out.
    """
    frame, series = tables_of(Path(folder))
    frame = scored(frame[frame["model"].isin(POOLING) & (frame["seed"] > 0)].reset_index(drop=True))
    if frame.empty:
        return pd.DataFrame(columns=NEEDED)
    weights = frame.get("method.weight", pd.Series(0.0, index=frame.index))
    frame = frame.assign(
        arm=list(map(arm_of, frame["method.name"], weights.astype(float))),
        kind=processor_kinds(frame),
    ).merge(second_phases(series), "left", left_on="run_id", right_index=True)
    frame = frame.reindex(columns=frame.columns.union(NEEDED, sort=False))
    if (twice := frame.duplicated(["model", "pooling", "task", "arm", "kind", "seed"])).any():
        got = f"several of {frame['arm'][twice].iloc[0]}, such as {frame['run_id'][twice].iloc[0]}"
        fail(InputError, "an arm must have one run a seed", got, "Keep the runs of one option.")
    return frame


def second_phases(series: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """By run: ``updates`` of its second phase, held-out ``metric`` at ``first``, ``half`` and ``last``, and ``cut``.

    ``cut``: it ended at its last pass while that still rose, with as many passes as a method has by default.
    """
    watched = series[series["name"] == f"step.second.{metric}"].sort_values("step").groupby("run_id")
    lines = {}
    for run, scores in watched:
        values = [float(value) for value in scores["value"]]
        half, updates = values[(len(values) - 1) // 2], float(scores["step"].max())
        ends = {"first": values[0], "half": half, "last": values[-1]}
        lines[run] = {"cut": SecondPhase.cut_short(values), "updates": updates, **ends}
    return pd.DataFrame.from_dict(lines, orient="index", columns=["cut", "updates", "first", "half", "last"])


def cut_runs(measured: Mapping[Part, Runs]) -> dict[tuple[str, str], pd.DataFrame]:
    """By model and arm: the runs of part A whose second phase was cut short. Such an arm decides nothing for the head.

    This holds for the second task, too, whose runs recorded no course.
    """
    arms = [(part, arm, rows) for part in (SMOLLM2, MPNET) for arm, rows in measured.get(part, {}).items()]
    cut = {(part.model, arm): rows[rows["cut"].eq(True)] for part, arm, rows in arms if "cut" in rows}
    return {cell: rows for cell, rows in cut.items() if len(rows)}


def without_effect(part: Part, cells: Runs) -> list[str]:
    """The arms that didn't act: the trained head scores exactly as after plain training with every seed.

    Of the other readers none moves by :data:`UNCHANGED` points. Such an arm says nothing of its method.
    """
    changes = pd.DataFrame({reader: gains(cells, READERS[reader]).abs().max() for reader in part.readers})
    return list(changes.index[(changes[HEAD] == 0) & (changes < UNCHANGED).all(axis=1)])


def idle_arms(measured: Mapping[Part, Runs]) -> list[tuple[str, str]]:
    """Model and arm of those of part A :func:`without_effect`: they count in no cell."""
    parts = [part for part in (SMOLLM2, MPNET) if part in measured]
    return [(part.model, arm) for part in parts for arm in without_effect(part, measured[part])]


def head_cells(measured: Mapping[Part, Runs], letter: str) -> pd.DataFrame:
    """The cells of the trained head in all parts of a letter. ``excluded``: why one decides nothing, or ""."""
    cut, out = cut_runs(measured), unlearned(measured)
    rows = table(of_letter(measured, letter))
    rows = rows[(rows["reader"] == HEAD) & (rows["arm"] != PLAIN)]
    reasons = [
        UNTAUGHT
        if row["model"] in out
        else STILL_LEARNED
        if (row["model"], row["arm"]) in cut
        else DID_NOT_ACT * (not row["acted"])
        for row in rows.to_dict("records")
    ]
    return rows.assign(excluded=pd.Series(reasons, rows.index, dtype=str), ruled_out=rows["joint high"] < POINT)


def failures(cells: Runs, arm: str) -> int:
    """How many runs of an arm failed, among all runs of its part."""
    every = pd.concat(cells.values(), ignore_index=True)
    return int(failed(every)[every["arm"] == arm].sum())


def score_in_training(folder: str | Path = RECORDING) -> dict[str, float]:
    """By model: the IsoScore* s of I-STAR's term :math:`w (1 - s)` at the end of training, the median over its runs."""
    frame, series = tables_of(Path(folder))
    frame = frame[(frame["method.name"] == "istar") & frame["model"].isin(POOLING) & (frame["seed"] > 0)]
    last = series[series["name"] == PENALTY].sort_values("step").groupby("run_id")["value"].last()
    seen = 1 - frame["run_id"].map(last).astype(float) / frame["method.weight"].astype(float)
    return {str(model): float(some.median()) for model, some in seen.dropna().groupby(frame["model"])}


def parts(frame: pd.DataFrame) -> dict[Part, Runs]:
    """The runs of each part that has some."""
    every = {part: part.runs(frame) for part in PARTS}
    return {part: cells for part, cells in every.items() if cells}


def of_letter(measured: Mapping[Part, Runs], letter: str) -> dict[Part, Runs]:
    """The parts of a letter alone."""
    return {part: cells for part, cells in measured.items() if part.letter == letter}


def gains(cells: Runs, column: str) -> pd.DataFrame:
    """What each arm gains over plain training, in points: a row a seed, a column an arm."""
    scores = pd.DataFrame({arm: rows[column] for arm, rows in cells.items()}).astype(float)
    return STEP * scores.drop(columns=PLAIN).sub(scores[PLAIN], axis=0)


def table(measured: Mapping[Part, Runs]) -> pd.DataFrame:
    """One row a part, reader and arm, plain training among them.

    ``score``, and ``directions``: the participation ratio of the very vectors that the reader reads. ``gain`` with
    Student's interval; ``joint``: the interval that holds for all arms of a reader together (Bonferroni); ``p`` by
    Holm's method over these; ``detectable``: the minimum detectable effect at its first step; ``acted``: not one of
    :func:`without_effect`, which has none.
    """
    lines = []
    idle_in = {part: without_effect(part, cells) for part, cells in measured.items()}
    for part, reader in [(some, name) for some in measured for name in some.readers]:
        cells, column, idle = measured[part], READERS[reader], idle_in[part]
        points = {arm: list(values) for arm, values in gains(cells, column).items()}
        tests, joint = paired_tests(points), joint_intervals(points)
        for arm, rows in cells.items():
            line: dict[str, Any] = {"part": part.letter, "model": part.model, "reader": reader, "arm": arm}
            line |= {"seeds": len(rows), "score": float(rows[column].mean())}
            line |= {"directions": float(rows[MEASURED[reader]].astype(float).mean())}
            if arm != PLAIN:
                line |= with_ends("gain", tests[arm].interval) | with_ends("joint", joint[arm])
                line |= {"p": tests[arm].p, "detectable": tests[arm].visible if arm not in idle else None}
            line["acted"] = arm not in idle
            lines.append(line)
    return pd.DataFrame(lines) if lines else pd.DataFrame(columns=COLUMNS)


def setting(part: Part, measured: Mapping[Part, Runs]) -> str:
    """A part in words: "smollm2 (12 layers, the last 2 trained), SST-2, 10 of 10 seeds"."""
    if part not in measured:
        return f"{part.model}: {NOT_RUN}"
    run = measured[part][PLAIN].iloc[0]
    layers = f"{part.model} ({run['layers']:.0f} layers, the last {run['train_layers']:.0f} trained)"
    first = ", first token in the mean" if part == FIRST_TOKEN_PART else ""
    return f"{layers}{first}, {task_and_seeds(part, measured[part])}"


def task_and_seeds(part: Part, cells: Runs) -> str:
    """The task and the seeds of a part: "SST-2, 10 of 10 seeds"."""
    task = TASK_NAMES[cells[PLAIN]["task"].iloc[0].removesuffix("_joint")]
    return f"{task}, {len(cells[PLAIN])} of {part.seeds} seeds"


def detectable(frame: pd.DataFrame, part: Part) -> float | None:
    """The points that ten seeds of a part show the trained head, by the median spread of the first five; None before.

    Above :data:`MOST` part A of that model goes on to twenty seeds.
    """
    cells = part.runs(frame[frame["seed"].isin(SEEDS[:FIRST])])
    if not cells or len(cells[PLAIN]) < FIRST:
        return None
    spread = float(gains(cells, READERS[HEAD]).std(ddof=1).median())
    return minimum_detectable(spread, len(SEEDS), alpha=(1 - LEVEL) / len(METHODS))


def frozen_head(part: Part, layers: int) -> float:
    """The accuracy of a linear head on SST-2 in the dial: the same pooling, at the first layer not below the cut."""
    scores = _frozen(part, "linear head", "sst2")
    return float(scores[scores.index >= layers].iloc[0])


def frozen_cosine(part: Part, layers: int) -> float | None:
    """Spearman's correlation on the test pairs of STS-B in the dial: the same pooling and layer, where it is there."""
    scores = _frozen(part, "similarity", "stsb_test")
    return float(scores[layers]) if layers in scores.index else None


def _frozen(part: Part, reader: str, texts: str) -> pd.Series[Any]:
    """A reader's scores of a model as it comes, by layer."""
    place = {"encoder": part.model, "reader": reader, "set": texts, "fit": "own", "turn": "raw"}
    pool = "mean" if part.pooling == "mean" else "without first"
    return rows_with(dial.read("scores"), **place, pool=pool).set_index("layer")["score"].sort_index()


def unlearned(measured: Mapping[Part, Runs]) -> dict[str, str]:
    """Models that decide nothing for the trained head, and why: plain training is below a head on frozen vectors."""
    reasons = {}
    for part in (SMOLLM2, MPNET):
        if part not in measured:
            reasons[part.model] = "part A isn't run"
            continue
        plain = measured[part][PLAIN]
        reached, least = float(plain["score"].mean()), frozen_head(part, int(plain["layers"].iloc[0]))
        if reached < least:
            reasons[part.model] = f"plain training reaches {reached:.3f}, a head on frozen vectors {least:.3f}"
    return reasons


def _text(row: pd.Series[Any]) -> str:
    gain = between(row["gain"], row["gain low"], row["gain high"], sign="+", unit=" points")
    return f"{gain}, {row['arm']} with {row['model']}"


def _no_gain(rows: pd.DataFrame) -> tuple[str, str]:
    """M1 and M2: no cell of the trained head gains a point."""
    idle, rows = int((rows["excluded"] == DID_NOT_ACT).sum()), rows[rows["excluded"] == ""]
    if rows.empty:
        return OPEN, "no model counts"
    gained = rows[(rows["p"] <= 1 - LEVEL) & (rows["gain"] >= POINT)]
    ruled_out, planned = int(rows["ruled_out"].sum()), len(POOLING) * len(METHODS)
    why = f"{len(gained)} of {planned} cells gain a point, {ruled_out} rule it out{_idle_cells(idle)}"
    why += f"; the most is {_text(rows.loc[rows['gain'].idxmax()])}"
    return outcome(len(gained) > 0, ruled_out == planned), why


def _idle_cells(idle: int) -> str:
    return f"; in {idle} the method didn't act" if idle else ""


def _rounder_gains(rows: pd.DataFrame) -> tuple[str, str]:
    """M3: what makes rounder what is read gains with a cosine."""
    rows = rows[(rows["reader"] == COSINE) & rows["arm"].isin(ROUNDER)]
    idle, rows = int((~rows["acted"]).sum()), rows[rows["acted"]]
    if rows.empty:
        return OPEN, "no method acted"
    gained = int(((rows["p"] <= 1 - LEVEL) & (rows["gain"] > 0)).sum())
    against = int(((rows["gain high"] < 0) | (rows["joint high"] < POINT)).sum())
    planned = len(POOLING) * len(ROUNDER)
    why = f"{gained} of {planned} cells gain significantly, {against} lose or rule a point out{_idle_cells(idle)}"
    why += f"; the least is {_text(rows.loc[rows['gain'].idxmin()])}"
    return outcome(against > 0, gained == planned), why


def correlations(
    measured: Mapping[Part, Runs], readers: Sequence[str], without: Collection[tuple[str, str]] = ()
) -> dict[tuple[str, str], Interval]:
    """Spearman's correlation of the arms' mean gains with a cosine and with each reader, by reader and model.

    ``without``: models with an arm that is left out.
    Its interval is of 10,000 draws of seeds; a model with fewer than :data:`FEWEST` seeds has none.
    """
    enough = [part for part in (SMOLLM2, MPNET) if part in measured and len(measured[part][PLAIN]) >= FEWEST]
    results: dict[tuple[str, str], Interval] = {}
    for part in enough:
        out = [arm for model, arm in without if model == part.model]
        sides = {name: gains(measured[part], READERS[name]).drop(columns=out).to_numpy() for name in (*readers, COSINE)}
        results |= {(name, part.model): correlation_of_means(sides[name], sides[COSINE]) for name in readers}
    return results


def _correlated(every: Mapping[tuple[str, str], Interval], planned: int, sign: int) -> tuple[str, str]:
    """M4 and M5: the correlations have that sign."""
    if not every:
        return OPEN, f"no model counts with {FEWEST} seeds"
    ends = [sorted((sign * item.low, sign * item.high)) for item in every.values()]
    why = "; ".join(f"{reader}, {model}: {between(*item.ends, sign='+')}" for (reader, model), item in every.items())
    other = any(high < 0 for _, high in ends)
    return outcome(other, len(every) == planned and all(low > 0 for low, _ in ends)), why


def with_first_token(measured: Mapping[Part, Runs]) -> dict[str, PairedTest]:
    """M6: the gain with a cosine where the first token is in the mean less that where it isn't, by Holm over two."""
    if not {SMOLLM2, FIRST_TOKEN_PART} <= set(measured):
        return {}
    first, without = (gains(measured[part], READERS[COSINE]) for part in (FIRST_TOKEN_PART, SMOLLM2))
    more = (first - without)[list(ROUNDER[:2])].dropna()
    return paired_tests({arm: list(values) for arm, values in more.items()}) if len(more) > 1 else {}


def _more_with_first_token(tests: Mapping[str, PairedTest]) -> tuple[str, str]:
    if not tests:
        return OPEN, "one of the two parts is missing"
    sides = [test.verdict for test in tests.values()]
    why = "; ".join(
        f"{arm} {between(*test.interval.ends, sign='+', unit=' points')}, p = {test.p:.3f}"
        for arm, test in tests.items()
    )
    return outcome(LOSS in sides, set(sides) == {GAIN}), why


def answers(measured: Mapping[Part, Runs]) -> list[Answer]:
    """M1 to M6; ``why``: the numbers that an outcome rests on, and the setting with its seeds."""
    out, cut = unlearned(measured), cut_runs(measured)
    counts = {part: cells for part, cells in measured.items() if part.model not in out}
    idle = idle_arms(measured)

    def with_cosine(
        runs: Mapping[Part, Runs], readers: Sequence[str], sign: int, without: Collection[tuple[str, str]] = ()
    ) -> tuple[str, str]:
        word, why = text = _correlated(correlations(runs, readers, without), len(POOLING) * len(readers), sign)
        others = {"With all arms, as planned": set(), "Exploratory, without arms that didn't act": {*without, *idle}}
        for which, out in others.items():
            if out != set(without):  # the draws of seeds take time
                other = _correlated(correlations(runs, readers, out), len(POOLING) * len(readers), sign)
                why += f". {which}, {other[0]}: {other[1]}" * (other != text)
        return word, why

    judged: dict[str, tuple[str, Callable[[], tuple[str, str]]]] = {
        "M1": ("A", lambda: _no_gain(head_cells(measured, "A"))),
        "M2": ("C", lambda: _no_gain(head_cells(measured, "C"))),
        "M3": ("A", lambda: _rounder_gains(table(of_letter(measured, "A")))),
        "M4": ("A", lambda: with_cosine(counts, [HEAD], -1, cut)),
        "M5": ("A", lambda: with_cosine(measured, [SEARCH, NEIGHBOURS], 1)),
        "M6": ("AB", lambda: _more_with_first_token(with_first_token(measured))),
    }
    results = []
    for name, (letters, judge) in judged.items():
        asked = [part for part in PARTS if part.letter in letters and (name != "M6" or part.model == "smollm2")]
        word, numbers = judge() if measured.keys() & set(asked) else (OPEN, NOT_RUN)
        where = "; ".join(setting(part, measured) for part in asked)
        if name in OF_THE_CONTROL:
            where += "".join(f". {model} decides nothing: {reason}" for model, reason in out.items())
            where += "".join(
                f". {arm} with {model} decides nothing: {len(rows)} of {len(counts[part][arm])} heads still learned "
                "when their training ended"
                for part in (SMOLLM2, MPNET)
                for (model, arm), rows in cut.items()
                if model == part.model and part in counts
            )
        results.append(Answer(name, word, numbers if numbers == NOT_RUN else f"{numbers}. {where}"))
    return results

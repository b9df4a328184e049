"""SoftDecay (Yan et al., UAI 2022): arms by the rows of its Table 1, and claims 16 to 22."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from isonb_lab.claims.design import PLAIN, TASK_NAMES, Design, Settings, task_name
from isonb_lab.claims.printed import printed
from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import Treated
from isonb_lab.claims.treatment import Treatment
from isonb_lab.claims.verdicts import Evidence, Prediction, Value, Values, claim, difference
from isonb_lab.data.sts import PROTOCOLS
from isonb_lab.data.tasks import TASKS
from isonb_lab.statistics.seeds import LEVEL, Interval

from . import arms
from .pairs import PLAIN_VECTORS, SETS, TRANSFORMS, above, pair_interval, recorded_table
from .token_spectra import LABELS

ENCODERS = ("minilm", "tiny")
SOFTDECAY, WHITENING = TRANSFORMS["softdecay"], TRANSFORMS["whitening"]
NARROW = f"{WHITENING}, narrow"
START = PLAIN_VECTORS["first_last"]  # what the transforms begin with
ROWS = (*PLAIN_VECTORS.values(), "SBERT-WK", "BERT-flow", WHITENING, NARROW, *list(TRANSFORMS.values())[3:])
MEASURES = {"token_uniformity": "TokenUni", "rbf_uniformity": "RBF", "explained_variance_1": "EV1", "lsds": "LSDS"}
WITH_DEPTH = {"skewness": "greater", "token_uniformity": "greater", "cls_uniformity": "greater", "median": "less"}
PRINTED_DEPTH = {  # names in the printed Figure 2
    "skewness of singular values": "skewness",
    "token uniformity": "TokenUni",
    "[CLS] uniformity": "[CLS] uniformity",
    "median of normalised singular values": "median",
}
PRINTED_ENCODERS = {
    "bert-base": "BERT",
    "distilbert-base": "DistilBERT",
    "albert-base": "ALBERT",
    "roberta-base": "RoBERTa",
}
PRINTED_ROWS = {  # our names of the printed Table 1's rows
    "WhiteBERT": "WhiteBERT",
    SOFTDECAY: SOFTDECAY,
    WHITENING: "BERT-whitening (NLI)",
    NARROW: "BERT-whitening (NLI) -256",
    "BERT-flow": "BERT-flow (NLI)",
    "SBERT-WK": "SBERT-WK",
}
ENDS = ("", ".low", ".high")
DEPTHS = {", layers 0 to 2": (0.5, 0.0), ", layers 2 to 4": (1.0, 0.5)}  # of the four of the model that learned
SERIES = {"skewness": "spectral_skewness", "median": "spectral_median"}
ENCODER = "the encoder"
ROUNDING = 1e-4  # of the theorem's bound, in float32


def arm_of(settings: Settings) -> str | None:
    """The row of Table 1."""
    method = settings.get("method.name", "none")
    if method == "none":
        return PLAIN_VECTORS.get(settings.get("layers", "first_last"))
    return NARROW if method == "whitening" and "method.k" in settings else TRANSFORMS.get(method)


def suite_of(settings: Settings) -> str:
    """The similarity set, with the encoder before it, since both encoders ran there."""
    return f"{settings['model']}, {task_name(str(settings['task']))}"


def vector_gains(study: Study) -> pd.DataFrame:
    """What each row of Table 1 changes against :data:`START`, in points: suite, arm, protocol, mean, low, high, n.

    Intervals are over pairs: from the run's record, or from ``softdecay_differences.csv`` where that says nothing.
    """
    extra = {row[:2]: row[2:] for row in recorded_table("differences").itertuples(index=False, name=None)}
    parts = [f"metric.difference.spearman.{p}{end}" for p in PROTOCOLS for end in ENDS]
    rows = []
    runs = study.runs.reindex(columns=["run_id", "suite", "arm", "task", "metric.pairs", *parts])
    for run in runs.to_dict("records"):
        for protocol in PROTOCOLS:
            of_parts = run["task"] in TASKS and TASKS[run["task"]].subsets
            name = f"metric.difference.spearman.{protocol if of_parts else 'all'}"
            is_own = run["arm"] not in PLAIN_VECTORS.values()  # a record of plain vectors compares with its own layers
            ends = extra.get((run["run_id"], protocol)) or tuple(run[name + end] for end in ENDS if is_own)
            if ends and not pd.isna(ends[0]):
                rows.append((run["suite"], run["arm"], protocol, *ends, int(run["metric.pairs"])))
    return pd.DataFrame(rows, columns=["suite", "arm", "protocol", "mean", "low", "high", "n"])


def recorded_by_alpha() -> pd.DataFrame:
    """What SoftDecay changes by alpha, recorded: runs, set ("dev": STS-B's validation split), sides, alpha, gain."""
    table = recorded_table("alpha")
    start = table[table["alpha"].isna()].set_index(["model", "set"])["mean"].rename("start")
    rows = table.dropna(subset="alpha").join(start, on=["model", "set"])
    rows = rows.assign(gain=rows["mean"] - rows["start"], runs="recorded: " + rows["model"])
    rows["set"] = rows["set"].map({"stsb_dev": "dev"} | SETS)
    return rows[["runs", "set", "sides", "alpha", "gain", "low", "high"]]


def chosen_alphas(tried: pd.DataFrame) -> list[dict[str, Any]]:
    """The alpha that is best on "dev", what it gives on the other sets, and how much the best on each would flatter."""
    rows = []
    for (runs, kind), gains in tried.groupby(["runs", "sides"]):
        test = gains[gains["set"] != "dev"].pivot(index="set", columns="alpha", values="gain")
        pick = float(gains[gains["set"] == "dev"].set_index("alpha")["gain"].idxmax())
        best = test.max(axis=1)
        line = {"runs": runs, "sides": kind, "alpha from dev": f"{pick:g}", "with it": float(test[pick].mean())}
        line |= {"with -0.6": float(test[-0.6].mean()), "best of each test set": float(best.mean())}
        rows.append(line | {"flattery": float((best - test[pick]).mean())})
    return rows


def printed_depth(source: str) -> pd.DataFrame:
    """The printed Figure 2 by depth, without a spread: the columns of the book's own figure."""
    rows = [
        (source, "MRPC", PRINTED_DEPTH[row.metric], int(row.task.rsplit(" ", 1)[1]) / 12, *[row.value] * 3)
        for row in printed("softdecay", "Figure 2").itertuples()
    ]
    return pd.DataFrame(rows, columns=["source", "task", "measure", "depth", "value", "low", "high"])


def printed_changes() -> list[dict[str, str]]:
    """The printed Table 1 as changes from plain vectors, mean over the seven sets: one row an encoder."""
    score = printed("softdecay", "Table 1", metric="spearman_x100").set_index(["model", "method", "task"])["value"]
    rows = []
    for model, plain in PRINTED_ENCODERS.items():
        means = score.loc[model].unstack()[list(SETS.values())].mean(axis=1)
        changes = means - means[plain]
        line = {"encoder": f"{plain} (theirs)", "plain": f"{means[plain]:.2f}"}
        for ours, name in PRINTED_ROWS.items():
            line[ours] = f"{changes[name]:+.2f}" if name in changes.index else "–"
        rows.append(line)
    return rows


def numbers_by_layer(study: Study, when: str, arm: str, suite: str) -> pd.DataFrame:
    """What the token matrices of an arm's runs say at the "start" or the "end": a row a run and ``layer``."""
    at = ["run_id", "step"]
    columns = {number: _logged(study, number, when, arm, [suite]).set_index(at)["value"] for number in WITH_DEPTH}
    return pd.DataFrame(columns).reset_index().rename(columns={"step": "layer"})


def _logged(study: Study, number: str, when: str, arm: str, suites: Sequence[str]) -> pd.DataFrame:
    """A number of the token matrices of an arm's runs by layer, as a series."""
    return study.logged(f"layer.{when}.tokens.{SERIES.get(number, number)}", arm, suites)


def _by_depth(study: Study, runs: Sequence[str], *, number: str, depths: tuple[float, float]) -> dict[str, float]:
    """A number of the token matrices at one share of the depth less that at another, by run."""
    results = {}
    for run, layers in study.by_layer(f"layer.end.tokens.{SERIES.get(number, number)}", runs).items():
        deep, shallow = (layers.get(round(share * layers.index.max())) for share in depths)
        if deep is not None and shallow is not None:
            results[run] = float(deep - shallow)
    return results


def _last_two(study: Study, runs: Sequence[str], *, number: str) -> dict[str, float]:
    """A number of the token matrices: the last layer less the one before, by run."""
    layers = study.by_layer(f"layer.end.tokens.{SERIES.get(number, number)}", runs)
    return {run: float(values.iloc[-1] - values.iloc[-2]) for run, values in layers.items()}


def _of_depth(
    what: str, direction: str, value: Values, theirs: Values, task: Treatment, **more: Any
) -> list[Prediction]:
    """What plain training does to a number of the token matrices: where it learned, and on the paper's own task."""
    return [
        arms.shown(what, value, PLAIN, direction, runs_of=arms.LEARNED, **more),
        arms.treated(what, task, direction, evidence=Treated(theirs, task)),
    ]


def _deeper(number: str, shares: Mapping[str, tuple[float, float]]) -> dict[str, Value]:
    return {detail: partial(_by_depth, number=number, depths=depths) for detail, depths in shares.items()}


def _both(pairs: Iterable[list[Prediction]]) -> tuple[Prediction, ...]:
    """All predictions of the runs that learned, then all at the paper's setting."""
    return tuple(itertools.chain.from_iterable(zip(*pairs, strict=True)))


def _above_plain(study: Study, suites: Sequence[str]) -> Evidence:
    """SoftDecay's gain over plain vectors, protocol mean."""
    table = vector_gains(study)
    rows = table[(table["arm"] == SOFTDECAY) & (table["protocol"] == "mean") & table["suite"].isin(list(suites))]
    return {r["suite"]: pair_interval(r["mean"], r["low"], r["high"], r["n"]) for r in rows.to_dict("records")}


def _above(study: Study, suites: Sequence[str], *, other: str) -> Evidence:
    """SoftDecay against another transform, both on the same resampled pairs (``softdecay_direct.csv``)."""
    return {cell: gap for cell, gap in above(other).items() if cell in suites}


def _whitening_less_softdecay(study: Study, suites: Sequence[str], *, column: str) -> Evidence:
    """One number a similarity set, for each encoder."""
    changes = difference(study.units(column, WHITENING, suites), study.units(column, SOFTDECAY, suites))
    sets: dict[str, list[float]] = {}
    for (suite, _), value in changes.items():
        sets.setdefault(suite.split(",")[0], []).append(value)
    return sets


def _of_vectors(what: str, evidence: Callable[..., Evidence], direction: str = "less") -> Prediction:
    """A prediction of vectors that were not trained; its cells are those of the evidence."""
    return Prediction(what, evidence, direction, on=(), depends=ENCODER)


def _bound(study: Study, suites: Sequence[str]) -> Evidence:
    """The largest distance over the bound that was seen, of all layers and batches."""
    groups = recorded_table("spectra").groupby(["model", "task"])["bound"].agg(["max", "size"])
    return {
        f"{model}, {TASK_NAMES[task]}": Interval(most, most, most, LEVEL, n, "largest")
        for (model, task), most, n in groups.itertuples(name=None)
    }


FIGURE_1, FIGURE_2 = (arms.plain_on((task,), **arms.SOFTDECAY_TRAINING) for task in ("cola", "mrpc"))
SHARES = {", first half": (0.5, 0.0), ", second half": (1.0, 0.5)}  # of the depth: deeper, shallower
CLAIMS = (
    claim(
        16,
        "Uniformity and skewness grow with depth",
        *_both(
            _of_depth(
                f"{LABELS[number]}, deeper less shallower layer",
                direction,
                _deeper(number, DEPTHS),
                _deeper(number, SHARES),
                FIGURE_2,
                details=tuple(DEPTHS),
            )
            for number, direction in WITH_DEPTH.items()
        ),
    ),
    claim(
        17,
        "The last fine-tuned layer relieves it",
        *_both(
            _of_depth(f"{LABELS[number]}, last layer less the one before", "less", value, value, FIGURE_1)
            for number in ("skewness", "token_uniformity")
            for value in [partial(_last_two, number=number)]
        ),
    ),
    claim(
        18,
        "SoftDecay beats plain and whitened vectors",
        _of_vectors("SoftDecay less plain, points", _above_plain, "greater"),
        *(
            _of_vectors(f"SoftDecay less {TRANSFORMS[other]}, points", partial(_above, other=other), "greater")
            for other in ("whitening", "whitebert")
        ),
        remark="Intervals over pairs.",
    ),
    claim(
        19,
        "Deeper and sharing encoders gain more",
        remark="It needs encoders that differ in depth alone, or in sharing alone.",
        needs="12 encoders by the recipe of tiny (2, 4, 8 and shared layers, three seeds), about 18 hours of one core",
    ),
    claim(
        20,
        "Whitening: more uniform, worse neighbourhood and score",
        *(
            _of_vectors(
                f"{label}, whitening less SoftDecay",
                partial(_whitening_less_softdecay, column=f"metric.end.features.{measure}"),
                "greater" if label == "LSDS" else "less",
            )
            for measure, label in MEASURES.items()
        ),
        _of_vectors(
            "points, whitening less SoftDecay", partial(_whitening_less_softdecay, column="metric.spearman.mean")
        ),
        remark="Over the seven sets.",
    ),
    claim(
        21,
        "Trained SoftDecay improves fine-tuning",
        arms.scored(arms.SOFTDECAY),
        arms.scored(arms.SOFTDECAY, expected_effect=arms.SOFTDECAY_GAIN, runs_of=arms.LEARNED),
        arms.treated("score, SoftDecay less none", arms.SOFTDECAY_LAYER, expected_effect=arms.SOFTDECAY_GAIN),
    ),
    claim(
        22,
        "The bound of the theorem holds",
        Prediction("largest distance over the bound", _bound, "at most", 1 + ROUNDING, decided_by="all", on=()),
        kind="identity",
    ),
)
# Other plain runs of three passes with a pooler have all rows of their tasks.
PLAIN_RUNS = arms.plain_on(arms.SOFTDECAY_TASKS, train_examples=(10000,), **arms.SOFTDECAY_TRAINING)
PAPER_RUNS = arms.paper_design("softdecay", {PLAIN: PLAIN_RUNS, arms.SOFTDECAY: arms.SOFTDECAY_LAYER})
DESIGN = Design(
    name="softdecay",
    page="papers/softdecay",
    recordings=("softdecay", "baselines"),
    arm=arm_of,
    suite=suite_of,
    claims=CLAIMS,
)

"""All methods on the same encoder, rows and seeds, each with the strength that was chosen for it on the holdout.

The claims here are no paper's. They are the questions on which the papers contradict each other, C1 to C6, and each is
put as the statement that one side makes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from isonb.lab.statistics.rank_sets import paired_p
from isonb.lab.statistics.seeds import holm
from isonb.lab.studies.arms import (
    ARMS,
    COSREG,
    ENTROPY,
    HEAD_TO_HEAD,
    ISOBN,
    ISOLAYER,
    LAST,
    LOWER,
    METHODS,
    RAISE,
    SOFTDECAY,
    SPECTRUM,
    Rule,
    change,
    gain,
)
from isonb.lab.studies.design import PLAIN, TASK_NAMES, Design
from isonb.lab.studies.designs.softdecay import SETS, kept
from isonb.lab.studies.pair_gains import points
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import Claim, Evidence, Part, Units, by_cell, difference

__all__ = [
    "ABOVE",
    "ARMS",
    "BELOW",
    "CALIBRATION",
    "DESIGN",
    "MEASURES",
    "METHODS",
    "OPEN",
    "OTHER_CHOICE",
    "TUNED",
    "TUNING",
    "TUNING_ELSEWHERE",
    "against_plain",
    "changed",
    "chosen",
    "outcome_of",
    "scores_of",
    "setting",
    "tried",
]

NAMES = {
    "none": PLAIN,
    "entropy": ENTROPY,
    "softdecay": SOFTDECAY,
    "isolayer": ISOLAYER,
    "isobn": ISOBN,
    "cosreg": COSREG,
    "spectrum_control": SPECTRUM,
}
# What is tuned, and the sign by which it is printed. Plain training tunes its learning rate.
TUNED = {
    "none": ("learning_rate", "rate"),
    "istar": ("weight", "λ"),
    "entropy": ("weight", "weight"),
    "softdecay": ("alpha", "first α"),
    "isolayer": ("learning_rate", "layer's rate"),
    "isobn": ("beta", "β"),
    "cosreg": ("weight", "weight"),
    "spectrum_control": ("weight", "weight"),
}
MEASURES = {
    "isoscore": "IsoScore",
    "isoscore_star": "IsoScore*",
    "anisotropy_1": "A1 raw",
    "anisotropy_1_centered": "A1 centred",
    "mean_cosine": "mean cosine",
    "two_nn": "TwoNN",
    "persistent_entropy_normalized": "entropy of the barcode",
}
HALF = 0.5
# A part of the same on other kinds of processors.
OTHERS = ("head_to_head_float32", "head_to_head_xeon")
ALIKE = 0.02  # two scores that count as alike


def arm_of(config: Mapping[str, Any]) -> str | None:
    """The method; I-STAR is two, by the sign of lambda, and a third on the last layer alone."""
    method = config["method"]
    if method["name"] == "istar" and method["layers"] != "all":
        return LAST
    if method["name"] == "istar":
        return LOWER if float(method["weight"]) < 0 else RAISE
    return NAMES.get(method["name"])


def suite_of(config: Mapping[str, Any]) -> str:
    """The task, and the encoder where it isn't minilm: "SST-2", "SST-2 (tiny)"."""
    task = TASK_NAMES.get(str(config["task"]), str(config["task"]).removeprefix("english_"))
    return task if config["model"] == "minilm" else f"{task} ({config['model']})"


def setting(config: Mapping[str, Any]) -> str:
    """The tuned setting of a run in words: "λ = -0.3"."""
    name = config["method"]["name"]
    key, sign = TUNED[name]
    return f"{sign} = {float(config[key] if name == 'none' else config['method'][key]):g}"


def tried(study: Study) -> pd.DataFrame:
    """The tuning runs: suite, arm, setting, best score on the holdout, score on the validation rows, chosen.

    The best score on the holdout decides, of the states that training could stop at; in a tie the setting that the grid
    names first, the published one.
    """
    metrics = dict(study.runs[["run_id", "metric"]].itertuples(index=False))
    scores = dict(study.runs[["run_id", "score"]].itertuples(index=False))
    logged = study.series[study.series["name"] == "step.validation." + study.series["run_id"].map(metrics)]
    second = study.series[study.series["name"] == "step.second." + study.series["run_id"].map(metrics)]
    held = logged.groupby("run_id")["value"].max().to_dict() | second.groupby("run_id")["value"].max().to_dict()
    rows = [
        {
            "run_id": run.run_id,
            "suite": study.design.suite_of(run.config),
            "arm": arm_of(run.config),
            "setting": setting(run.config),
            "held": held[run.run_id],
            "score": scores[run.run_id],
        }
        for run in study.planned
        if run.run_id in held
    ]
    found = pd.DataFrame(rows, columns=["run_id", "suite", "arm", "setting", "held", "score"])
    first = found.sort_values("held", ascending=False, kind="stable").drop_duplicates(["suite", "arm"])["run_id"]
    return found.assign(chosen=found["run_id"].isin(first))


def chosen(study: Study) -> dict[tuple[str, str], str]:
    """The setting that the tuning chose, by suite and arm."""
    best = tried(study).query("chosen")
    return {(row.suite, row.arm): row.setting for row in best.itertuples()}


# Where a run's record has the cloud that a method ends with, and where plain training has the one to compare it with:
# the [CLS] vectors; behind IsoLayer's layer; what the classifier reads where the method acts behind the encoder.
CLOUDS = {
    ISOLAYER: ("end.second", "end.cls"),
    SOFTDECAY: ("end.features", "end.features"),
    ISOBN: ("end.features", "end.features"),
}


def changed(
    study: Study,
    arm: str,
    name: str,
    suites: Sequence[str] | None = None,
    *,
    clouds: Mapping[str, tuple[str, str]] = CLOUDS,
) -> Units:
    """What an arm changes in a measure of the sentence vectors against plain training, one number a seed."""
    mine, plain = clouds.get(arm, ("end.cls", "end.cls"))
    return difference(
        study.units(f"metric.{mine}.{name}", arm, suites), study.units(f"metric.{plain}.{name}", PLAIN, suites)
    )


def scores_of(study: Study, suite: str) -> dict[str, dict[int, float]]:
    """The score of each arm on a task by its seeds, of those arms that have more than one."""
    every = {arm: {seed: v for (_, seed), v in study.units("score", arm, [suite]).items()} for arm in ARMS}
    return {arm: found for arm, found in every.items() if len(found) > 1}


ABOVE, BELOW, OPEN = "above", "below", "not told apart"


def against_plain(study: Study, arms: Sequence[str] = METHODS, *, level: float = 0.95) -> pd.DataFrame:
    """What each of the ``arms`` gains over plain training on each task that plain training has learned.

    The columns of :meth:`~isonb.lab.studies.study.Study.paired`, ``arm``, ``p`` of the paired test by Holm's method
    over all rows, and ``outcome``: clearly above or below plain training at that ``level``, or not told apart.
    """
    rows = []
    for arm in arms:
        gains = by_cell(difference(study.units("score", arm), study.units("score", PLAIN)))
        for row in study.paired("score", arm).to_dict("records"):
            if not study.learned(row["suite"]):
                rows.append({"arm": arm} | row | {"p": paired_p(gains[row["suite"]])})
    found = pd.DataFrame(rows, columns=["arm", "suite", "n", "mean", "low", "high", "visible", "p"])
    if len(found):
        found["p"] = list(holm({f"{i}": p for i, p in enumerate(found["p"])}).values())
    return found.assign(outcome=outcome_of(found, level))


def outcome_of(found: pd.DataFrame, level: float) -> pd.Series[Any]:
    """Clearly above or below plain training by the adjusted ``p``, or not told apart."""
    sides = found["mean"].gt(0).map({True: ABOVE, False: BELOW})
    return sides.where(found["p"] <= 1 - level, OPEN)


def _moved(arm: str, name: str) -> Rule:
    return lambda study, suites: by_cell(changed(study, arm, name, suites))


TOKENS = "metric.end.tokens.isoscore_star_all_layers"  # IsoScore* of all tokens of all layers, which I-STAR acts on


def _last(arm: str, name: str) -> Rule:
    """The same for a measure of the watched rows at the last validation."""

    def evidence(study: Study, suites: Sequence[str]) -> Evidence:
        series = f"step.validation.cls.{name}"
        mine, plain = (study.tail(series, one, suites) for one in (arm, PLAIN))
        return by_cell(difference(mine, plain))

    return evidence


def _layer(name: str) -> Rule:
    return lambda study, suites: by_cell(study.units(f"metric.end.second.{name}", ISOLAYER, suites))


def _whitening(study: Study, suites: Sequence[str]) -> Evidence:
    """Whitening less SoftDecay in points of similarity, both on the same resampled pairs."""
    table = kept("direct")
    rows = [] if table is None else table[table["other"] == "whitening"].to_dict("records")
    return {
        f"{row['model']}, {SETS[row['task']]}": points(-row["difference"], -row["high"], -row["low"], row["pairs"])
        for row in rows
    }


CLAIMS = (
    Claim(
        "C1 down",
        "Less isotropy is better (I-STAR)",
        (
            Part(f"IsoScore* of all tokens, {LOWER} less none", change(TOKENS, LOWER), "less"),
            Part(f"score, {LOWER} less none", gain(LOWER), "greater", gated=True),
            Part(f"score, {RAISE} less none", gain(RAISE), "less", gated=True),
        ),
    ),
    Claim(
        "C1 up",
        "More isotropy is better (the other three)",
        tuple(
            itertools.chain.from_iterable(
                (
                    Part(f"IsoScore, {arm} less none", _moved(arm, "isoscore"), "greater"),
                    Part(f"score, {arm} less none", gain(arm), "greater", gated=True),
                )
                for arm in (ENTROPY, SOFTDECAY, ISOLAYER)
            )
        ),
    ),
    Claim(
        "C2",
        "What lowers the mean cosine makes a cloud more isotropic",
        (
            Part(f"mean cosine, {COSREG} less none", _moved(COSREG, "mean_cosine"), "less"),
            Part(f"IsoScore, {COSREG} less none", _moved(COSREG, "isoscore"), "greater"),
        ),
    ),
    Claim(
        "C3",
        "The rounder vectors score higher: whitening beats SoftDecay in similarity",
        (Part("points, whitening less SoftDecay", _whitening, "greater", on=()),),
        remark="Intervals over pairs.",
    ),
    Claim(
        "C4",
        "The cloud behind IsoLayer is isotropic",
        (Part("IsoScore behind the layer, above a half", _layer("isoscore"), "greater", HALF),),
    ),
    Claim(
        "C5",
        "Entropy class by class makes the whole cloud more isotropic, too",
        (
            Part(
                "IsoScore within classes, entropy less none",
                _last(ENTROPY, "isoscore_class_centered"),
                "greater",
            ),
            Part("IsoScore of all, entropy less none", _last(ENTROPY, "isoscore"), "greater"),
        ),
    ),
    Claim(
        "C6",
        "Which tokens are pushed makes no difference",
        (
            Part(f"score, {LAST} less {LOWER}, alike within {ALIKE}", gain(LAST, LOWER), "equal", ALIKE, gated=True),
            Part(f"IsoScore* of all tokens, {LAST} less none", change(TOKENS, LAST), "less"),
        ),
    ),
)
DESIGN = Design(
    name=HEAD_TO_HEAD,
    page="results/head_to_head",
    recordings=(HEAD_TO_HEAD,),
    arm=arm_of,
    suite=suite_of,
    claims=CLAIMS,
)
# The runs before: what was tried for each method, on the processor of the runs and for three tasks on another kind; the
# head to head with what that one chose; and what the protocol "small" was chosen by.
TUNING = replace(DESIGN, grid="head_to_head_tuning", recordings=(HEAD_TO_HEAD,), claims=())
TUNING_ELSEWHERE = replace(TUNING, recordings=("head_to_head_tuning_float32",))
OTHER_CHOICE = replace(DESIGN, grid="head_to_head_other_choice", recordings=(HEAD_TO_HEAD,), claims=())
CALIBRATION = replace(DESIGN, grid="calibration", recordings=("calibration",), claims=())

"""All methods on the same encoder, rows and seeds, each with the strength that was chosen for it on the holdout.

The claims here are no paper's. They are the questions on which the papers contradict each other, C1 to C6, and each is
put as the statement that one side makes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from isonb.errors import fail
from isonb.measures.registry import titles
from isonb_lab.claims.comparing import ALIKE, ALL_LAYERS, against_plain
from isonb_lab.claims.design import PLAIN, TASK_NAMES, Design, Settings, StudyError
from isonb_lab.claims.printed import printed
from isonb_lab.claims.study import Study
from isonb_lab.claims.table import settings_of_rows, task_and_encoder
from isonb_lab.claims.treated_runs import Treated
from isonb_lab.claims.treatment import canonical
from isonb_lab.claims.verdicts import FEWEST, Evidence, Prediction, claim, tail
from isonb_lab.data.tasks import TASKS
from isonb_lab.statistics.seeds import LEVEL, Interval

from . import arms, istar
from .heads import WIDTH
from .pairs import above
from .shrink_the_longest import PLAIN_RUNS, SELECTED, TREATMENTS

NAMES = {
    "none": PLAIN,
    "entropy": arms.ENTROPY,
    "softdecay": arms.SOFTDECAY,
    "isolayer": arms.ISOLAYER,
    "isobn": arms.ISOBN,
    "cosreg": arms.COSREG,
    "spectrum_control": arms.SPECTRUM,
}
# What is tuned, and the sign by which it is printed. Plain training tunes its learning rate.
TUNED = {
    "none": ("learning_rate", "rate"),
    "istar": ("method.weight", "λ"),
    "entropy": ("method.weight", "weight"),
    "softdecay": ("method.alpha", "first α"),
    "isolayer": ("method.learning_rate", "layer's rate"),
    "isobn": ("method.beta", "β"),
    "cosreg": ("method.weight", "weight"),
    "spectrum_control": ("method.weight", "weight"),
}
MEASURES = (
    titles("isoscore", "isoscore_star")
    | {ALL_LAYERS: "IsoScore*, tokens of all layers"}
    | titles("anisotropy_1", "anisotropy_1_centered", "mean_cosine")
    | {"two_nn": "TwoNN"}
    | titles("persistent_entropy_normalized")
)
# A part of the same on other kinds of processors.
OTHERS = ("head_to_head_float32", "head_to_head_xeon")


def arm_of(settings: Settings) -> str | None:
    """The method; I-STAR is two, by the sign of lambda, and a third on the last layer alone; on another it is none."""
    if settings.get("method.name") == "istar":
        layers = canonical(settings.get("method.layers", "all"))
        signed = arms.LOWER if float(settings["method.weight"]) < 0 else arms.RAISE
        return {"all": signed, canonical(-1): arms.LAST}.get(layers)
    return NAMES.get(settings.get("method.name", "none"))


def methods_of(study: Study) -> tuple[str, ...]:
    """The methods that are compared with plain training: those of the book, then those of a reader's runs alone."""
    rest = [arm for arm in study.arms if arm != PLAIN and not arm.startswith(arms.LAST)]
    return tuple(arm for arm in dict.fromkeys([*arms.METHODS, *rest]) if arm in rest)


def compared(study: Study) -> tuple[str, ...]:
    """:func:`methods_of` of a study that compares at least one of them.

    Raises
        StudyError: for runs without one.
    """
    methods = methods_of(study)
    if against_plain(study, methods).empty:
        must = f"runs must hold a method and plain training with {FEWEST} seeds in common, on a task that one learned"
        got = f"{len(study.runs)} runs: {', '.join(study.arms)} on {', '.join(study.suites)}"
        fail(StudyError, must, got, "Sweep a grid with the method none beside the others, and more seeds.")
    return methods


def setting(settings: Settings) -> str:
    """The tuned setting of a run in words: "λ = -0.3"; a dash for a method that the book doesn't tune."""
    column, sign = TUNED.get(settings["method.name"], ("", ""))
    return f"{sign} = {float(settings[column]):g}" if column in settings else "–"


def settings_of(study: Study) -> dict[tuple[str, str], str]:
    """The setting of the runs of a study by suite and arm: "λ = -0.3"; each of several."""
    words: dict[tuple[str, str], dict[str, None]] = {}
    places = zip(study.runs["suite"], study.runs["arm"], settings_of_rows(study.runs), strict=True)
    for suite, arm, settings in places:
        words.setdefault((suite, arm), {})[setting(settings)] = None
    return {place: ", ".join(some) for place, some in words.items()}


def tried(study: Study) -> pd.DataFrame:
    """The tuning runs: suite, arm, setting, best score on the holdout, score on the validation rows, chosen.

    The best score on the holdout decides, of the states that training could stop at; in a tie the setting that the grid
    names first, the published one.
    """
    place = {run: at for at, run in enumerate(study.plan["run_id"])}
    runs = study.runs.sort_values("run_id", key=lambda ids: ids.map(place), kind="stable")  # as the grid names them
    metrics = dict(study.runs[["run_id", "metric"]].itertuples(index=False))
    logged = study.series[study.series["name"] == "step.validation." + study.series["run_id"].map(metrics)]
    second = study.series[study.series["name"] == "step.second." + study.series["run_id"].map(metrics)]
    best = logged.groupby("run_id")["value"].max().to_dict() | second.groupby("run_id")["value"].max().to_dict()
    columns = ["run_id", "suite", "arm", "setting", "holdout", "score"]
    table = runs.assign(setting=[*map(setting, settings_of_rows(runs))], holdout=runs["run_id"].map(best))
    table = table.dropna(subset="holdout")[columns].reset_index(drop=True)
    first = table.sort_values("holdout", ascending=False, kind="stable").drop_duplicates(["suite", "arm"])["run_id"]
    return table.assign(chosen=table["run_id"].isin(first))


def chosen(study: Study) -> dict[tuple[str, str], str]:
    """The setting that the tuning chose, by suite and arm."""
    best = tried(study).query("chosen")
    return {(row.suite, row.arm): row.setting for row in best.itertuples()}


def no_setting() -> frozenset[tuple[str, str]]:
    """The (arm, suite) for which the recorded tuning has no setting that works: :func:`never_worked`."""
    return never_worked(Study.load(TUNING))


def never_worked(study: Study) -> frozenset[tuple[str, str]]:
    """The (arm, suite) of a tuning where each setting that was tried failed.

    I-STAR on the last layer runs with the setting of I-STAR (lower), so it has none where that has none.
    """
    failed = study.runs.set_index("run_id")["failed"]
    tries = tried(study)
    every = tries.assign(failed=tries["run_id"].map(failed)).groupby(["arm", "suite"])["failed"].all()
    broken = {(str(arm), str(suite)) for arm, suite in every.index[every]}
    return frozenset(broken | {(arms.LAST, suite) for arm, suite in broken if arm == arms.LOWER})


def scores_of(study: Study, suite: str) -> dict[str, dict[int, float]]:
    """The score of each arm on a task by its seeds, of those arms that have more than one."""
    compared = (PLAIN, *methods_of(study))
    every = {arm: {seed: v for (_, seed), v in study.units("score", arm, [suite]).items()} for arm in compared}
    return {arm: scores for arm, scores in every.items() if len(scores) > 1}


def _shape(what: str, arm: str, measure: str, direction: str, **more: Any) -> Prediction:
    """The prediction that an arm changes a measure of the vectors that it acts on."""

    def moved(study: Study, suites: Sequence[str]) -> Evidence:
        return study.changed(arm, measure, suites)

    return Prediction(f"{what}, {arm} less none", moved, direction, ALIKE, trained=True, arms=(arm,), **more)


def _fell(arm: str) -> Prediction:
    """The prediction that an arm lowers IsoScore* of the tokens of all layers in the runs that learned."""
    return arms.changed(f"{arms.RUNS[arms.LEARNED]}: {istar.ALL_TOKENS}", istar.ISOTROPY, arm, runs_of=arms.LEARNED)


def isotropic(n: int, d: int) -> float:
    """About what IsoScore gives for n points of an isotropic Gaussian in d dimensions: (PR - 1)/(d - 1).

    The participation ratio PR of such a sample is near 1 / (1/d + 1/(n - 1)).

    >>> round(isotropic(1501, 384), 3)
    0.796
    """
    return (1 / (1 / d + 1 / (n - 1)) - 1) / (d - 1)


LAYER_ROWS = 1500  # validation rows that are measured behind a second stage, at most


def _whitening(study: Study, suites: Sequence[str]) -> Evidence:
    """Whitening less SoftDecay in points of similarity, both on the same resampled pairs."""
    return {
        cell: replace(gap, estimate=-gap.estimate, low=-gap.high, high=-gap.low)
        for cell, gap in above("whitening").items()
    }


def _share_of_round(study: Study, runs: Sequence[str]) -> dict[str, float]:
    """IsoScore behind IsoLayer's layer as a share of that of isotropic vectors of the same n and d, less a half."""
    behind = study.numbers("metric.end.second.isoscore", runs).dropna()
    models = study.runs.set_index("run_id")["model"]
    rows = study.numbers("rows", list(behind.index))
    logged = study.series[study.series["name"] == "dimension.end.tokens.mean"].groupby("run_id")["step"].nunique()
    widths = {run: WIDTH.get(str(models[run]), logged.get(run)) for run in behind.index}
    return {
        run: score / isotropic(min(LAYER_ROWS, int(rows[run])), widths[run]) - 0.5
        for run, score in behind.items()
        if widths[run]
    }


PRINTED_WIDTH = {"bert-base-cased": 768, "roberta-large": 1024}


def _printed_layer(study: Study, suites: Sequence[str]) -> Evidence:
    """The IsoScore that IsoLayer's paper prints behind its layer, as a share of an isotropic cloud's, less a half."""
    numbers = printed("isolayer", "Table 2", method="Finetuned LM + Isotropy Layer", metric="IsoScore")
    sizes = {name: TASKS[task].size.evaluation for task, name in TASK_NAMES.items()}
    shares = {
        f"{row.model}, {row.task}": row.value / isotropic(sizes[row.task], PRINTED_WIDTH[row.model]) - 0.5
        for row in numbers.itertuples()
    }
    return {cell: Interval(share, share, share, LEVEL, 1, "printed") for cell, share in shares.items()}


PRINTED_GAINS = {SELECTED: arms.SHRINK_GAIN, arms.SOFTDECAY: arms.SOFTDECAY_GAIN, arms.ISOLAYER: arms.ISOLAYER_GAIN}
SHRINK, SHRINK_PLAIN = TREATMENTS[SELECTED], PLAIN_RUNS
OWN_GAINS = (  # of the three papers whose claim is that more is better, at their own settings
    arms.treated(
        "IsoScore of the [CLS] vectors, entropy less none",
        SHRINK,
        value="metric.end.cls.isoscore",
        base=SHRINK_PLAIN,
    ),
    arms.treated("score, entropy less none", SHRINK, base=SHRINK_PLAIN, expected_effect=arms.SHRINK_GAIN),
    arms.treated("score, SoftDecay less none", arms.SOFTDECAY_LAYER, expected_effect=arms.SOFTDECAY_GAIN),
    arms.treated("score, IsoLayer less none", arms.ISOLAYER_LAYER, expected_effect=arms.ISOLAYER_GAIN),
)
ON_LAST = replace(
    arms.istar_at(arms.ISTAR_LOWER, layers=(-1,)),
    by_model={model: {"method.layers": (layer,)} for model, layer in arms.LAST_LAYER.items()},
)
LAST_ALONE = istar.SINGLES[-1]
WHOLE = {  # of the watched rows' [CLS] vectors at the last validations
    "IsoScore within classes": tail("step.validation.cls.isoscore_class_centered"),
    "IsoScore of all": tail("step.validation.cls.isoscore"),
}
OF_LEARNED: dict[str, Any] = {"runs_of": arms.LEARNED, "expected_effect": ALIKE}
RAISED = (  # the three papers whose claim is that more is better: what is measured, and where the claim speaks
    (arms.ENTROPY, "IsoScore of the [CLS] vectors", arms.ENTROPY_ON),
    (arms.SOFTDECAY, "IsoScore of what the classifier reads", None),
    (arms.ISOLAYER, "IsoScore behind the layer", None),
)
CLAIMS = (
    claim(
        "C1 down",
        "Less isotropy is better (I-STAR)",
        _shape(istar.ALL_TOKENS, arms.LOWER, ALL_LAYERS, "less"),
        arms.changed("score", "score", arms.LOWER, "greater"),
        arms.changed("score", "score", arms.RAISE),
        _fell(istar.WEAK_DOWN),
        arms.scored(istar.WEAK_DOWN, expected_effect=arms.ISTAR_GAIN, runs_of=arms.LEARNED),
        arms.scored(istar.WEAK_UP, direction="less", runs_of=arms.LEARNED),
        arms.treated(
            f"{istar.ALL_TOKENS}, {istar.DOWN} less none",
            istar.LOWERED,
            "less",
            value=istar.ISOTROPY,
        ),
        istar.GAIN,
        istar.HARM,
    ),
    claim(
        "C1 up",
        "More isotropy is better (the other three)",
        *itertools.chain.from_iterable(
            (_shape(what, arm, "isoscore", "greater", on=on), arms.changed("score", "score", arm, "greater", on=on))
            for arm, what, on in RAISED
        ),
        *(arms.scored(arm, expected_effect=gain, runs_of=arms.LEARNED) for arm, gain in PRINTED_GAINS.items()),
        *OWN_GAINS,
        remark="Entropy on STS-B, where all points would be one class, is no part of it.",
    ),
    claim(
        "C2",
        "CosReg, which lowers the mean cosine, makes a cloud more isotropic",
        _shape(f"mean cosine {istar.OF_LAST}", arms.COSREG, "mean_cosine", "less"),
        _shape(f"IsoScore* {istar.OF_LAST}", arms.COSREG, "isoscore_star", "greater"),
    ),
    claim(
        "C3",
        "The rounder vectors score higher: whitening beats SoftDecay in similarity",
        Prediction("points, whitening less SoftDecay", _whitening, "greater", on=(), depends="the encoder"),
        remark="Intervals over pairs.",
    ),
    claim(
        "C4",
        "The cloud behind IsoLayer is isotropic",
        arms.shown(
            "IsoScore behind the layer as a share of that of an isotropic cloud of the same size, less a half",
            _share_of_round,
            arms.ISOLAYER,
            "greater",
        ),
        Prediction(
            "the IsoScore that the paper's Table 2 prints behind its layer, as a share of what an isotropic cloud "
            "of as many points and dimensions reads, less a half",
            _printed_layer,
            "greater",
            decided_by="most",
            on=(),
            treatment=arms.ISOLAYER_LAYER,
        ),
        arms.treated(
            "IsoScore behind the layer as a share of an isotropic cloud's, less a half",
            arms.ISOLAYER_LAYER,
            evidence=Treated(_share_of_round, arms.ISOLAYER_LAYER),
        ),
    ),
    claim(
        "C5",
        "Entropy class by class makes the whole cloud more isotropic, too",
        *(
            arms.changed(what, v, arms.ENTROPY, "greater", margin=ALIKE, on=arms.ENTROPY_ON)
            for what, v in WHOLE.items()
        ),
        *(
            arms.changed(f"{arms.RUNS[arms.LEARNED]}: {what}", value, SELECTED, "greater", margin=ALIKE, **OF_LEARNED)
            for what, value in WHOLE.items()
        ),
        *(
            arms.treated(
                f"{what}, selected bars less none",
                SHRINK,
                value=value,
                base=SHRINK_PLAIN,
            )
            for what, value in WHOLE.items()
        ),
    ),
    claim(
        "C6",
        "I-STAR on the tokens of the last layer alone or of all makes no difference",
        arms.changed("score", "score", arms.LAST, "equal", base=arms.LOWER, margin=ALIKE, arms=(arms.LAST, arms.LOWER)),
        _shape(istar.ALL_TOKENS, arms.LAST, ALL_LAYERS, "less"),
        arms.scored(LAST_ALONE, istar.WEAK_DOWN, "equal", margin=ALIKE, runs_of=arms.LEARNED),
        _fell(LAST_ALONE),
        arms.treated(
            f"score, last layer alone less all layers, alike within {arms.ISTAR_GAIN:.2g}",
            ON_LAST,
            "equal",
            base=istar.LOWERED,
            margin=arms.ISTAR_GAIN,
        ),
        arms.treated(f"{istar.ALL_TOKENS}, last layer alone less none", ON_LAST, "less", value=istar.ISOTROPY),
    ),
)
DESIGN = Design(
    name=arms.HEAD_TO_HEAD,
    page="results/head_to_head",
    recordings=(arms.HEAD_TO_HEAD,),
    arm=arm_of,
    suite=task_and_encoder,
    claims=CLAIMS,
    no_setting=no_setting,
    acts_on=arms.ACTS_ON,
)
# The runs before: what was tried for each method, on the processor of the runs and for three tasks on another kind; the
# head to head with what that one chose; and what the protocol "small" was chosen by.
TUNING = replace(DESIGN, grid="head_to_head_tuning", recordings=(arms.HEAD_TO_HEAD,), claims=(), no_setting=frozenset)
TUNING_ELSEWHERE = replace(TUNING, recordings=("head_to_head_tuning_float32",))
OTHER_CHOICE = replace(DESIGN, grid="head_to_head_other_choice", recordings=(arms.HEAD_TO_HEAD,), claims=())
CALIBRATION = replace(DESIGN, grid="calibration", recordings=("calibration",), claims=())
ELSEWHERE = replace(DESIGN, recordings=OTHERS, claims=())
VARIANTS = (TUNING, TUNING_ELSEWHERE, OTHER_CHOICE, CALIBRATION, ELSEWHERE)

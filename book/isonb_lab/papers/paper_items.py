"""The tables and figures of the four papers: what each prints along its axes, and where its counterpart is."""

from __future__ import annotations

from functools import partial
from typing import Any

from isonb_lab.claims.study import Study
from isonb_lab.claims.treatment import Treatment

from . import arms, isolayer, istar, shrink_the_longest, softdecay
from .coverage import Axis, Item

SIMILARITY = ("stsb_test", "sts12", "sts13", "sts14", "sts15", "sts16", "sickr")


def _tasks(*tasks: str) -> Axis:
    return Axis("tasks", tasks, "task")


def _models(*models: str) -> Axis:
    return Axis("models", models, "model", of_encoder=True)


def _weights(*weights: float) -> Axis:
    return Axis("settings", weights, "method.weight", "λ")


def _methods(*names: str) -> Axis:
    return Axis("settings", names, "method.name", "methods")


def _zetas(*zetas: float) -> Axis:
    return Axis("settings", zetas, "method.zeta", "ζ", plain=1)  # at ζ = 1 the loss has no gradient


def _points(number: int, series: str, of: str) -> Axis:
    return Axis("points", (number,), series, of, of_encoder=of == "layers")


def _updates(last: int, series: str) -> Axis:
    return Axis("steps", (last,), series, "updates")


def _item(paper: str, item: str, shows: str, *axes: Axis, page: str, caption: str = "", **more: Any) -> Item:
    """An item whose counterpart says so in its caption, unless that is told."""
    return Item(paper, item, shows, page, caption or f"{COUNTERPART} {item}", axes, **more)


BERT, SENTENCES = _models("google-bert/bert-base-uncased"), Axis("tasks", SIMILARITY, "task")
BERTS = _models("google-bert/bert-base-cased", "albert/albert-base-v2", "distilbert/distilbert-base-cased")
TWO = _models("google-bert/bert-base-uncased", "FacebookAI/roberta-base")
LARGE = _models("google-bert/bert-base-cased", "FacebookAI/roberta-large")
UNTRAINED = _models(
    "google-bert/bert-base-uncased",
    "distilbert/distilbert-base-uncased",
    "albert/albert-base-v1",
    "FacebookAI/roberta-base",
)
SHRINK, SOFT, ISO = "shrink_the_longest", "softdecay", "isolayer"
BARS = (_tasks("mrpc", "cola"), TWO, Axis("settings", (True, False), "method.select", "bars"))
SHRINK_PAGE, ISTAR_PAGE, SOFT_PAGE, ISO_PAGE = (f"papers/{name}" for name in (SHRINK, "istar", SOFT, ISO))
ISTAR_MORE, SOFT_MORE = f"{ISTAR_PAGE}_more", f"{SOFT_PAGE}_more"
NINE = _tasks("sst2", "sst5", "qnli", "rte", "mrpc", "qqp", "cola", "stsb", "squad")
ALL_WEIGHTS = (-5, -3, -1, 0.5, 1, 3, 5)
FIVE, THREE = _tasks("cola", "sst2", "mrpc", "qnli", "rte"), _tasks("rte", "cola", "mrpc")
PAPER_WEIGHTS, LEARNED = "istar_own", arms.LEARNED
COUNTERPART = "Counterpart of the paper’s"
SIGNS = Treatment("cosreg", arms.GLUE, {"method.weight": (-1, 1)})
_shrink = partial(
    _item,
    "000",
    page=SHRINK_PAGE,
    study=arms.TABLES,
    treatment=arms.entropy_of(select=True),
    rivals=(arms.entropy_of(select=False),),
)
_istar = partial(_item, "001", page=ISTAR_MORE, study=PAPER_WEIGHTS)
_softdecay = partial(_item, "002", page=SOFT_PAGE, study=arms.TABLES, treatment=arms.SOFTDECAY_LAYER)
_spectra = partial(_item, "002", page=SOFT_MORE, study=LEARNED, own=softdecay.PAPER_RUNS)
_similarity = partial(_item, "002", page=SOFT_MORE, study=SOFT, pool=SOFT)
_isolayer = partial(_item, "003", page=ISO_PAGE, study=arms.TABLES, treatment=arms.ISOLAYER_LAYER)


def _with_a_choice(study: Study) -> list[str]:
    """The suites whose best setting stands in ours of I-STAR's Table 2."""
    return [suite for suite in study.suites if "without padding" not in suite and istar.best_setting(study, suite)]


def _course(item: str, shows: str, points: Axis) -> Item:
    return _shrink(item, shows, *BARS, points, study=SHRINK, own=shrink_the_longest.PAPER_RUNS)


def _by_layer(item: str, shows: str, task: str, series: str, *weights: float) -> Item:
    axes = (_tasks(task), BERTS, _weights(*weights), _points(12, series, "layers"))
    return _istar(item, shows, *axes, caption=f"{COUNTERPART} Figures 5 and 6", treatment=arms.istar_at(weights))


def _spectrum(item: str, shows: str, caption: str, task: str, layers: int) -> Item:
    axes = (_tasks(task), BERT, _points(layers, "layer.end.tokens.spectral_skewness", "layers"))
    return _spectra(item, shows, *axes, caption=f"{COUNTERPART} {caption}", treatment=arms.plain_on((task,)))


ISOLAYERS = (THREE, LARGE, _methods("none", "isolayer"))
LAST_TWO = "Counterparts of the paper’s Figures 7 and 8"
ITEMS = (
    Item("000", "Table 1", "settings", SHRINK_PAGE, "Table 1, settings", kind="printed"),
    _shrink("Table 2", "scores", *BARS, caption="Table 2: the paper's two tasks"),
    _shrink("Table 3", "anisotropy", *BARS, caption="Table 3 on one axis"),
    _course("Figure 1", "anisotropy in training", _updates(570, "step.train.cls.anisotropy_1")),
    _course("Figure 2", "score in training", _points(30, "step.validation.accuracy", "validations")),
    _istar(
        "Table 1",
        "scores",
        *(NINE, BERTS, _methods("none", "cosreg", "istar")),
        page=ISTAR_PAGE,
        caption="Table 1. Theirs",
        study=arms.TABLES,
        treatment=arms.istar_at((-1,)),
        rivals=(arms.cosreg_at(1),),
    ),
    _istar(
        "Table 2",
        "best λ and ζ",
        *(NINE, BERTS, _weights(-5, -3, -1, 1, 3, 5), _zetas(0.2, 0.4, 0.6, 0.8)),
        page=ISTAR_PAGE,
        caption="Table 2: λ | ζ",
        own=istar.DESIGN,
        suites=_with_a_choice,
        treatment=arms.istar_at((-5, -3, -1, 1, 3, 5), zeta=(0.2, 0.4, 0.6, 0.8)),
    ),
    Item("001", "Figure 1", "diagram of the loss", ISTAR_MORE, "", kind="diagram"),
    _item(
        "001", "Figure 2", "IsoScore* of small samples", _zetas(0, 0.2, 0.4, 0.6, 0.8), page=ISTAR_MORE, kind="printed"
    ),
    _istar(
        "Figure 3",
        "isotropy against score",
        *(NINE, BERTS, _weights(*ALL_WEIGHTS)),
        page=ISTAR_PAGE,
        own=istar.DESIGN,
        treatment=arms.istar_at(ALL_WEIGHTS),
    ),
    _istar(
        "Figure 4",
        "means with CosReg",
        *(_tasks("qnli"), BERTS, _weights(-1, 1)),
        arms=(arms.COSREG, istar.COSREG_DOWN, "none"),
        treatment=SIGNS,
    ),
    _by_layer("Figure 5", "intrinsic dimension by layer", "sst2", "layer.end.cls.two_nn", -5, -3, 3, 5),
    _by_layer("Figure 6", "IsoScore* by layer", "qnli", "layer.end.tokens.isoscore_star", -1, 1),
    _istar(
        "Figure 7",
        "score by ζ",
        *(_tasks("rte"), BERTS, _zetas(0, 0.2, 0.4, 0.6, 0.8, 1)),
        caption=LAST_TWO,
        treatment=arms.istar_at((-1,), zeta=(0, 0.2, 0.4, 0.6, 0.8)),
    ),
    _istar(
        "Figure 8",
        "score by layer",
        *(_tasks("cola"), BERTS, Axis("settings", tuple(range(1, 13)), "method.layers", "layers", of_encoder=True)),
        caption=LAST_TWO,
        treatment=istar.SINGLE_LAYERS,
    ),
    _similarity(
        "Table 1",
        "similarity",
        *(SENTENCES, UNTRAINED, _methods("none", "whitebert", "softdecay", "sbert_wk", "flow", "whitening")),
        caption="Table 1, recorded",
    ),
    _softdecay(
        "Table 2",
        "GLUE, validation rows",
        *(FIVE, BERTS, _methods("none", "softdecay")),
        caption="Table 2. CoLA: Matthews correlation",
    ),
    _softdecay(
        "Table 3",
        "GLUE, test rows",
        _tasks("mnli", "mnli_mm", "qqp", "qnli", "sst2", "cola", "mrpc", "rte"),
        *(BERT, _methods("softdecay", "tension", "sbert")),
        caption="Table 3. Theirs",
        why="the labels of its test rows aren't public",
    ),
    _spectrum("Figure 1", "spectra by layer", "Figures 1, 2 and 5 by depth", "cola", 6),
    _spectrum("Figure 2", "spectra of MRPC", "Figure 2", "mrpc", 3),
    _spectrum("Figure 5", "spectra of a fine-tuned model", "Figures 1 and 5", "rte", 6),
    _similarity(
        "Figure 3",
        "spectra with SoftDecay",
        SENTENCES,
        _models("distilbert/distilbert-base-uncased", "albert/albert-base-v1"),
    ),
    _similarity("Figure 4", "maps of STS-15", _tasks("sts15"), BERT, _methods("none", "whitening", "softdecay")),
    Item("003", "Table 1", "data sets", ISO_PAGE, "Table 1, data sets", kind="printed"),
    _isolayer("Table 2", "score and IsoScore", *ISOLAYERS, caption="Table 2: score / IsoScore"),
    _isolayer(
        "Table 3",
        "explained variance",
        THREE,
        LARGE,
        _methods("none", "isolayer", "isobn"),
        caption="Table 3: EV1 / EV2 / EV3",
        rivals=(arms.ISOBN_LAYER,),
    ),
    _isolayer(
        "Figure 2",
        "explained variance of 20 components",
        *ISOLAYERS,
        caption="Share of variance of the first k",
        study=ISO,
        own=isolayer.PAPER_RUNS,
    ),
    Item("003", "Figure 1", "diagram of the phases", ISO_PAGE, "", kind="diagram"),
)

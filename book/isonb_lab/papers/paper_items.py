"""The tables and figures of the four papers: what each prints along its axes, and where its counterpart is."""

from __future__ import annotations

from isonb_lab.claims.treatment import Treatment

from . import arms
from .coverage import Axis, Item

SIMILARITY = ("stsb_test", "sts12", "sts13", "sts14", "sts15", "sts16", "sickr")


def _tasks(*tasks: str) -> Axis:
    return Axis("tasks", tasks, "task")


def _models(*models: str) -> Axis:
    return Axis("models", models, "model")


def _weights(*weights: float) -> Axis:
    return Axis("settings", weights, "method.weight", "λ")


def _methods(*names: str) -> Axis:
    return Axis("settings", names, "method.name", "methods")


def _zetas(*zetas: float) -> Axis:
    return Axis("settings", zetas, "method.zeta", "ζ")


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
SHRINK, ISTAR, SOFT, ISO = "shrink_the_longest", "istar", "softdecay", "isolayer"
SHRUNK = arms.entropy_of(select=True)
BARS = (_tasks("mrpc", "cola"), TWO, Axis("settings", (True, False), "method.select", "bars"))
SHRINK_PAGE, ISTAR_PAGE, SOFT_PAGE, ISO_PAGE = (f"papers/{name}" for name in (SHRINK, ISTAR, SOFT, ISO))
ISTAR_MORE, SOFT_MORE = f"{ISTAR_PAGE}_more", f"{SOFT_PAGE}_more"
NINE = _tasks("sst2", "sst5", "qnli", "rte", "mrpc", "qqp", "cola", "stsb", "squad")
ALL_WEIGHTS = (-5, -3, -1, 0.5, 1, 3, 5)
FIVE, THREE = _tasks("cola", "sst2", "mrpc", "qnli", "rte"), _tasks("rte", "cola", "mrpc")
PAPER_WEIGHTS, LEARNED = "istar_own", arms.LEARNED
COUNTERPART = "Counterpart of the paper’s"
SIGNS = Treatment("cosreg", arms.GLUE, {"method.weight": (-1, 1)})


def _shrink(item: str, shows: str, caption: str, study: str, *points: Axis) -> Item:
    return Item("000", item, shows, SHRINK_PAGE, caption, (*BARS, *points), study, treatment=SHRUNK)


def _istar(item: str, shows: str, caption: str, treatment: Treatment, *axes: Axis, page: str = ISTAR_MORE) -> Item:
    return Item("001", item, shows, page, caption, axes, PAPER_WEIGHTS, treatment=treatment)


def _spectra(figure: int, shows: str, caption: str, task: str, layers: int) -> Item:
    axes = (_tasks(task), BERT, Axis("points", (layers,), "layer.end.tokens.spectral_skewness", "layers"))
    plain = arms.plain_on((task,))
    return Item("002", f"Figure {figure}", shows, SOFT_MORE, f"{COUNTERPART} {caption}", axes, LEARNED, treatment=plain)


def _similarity(item: str, shows: str, caption: str, *axes: Axis) -> Item:
    return Item("002", item, shows, SOFT_MORE, caption, axes, SOFT, SOFT)


def _isolayer(item: str, shows: str, caption: str, *methods: str, study: str = arms.TRAINED) -> Item:
    axes = (THREE, LARGE, _methods("none", "isolayer", *methods))
    return Item("003", item, shows, ISO_PAGE, caption, axes, study, treatment=arms.ISOLAYER_LAYER)


ITEMS = (
    Item("000", "Table 1", "settings", SHRINK_PAGE, "Table 1, settings", kind="printed"),
    _shrink("Table 2", "scores", "Table 2: the paper's two tasks", arms.TRAINED),
    _shrink("Table 3", "anisotropy", "Table 3 on one axis", arms.TRAINED),
    _shrink(
        "Figure 1",
        "anisotropy in training",
        f"{COUNTERPART} Figure 1",
        SHRINK,
        Axis("points", (570,), "step.train.cls.anisotropy_1", "updates"),
    ),
    _shrink(
        "Figure 2",
        "score in training",
        f"{COUNTERPART} Figure 2",
        SHRINK,
        Axis("points", (30,), "step.validation.accuracy", "validations"),
    ),
    Item(
        "001",
        "Table 1",
        "scores",
        ISTAR_PAGE,
        "Table 1. Theirs",
        (NINE, BERTS, _methods("none", "cosreg", "istar")),
        arms.TRAINED,
        treatment=arms.istar_at((-1,)),
    ),
    _istar(
        "Table 2",
        "best λ and ζ",
        "Table 2: λ | ζ",
        arms.istar_at((-5, -3, -1, 1, 3, 5), zeta=(0.2, 0.4, 0.6, 0.8)),
        *(NINE, BERTS, _weights(-5, -3, -1, 1, 3, 5), _zetas(0.2, 0.4, 0.6, 0.8)),
        page=ISTAR_PAGE,
    ),
    Item("001", "Figure 1", "diagram of the loss", ISTAR_MORE, "", kind="diagram"),
    Item(
        "001",
        "Figure 2",
        "IsoScore* of small samples",
        ISTAR_MORE,
        f"{COUNTERPART} Figure 2",
        (_zetas(0, 0.2, 0.4, 0.6, 0.8),),
        kind="printed",
    ),
    _istar(
        "Figure 3",
        "isotropy against score",
        f"{COUNTERPART} Figure 3",
        arms.istar_at(ALL_WEIGHTS),
        *(NINE, BERTS, _weights(*ALL_WEIGHTS)),
        page=ISTAR_PAGE,
    ),
    Item(
        "001",
        "Figure 4",
        "means with CosReg",
        ISTAR_MORE,
        f"{COUNTERPART} Figure 4",
        (_tasks("qnli"), BERTS, _weights(-1, 1)),
        ISTAR,
        arms=(arms.COSREG, "none"),
        treatment=SIGNS,
    ),
    *(
        _istar(
            f"Figure {number}",
            shows,
            f"{COUNTERPART} Figures 5 and 6",
            arms.istar_at(weights),
            *(_tasks(task), BERTS, _weights(*weights), Axis("points", (12,), series, "layers")),
        )
        for number, shows, task, weights, series in (
            (5, "intrinsic dimension by layer", "sst2", (-5, -3, 3, 5), "layer.end.cls.two_nn"),
            (6, "IsoScore* by layer", "qnli", (-1, 1), "layer.end.tokens.isoscore_star"),
        )
    ),
    *(
        _istar(item, shows, "Counterparts of the paper’s Figures 7 and 8", treatment, _tasks(task), BERTS, axis)
        for item, shows, task, treatment, axis in (
            (
                "Figure 7",
                "score by ζ",
                "rte",
                arms.istar_at((-1,), zeta=(0, 0.2, 0.4, 0.6, 0.8)),
                _zetas(0, 0.2, 0.4, 0.6, 0.8, 1),
            ),
            (
                "Figure 8",
                "score by layer",
                "cola",
                arms.istar_at((-1,), layers=range(1, 13)),
                Axis("settings", tuple(range(1, 13)), "method.layers", "layers"),
            ),
        )
    ),
    _similarity(
        "Table 1",
        "similarity",
        "Table 1, recorded",
        *(SENTENCES, UNTRAINED, _methods("none", "whitebert", "softdecay", "sbert_wk", "flow", "whitening")),
    ),
    Item(
        "002",
        "Table 2",
        "GLUE, validation rows",
        SOFT_PAGE,
        "Table 2. Theirs",
        (FIVE, BERTS, _methods("none", "softdecay")),
        arms.TRAINED,
        treatment=arms.SOFTDECAY_LAYER,
    ),
    Item(
        "002",
        "Table 3",
        "GLUE, test rows",
        SOFT_PAGE,
        "Table 3. Theirs",
        (
            _tasks("mnli", "mnli_mm", "qqp", "qnli", "sst2", "cola", "mrpc", "rte"),
            BERT,
            _methods("softdecay", "tension", "sbert"),
        ),
        arms.TRAINED,
    ),
    _spectra(1, "spectra by layer", "Figures 1, 2 and 5 by depth", "cola", 6),
    _spectra(2, "spectra of MRPC", "Figure 2", "mrpc", 3),
    _spectra(5, "spectra of a fine-tuned model", "Figures 1 and 5", "rte", 6),
    _similarity(
        "Figure 3",
        "spectra with SoftDecay",
        f"{COUNTERPART} Figure 3",
        *(SENTENCES, _models("distilbert/distilbert-base-uncased", "albert/albert-base-v1")),
    ),
    _similarity(
        "Figure 4",
        "maps of STS-15",
        f"{COUNTERPART} Figure 4",
        *(_tasks("sts15"), BERT, _methods("none", "whitening", "softdecay")),
    ),
    Item("003", "Table 1", "data sets", ISO_PAGE, "Table 1, data sets", kind="printed"),
    _isolayer("Table 2", "score and IsoScore", "Table 2: score / IsoScore"),
    _isolayer("Table 3", "explained variance", "Table 3: EV1 / EV2 / EV3", "isobn"),
    _isolayer("Figure 2", "explained variance of 20 components", "Share of variance of the first k", study=ISO),
    Item("003", "Figure 1", "diagram of the phases", ISO_PAGE, "", kind="diagram"),
)

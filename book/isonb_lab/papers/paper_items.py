"""The tables and figures of the four papers: what each prints along its axes, and where its counterpart is."""

from __future__ import annotations

from isonb_lab.claims.treatment import Treatment

from . import arms
from .coverage import Axis, Item

__all__ = ["ITEMS"]

SIMILARITY = ("stsb_test", "sts12", "sts13", "sts14", "sts15", "sts16", "sickr")


def _tasks(*tasks: str) -> Axis:
    return Axis("tasks", tasks, "task")


def _models(*models: str) -> Axis:
    return Axis("models", models, "model")


def _weights(*weights: float) -> Axis:
    return Axis("settings", weights, "method.weight", "λ")


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
OWN = "istar_own"
SHRUNK = arms.entropy_of(select=True)
ON_SHRINK = (_tasks("mrpc", "cola"), TWO)
BARS = Axis("settings", (True, False), "method.select", "bars")
SHRINK_PAGE, ISTAR_PAGE, SOFT_PAGE, ISO_PAGE = (f"papers/{name}" for name in (SHRINK, ISTAR, SOFT, ISO))
ISTAR_MORE, SOFT_MORE = f"{ISTAR_PAGE}_more", f"{SOFT_PAGE}_more"
NINE = _tasks("sst2", "sst5", "qnli", "rte", "mrpc", "qqp", "cola", "stsb", "squad")
ALL_WEIGHTS = (-5, -3, -1, 0.5, 1, 3, 5)
LOWERED = arms.istar_at(ALL_WEIGHTS)
ZETAS = Axis("settings", (0, 0.2, 0.4, 0.6, 0.8, 1), "method.zeta", "ζ")
FIVE, THREE = _tasks("cola", "sst2", "mrpc", "qnli", "rte"), _tasks("rte", "cola", "mrpc")
LEARNED = arms.LEARNED
ITEMS = (
    Item("000", "Table 1", "settings", SHRINK_PAGE, "Table 1, settings", kind="printed"),
    Item(
        "000",
        "Table 2",
        "scores",
        SHRINK_PAGE,
        "Table 2: the paper's two tasks",
        (*ON_SHRINK, BARS),
        arms.TRAINED,
        treatment=SHRUNK,
    ),
    Item(
        "000",
        "Table 3",
        "anisotropy",
        SHRINK_PAGE,
        "Table 3 on one axis",
        (*ON_SHRINK, BARS),
        arms.TRAINED,
        treatment=SHRUNK,
    ),
    Item(
        "000",
        "Figure 1",
        "anisotropy in training",
        SHRINK_PAGE,
        "Counterpart of the paper’s Figure 1",
        (*ON_SHRINK, BARS, Axis("points", (570,), "step.train.cls.anisotropy_1", "updates")),
        SHRINK,
        treatment=SHRUNK,
    ),
    Item(
        "000",
        "Figure 2",
        "score in training",
        SHRINK_PAGE,
        "Counterpart of the paper’s Figure 2",
        (*ON_SHRINK, BARS, Axis("points", (30,), "step.validation.accuracy", "validations")),
        SHRINK,
        treatment=SHRUNK,
    ),
    Item(
        "001",
        "Table 1",
        "scores",
        ISTAR_PAGE,
        "Table 1. Theirs",
        (NINE, BERTS, Axis("settings", ("none", "cosreg", "istar"), "method.name", "methods")),
        arms.TRAINED,
        treatment=arms.istar_at((-1,)),
    ),
    Item(
        "001",
        "Table 2",
        "best λ and ζ",
        ISTAR_PAGE,
        "Table 2: λ | ζ",
        (NINE, BERTS, _weights(-5, -3, -1, 1, 3, 5), Axis("settings", (0.2, 0.4, 0.6, 0.8), "method.zeta", "ζ")),
        OWN,
        treatment=arms.istar_at((-5, -3, -1, 1, 3, 5), zeta=(0.2, 0.4, 0.6, 0.8)),
    ),
    Item("001", "Figure 1", "diagram of the loss", ISTAR_MORE, "", kind="diagram"),
    Item(
        "001",
        "Figure 2",
        "IsoScore* of small samples",
        ISTAR_MORE,
        "Counterpart of the paper’s Figure 2",
        (Axis("settings", (0, 0.2, 0.4, 0.6, 0.8), "method.zeta", "ζ"),),
        kind="printed",
    ),
    Item(
        "001",
        "Figure 3",
        "isotropy against score",
        ISTAR_PAGE,
        "Counterpart of the paper’s Figure 3",
        (NINE, BERTS, _weights(*ALL_WEIGHTS)),
        OWN,
        treatment=LOWERED,
    ),
    Item(
        "001",
        "Figure 4",
        "means with CosReg",
        ISTAR_MORE,
        "Counterpart of the paper’s Figure 4",
        (_tasks("qnli"), BERTS, _weights(-1, 1)),
        ISTAR,
        arms=(arms.COSREG, "none"),
        treatment=Treatment("cosreg", arms.GLUE, {"method.weight": (-1, 1)}),
    ),
    *(
        Item(
            "001",
            f"Figure {number}",
            shows,
            ISTAR_MORE,
            "Counterpart of the paper’s Figures 5 and 6",
            (_tasks(task), BERTS, _weights(*weights), Axis("points", (12,), series, "layers")),
            OWN,
            treatment=arms.istar_at(weights),
        )
        for number, shows, task, weights, series in (
            (5, "intrinsic dimension by layer", "sst2", (-5, -3, 3, 5), "layer.end.cls.two_nn"),
            (6, "IsoScore* by layer", "qnli", (-1, 1), "layer.end.tokens.isoscore_star"),
        )
    ),
    Item(
        "001",
        "Figure 7",
        "score by ζ",
        ISTAR_MORE,
        "Counterparts of the paper’s Figures 7 and 8",
        (_tasks("rte"), BERTS, ZETAS),
        OWN,
        treatment=arms.istar_at((-1,), zeta=(0, 0.2, 0.4, 0.6, 0.8)),
    ),
    Item(
        "001",
        "Figure 8",
        "score by layer",
        ISTAR_MORE,
        "Counterparts of the paper’s Figures 7 and 8",
        (_tasks("cola"), BERTS, Axis("settings", tuple(range(1, 13)), "method.layers", "layers")),
        OWN,
        treatment=arms.istar_at((-1,), layers=range(1, 13)),
    ),
    Item(
        "002",
        "Table 1",
        "similarity",
        SOFT_MORE,
        "Table 1, recorded",
        (
            Axis("tasks", SIMILARITY, "task"),
            UNTRAINED,
            Axis(
                "settings",
                ("none", "whitebert", "softdecay", "sbert_wk", "flow", "whitening"),
                "method.name",
                "methods",
            ),
        ),
        SOFT,
        SOFT,
    ),
    Item(
        "002",
        "Table 2",
        "GLUE, validation rows",
        SOFT_PAGE,
        "Table 2. Theirs",
        (FIVE, BERTS, Axis("settings", ("none", "softdecay"), "method.name", "methods")),
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
            _models("google-bert/bert-base-uncased"),
            Axis("settings", ("softdecay", "tension", "sbert"), "method.name", "methods"),
        ),
        arms.TRAINED,
    ),
    *(
        Item(
            "002",
            f"Figure {number}",
            shows,
            SOFT_MORE,
            caption,
            (_tasks(task), model, layers),
            LEARNED,
            treatment=plain,
        )
        for number, shows, caption, task, model, layers, plain in (
            (
                1,
                "spectra by layer",
                "Counterpart of the paper’s Figures 1, 2 and 5 by depth",
                "cola",
                _models("google-bert/bert-base-uncased"),
                Axis("points", (6,), "layer.end.tokens.spectral_skewness", "layers"),
                arms.plain_on(("cola",)),
            ),
            (
                2,
                "spectra of MRPC",
                "Counterpart of the paper’s Figure 2",
                "mrpc",
                _models("google-bert/bert-base-uncased"),
                Axis("points", (3,), "layer.end.tokens.spectral_skewness", "layers"),
                arms.plain_on(("mrpc",)),
            ),
            (
                5,
                "spectra of a fine-tuned model",
                "Counterpart of the paper’s Figures 1 and 5",
                "rte",
                _models("google-bert/bert-base-uncased"),
                Axis("points", (6,), "layer.end.tokens.spectral_skewness", "layers"),
                arms.plain_on(("rte",)),
            ),
        )
    ),
    Item(
        "002",
        "Figure 3",
        "spectra with SoftDecay",
        SOFT_MORE,
        "Counterpart of the paper’s Figure 3",
        (Axis("tasks", SIMILARITY, "task"), _models("distilbert/distilbert-base-uncased", "albert/albert-base-v1")),
        SOFT,
        SOFT,
    ),
    Item(
        "002",
        "Figure 4",
        "maps of STS-15",
        SOFT_MORE,
        "Counterpart of the paper’s Figure 4",
        (
            Axis("tasks", ("sts15",), "task"),
            _models("google-bert/bert-base-uncased"),
            Axis("settings", ("none", "whitening", "softdecay"), "method.name", "methods"),
        ),
        SOFT,
        SOFT,
    ),
    Item("003", "Table 1", "data sets", ISO_PAGE, "Table 1, data sets", kind="printed"),
    *(
        Item(
            "003",
            item,
            shows,
            ISO_PAGE,
            caption,
            (THREE, LARGE, Axis("settings", methods, "method.name", "methods")),
            study,
            treatment=arms.ISOLAYER_LAYER,
        )
        for item, shows, caption, methods, study in (
            ("Table 2", "score and IsoScore", "Table 2: score / IsoScore", ("none", "isolayer"), arms.TRAINED),
            ("Table 3", "explained variance", "Table 3: EV1 / EV2 / EV3", ("none", "isolayer", "isobn"), arms.TRAINED),
            (
                "Figure 2",
                "explained variance of 20 components",
                "Share of variance of the first k",
                ("none", "isolayer"),
                ISO,
            ),
        )
    ),
    Item("003", "Figure 1", "diagram of the phases", ISO_PAGE, "", kind="diagram"),
)

"""The book's encoders with nothing done to them: what the page itself expects of them, claims 26 to 28."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from isonb.errors import fail
from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore
from isonb.measures.registry import titles
from isonb.measures.spectrum import anisotropy
from isonb_lab.claims.design import PLAIN as NONE
from isonb_lab.claims.design import Design, Settings, StudyError, task_name
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import Change, Evidence, Prediction, claim, less
from isonb_lab.runs.protocols import PROTOCOLS

from .arms import HEAD_TO_HEAD
from .pairs import PLAIN_VECTORS, TRANSFORMS, pair_gain

MINILM, TINY, EMBEDDED = "minilm", "tiny", "tiny, embedded"
GLUE = ("CoLA", "MRPC", "RTE", "STS-B")
TAUGHT = ("SST-2", "CoLA", "MRPC", "STS-B")  # with minilm in the head to head
GENERATED = ("acceptability", "paraphrase", "entailment", "similarity", "sentiment", "span")
SETS = {f"sts{year}": f"STS-{year}" for year in range(12, 17)} | {"stsb_test": "STS-B, test", "sickr": "SICK-R"}
SUBSETS = tuple(SETS.values())[:5]  # sets that consist of subsets
AVERAGES = ("mean", "all")
PLAIN = {name: PLAIN_VECTORS[name] for name in ("last", "first_last")}
METHODS = {name: TRANSFORMS[name] for name in ("zero_mean", "whitening", "softdecay")}
SIGNS = {"anisotropy_1": 1, "anisotropy_1_centered": 1, "isoscore": -1, "mean_cosine": 1}
# What grows as vectors become less isotropic comes with +1. IsoScore* of one cloud alone is a function of IsoScore.
MEASURES = {name: (title, SIGNS[name]) for name, title in titles(*SIGNS).items()}
RATE = PROTOCOLS["embedded"]["finetune"]["learning_rate"]


def arm_of(settings: Settings) -> str | None:
    """The encoder and its protocol; in similarity the vectors that are compared."""
    method = settings.get("method.name", "none")
    if settings["experiment"] == "similarity":
        return PLAIN[settings.get("layers", "first_last")] if method == "none" else METHODS.get(method)
    if settings["experiment"] != "finetune" or method != "none":
        return None
    return EMBEDDED if settings["learning_rate"] == RATE and settings["model"] == TINY else settings["model"]


def suite_of(settings: Settings) -> str:
    """The task in print; a set of similarity with the encoder behind it where it isn't minilm."""
    task = str(settings["task"])
    if settings["experiment"] == "similarity" and task in SETS:
        return set_of(SETS[task], str(settings["model"]))
    return SETS.get(task) or task_name(task)


def set_of(name: str, encoder: str) -> str:
    """The suite of an encoder on a set of similarity.

    >>> set_of("STS-13", "minilm"), set_of("STS-13", "tiny")
    ('STS-13', 'STS-13 (tiny)')
    """
    return name if encoder == MINILM else f"{name} ({encoder})"


def encoders(study: Study) -> tuple[str, ...]:
    """The arms of plain fine-tuning: those of the book first, then a reader's, the one with most runs before others."""
    fine = study.runs[(study.runs["experiment"] == "finetune") & (study.runs["method.name"] == NONE)]
    counted = fine["arm"].value_counts().index
    return tuple(arm for arm in dict.fromkeys([MINILM, TINY, EMBEDDED, *counted]) if arm in counted)


def main_encoder(study: Study) -> str:
    """The encoder that the page is about: the first of :func:`encoders`.

    Raises
        StudyError: for runs without plain fine-tuning.
    """
    if not (names := encoders(study)):
        must, fix = "runs must hold plain fine-tuning", "Sweep a grid with the method none."
        fail(StudyError, must, f"{len(study.runs)} runs: {', '.join(study.arms)}", fix)
    return names[0]


def tasks_of(study: Study, encoder: str) -> tuple[str, ...]:
    """The tasks that an encoder was fine-tuned on, those of GLUE first; generated ones where there is no other."""
    suites = study.runs.loc[study.runs["arm"] == encoder, "suite"].unique()
    every = tuple(suite for suite in dict.fromkeys([*GLUE, *suites]) if suite in suites)
    return tuple(suite for suite in every if suite not in GENERATED) or every


def _lead(study: Study, suites: Sequence[str], *, arm: str) -> Evidence:
    """How far an arm's score lies above the majority baseline; in runs that lack it, how far that of their encoder."""
    arm = arm if arm in study.arms else next(iter(encoders(study)), arm)
    leads = {suite: study.lead(arm, suite) for suite in suites}
    return {suite: lead for suite, lead in leads.items() if lead is not None}


def _gains(study: Study, suites: Sequence[str], *, method: str) -> Evidence:
    """One cell a set and protocol; a set without subsets has one."""
    sets = [(s, suite) for s in SETS.values() for suite in study.suites if suite.partition(" (")[0] == s]
    places = [(s, suite, p) for s, suite in sets for p in (AVERAGES if s in SUBSETS else ("all",))]
    gains = {f"{suite}, {p}" if s in SUBSETS else suite: pair_gain(study, method, suite, p) for s, suite, p in places}
    return {cell: gain for cell, gain in gains.items() if gain is not None}


def isotropic_readings(n: int, d: int) -> dict[str, float]:
    """What common measures read on isotropic Gaussian samples of n rows in d dimensions, the mean of four draws.

    >>> round(isotropic_readings(4000, 4)["IsoScore"], 2)
    1.0
    """
    x = torch.randn(4, n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = {
        "A1 raw": anisotropy(x, 1)[..., 0],
        "A1 centred": anisotropy(x, 1, center=True)[..., 0],
        "IsoScore": isoscore(x),
        "mean cosine": mean_cosine(x),
    }
    return {name: float(value.mean()) for name, value in values.items()}


ABOVE = "score less that of the majority baseline"
CLAIMS = (
    claim(
        26,
        "Plain fine-tuning is above the majority baseline",
        Prediction(f"{MINILM}, GLUE: {ABOVE}", partial(_lead, arm=MINILM), "greater", on=GLUE),
        Prediction(f"{TINY}, generated tasks: {ABOVE}", partial(_lead, arm=EMBEDDED), "greater", on=GENERATED),
    ),
    claim(
        27,
        "Plain fine-tuning makes minilm's [CLS] vectors less isotropic, by every measure",
        *(
            Prediction(
                f"head to head: {name}, end less start",
                Change(less(f"metric.end.cls.{measure}", f"metric.start.cls.{measure}"), NONE, ""),
                "greater" if sign > 0 else "less",
                trained=True,
                runs_of=HEAD_TO_HEAD,
                on=TAUGHT,
            )
            for measure, (name, sign) in MEASURES.items()
        ),
    ),
    claim(
        28,
        "Whitening and SoftDecay raise the similarity scores of minilm",
        *(
            Prediction(
                f"{METHODS[key]} less plain, points",
                partial(_gains, method=METHODS[key]),
                "greater",
                on=(),
                depends="the set",
            )
            for key in ("whitening", "softdecay")
        ),
        remark="Intervals over pairs; the sets with subsets by two protocols.",
    ),
)
DESIGN = Design(
    name="plain_encoders",
    page="results/plain_encoders",
    recordings=("baselines",),
    arm=arm_of,
    suite=suite_of,
    claims=CLAIMS,
    grid="baselines",
)

"""The book's encoders with nothing done to them: what the page itself expects of them, claims 26 to 28."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isonb.lab.runs.protocols import PROTOCOLS
from isonb.lab.studies.arms import HEAD_TO_HEAD
from isonb.lab.studies.design import PLAIN as NONE
from isonb.lab.studies.design import TASK_NAMES, Design
from isonb.lab.studies.pair_gains import PLAIN_VECTORS, TRANSFORMS, pair_gain
from isonb.lab.studies.plan import Settings
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import Claim, Evidence, Part, difference
from isonb.measures.registry import titles

__all__ = [
    "AVERAGES",
    "DESIGN",
    "EMBEDDED",
    "GENERATED",
    "GLUE",
    "MEASURES",
    "METHODS",
    "MINILM",
    "PLAIN",
    "SETS",
    "SUBSETS",
    "TINY",
]

MINILM, TINY, EMBEDDED = "minilm", "tiny", "tiny, embedded"
GLUE = ("CoLA", "MRPC", "RTE", "STS-B")
TAUGHT = ("SST-2", "CoLA", "MRPC", "STS-B")  # with minilm in the head to head
GENERATED = ("acceptability", "paraphrase", "entailment", "similarity", "sentiment", "span")
SETS = {f"sts{year}": f"STS-{year}" for year in range(12, 17)} | {"stsb_test": "STS-B, test", "sickr": "SICK-R"}
SUBSETS = tuple(SETS.values())[:5]  # sets that consist of subsets
AVERAGES = ("mean", "all")
PLAIN = {name: PLAIN_VECTORS[name] for name in ("last", "first_last")}
METHODS = {name: TRANSFORMS[name] for name in ("zero_mean", "whitening", "softdecay")}
SIGNS = {"anisotropy_1": 1, "anisotropy_1_centered": 1, "isoscore": -1, "isoscore_star": -1, "mean_cosine": 1}
# What grows as a cloud becomes less isotropic comes with +1.
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
    """The task in print."""
    task = str(settings["task"])
    return SETS.get(task) or TASK_NAMES.get(task) or task.removeprefix("english_")


def _lead(arm: str) -> Callable[[Study, Sequence[str]], Evidence]:
    return lambda study, suites: {s: found for s in suites if (found := study.lead(arm, s)) is not None}


def _move(measure: str) -> Callable[[Study, Sequence[str]], Evidence]:
    """A measure of minilm's validation [CLS] vectors, the end of a run less its start."""

    def evidence(study: Study, suites: Sequence[str]) -> Evidence:
        end, start = (study.units(f"metric.{when}.cls.{measure}", NONE, suites) for when in ("end", "start"))
        return difference(end, start)

    return evidence


def _gains(method: str) -> Callable[[Study, Sequence[str]], Evidence]:
    """One cell a set and protocol; a set without subsets has one."""

    def evidence(study: Study, suites: Sequence[str]) -> Evidence:
        places = [(s, p) for s in SETS.values() for p in (AVERAGES if s in SUBSETS else ("all",))]
        found = {f"{s}, {p}" if s in SUBSETS else s: pair_gain(study, method, s, p) for s, p in places}
        return {cell: gain for cell, gain in found.items() if gain is not None}

    return evidence


ABOVE = "score less that of the majority baseline"
CLAIMS = (
    Claim(
        26,
        "Plain fine-tuning is above the majority baseline",
        (
            Part(f"{MINILM}, GLUE: {ABOVE}", _lead(MINILM), "greater", on=GLUE),
            Part(f"{TINY}, generated tasks: {ABOVE}", _lead(EMBEDDED), "greater", on=GENERATED),
        ),
    ),
    Claim(
        27,
        "Plain fine-tuning makes minilm's [CLS] vectors less isotropic, by every measure",
        tuple(
            Part(
                f"head to head: {name}, end less start",
                _move(measure),
                "greater" if sign > 0 else "less",
                gated=True,
                runs_of=HEAD_TO_HEAD,
                on=TAUGHT,
            )
            for measure, (name, sign) in MEASURES.items()
        ),
    ),
    Claim(
        28,
        "Whitening and SoftDecay raise the similarity scores of minilm",
        tuple(
            Part(f"{METHODS[key]} less plain, points", _gains(METHODS[key]), "greater", on=(), depends="the set")
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

"""What a loss or a gain was due to, in plain words: a sentence for each outcome, so that none contradicts the runs."""

from __future__ import annotations

from collections.abc import Iterable

from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import CONTRADICTED, INCONCLUSIVE, NOT_TESTABLE, SUPPORTED, Judgement

__all__ = ["WORDS", "istar_cause", "layer_cause", "layer_owed", "undecided"]

_NONE = "There are no runs for it yet."
# A sentence for each verdict; what is open beside the main question stands in the page's tables alone.
WORDS: dict[str, dict[str, dict[str, str]]] = {
    "layer": {
        "end": {
            SUPPORTED: "At the published rate the joint loss doesn't lower the score, even without early stopping.",
            CONTRADICTED: "Without early stopping the joint loss at the published rate changes the score.",
            INCONCLUSIVE: "Whether the joint loss lowers the score without early stopping is open.",
            NOT_TESTABLE: _NONE,
        },
        "stop": {
            SUPPORTED: "Stopped on rows kept apart, it doesn't.",
            CONTRADICTED: "A stop on rows kept apart doesn't prevent that.",
            INCONCLUSIVE: "Whether it does so when stopped on rows kept apart is open.",
            NOT_TESTABLE: "",
        },
        "penalty": {
            SUPPORTED: "What ruins the score is the penalty without the task's loss.",
            CONTRADICTED: "Not even the penalty alone ruins the score.",
            INCONCLUSIVE: "Whether the penalty alone ruins the score is open.",
            NOT_TESTABLE: "",
        },
    },
    "owed": {
        "owed": {
            SUPPORTED: "Trained by the task's loss alone, IsoLayer's layer scores the same: its gain doesn't need the "
            "isotropy loss.",
            CONTRADICTED: "Trained by the task's loss alone, IsoLayer's layer scores differently: its isotropy loss "
            "changes the score.",
            INCONCLUSIVE: "Whether IsoLayer's layer would score the same without its isotropy loss is open.",
            NOT_TESTABLE: _NONE,
        },
    },
    "istar": {
        "harm": {
            SUPPORTED: "The published push lowers the score.",
            CONTRADICTED: "The published push does not lower the score.",
            INCONCLUSIVE: "That the published push lowers the score could not be shown.",
            NOT_TESTABLE: _NONE,
        },
        "strong": {
            SUPPORTED: "A push of a tenth or a third of that strength doesn't.",
            CONTRADICTED: "So does a weaker one.",
            INCONCLUSIVE: "",
            NOT_TESTABLE: "",
        },
        "late": {
            SUPPORTED: "When the full push begins at the second epoch, it loses less and reaches a lower value of its "
            "own objective than plain training: the published push starts too early.",
            CONTRADICTED: "A start at the second epoch doesn't help.",
            INCONCLUSIVE: "Whether a later start helps is open.",
            NOT_TESTABLE: "",
        },
        "early": {
            SUPPORTED: "It then doesn't lower the score.",
            CONTRADICTED: "It still lowers the score.",
            INCONCLUSIVE: "",
            NOT_TESTABLE: "",
        },
        "turned": {
            SUPPORTED: "A push of the same length in a random direction loses less: the direction does the harm, not "
            "the length.",
            CONTRADICTED: "A push of the same length in a random direction loses as much.",
            INCONCLUSIVE: "Whether the direction or the length does the harm is open.",
            NOT_TESTABLE: "",
        },
        "released": {
            SUPPORTED: "With padding as points and mixed lengths, as in the released code, it loses less.",
            CONTRADICTED: "With padding as points and mixed lengths, as in the released code, it loses no less.",
            INCONCLUSIVE: "Whether it loses less with padding as points, as in the released code, is open.",
            NOT_TESTABLE: "",
        },
    },
}


def layer_cause(judged: Iterable[Judgement]) -> str:
    """What the loss behind IsoLayer was due to, from the verdicts of the study ``layer_doses``."""
    return _sentences("layer", judged)


def layer_owed(judged: Iterable[Judgement]) -> str:
    """Whether IsoLayer's layer owes its score to the isotropy loss, from the verdicts of the study ``layer_doses``."""
    return _sentences("owed", judged)


def istar_cause(judged: Iterable[Judgement]) -> str:
    """What the loss by I-STAR was due to, from the verdicts of the study ``istar_doses``."""
    return _sentences("istar", judged)


def undecided(study: Study) -> str:
    """On which tasks of a study no gain or loss of a score can be told, and why; nothing where there is none."""
    why = {suite: study.learned(suite) for suite in (*study.suites, *study.live_suites)}
    return " ".join(f"On {suite} no gain or loss can be told: {reason}." for suite, reason in why.items() if reason)


def _sentences(about: str, judged: Iterable[Judgement]) -> str:
    found = {str(one.claim.number): one.outcome for one in judged}
    if found.get("end") == SUPPORTED:
        found["stop"] = NOT_TESTABLE  # nothing is left to stop
    words = [sentences[found[name]] for name, sentences in WORDS[about].items()]
    return " ".join(dict.fromkeys(filter(None, words)))

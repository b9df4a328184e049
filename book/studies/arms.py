"""The arms of the head to head, and what a claim predicts of their scores.

In the papers' own grids the plain models hardly learned their tasks, and no method had a stopping or a strength of its
own. In the head to head they did, and in the runs that ``evidence_plan.md`` asks for: a claim about trained models is
judged there (``runs_of`` of a prediction), by the arms named here.
"""

from __future__ import annotations

from typing import Any

from isonb.lab.studies.design import PLAIN
from isonb.lab.studies.verdicts import Change, Prediction

__all__ = [
    "ACTS_ON",
    "ALL_BARS",
    "ARMS",
    "COSREG",
    "ENTROPY",
    "ENTROPY_ON",
    "HEAD_TO_HEAD",
    "ISOBN",
    "ISOLAYER",
    "LAST",
    "LEARNED",
    "LOWER",
    "METHODS",
    "NEIGHBOURS",
    "POINT",
    "RAISE",
    "RUNS",
    "SOFTDECAY",
    "SPECTRUM",
    "scored",
]

HEAD_TO_HEAD, NEIGHBOURS, LEARNED = "head_to_head", "neighbours", "evidence_claims"
RUNS = {HEAD_TO_HEAD: "head to head", NEIGHBOURS: "neighbours", LEARNED: "runs that learned"}
POINT = 0.01  # the gain or loss that a claim about a score is about, where the plan says so
LOWER, RAISE, ENTROPY = "I-STAR (lower)", "I-STAR (raise)", "entropy"
SOFTDECAY, ISOLAYER, ISOBN, COSREG, SPECTRUM = "SoftDecay", "IsoLayer", "IsoBN", "CosReg", "spectrum control"
LAST = "I-STAR (last layer)"  # lower, on the tokens of the last layer alone: C6
ARMS = (PLAIN, LOWER, RAISE, ENTROPY, SOFTDECAY, ISOLAYER, ISOBN, COSREG, SPECTRUM)
METHODS = ARMS[1:]
ACTS_ON = {  # the vectors that a method changes, by arm; entropy changes the [CLS] vectors
    LOWER: "tokens",
    RAISE: "tokens",
    LAST: "tokens",
    SOFTDECAY: "features",
    ISOLAYER: "second",
    ISOBN: "features",
    COSREG: "tokens",
    SPECTRUM: "tokens",
}
ENTROPY_ON = ("SST-2", "CoLA", "MRPC", "SST-2 (tiny)", "sentiment (tiny)")  # on STS-B it has no classes to act in
ALL_BARS = "entropy (all bars) 1"  # of the neighbours, with the weight of its paper


def scored(
    arm: str, base: str = PLAIN, direction: str = "greater", *, runs_of: str = HEAD_TO_HEAD, **more: Any
) -> Prediction:
    """The prediction that an arm scores above another, below, or alike: in the head to head, or where ``runs_of`` says.

    ``""``: in the runs of the claim's own study, which are those that learned.
    """
    words = f"{RUNS[runs_of or LEARNED]}: score, {arm} less {base}"
    words += f", alike within {more['margin']}" if direction == "equal" else ""
    evidence = Change("score", arm, base)
    return Prediction(words, evidence, direction, trained=True, runs_of=runs_of, arms=(arm, base), **more)

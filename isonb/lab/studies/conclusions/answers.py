"""The papers' contradictions in plain words: a sentence for each outcome, so that no sentence contradicts the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import pandas as pd

from isonb.lab.statistics.seeds import student
from isonb.lab.studies.designs.head_to_head import ABOVE, BELOW, against_plain, changed
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import CONTRADICTED, INCONCLUSIVE, NOT_TESTABLE, SUPPORTED, Judgement

__all__ = ["QUESTIONS", "WORDS", "Comparison", "answer", "compared", "outcomes", "overall", "together"]

QUESTIONS = {  # each contradiction, and the statements that it is judged by
    "C1": ("Is more or less isotropy better?", ("C1 down", "C1 up")),
    "C2": ("Is the mean cosine a measure of isotropy?", ("C2",)),
    "C3": ("Is a perfectly round cloud too round?", ("C3",)),
    "C4": ("Is a raised IsoScore of 0.03 isotropic?", ("C4",)),
    "C5": ("Does isotropy within classes make the whole isotropic?", ("C5",)),
    "C6": ("Does it matter which vectors are pushed?", ("C6",)),
}
_OPEN = "These runs can't tell."
_NONE = "There are no runs for it yet."
WORDS: dict[str, dict[str, str]] = {
    "C1 down": {
        SUPPORTED: "Lowering isotropy helped and raising it harmed: I-STAR is right here.",
        CONTRADICTED: "I-STAR's claim is refuted here, at the strengths tried: lowering isotropy did not help, or "
        "raising it did not harm.",
        INCONCLUSIVE: "I-STAR's claim that less isotropy helps is neither shown nor refuted here.",
        NOT_TESTABLE: _NONE,
    },
    "C1 up": {
        SUPPORTED: "Each of the three raised isotropy and the score: they are right here.",
        CONTRADICTED: "At least one of the three lowered the isotropy that it should raise, or the score: more isn't "
        "better as a rule.",
        INCONCLUSIVE: "The claim of the other three, that more isotropy helps, is neither shown nor refuted.",
        NOT_TESTABLE: _NONE,
    },
    "C2": {
        SUPPORTED: "The mean cosine and IsoScore moved together here.",
        CONTRADICTED: "No: CosReg moved one of the two the other way.",
        INCONCLUSIVE: "Not shown: CosReg did not clearly move both.",
        NOT_TESTABLE: _NONE,
    },
    "C3": {
        SUPPORTED: "No: whitening, the rounder of the two, scores higher on each set.",
        CONTRADICTED: "Yes: on some sets whitening, the rounder of the two, scores clearly below SoftDecay.",
        INCONCLUSIVE: _OPEN,
        NOT_TESTABLE: _NONE,
    },
    "C4": {
        SUPPORTED: "Yes: the layer's cloud comes above half of what there is.",
        CONTRADICTED: "No: IsoScore behind the layer stays below a half. It is raised, and still not isotropic.",
        INCONCLUSIVE: _OPEN,
        NOT_TESTABLE: _NONE,
    },
    "C5": {
        SUPPORTED: "Yes: IsoScore rose within classes and over all of them.",
        CONTRADICTED: "No: with the entropy of each class, IsoScore fell within classes or over all of them.",
        INCONCLUSIVE: "Not shown: IsoScore did not clearly rise both within classes and over all.",
        NOT_TESTABLE: _NONE,
    },
    "C6": {
        SUPPORTED: "No: pushing the last layer alone gives the same score, and moves all layers.",
        CONTRADICTED: "Yes: pushing the last layer alone ends elsewhere.",
        INCONCLUSIVE: _OPEN,
        NOT_TESTABLE: _NONE,
    },
}


def outcomes(judged: Iterable[Judgement]) -> dict[str, str]:
    """The outcome of each statement, by its name."""
    return {str(one.claim.number): one.outcome for one in judged}


def answer(question: str, found: Mapping[str, str]) -> str:
    """The answer to a contradiction, by the outcomes of its statements.

    >>> answer("C4", {"C4": "contradicted"})
    'No: IsoScore behind the layer stays below a half. It is raised, and still not isotropic.'
    """
    return " ".join(dict.fromkeys(WORDS[name][found[name]] for name in QUESTIONS[question][1]))


@dataclass(frozen=True)
class Comparison:
    """A method against plain training: the interval (low, high) of what it changes in isotropy; its score's outcome.

    ``visible``: the smallest true gain that the seeds would have shown in four of five repetitions.
    """

    isotropy: tuple[float, float]
    outcome: str
    arm: str = ""
    suite: str = ""
    visible: float = math.nan


def compared(study: Study) -> list[Comparison]:
    """Every method of the head to head against plain training, on each task that plain training has learned.

    Isotropy is IsoScore, of the vectors that the method ends with; the outcome is that of
    :func:`~isonb.lab.studies.designs.head_to_head.against_plain`.
    """
    found = []
    for row in against_plain(study).itertuples():
        values = [value for (suite, _), value in changed(study, row.arm, "isoscore").items() if suite == row.suite]
        if len(values) > 1:
            moved = student(values)
            found.append(Comparison((moved.low, moved.high), row.outcome, row.arm, row.suite, row.visible))
    return found


def overall(found: Iterable[Comparison]) -> str:
    """The answer to the book's question: what gained, how much gained and lost, and which way isotropy went with it.

    >>> overall([Comparison((-0.2, -0.1), BELOW)]).partition(". ")[0]
    'No method made the model clearly better'
    """
    every = list(found)
    if not every:
        return _NONE
    gains, losses = ([one for one in every if one.outcome == side] for side in (ABOVE, BELOW))
    named = " and ".join(f"{one.arm} on {one.suite}" for one in gains)
    head = (
        f"{named} made the model clearly better; nothing else did."
        if gains
        else "No method made the model clearly better."
    )
    left = len(every) - len(gains) - len(losses)
    signs = [_sign(*one.isotropy) for one in every]
    up, down = (signs.count(sign) or "none" for sign in (1, -1))
    seen = [100 * one.visible for one in every if not math.isnan(one.visible)]
    shown = (
        [f"In half of all comparisons a true gain of {median(seen):.1f} points would have been seen."] if seen else []
    )
    told = [
        head,
        f"Of {len(every)} comparisons with plain fine-tuning, {_show(len(gains))} a clear gain",
        f"and {_show(len(losses))} a clear loss{f'; in the other {left} the difference is not clear' if left else ''}.",
        *shown,
        f"IsoScore clearly rose in {up} of the {len(every)} and fell in {down}.",
    ]
    return " ".join(told + [_with(way, side) for way, side in (("rose", gains), ("fell", losses)) if side])


def _show(count: int) -> str:
    return f"{count} show" if count > 1 else "1 shows" if count else "none shows"


def _with(way: str, side: Sequence[Comparison]) -> str:
    """How isotropy went where the score rose, or where it fell."""
    signs = [_sign(*one.isotropy) for one in side]
    if not any(signs):
        return f"Where the score {way}, isotropy did not clearly move."
    up, down = (signs.count(sign) or "none" for sign in (1, -1))
    return f"Where the score {way}, isotropy clearly rose in {up} and fell in {down}."


def _sign(low: float, high: float) -> int:
    return 1 if low > 0 else -1 if high < 0 else 0


def together(found: pd.DataFrame) -> str:
    """What :func:`~isonb.lab.studies.conclusions.over_tasks.over_tasks` finds, in words; nothing without rows."""
    if found.empty:
        return ""
    sides = {side: found.loc[found["outcome"] == side, "arm"].tolist() for side in (ABOVE, BELOW)}
    above, below = (
        f"{' and '.join(sides[side]) or none} {'are' if len(sides[side]) > 1 else 'is'} clearly {side}"
        for side, none in ((ABOVE, "no method"), (BELOW, "none"))
    )
    return (
        f"Over {found['tasks'].iloc[0]} tasks together, {above} plain fine-tuning, and {below}. For half of the "
        f"{len(found)} methods a true gain of {100 * median(found['visible']):.1f}% of the plain model's lead would "
        "have shown."
    )

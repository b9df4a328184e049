"""The papers' contradictions in plain words: a sentence for each outcome, so that no sentence contradicts the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import pandas as pd

from isonb.lab.statistics.seeds import student
from isonb.lab.studies.arms import ISOLAYER
from isonb.lab.studies.designs.head_to_head import ABOVE, BELOW, against_plain, changed
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import CONTRADICTED, INCONCLUSIVE, NOT_TESTABLE, SUPPORTED, Judgement

__all__ = ["QUESTIONS", "WORDS", "Comparison", "answer", "compared", "counts", "headline", "outcomes", "together"]

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
        CONTRADICTED: "I-STAR's claim that less isotropy helps is refuted here, at the strengths tried: at least one "
        "comparison clearly shows the opposite.",
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
        INCONCLUSIVE: "Not shown, since CosReg did not clearly move both the mean cosine and IsoScore.",
        NOT_TESTABLE: _NONE,
    },
    "C3": {
        SUPPORTED: "No: whitening, the rounder of the two, scores higher on each set.",
        CONTRADICTED: "It can be: on at least one set whitening, the rounder of the two, scores clearly below "
        "SoftDecay.",
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


def headline(found: Iterable[Comparison], owed: str = INCONCLUSIVE) -> str:
    """The answer to the book's question: whether a clear gain came with a rounder space, and needed it.

    ``owed`` is the outcome of the claim that IsoLayer's layer scores the same without its isotropy loss.

    >>> headline([Comparison((-0.2, -0.1), BELOW)])
    'Nothing here shows that a rounder space makes a model better: no method made it clearly better.'
    """
    every = list(found)
    if not every:
        return _NONE
    gains = [one for one in every if one.outcome == ABOVE]
    unneeded = [one for one in gains if one.arm == ISOLAYER and owed == SUPPORTED]
    flat = [one for one in gains if one not in unneeded and _sign(*one.isotropy) <= 0]
    if rounder := [one for one in gains if one not in unneeded and one not in flat]:
        return f"A rounder space may help: {_names(rounder)} made it clearly rounder, and the model clearly better."
    told = "Nothing here shows that a rounder space makes a model better"
    if not gains:
        return f"{told}: no method made it clearly better."
    return " ".join(
        [
            f"{told}. The only clear gain{'s are' if len(gains) > 1 else ' is'} by {_names(gains)}.",
            *(["IsoLayer's layer gains as much without its isotropy loss."] if unneeded else []),
            *([f"By {_names(flat)} the space did not become clearly rounder."] if flat else []),
        ]
    )


def _names(some: Iterable[Comparison]) -> str:
    return " and ".join(f"{one.arm} on {one.suite}" for one in some)


def counts(found: Iterable[Comparison]) -> str:
    """How many methods gained and lost, what could have been seen, and which way isotropy went; nothing without runs.

    >>> counts([Comparison((-0.2, -0.1), BELOW)]).partition(". ")[0]
    'Of 1 comparison with plain fine-tuning, none shows a clear gain and 1 shows a clear loss'
    """
    every = list(found)
    if not every:
        return ""
    gains, losses = ([one for one in every if one.outcome == side] for side in (ABOVE, BELOW))
    left = len(every) - len(gains) - len(losses)
    up, down = _moved(every)
    seen = [one.visible for one in every if not math.isnan(one.visible)]
    points = f"{100 * median(seen):.1f} points" if seen else ""
    told = [
        f"Of {len(every)} comparison{'s' * (len(every) > 1)} with plain fine-tuning, {_show(len(gains))} a clear gain",
        f"and {_show(len(losses))} a clear loss{f'; in the other {left} the difference is not clear' if left else ''}.",
        f"In half of the comparisons a true gain of {points} would have shown." if points else "",
        f"IsoScore clearly rose in {up} of the {len(every)} and clearly fell in {down}.",
        *(_with(kind, side) for kind, side in (("gain", gains), ("loss", losses)) if side),
    ]
    return " ".join(filter(None, told))


def _show(count: int) -> str:
    return f"{count} show" if count > 1 else "1 shows" if count else "none shows"


def _with(kind: str, side: Sequence[Comparison]) -> str:
    """How IsoScore went with the clear gains, or with the clear losses."""
    up, down = _moved(side)
    if len(side) == 1:
        went = "clearly rose" if up == 1 else "clearly fell" if down == 1 else "did not clearly move"
        return f"With the clear {kind}, IsoScore {went}."
    plural = {"gain": "gains", "loss": "losses"}[kind]
    return f"With the {len(side)} clear {plural}, IsoScore clearly rose in {up} and clearly fell in {down}."


def _moved(some: Sequence[Comparison]) -> tuple[int | str, int | str]:
    """In how many of them IsoScore clearly rose and in how many it clearly fell."""
    signs = [_sign(*one.isotropy) for one in some]
    return signs.count(1) or "none", signs.count(-1) or "none"


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

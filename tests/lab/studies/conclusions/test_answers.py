"""Plain words for the contradictions: one for each statement and outcome, and none that speaks of another outcome."""

from pathlib import Path

import pytest

import isonb
from isonb.lab.studies.arms import ISOLAYER
from isonb.lab.studies.conclusions.answers import (
    QUESTIONS,
    WORDS,
    Comparison,
    answer,
    compared,
    counts,
    headline,
    outcomes,
)
from isonb.lab.studies.designs.head_to_head import ABOVE, BELOW, CLAIMS, OPEN
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import INCONCLUSIVE, OUTCOMES, SUPPORTED, Claim, judge


def test_every_statement_has_a_sentence_for_each_outcome():
    names = [str(claim.number) for claim in CLAIMS]
    assert list(WORDS) == names
    assert [name for _, statements in QUESTIONS.values() for name in statements] == names
    for words in WORDS.values():
        assert tuple(words) == OUTCOMES
        assert len(set(words.values())) == len(OUTCOMES)
        assert all(text.endswith(".") for text in words.values())


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_answer_follows_the_outcome(outcome):
    found = dict.fromkeys(WORDS, outcome)
    for question, (_, statements) in QUESTIONS.items():
        assert answer(question, found).startswith(WORDS[statements[0]][outcome])
    assert answer("C1", found) == " ".join(dict.fromkeys((WORDS["C1 down"][outcome], WORDS["C1 up"][outcome])))


def test_outcomes_go_by_name():
    assert outcomes([judge(Claim("C9", "nothing", ()), [])]) == {"C9": "not testable"}


UP, DOWN, BOTH = (0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1)


NOTHING = "Nothing here shows that a rounder space makes a model better"
LAYER = (UP, ABOVE, ISOLAYER, "X")


@pytest.mark.parametrize(
    ("pairs", "owed", "answered"),
    [
        ([], SUPPORTED, "There are no runs for it yet."),
        ([(UP, OPEN), (DOWN, OPEN)], SUPPORTED, f"{NOTHING}: no method made it clearly better."),
        ([(UP, OPEN), (DOWN, BELOW)], SUPPORTED, f"{NOTHING}: no method made it clearly better."),
        (
            [LAYER, (UP, OPEN)],
            SUPPORTED,
            f"{NOTHING}. The only clear gain is by IsoLayer on X. "
            "IsoLayer's layer gains as much without its isotropy loss.",
        ),
        (
            [(DOWN, ABOVE, "B", "Y"), (BOTH, ABOVE, "C", "Y")],
            SUPPORTED,
            f"{NOTHING}. The only clear gains are by B on Y and C on Y. "
            "By B on Y and C on Y the space did not become clearly rounder.",
        ),
        (
            [LAYER, (UP, OPEN)],
            INCONCLUSIVE,
            "A rounder space may help: IsoLayer on X made it clearly rounder, and the model clearly better.",
        ),
        (
            [LAYER, (UP, ABOVE, "A", "X"), (DOWN, ABOVE, "B", "Y")],
            SUPPORTED,
            "A rounder space may help: A on X made it clearly rounder, and the model clearly better.",
        ),
    ],
)
def test_the_answer_asks_whether_a_gain_came_with_a_rounder_space_and_needed_it(pairs, owed, answered):
    every = [Comparison(*pair) for pair in pairs]
    assert headline(every, owed) == answered
    assert counts(every).startswith(f"Of {len(pairs)} comparisons" if pairs else "")


def test_the_answer_counts_gains_and_losses_by_the_way_isotropy_went():
    text = counts([Comparison(UP, BELOW), Comparison(DOWN, BELOW), Comparison(BOTH, BELOW), Comparison(UP, ABOVE)])
    assert "1 shows a clear gain and 3 show a clear loss. IsoScore" in text
    assert "With the clear gain, IsoScore clearly rose." in text
    assert "With the 3 clear losses, IsoScore clearly rose in 1 and clearly fell in 1." in text


def test_the_answer_says_what_the_seeds_could_have_shown():
    """Half of the comparisons would have shown the median of the smallest visible gains, in points."""
    text = counts(Comparison(UP, OPEN, visible=gain) for gain in (0.004, 0.012, 0.03))
    assert "In half of the comparisons a true gain of 1.2 points would have shown." in text
    assert "In half of" not in counts([Comparison(UP, OPEN)])


def test_the_first_page_gives_the_answer_of_the_runs():
    """The page has no kernel, so its words stand in its source: they are those that the runs give now."""
    told, readme = (
        " ".join((Path(isonb.__file__).parents[1] / page).read_text(encoding="utf-8").split())
        for page in ("book/intro.md", "README.md")
    )
    study = Study.load("head_to_head")
    found = compared(study)
    first = headline(found, outcomes(Study.load("layer_doses").verdicts())["owed"])
    assert f"**The answer.** {first}" in told, "what the page says first"
    assert f"{first} {counts(found)}" in told
    assert first in readme
    assert answer("C1", outcomes(study.verdicts())) in told

"""Plain words for the contradictions: one for each statement and outcome, and none that speaks of another outcome."""

from pathlib import Path

import pytest

import isonb
from isonb.lab.studies.conclusions.answers import QUESTIONS, WORDS, Comparison, answer, compared, outcomes, overall
from isonb.lab.studies.conclusions.causes import layer_owed
from isonb.lab.studies.designs.head_to_head import ABOVE, BELOW, CLAIMS, OPEN
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import OUTCOMES, Claim, judge


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


@pytest.mark.parametrize(
    ("pairs", "begins"),
    [
        ([], "There are no runs"),
        ([(UP, OPEN), (DOWN, OPEN)], "No method made the model clearly better. Of 2 comparisons"),
        ([(UP, OPEN), (DOWN, BELOW)], "No method made the model clearly better. Of 2 comparisons"),
        ([(UP, ABOVE, "A", "X"), (UP, OPEN)], "A on X made the model clearly better; nothing else did. Of 2"),
        ([(UP, ABOVE, "A", "X"), (DOWN, ABOVE, "B", "Y")], "A on X and B on Y made the model clearly better; nothing"),
    ],
)
def test_the_answer_to_the_question_counts_what_is_clear(pairs, begins):
    text = overall(Comparison(*pair) for pair in pairs)
    assert text.startswith(begins)
    assert f"Of {len(pairs)} comparisons" in text or not pairs


def test_the_answer_counts_gains_and_losses_by_the_way_isotropy_went():
    text = overall([Comparison(UP, BELOW), Comparison(DOWN, BELOW), Comparison(BOTH, BELOW), Comparison(UP, ABOVE)])
    assert "1 shows a clear gain and 3 show a clear loss. IsoScore" in text
    assert "Where the score rose, isotropy clearly rose in 1 and fell in none." in text
    assert "Where the score fell, isotropy clearly rose in 1 and fell in 1." in text


def test_the_answer_says_what_the_seeds_could_have_shown():
    """Half of the comparisons would have shown the median of the smallest visible gains, in points."""
    text = overall(Comparison(UP, OPEN, visible=gain) for gain in (0.004, 0.012, 0.03))
    assert "In half of all comparisons a true gain of 1.2 points would have been seen." in text
    assert "In half of all comparisons" not in overall([Comparison(UP, OPEN)])


def test_the_first_page_gives_the_answer_of_the_runs():
    """The page has no kernel, so its words stand in its source: they are those that the runs give now."""
    told = " ".join((Path(isonb.__file__).parents[1] / "book" / "intro.md").read_text(encoding="utf-8").split())
    study = Study.load("head_to_head")
    assert overall(compared(study)) in told
    assert answer("C1", outcomes(study.verdicts())) in told
    assert layer_owed(Study.load("layer_doses").verdicts()) in told
    assert f"**The answer.** {overall(compared(study)).partition('. ')[0]}." in told, "what the page says first"

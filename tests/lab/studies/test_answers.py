"""Plain words for the contradictions: one for each statement and outcome, and none that speaks of another outcome."""

import pytest

from isonb.lab.studies.answers import QUESTIONS, WORDS, Comparison, answer, outcomes, overall
from isonb.lab.studies.designs.head_to_head import CLAIMS
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


UP, DOWN, OPEN = (0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1)


@pytest.mark.parametrize(
    ("pairs", "begins"),
    [
        ([], "There are no runs"),
        ([(UP, UP), (UP, OPEN)], "More isotropy went with better"),
        ([(UP, UP), (DOWN, DOWN)], "More isotropy went with better"),
        ([(DOWN, UP), (UP, DOWN)], "Less isotropy went with better"),
        ([(UP, OPEN), (DOWN, DOWN), (OPEN, UP)], "Neither more nor less"),
        ([(UP, UP), (DOWN, UP)], "Isotropy didn't decide"),
        ([(UP, UP), (UP, DOWN)], "Isotropy didn't decide"),
        ([(DOWN, UP), (DOWN, DOWN)], "Isotropy didn't decide"),
    ],
)
def test_the_answer_to_the_question_counts_what_is_clear(pairs, begins):
    text = overall(Comparison(*pair) for pair in pairs)
    assert text.startswith(begins)
    assert f"Of {len(pairs)} comparisons" in text or not pairs

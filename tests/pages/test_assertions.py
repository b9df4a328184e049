"""Sentences that the build holds to the runs: it fails where the runs say otherwise, and names what they say."""

import types

import pytest

from isonb_lab.claims.verdicts import Claim, Prediction, judge, judge_prediction
from isonb_lab.pages.errors import PageError
from isonb_lab.pages.sentences import assert_facts, assert_verdict

UP, DOWN, OPEN = [0.10, 0.12, 0.11], [-0.10, -0.12, -0.11], [0.1, -0.2, 0.1]


def judged(number, **cells):
    gain = Prediction("gain", lambda study, suites: {}, "greater", depends="the encoder")
    return judge(Claim(number, "it gains", (gain,)), [judge_prediction(gain, cells, cells, {})])


JUDGED = [judged(8, a=UP), judged("C1 down", a=OPEN), judged("C3", minilm=DOWN, tiny=UP)]
STUDY = types.SimpleNamespace(verdicts=lambda: JUDGED)


@pytest.mark.parametrize("source", [JUDGED, STUDY], ids=["verdicts", "study"])
@pytest.mark.parametrize(
    ("claim", "text", "wrong"),
    [
        (8, "supported", "contradicted"),
        ("C1 down", "inconclusive", "supported"),
        ("C3", "depends on the encoder", "depends"),
        (9, "no such claim", "supported"),
    ],
)
def test_a_sentence_that_the_runs_do_not_carry_stops_the_build(source, claim, text, wrong):
    assert_verdict(source, claim, text)
    with pytest.raises(PageError, match=rf"\({claim}: {wrong}\); got {text}"):
        assert_verdict(source, claim, wrong)


def test_a_fact_that_does_not_hold_stops_the_build_and_is_named():
    assert_facts()
    assert_facts(one_gain=True, seeds=5)
    with pytest.raises(PageError, match=r"got otherwise: only one gain, no failure\. Rewrite the sentence"):
        assert_facts(only_one_gain=False, seeds=5, no_failure=[])

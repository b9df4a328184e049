"""Sentences that the build holds to the runs: it fails where the runs say otherwise, and names what they say."""

import types

import pytest

from isonb.lab.studies.verdicts import Claim, Prediction, judge, judge_prediction
from isonb.pages.errors import PageError
from isonb.pages.values import expect, holds

UP, DOWN, OPEN = [0.10, 0.12, 0.11], [-0.10, -0.12, -0.11], [0.1, -0.2, 0.1]


def judged(number, **cells):
    gain = Prediction("gain", lambda study, suites: {}, "greater", depends="the encoder")
    return judge(Claim(number, "it gains", (gain,)), [judge_prediction(gain, cells, cells, {})])


JUDGED = [judged(8, a=UP), judged("C1 down", a=OPEN), judged("C3", minilm=DOWN, tiny=UP)]
STUDY = types.SimpleNamespace(verdicts=lambda: JUDGED)


@pytest.mark.parametrize("source", [JUDGED, STUDY], ids=["verdicts", "study"])
def test_what_the_runs_say_is_expected_by_the_names_of_claims(source):
    expect(source, 8, "supported")
    expect(source, "C1 down", "inconclusive")
    expect(source, "C3", "depends on the encoder")


@pytest.mark.parametrize(
    ("claim", "said", "got"),
    [
        (8, "contradicted", r"\(8: contradicted\); got supported"),
        ("C1 down", "supported", "got inconclusive"),
        ("C3", "depends", "got depends on the encoder"),
        (9, "supported", "got no such claim"),
    ],
)
def test_a_sentence_that_the_runs_do_not_carry_stops_the_build(claim, said, got):
    with pytest.raises(PageError, match=got):
        expect(JUDGED, claim, said)


def test_a_fact_that_does_not_hold_stops_the_build_and_is_named():
    holds()
    holds(one_gain=True, seeds=5)
    with pytest.raises(PageError, match=r"got otherwise: only one gain, no failure\. Rewrite the sentence"):
        holds(only_one_gain=False, seeds=5, no_failure=[])

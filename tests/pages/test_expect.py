"""Sentences that the build holds to the runs: it fails where the runs say otherwise, and names what they say."""

import pytest

from isonb.lab.studies.verdicts import Claim, Part, judge, judge_part
from isonb.pages.errors import PageError
from isonb.pages.expect import expect, holds

UP, DOWN, OPEN = [0.10, 0.12, 0.11], [-0.10, -0.12, -0.11], [0.1, -0.2, 0.1]


def judged(number, **cells):
    part = Part("gain", lambda study, suites: {}, "greater", depends="the encoder")
    return judge(Claim(number, "it gains", (part,)), [judge_part(part, cells, cells, lambda cell: None)])


JUDGED = [
    judged(8, a=UP),
    judged("C1 down", a=OPEN),
    judged("C3", minilm=DOWN, tiny=UP),
    judged("mean_direction", a=DOWN),
]


def test_what_the_runs_say_is_expected_by_the_names_of_claims():
    expect(
        JUDGED,
        _8="supported",
        C1_down="inconclusive",
        C3="depends on the encoder",
        mean_direction="contradicted",
    )


@pytest.mark.parametrize(
    ("said", "got"),
    [
        ({"_8": "contradicted"}, "8: contradicted.* got 8: supported"),
        ({"C1_down": "supported"}, "got C1 down: inconclusive"),
        ({"C3": "depends"}, "got C3: depends on the encoder"),
        ({"C3": "depends on the task"}, "got C3: depends on the encoder"),
        ({"mean_direction": "supported"}, "got mean direction: contradicted"),
        ({"_9": "supported"}, "got 9: no such claim"),
        ({"_8": "supported", "C1_down": "supported"}, "got C1 down: inconclusive"),
    ],
)
def test_a_sentence_that_the_runs_do_not_carry_stops_the_build(said, got):
    with pytest.raises(PageError, match=got):
        expect(JUDGED, **said)


def test_facts_that_hold_say_nothing():
    holds()
    holds(one_gain=True, seeds=5)


def test_a_fact_that_does_not_hold_stops_the_build_and_is_named():
    with pytest.raises(PageError, match=r"got otherwise: only one gain, no failure\. Rewrite the sentence"):
        holds(only_one_gain=False, seeds=5, no_failure=[])

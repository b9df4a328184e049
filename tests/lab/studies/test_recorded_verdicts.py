"""What the recorded runs say of each claim: a way of judging that changes shows here."""

from dataclasses import replace

import pytest

from isonb.lab.studies.study import STUDIES
from isonb.lab.studies.verdicts import CONTRADICTED, SUPPORTED, Claim

SAID = {
    "shrink_the_longest": {
        1: "depends on the task",
        2: "supported",
        3: "depends on the task or the form of the share",
        4: "contradicted",
        5: "supported",
    },
    "istar": {
        6: "supported",
        7: "supported",
        8: "contradicted",
        9: "inconclusive",
        10: "supported",
        11: "contradicted",
        12: "inconclusive",
        13: "contradicted",
        14: "contradicted",
        15: "contradicted",
    },
    "softdecay": {
        16: "supported",
        17: "contradicted",
        18: "depends on the encoder",
        19: "not testable",
        20: "contradicted",
        21: "contradicted",
        22: "supported",
    },
    "isolayer": {23: "contradicted", 24: "depends on the task", 25: "inconclusive"},
    "figure_2": {},
    "evidence_claims": {},
    "evidence_methods": {},
    "head_to_head": {
        "C1 down": "contradicted",
        "C1 up": "contradicted",
        "C2": "supported",
        "C3": "depends on the encoder",
        "C4": "contradicted",
        "C5": "inconclusive",
        "C6": "inconclusive",
    },
    "plain_encoders": {26: "inconclusive", 27: "depends on the task", 28: "depends on the set"},
    "istar_doses": {
        "harm": "supported",
        "strong": "inconclusive",
        "early": "inconclusive",
        "direction": "inconclusive",
        "objective": "inconclusive",
        "late": "supported",
        "turned": "supported",
        "released": "inconclusive",
    },
    "layer_doses": dict.fromkeys(("end", "stop", "penalty", "owed", "shape"), "supported"),
    "neighbours": dict.fromkeys(("gor", "sigreg", "log_isoscore", "entropy", "mean_direction"), "inconclusive"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_each_claim_has_the_verdict_that_the_pages_tell(name, verdicts):
    assert {one.claim.number: one.words for one in verdicts[name]} == SAID[name]


def test_a_task_without_a_working_setting_says_nothing_of_i_star(verdicts):
    (eighth,) = (one for one in verdicts["istar"] if one.claim.number == 8)
    lower = eighth.predictions[0]
    silent = {cell.name: cell.outcome for cell in lower.cells if cell.interval is None}
    assert silent == {"CoLA": "no working setting", "sentiment (tiny)": "no working setting"}
    assert [cell.name for cell in lower.cells if cell.outcome == CONTRADICTED] == ["MRPC"]
    assert lower.outcome == "inconclusive", "one task is not most"


OTHERS = {"greater": ("at most", "less"), "less": ("at least", "greater"), "at most": ("greater",)}
OTHERS |= {"at least": ("less",)}  # the negation, and the other sign


def turned_round(prediction):
    """Its negation and its other sign. That of an effect of a size is that it is smaller: so may be both signs."""
    others = OTHERS[prediction.direction]
    if prediction.room:
        return [replace(prediction, direction=others[0], margin=prediction.room, room=0.0)]
    return [replace(prediction, direction=other) for other in others]


@pytest.mark.parametrize("name", STUDIES)
def test_no_recorded_statement_and_its_negation_get_the_same_answer(name, studies, verdicts):
    """One by one, as the negation of "this and that" is another; and of "all" it is "some"."""
    every = [p for one in verdicts[name] for p in one.predictions if p.prediction.decided_by != "all"]
    decided = [p for p in every if p.outcome in (SUPPORTED, CONTRADICTED) and p.prediction.direction in OTHERS]
    turned = [(p, other) for p in decided for other in turned_round(p.prediction)]
    claims = tuple(Claim(k, "turned", (prediction,)) for k, (_, prediction) in enumerate(turned))
    after = replace(studies[name], design=replace(studies[name].design, claims=claims)).verdicts()
    for (before, prediction), now in zip(turned, after, strict=True):
        assert now.predictions[0].outcome != before.outcome, (prediction.what, prediction.direction)
        assert now.outcome == now.predictions[0].outcome, "a claim of one prediction says what that says"
    assert decided or name in ("neighbours", "figure_2", "evidence_claims", "evidence_methods")

"""What the recorded runs say of each claim: a rule that changes shows here."""

from dataclasses import replace

import pytest

from isonb.lab.studies.study import STUDIES
from isonb.lab.studies.verdicts import CONTRADICTED, SUPPORTED, Claim

SAID = {
    "shrink_the_longest": {
        1: "depends on the task",
        2: "not testable",
        3: "not testable",
        4: "inconclusive",
        5: "not testable",
    },
    "istar": {
        6: "supported",
        7: "supported",
        8: "inconclusive",
        9: "not testable",
        10: "supported",
        11: "contradicted",
        12: "inconclusive",
        13: "not testable",
        14: "not testable",
        15: "inconclusive",
    },
    "softdecay": {
        16: "not testable",
        17: "not testable",
        18: "depends on the encoder",
        19: "not testable",
        20: "contradicted",
        21: "inconclusive",
        22: "supported",
    },
    "isolayer": {23: "inconclusive", 24: "depends on the task", 25: "inconclusive"},
    "head_to_head": {
        "C1 down": "inconclusive",
        "C1 up": "inconclusive",
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


def test_claims_of_the_papers_about_trained_models_are_judged_where_models_learned(studies, verdicts):
    """The papers' own runs left the models nearly untaught: those cells are silent, the head to head speaks."""
    borrowed = {number for name in ("shrink_the_longest", "istar", "softdecay", "isolayer") for number in SAID[name]}
    told = set()
    for name in ("shrink_the_longest", "istar", "softdecay", "isolayer"):
        for part in (part for one in verdicts[name] for part in one.parts if part.part.gated):
            if not part.part.runs_of:
                assert {cell.reason for cell in part.cells} <= {studies[name].design.reservation}
                assert part.outcome == "not testable"
        told |= {one.claim.number for one in verdicts[name] if any(part.part.runs_of for part in one.parts)}
    assert told == {1, 4, 8, 11, 12, 15, 21, 23, 24, 25}
    assert told < borrowed


def test_a_task_without_a_working_setting_says_nothing_of_i_star(verdicts):
    (eighth,) = (one for one in verdicts["istar"] if one.claim.number == 8)
    lower = eighth.parts[0]
    silent = {cell.name: cell.outcome for cell in lower.cells if cell.interval is None}
    assert silent == {"CoLA": "no working setting", "sentiment (tiny)": "no working setting"}
    assert [cell.name for cell in lower.cells if cell.outcome == CONTRADICTED] == ["MRPC"]
    assert lower.outcome == "inconclusive", "one task is not most"


OTHERS = {"greater": ("at most", "less"), "less": ("at least", "greater"), "at most": ("greater",)}
OTHERS |= {"at least": ("less",)}  # the negation, and the other sign


@pytest.mark.parametrize("name", STUDIES)
def test_no_recorded_statement_and_its_negation_get_the_same_answer(name, studies, verdicts):
    """Part by part, as the negation of "this and that" is another; and of "all" it is "some"."""
    parts = [part for one in verdicts[name] for part in one.parts if part.part.rule != "all"]
    decided = [part for part in parts if part.outcome in (SUPPORTED, CONTRADICTED) and part.part.direction in OTHERS]
    turned = [
        (part.outcome, replace(part.part, direction=other)) for part in decided for other in OTHERS[part.part.direction]
    ]
    claims = tuple(Claim(k, "turned", (part,)) for k, (_, part) in enumerate(turned))
    found = replace(studies[name], design=replace(studies[name].design, claims=claims)).verdicts()
    for (before, part), after in zip(turned, found, strict=True):
        assert after.parts[0].outcome != before, (part.what, part.direction)
        assert after.outcome == after.parts[0].outcome, "a claim of one part says what the part says"
    assert decided or name == "neighbours"

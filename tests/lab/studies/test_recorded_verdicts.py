"""What the recorded runs say of each claim: a way of judging that changes shows here."""

import numpy as np
import pytest

from isonb_lab.claims.printed import printed
from isonb_lab.claims.summary import cell_rows, with_setting
from isonb_lab.claims.treated_runs import Treated
from isonb_lab.claims.verdicts import CONTRADICTED, SUPPORTED, difference
from isonb_lab.papers import arms, istar
from isonb_lab.papers.studies import STUDIES
from isonb_lab.runs.manifest import processor_kinds

SAID = {
    "shrink_the_longest": {
        1: "inconclusive",
        2: "supported",
        3: "inconclusive",
        4: "inconclusive",
        5: "supported",
    },
    "istar": {
        6: "supported",
        7: "supported",
        8: "inconclusive",
        9: "inconclusive",
        10: "supported",
        11: "inconclusive",
        12: "inconclusive",
        13: "contradicted",
        14: "not testable",
        15: "not testable",
    },
    "softdecay": {
        16: "supported",
        17: "contradicted",
        18: "depends on the encoder",
        19: "not testable",
        20: "contradicted",
        21: "inconclusive",
        22: "supported",
    },
    "isolayer": {23: "inconclusive", 24: "inconclusive", 25: "not tested at its setting"},
    "head_to_head": {
        "C1 down": "inconclusive",
        "C1 up": "inconclusive",
        "C2": "supported",
        "C3": "depends on the encoder",
        "C4": "contradicted",
        "C5": "supported",
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


PAPERS = ("shrink_the_longest", "istar", "softdecay", "isolayer")
ISOLAYER_BASE = "IsoLayer column, baseline without the method"


@pytest.mark.parametrize("name", STUDIES)
def test_each_claim_has_the_verdict_that_the_pages_tell(name, verdicts):
    assert {verdict.claim.number: verdict.label for verdict in verdicts[name]} == SAID.get(name, {})


def test_a_task_without_a_working_setting_says_nothing_of_i_star(verdicts):
    (eighth,) = (verdict for verdict in verdicts["istar"] if verdict.claim.number == 8)
    lower = eighth.predictions[0]
    silent = {cell.name: cell.outcome for cell in lower.cells if cell.interval is None}
    assert silent == {"CoLA": "no working setting", "sentiment (tiny)": "no working setting"}
    assert [cell.name for cell in lower.cells if cell.outcome == CONTRADICTED] == ["MRPC"]
    assert lower.outcome == "inconclusive", "one task is not most"


def test_only_runs_with_its_own_treatment_contradict_a_claim(verdicts):
    """And its verdict names the encoders and tasks of the runs behind it."""
    bound = [verdict for name in PAPERS for verdict in verdicts[name] if verdict.claim.treatments]
    assert {entry.claim.number for entry in bound} >= {1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 14, 15, 16, 17, 21, 23, 24, 25}
    for item in bound:
        local = [part for part in item.deciding if part.prediction.treatment]
        assert local or item.outcome not in (CONTRADICTED, SUPPORTED), item.claim.number
        assert bool(item.setting) == bool([c for p in item.deciding for c in p.cells if c.interval]), item.claim.number
    settings = {element.claim.number: element.setting for element in bound}
    both = "tiny, minilm; SST-2 with test rows, STS-B"
    assert settings[8] == f"{both}; weight -5, -3, -1, 0.5, 1, 3, 5; 3 to 10 seeds"
    assert settings[9].startswith("minilm; STS-B")
    assert settings[1] == settings[5] == "minilm; CoLA, MRPC; 3 seeds"
    assert settings[4] == "minilm; CoLA, MRPC; all bars; selected bars; 3 seeds"
    others = "IsoLayer's plain runs on MRPC have another head, Shrink's more passes"
    assert settings[16] == "minilm; MRPC; 3 seeds", others
    assert settings[17] == "minilm; CoLA; 3 seeds"
    assert (
        settings[21] == "minilm; MRPC, CoLA, SST-2 with test rows; 10% of rows held out; no rows held out; 3 to 5 seeds"
    )
    assert settings[23] == settings[24] == "minilm; CoLA, MRPC; 3 seeds"
    assert settings[15] == "tiny; SST-2 with test rows; layers 1, 2, 3, 4; weight -1; 10 seeds"


def test_an_interval_of_a_correlation_ends_where_correlations_do(verdicts):
    """In tables; what is tested is the whole width, which Student's law gives to three seeds."""
    (ninth,) = (item for item in verdicts["istar"] if item.claim.number == 9)
    (part,) = ninth.deciding
    (row,) = (row for row in cell_rows([ninth]) if row["what"] == part.prediction.what and row["cell"] == "STS-B")
    assert part.mean.low < -1 == part.ends[1] == row["low"]
    assert part.mean.high > 1 == part.ends[2] == row["high"]
    assert "[-1, 1]" in row["reason"]


def test_each_encoder_has_a_verdict_of_its_own(verdicts):
    """From its own cells, which together are those of both; a claim of one encoder has none beside its own."""
    alone = {item.claim.number: item.by_encoder for name in (*PAPERS, "head_to_head") for item in verdicts[name]}
    assert alone[12] == {"tiny": "supported", "minilm": "inconclusive"}
    assert alone[8] == alone["C1 down"] == {"tiny": "inconclusive", "minilm": "inconclusive"}
    assert alone[13] == {"minilm": "contradicted", "tiny": "contradicted"}
    assert not any(alone[number] for number in (1, 2, 3, 4, 5, 9, 14, 15, 21, 23, 24))
    (twelve,) = (item for item in verdicts["istar"] if item.claim.number == 12)
    for part in twelve.deciding:
        tiny, minilm = part.by_encoder["tiny"], part.by_encoder["minilm"]
        assert {*part.cells} == {*tiny.cells, *minilm.cells}
        assert {cell.name.partition(",")[0] for cell in tiny.cells if cell.interval} == {"SST-2 with test rows (tiny)"}
        judged = [cell.interval.estimate for cell in minilm.cells if cell.interval]
        assert minilm.mean.estimate == pytest.approx(np.mean(judged))
    assert with_setting(twelve).startswith("inconclusive: supported with tiny alone, inconclusive with minilm alone (")


def test_a_claim_compares_runs_of_one_kind_of_processor(studies):
    """As the plans have it: what another processor changes is no effect of a method."""
    pairs = []
    for name in PAPERS:
        trained = studies[name].others[arms.TRAINED]
        kinds = dict(zip(trained.runs["run_id"], processor_kinds(trained.runs), strict=True))
        for part in (part for claim in studies[name].design.claims for part in claim.predictions):
            if isinstance(part.evidence, Treated):
                cells = part.evidence.cells(trained.settings)
                pairs += [(kinds[run], kinds[other]) for some in cells.values() for run, other in some if other]
    assert len(pairs) > 100
    assert all(kind == other for kind, other in pairs)


def test_claims_that_take_a_gain_for_granted_are_not_contradicted(verdicts, studies):
    """With zeta = 1 a run is plain training: a claim that this costs score says that lowering gains."""
    study = studies["istar"]
    ends = istar.ENDS
    full = difference(study.units("score", ends[1]), study.units("score", "none"))
    assert len(full) == 20
    assert not any(full.values())
    late = [verdict for verdict in verdicts["istar"] if verdict.claim.number in (14, 15)]
    assert all(item.claim.premise and not item.decided for item in late)


def test_no_margin_is_larger_than_what_the_paper_prints():
    for paper, table, method, base, gain in (
        ("istar", "Table 1", "I-STAR", "Base", arms.ISTAR_GAIN),
        ("softdecay", "Table 2", "+SoftDecay", "base", arms.SOFTDECAY_GAIN),
        ("isolayer", "Table 2", "Finetuned LM + Isotropy Layer", "Finetuned LM", arms.ISOLAYER_GAIN),
        ("isolayer", "Table 3", "IsoLayer (isotropy method on)", ISOLAYER_BASE, arms.ISOLAYER_GAIN),
    ):
        numbers = printed(paper, table, percent=False, method=[method, base])
        numbers = numbers[numbers["metric"].isin(["accuracy", "f1", "exact_match", "matthews_corrcoef", "pearson"])]
        wide = numbers.pivot_table(index=["model", "task", "metric"], columns="method", values="value")
        assert 0 < gain <= (wide[method] - wide[base]).median() + 1e-12


def test_two_scores_are_alike_at_a_papers_setting_within_less_than_its_effect(verdicts):
    """A wider margin would call the paper's own gain none."""
    parts = [part.prediction for some in verdicts.values() for one in some for part in one.predictions]
    margins = {part.what: part.margin for part in parts if part.treatment and part.direction == "equal"}
    scores = {what: margin for what, margin in margins.items() if "score," in what}
    assert sorted(scores.values()) == sorted([arms.ISTAR_GAIN, arms.SHRINK_GAIN, arms.ISOLAYER_GAIN])

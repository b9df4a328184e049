"""The studies of doses: arms, the stop, and what is read from made-up series."""

import pytest
from made_up import scored_run, study_of

from isonb_lab.claims.study import PLAIN
from isonb_lab.claims.verdicts import NOT_TESTABLE, Reason
from isonb_lab.papers import istar_doses, layer_doses


def layer_of(**options):
    """Three seeds whose joint loss gains a little at the stop, and whose penalty alone ruins the score."""
    base = {"experiment": "doses", "task": "sst2", "model": "minilm", "method": "isolayer", "head": "linear"} | options
    records = []
    for seed in (1, 2, 3):
        series = {}
        for loss, gain, fall in (("joint", 0.001, 0.0), ("task", 0.0005, 0.0), ("isotropy", 0.001, 0.3)):
            for rate in ("1e-05", "1e-04", "1e-03"):
                name = f"step.dose.{loss}.{rate}"
                series[f"{name}.held"] = [(0, 0.8), (6, 0.8), (12, 0.82), (18, 0.8 - fall)]
                series[f"{name}.score"] = [(0, 0.8), (6, 0.8), (12, 0.8 + seed * gain), (18, 0.8 + seed * gain - fall)]
                series[f"{name}.isoscore"] = [(0, 0.002), (6, 0.004), (12, 0.008), (18, 0.02 + seed / 10000)]
        records.append(scored_run(base | {"seed": seed}, 0.8 + seed * 0.001, series=series))
    return study_of(layer_doses.DESIGN, {"SST-2": records})


@pytest.fixture(scope="module")
def layer():
    return layer_of()


def test_a_task_that_nothing_learned_says_nothing_of_scores(layer):
    assert layer.unlearned("SST-2") is None
    few = layer_of(eval_examples=10)  # 0.8 of 10 rows may be the majority baseline's luck
    assert few.unlearned("SST-2") is Reason.UNLEARNED
    result = {verdict.claim.number: verdict.outcome for verdict in few.verdicts()}
    assert result["end"] == result["penalty"] == result["owed"] == NOT_TESTABLE
    assert result["shape"] != NOT_TESTABLE, "IsoScore needs no task"


def test_the_state_that_is_kept_is_the_best_one_before_patience_ends(layer):
    result = layer_doses.changes(layer)
    assert len(result) == 27
    assert set(result.epoch) == {2}
    assert set(result["update"]) == {12}
    joint = result[(result.loss == "joint") & (result.rate == "1e-03")]
    assert joint.score.tolist() == pytest.approx([0.001, 0.002, 0.003])
    assert joint.isoscore.tolist() == pytest.approx([0.006] * 3)
    alone = result[result.loss == "isotropy"]
    assert alone.score_end.max() < -0.29


def test_the_objective_is_loss_less_what_is_missing_to_one():
    base = {"task": "sst5", "model": "minilm", "method": "none", "seed": 1}
    name = istar_doses.ISOTROPY.removeprefix("metric.")
    run = scored_run(base, 0.4, {name: 0.25}, {"step.validation.loss": [(5, 2.0), (10, 1.5)]})
    study = study_of(istar_doses.DESIGN, {"SST-5": [run]})
    assert istar_doses.objective(study, PLAIN) == {("SST-5", 1): pytest.approx(0.75)}

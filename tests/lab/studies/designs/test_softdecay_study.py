"""The design of SoftDecay's study: arms, cells, and evidence recomputed from the recorded tables."""

import numpy as np
import pandas as pd
import pytest

from isonb.lab.runs.settings import resolve
from isonb.lab.studies.designs import softdecay
from isonb.lab.studies.recorded import FOLDER, recorded
from isonb.lab.studies.study import Study
from isonb.lab.studies.summary import cell_rows, claim_rows

STUDY = Study.load("softdecay")
JUDGED = STUDY.verdicts()


def config(**given):
    return resolve({"task": "stsb_test", "model": "minilm", "protocol": "small"} | given)


@pytest.mark.parametrize(
    ("given", "arm", "suite"),
    [
        ({"method": "none"}, "plain, first-last", "minilm, STS-B"),
        ({"method": "none", "layers": "last"}, "plain, last", "minilm, STS-B"),
        ({"method": {"name": "whitening", "k": 64}, "model": "tiny"}, "whitening, narrow", "tiny, STS-B"),
        ({"method": "softdecay", "task": "sickr"}, "SoftDecay", "minilm, SICK-R"),
        ({"method": "softdecay", "task": "cola"}, "SoftDecay", "CoLA"),
        ({"method": "none", "task": "cola"}, "none", "CoLA"),
        ({"method": "soft_zca"}, None, "minilm, STS-B"),
    ],
)
def test_arms_and_suites_are_the_rows_and_columns_of_table_1(given, arm, suite):
    assert softdecay.arm_of(config(**given)) == arm
    assert softdecay.suite_of(config(**given)) == suite


def test_every_claim_is_judged_and_all_planned_runs_are_there():
    assert [judgement.claim.number for judgement in JUDGED] == list(range(16, 23))
    assert STUDY.absent == []
    assert all(judgement.cells for judgement in JUDGED if judgement.claim.number != 19)
    outcomes = {judgement.claim.number: judgement.outcome for judgement in JUDGED}
    assert outcomes[19] == outcomes[21] == "not testable"
    assert claim_rows({"recorded": JUDGED})[-1]["claim"].endswith("(identity)")


def test_gains_are_those_of_the_record():
    run = recorded("baselines").runs.set_index("run_id")
    run = run[(run["task"] == "sickr") & (run["model"] == "minilm") & (run["method.name"] == "softdecay")].iloc[0]
    gains = softdecay.vector_gains(STUDY).set_index(["suite", "arm", "protocol"]).sort_index()
    gains = gains.loc["minilm, SICK-R", "SoftDecay"]
    for protocol in ("mean", "weighted", "all"):  # a set without subsets has one protocol
        assert gains.loc[protocol, "mean"] == pytest.approx(run["metric.difference.spearman.all"])
        assert gains.loc[protocol, "low"] == pytest.approx(run["metric.difference.spearman.all.low"])
    assert not any(arm == softdecay.START for _, arm, _ in softdecay.vector_gains(STUDY).iloc[:, :3].to_numpy())


def test_cells_by_hand():
    cells = {(row["claim"], row["what"], row["cell"]): row for row in cell_rows(JUDGED)}
    direct = pd.read_csv(FOLDER / "softdecay_direct.csv").set_index(["model", "task", "other"])
    row = cells[18, "SoftDecay less whitening, points", "tiny, STS-13"]
    assert row["mean"] == direct.loc[("tiny", "sts13", "whitening"), "difference"]
    spectra = pd.read_csv(FOLDER / "softdecay_spectra.csv")
    plain = spectra[(spectra.state == "plain") & (spectra.task == "mrpc")]
    by = plain.pivot(index="batch", columns="layer", values="token_uniformity")
    row = cells[16, "TokenUni, deeper less shallower layer", "minilm, layers 4 to 6"]
    assert row["mean"] == pytest.approx((by[6] - by[4]).mean())
    runs = STUDY.runs[STUDY.runs["model"].eq("tiny")].set_index(["arm", "suite"])["metric.spearman.mean"]
    changes = [runs["whitening", f"tiny, {s}"] - runs["SoftDecay", f"tiny, {s}"] for s in softdecay.SETS.values()]
    assert cells[20, "points, whitening less SoftDecay", "tiny"]["mean"] == pytest.approx(np.mean(changes))


def test_two_methods_on_the_same_pairs_agree_with_their_gains_over_plain_vectors():
    """The direct difference is the difference of the two gains over plain vectors, whose own intervals say less."""
    gains = softdecay.vector_gains(STUDY).set_index(["suite", "arm", "protocol"])["mean"]
    for row in pd.read_csv(FOLDER / "softdecay_direct.csv").itertuples():
        suite = f"{row.model}, {softdecay.SETS[row.task]}"
        other = softdecay.NAMES[row.other]
        assert row.difference == pytest.approx(
            gains[suite, "SoftDecay", "mean"] - gains[suite, other, "mean"], abs=0.02
        )

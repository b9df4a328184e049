"""The plain encoders' study: arms and tasks by their words, evidence recomputed from the recorded table."""

import pytest
from scipy import stats

from isonb_lab.claims.summary import cell_rows
from isonb_lab.claims.table import row_error
from isonb_lab.runs.recordings import recorded


@pytest.fixture(scope="module")
def runs():
    return recorded("baselines").runs


def cell_of(judged, what, name):
    (row,) = (row for row in cell_rows(judged) if row["what"].startswith(what) and row["cell"] == name)
    return row


def test_a_lead_by_hand(studies, runs, verdicts):
    part = runs[(runs["task"] == "mrpc") & (runs["model"] == "minilm")]
    ahead = part["metric.accuracy"].mean() - part["metric.baseline.accuracy"].iloc[0]
    over_rows = stats.norm.ppf(0.975) * row_error("accuracy", part["metric.accuracy"].mean(), 408)
    over_seeds = stats.t.ppf(0.975, len(part) - 1) * stats.sem(part["metric.accuracy"])
    row = cell_of(verdicts["plain_encoders"], "minilm, GLUE", "MRPC")
    assert (row["n"], row["mean"]) == (5, pytest.approx(ahead))
    assert row["high"] - row["mean"] == pytest.approx((over_rows**2 + over_seeds**2) ** 0.5)
    assert studies["plain_encoders"].lead("tiny", "span") is None


def test_a_gain_over_pairs_is_the_recorded_interval(runs, verdicts):
    part = runs[(runs["task"] == "sts13") & (runs["method.name"] == "whitening")].iloc[0]
    row = cell_of(verdicts["plain_encoders"], "whitening less plain", "STS-13, all")
    ends = [part[f"metric.difference.spearman.all{end}"] for end in ("", ".low", ".high")]
    assert [row["mean"], row["low"], row["high"]] == ends
    assert row["n"] == part["metric.pairs"]
    cells = {row["cell"] for row in cell_rows(verdicts["plain_encoders"]) if row["claim"] == 28}
    assert {"STS-13, mean", "STS-13, all", "SICK-R"} <= cells
    assert "SICK-R, mean" not in cells, "without subsets there is one protocol"

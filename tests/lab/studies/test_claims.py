"""Verdicts on claims: what each direction asks of the interval, and what a missing cell does."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from isonb.lab.statistics.intervals import StatsError
from isonb.lab.studies.claims import Claim, ClaimError, difference, judge, judged_table

SEEDS = range(5)


def units(mean, spread=0.01, cell="cola"):
    """Five values with this mean and standard deviation."""
    shape = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    values = mean + spread * shape / shape.std(ddof=1)
    return {(cell, seed): float(value) for seed, value in zip(SEEDS, values, strict=True)}


@pytest.mark.parametrize(
    ("direction", "margin", "mean", "outcome"),
    [
        ("greater", 0.0, 0.1, "holds"),
        ("greater", 0.2, 0.1, "does not hold"),
        ("greater", 0.0, -0.1, "does not hold"),
        ("less", 0.0, -0.1, "holds"),
        ("less", 0.0, 0.001, "does not hold"),
        ("at most", 0.05, 0.02, "holds"),
        ("at most", 0.0, 0.02, "does not hold"),
        ("at most", 0.05, 0.045, "does not hold"),  # the interval reaches over the margin
        ("at least", 0.05, -0.02, "holds"),
        ("at least", 0.01, -0.02, "does not hold"),
        ("equal", 0.05, 0.02, "holds"),
        ("equal", 0.05, -0.02, "holds"),
        ("equal", 0.05, 0.06, "does not hold"),
        ("equal", 0.01, 0.0, "does not hold"),
    ],
)
def test_directions(direction, margin, mean, outcome):
    found = judge(Claim("it is so", "gain", direction, margin), units(mean), ["cola"])
    assert found.outcome == found.cells["cola"].outcome == outcome
    x = np.array(list(units(mean).values()))
    half = scipy_stats.t.ppf(0.975, 4) * x.std(ddof=1) / 5**0.5
    ends = found.cells["cola"].interval
    assert ends.low == pytest.approx(mean - half, abs=1e-12)
    assert ends.high == pytest.approx(mean + half, abs=1e-12)
    assert ends.estimate == pytest.approx(mean, abs=1e-12)
    assert found.cells["cola"].dz == pytest.approx(mean / 0.01, abs=1e-9)  # of the values, not of what is left of them


def test_a_claim_holds_only_if_it_holds_in_every_cell():
    claim = Claim("higher", "gain", "greater")
    good, bad = units(0.1), units(-0.1, cell="mrpc")
    assert judge(claim, good | units(0.2, cell="mrpc"), ["cola", "mrpc"]).outcome == "holds"
    both = judge(claim, good | bad, ["cola", "mrpc"])
    assert both.outcome == "does not hold"
    assert both.reason.startswith("mrpc: ")
    assert "other side" in both.reason
    assert judge(claim, good | bad, ["cola"]).outcome == "holds"


def test_a_missing_cell_leaves_a_claim_untested_unless_it_fails_elsewhere():
    claim = Claim("higher", "gain", "greater")
    found = judge(claim, units(0.1), ["cola", "mrpc"])
    assert found.outcome == "not testable here"
    assert found.reason == "mrpc: 0 seeds; at least 3 are needed"
    assert dict(found.counts) == {"cola": 5, "mrpc": 0}
    assert judge(claim, units(-0.1), ["cola", "mrpc"]).outcome == "does not hold"
    few = {("cola", 0): 1.0, ("cola", 1): 2.0}
    assert judge(claim, few, ["cola"]).outcome == "not testable here"
    assert judge(Claim("as good", "gain", "at least", 0.01), few, ["cola"]).outcome == "not testable here"


def test_differences_are_run_by_run():
    a, b = units(0.3), units(0.1)
    a.pop(("cola", 4))
    found = difference(a, b)
    assert sorted(found) == [("cola", seed) for seed in range(4)]
    assert all(value == pytest.approx(0.2) for value in found.values())


def test_the_table_has_a_row_a_claim_and_cell():
    claim = Claim("higher", "gain", "greater")
    rows = judged_table([judge(claim, units(0.1), ["cola", "mrpc"])])
    assert [row["cell"] for row in rows] == ["cola", "mrpc"]
    assert rows[0]["outcome"] == "holds"
    assert rows[0]["low"] < rows[0]["mean"] < rows[0]["high"]
    assert rows[1]["mean"] is rows[1]["dz"] is None
    assert rows[1]["n"] == 0


def test_claims_that_say_nothing_are_refused():
    with pytest.raises(ClaimError, match="direction must be one of"):
        Claim("x", "y", "lower")
    with pytest.raises(ClaimError, match="margin"):
        Claim("x", "y", "equal")
    with pytest.raises(ClaimError, match="margin"):
        Claim("x", "y", "less", -1.0)
    with pytest.raises(ClaimError, match="at least one cell"):
        judge(Claim("x", "y"), units(0.1), [])
    with pytest.raises(StatsError, match="finite"):
        judge(Claim("x", "y"), {("cola", 0): float("nan")}, ["cola"])

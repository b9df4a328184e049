"""The head to head made twice: on two kinds of processors, and again from printed commands."""

from collections import Counter

import pandas as pd
import pytest
from scipy import stats

from isonb.lab.runs.manifest import processor_kinds
from isonb.lab.runs.recordings import FOLDER, recorded
from isonb.lab.studies.design import study_file

repeated = study_file("repeated")


@pytest.fixture(scope="module")
def kinds():
    return repeated.two_kinds()


def test_no_run_is_compared_with_itself(kinds):
    """The same settings and seed, on another kind of processor, made at another time."""
    here, there = (one.runs.assign(kind=processor_kinds(one.runs)).set_index("run_id") for one in kinds)
    both = here.index.intersection(there.index)
    assert len(both) >= 100
    assert (here.loc[both, "kind"] != there.loc[both, "kind"]).all()
    assert (here.loc[both, "manifest.started"] != there.loc[both, "manifest.started"]).all()
    assert len(repeated.runs_twice(*kinds)) == len(both)


def test_a_gain_is_taken_on_one_kind(kinds):
    """Against plain training on the same kind of processor with the same seed."""
    found = repeated.gains_twice(*kinds)
    for name, study in zip(("here", "there"), kinds, strict=True):
        row = found.iloc[len(found) // 2]
        scores = study.runs.set_index(["suite", "arm", "seed"])["score"]
        gain = scores[row.suite, row.arm, row.seed] - scores[row.suite, "none", row.seed]
        assert row[name] == pytest.approx(gain)
    assert not found.duplicated(["suite", "arm", "seed"]).any()


def test_differences_are_tested_as_pairs():
    here, there = [0.01, 0.02, 0.04, 0.0], [0.03, 0.05, 0.05, 0.03]
    seeds = [1, 2, 3, 4]
    frame = pd.DataFrame({"suite": "a", "arm": "b", "seed": seeds, "here": here, "there": there})
    few = frame[frame["seed"] < 3].assign(arm="c")
    other = frame.assign(arm="d", there=here)
    found = repeated.gains_apart(pd.concat([frame, few, other], ignore_index=True)).set_index("arm")
    assert list(found.index) == ["b", "d"]  # two seeds are too few
    known = stats.ttest_rel(there, here)
    assert found.loc["b", "apart"] == pytest.approx(sum(there) / 4 - sum(here) / 4)
    interval = known.confidence_interval(0.95)
    assert tuple(found.loc["b", ["low", "high"]]) == pytest.approx((interval.low, interval.high))
    assert found.loc["b", "p"] == pytest.approx(2 * known.pvalue)
    assert (found.loc["d", "apart"], found.loc["d", "p"]) == (0, 1)


def test_three_cells_of_a_grid_came_back():
    found = repeated.repeats()
    grids = {run: grid for run, (grid, _) in repeated.planned().items()}
    made = {run for path in FOLDER.glob("*/runs.parquet") for run in recorded(path.parent.name).runs["run_id"]}
    again = Counter(grids[run] for run in found["run_id"])
    assert {grid: again[grid] for grid in {grids[run] for run in made if run in grids} if again[grid] < 3} == {}
    apart = (found["again"] - found["score"]).abs()
    planned = found["recording"].str.startswith("evidence") | (found["recording"] == "head_to_head")
    assert apart[planned].max() <= repeated.TOLERANCE
    assert set(found.loc[apart > repeated.TOLERANCE, "recording"]) == {"neighbours", "softdecay"}, (
        "the page tells which"
    )


def test_they_are_other_runs_than_the_first():
    """Made at another time, so that equal numbers are no copies."""
    again = recorded(repeated.REPEATED).runs.set_index("run_id")["manifest.started"]
    found = repeated.repeats()
    for name, cells in found.groupby("recording"):
        first = recorded(name).runs.set_index("run_id").loc[cells["run_id"], "manifest.started"]
        assert (again[cells["run_id"]] != first).all()
    assert set(found["run_id"]) == set(again.index)

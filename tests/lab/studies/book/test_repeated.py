"""The head to head made twice: on two kinds of processors, and again from printed commands."""

from collections import Counter

import pandas as pd
import pytest
from scipy import stats

from isonb_lab.papers import repeated
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.recordings import FOLDER, recorded


@pytest.fixture(scope="module")
def kinds():
    return repeated.two_kinds()


def test_no_run_is_compared_with_itself(kinds):
    """The same settings and seed, on another kind of processor, made at another time."""
    here, elsewhere = (item.runs.assign(kind=processor_kinds(item.runs)).set_index("run_id") for item in kinds)
    both = here.index.intersection(elsewhere.index)
    assert len(both) >= 100
    assert (here.loc[both, "kind"] != elsewhere.loc[both, "kind"]).all()
    assert (here.loc[both, "manifest.started"] != elsewhere.loc[both, "manifest.started"]).all()
    assert len(repeated.runs_twice(*kinds)) == len(both)


def test_a_gain_is_taken_on_one_kind(kinds):
    """Against plain training on the same kind of processor with the same seed."""
    result = repeated.gains_twice(*kinds)
    for name, study in zip(("here", "there"), kinds, strict=True):
        row = result.iloc[len(result) // 2]
        scores = study.runs.set_index(["suite", "arm", "seed"])["score"]
        gain = scores[row.suite, row.arm, row.seed] - scores[row.suite, "none", row.seed]
        assert row[name] == pytest.approx(gain)
    assert not result.duplicated(["suite", "arm", "seed"]).any()


def test_differences_are_tested_as_pairs():
    here, elsewhere = [0.01, 0.02, 0.04, 0.0], [0.03, 0.05, 0.05, 0.03]
    frame = pd.DataFrame({"suite": "a", "arm": "b", "seed": range(1, 5), "here": here, "there": elsewhere})
    few = frame[frame["seed"] < 3].assign(arm="c")
    other = frame.assign(arm="d", there=here)
    result = repeated.gains_apart(pd.concat([frame, few, other], ignore_index=True)).set_index("arm")
    assert list(result.index) == ["b", "d"]  # two seeds are too few
    reference = stats.ttest_rel(elsewhere, here)
    assert result.loc["b", "difference"] == pytest.approx(sum(elsewhere) / 4 - sum(here) / 4)
    assert tuple(result.loc["b", ["low", "high"]]) == pytest.approx(tuple(reference.confidence_interval(0.95)))
    assert result.loc["b", "p"] == pytest.approx(2 * reference.pvalue)
    assert (result.loc["d", "difference"], result.loc["d", "p"]) == (0, 1)


@pytest.fixture(scope="module")
def first():
    """The grids' runs of all recordings but those made again."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/runs.parquet"))
    every = [recorded(name).runs[["run_id", "manifest.started"]] for name in names if name != repeated.REPEATED]
    return pd.concat(every)


def test_three_cells_of_each_grid_came_back(first):
    result, planned = repeated.repeats(), repeated.planned()
    came_back = (result["again"] - result["score"]).abs() <= repeated.TOLERANCE
    again = Counter(grid for run in result["run_id"][came_back] for grid in planned[run][0])
    grids = {grid for run in set(first["run_id"]) & planned.keys() for grid in planned[run][0]}
    assert len(grids) > 10
    assert {grid: again[grid] for grid in grids if again[grid] < 3} == {}
    others = [planned[run][0] for run in result["run_id"][~came_back]]
    assert sorted(map(min, others)) == ["head_to_head_tuning", "istar_doses", "neighbours"], "the page tells which"


def test_they_are_other_runs_than_the_first(first):
    """Made at another time, so that equal numbers are no copies."""
    again = recorded(repeated.REPEATED).runs.set_index("run_id")["manifest.started"]
    same = first[first["run_id"].isin(again.index)]
    assert set(same["run_id"]) == set(repeated.repeats()["run_id"]) == set(again.index)
    assert (same["manifest.started"] != same["run_id"].map(again)).all()

"""Rank sets: against scipy's paired test and by simulation; what a handful of seeds can't order stays open."""

import numpy as np
import pytest

from isonb.lab.statistics.seeds import StatsError
from isonb.lab.studies.design import study_file

rank_sets = study_file("rank_sets").rank_sets


def scores(means, spread, seeds, draw):
    return {f"m{i}": dict(enumerate(mean + spread * draw.standard_normal(seeds))) for i, mean in enumerate(means)}


def test_clear_methods_have_one_rank_and_equal_ones_all():
    draw = np.random.default_rng(1)
    clear = rank_sets(scores([0.9, 0.5, 0.1], 0.001, 5, draw))
    assert [(one.best, one.worst) for one in clear.values()] == [(1, 1), (2, 2), (3, 3)]
    assert clear["m0"].beats == ("m1", "m2")
    assert clear["m2"].loses_to == ("m0", "m1")
    alike = rank_sets(scores([0.5] * 9, 0.01, 5, draw))
    assert all((one.best, one.worst) == (1, 9) for one in alike.values())


def test_the_true_ranks_are_covered():
    """Of 300 simulated comparisons of five methods, two of them alike, at most 5% leave a true rank out (and noise)."""
    draw = np.random.default_rng(2)
    truth = [(1, 1), (2, 3), (2, 3), (4, 4), (5, 5)]
    missed = 0
    for _ in range(300):
        found = rank_sets(scores([1.0, 0.6, 0.6, 0.3, 0.0], 0.2, 5, draw)).values()
        missed += any(one.best > high or one.worst < low for one, (low, high) in zip(found, truth, strict=True))
    assert missed / 300 < 0.08


def test_methods_without_shared_seeds_are_refused():
    with pytest.raises(StatsError, match="a and b must share 2 seeds; got 1"):
        rank_sets({"a": {0: 0.1, 1: 0.2}, "b": {1: 0.1, 2: 0.3}})
    assert rank_sets({"a": {0: 0.1}})["a"].worst == 1

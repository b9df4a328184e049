"""The similarity sets share pairs: what is averaged over them is shown without the one that shares most."""

import pandas as pd
import pytest
from scipy import stats

from isonb_lab.papers import pairs, softdecay
from isonb_lab.places import RECORDINGS_FOLDER


def test_most_pairs_of_sts_b_stand_in_the_sets_of_2012_to_2016():
    table = pd.read_csv(RECORDINGS_FOLDER / "sts_overlap.csv").set_index(["set", "other"])
    assert table.loc[("stsb_test", "sts12 to sts16")].tolist() == [1377, 1006]
    assert pairs.shared_pairs() == 1006 / 1377
    assert pairs.shared_pairs("stsb") > 0.7
    parts = table.loc["stsb_test"].drop("sts12 to sts16")["shared"]
    assert parts.sum() >= 1006 >= parts.max()


@pytest.mark.parametrize("model", ["minilm", "tiny"])
def test_the_mean_without_a_set_is_that_of_the_others(model, studies):
    gains = softdecay.vector_gains(studies["softdecay"]).query("protocol == 'mean'")
    rows = gains[(gains["arm"] == softdecay.WHITENING) & gains["suite"].str.startswith(model)]
    others = rows.set_index("suite")["mean"].drop(f"{model}, STS-B")
    result = pairs.over_sets(gains, softdecay.WHITENING, without=pairs.WITHOUT)[model]
    reference = stats.ttest_1samp(others, 0).confidence_interval(0.95)
    assert result.n == len(others) == 6
    assert (result.estimate, result.low, result.high) == pytest.approx((others.mean(), reference.low, reference.high))
    assert pairs.over_sets(gains, softdecay.WHITENING)[model].n == 7

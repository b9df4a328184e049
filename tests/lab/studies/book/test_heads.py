"""What a head reads, on made-up runs whose clouds all differ, and on recorded runs of both heads."""

import pandas as pd
import pytest

from isonb_lab.methods import methods
from isonb_lab.papers import heads as HEADS
from isonb_lab.runs.recordings import recorded

CLOUDS = {"tokens": 0.9, "cls": 0.5, "features": 0.01, "second": 0.1}


@pytest.fixture
def runs():
    """A run of each method of the lab, with another isotropy in each cloud."""
    clouds = {f"metric.end.{name}.isoscore_unbiased": value for name, value in CLOUDS.items()}
    named = {"model": "tiny", "head": "linear", **clouds}
    return pd.DataFrame([{"method.name": name, "task": name, **named} for name in methods()])


def test_isotropy_is_that_of_the_vectors_which_the_head_reads_and_of_no_others(runs):
    want = [CLOUDS["second" if methods()[name].two_phases else "features"] for name in runs["method.name"]]
    assert HEADS.isotropy(runs).tolist() == want
    assert HEADS.participation(runs).tolist() == pytest.approx([1 + 127 * value for value in want])


def test_behind_a_second_stage_and_a_pooler_nobody_recorded_what_is_read(runs):
    pooled, linear = HEADS.isotropy(runs.assign(head="pooler")), HEADS.isotropy(runs)
    assert runs["method.name"][pooled.isna()].tolist() == ["isolayer"]  # the one that keeps the head
    assert pooled.dropna().equals(linear[pooled.notna()])


def test_a_span_is_of_means_over_groups(runs):
    some = runs[runs["method.name"].isin(["none", "isolayer"])]
    again = some.assign(**{"metric.end.features.isoscore_unbiased": 0.03})
    assert HEADS.span(pd.concat([some, again], ignore_index=True), ["task"]) == "3.5 to 13.7 of 128"


@pytest.mark.parametrize("name", ["evidence_methods", "evidence_dose"])
def test_the_linear_head_reads_cls_and_the_poolers_head_does_not(name):
    plain = recorded(name).runs.query("`method.name` == 'none'")
    read = HEADS.participation(plain)
    features, cls = (plain[f"metric.end.{cloud}.participation_ratio_unbiased"] for cloud in ("features", "cls"))
    assert read.tolist() == pytest.approx(features.tolist())
    assert read.tolist() == pytest.approx(cls.tolist()) if name == "evidence_methods" else (read < cls).all()

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
    pooled = HEADS.isotropy(runs.assign(head="pooler"))
    linear = HEADS.isotropy(runs)
    missing = runs["method.name"][pooled.isna()].tolist()
    assert missing == [name for name, kind in methods().items() if kind.keeps_head] == ["isolayer"]
    assert pooled.dropna().equals(linear[pooled.notna()])


def test_a_span_is_of_means_over_groups(runs):
    some = runs[runs["method.name"].isin(["none", "isolayer"])]
    again = some.assign(**{"metric.end.features.isoscore_unbiased": 0.03})
    assert HEADS.span(pd.concat([some, again], ignore_index=True), ["task"]) == "3.5 to 13.7 of 128"


def test_the_linear_head_reads_cls_and_the_poolers_head_does_not():
    column = "metric.end.cls.participation_ratio_unbiased"
    read = {}
    for name in ("evidence_methods", "evidence_dose"):
        runs = recorded(name).runs
        plain = runs[runs["method.name"] == "none"]
        read[name] = (HEADS.participation(plain) / plain[column]).tolist()
        assert HEADS.participation(plain).tolist() == pytest.approx(
            plain["metric.end.features.participation_ratio_unbiased"].tolist()
        )
    assert read["evidence_methods"] == pytest.approx([1] * len(read["evidence_methods"]))
    assert max(read["evidence_dose"]) < 1

"""The list of recorded runs holds each run of a study once, with the numbers that the study has."""

import pandas as pd
import pytest

from isonb.lab.studies.run_list import run_rows
from isonb.lab.studies.study import STUDIES, Study


@pytest.mark.parametrize("name", STUDIES)
def test_every_recorded_run_stands_there_once(name):
    study = Study.load(name)
    rows = pd.DataFrame(run_rows(study)).set_index("run")
    runs = study.recorded.set_index("run_id")
    assert sorted(rows.index) == sorted(runs.index)
    runs = runs.loc[rows.index]
    assert (rows["task"] == runs["suite"]).all()
    assert (rows["seed"] == runs["seed"]).all()
    scored = runs["score"].notna()
    assert (rows["score"][scored] == runs["score"][scored]).all()
    means = runs[~scored & (runs["metric"] == "spearman")]
    assert rows["score"][means.index].tolist() == means.get("metric.spearman.mean", pd.Series()).tolist()


def test_tasks_and_arms_stand_in_the_order_of_the_grid():
    study = Study.load("head_to_head")
    rows = pd.DataFrame(run_rows(study))
    assert list(rows["task"].unique()) == list(study.suites)
    for _, part in rows.groupby("task"):
        assert list(part["arm"].unique()) == [arm for arm in study.arms if arm in set(part["arm"])]
        assert all(seeds.is_monotonic_increasing for _, seeds in part.groupby("arm")["seed"])

"""Claims of several studies as one table, the needs behind what is open, and the runs as rows."""

import pandas as pd
import pytest

from isonb.lab.studies.design import Design
from isonb.lab.studies.study import STUDIES
from isonb.lab.studies.summary import COLUMNS, claim_cells, open_needs, run_rows
from isonb.lab.studies.verdicts import (
    NO_SETTING,
    NOT_TESTABLE,
    Claim,
    JudgedCell,
    Prediction,
    Reason,
    judge,
    judge_prediction,
)

DESIGN = Design("made_up", "papers/made_up", (), lambda settings: "none")


def gain(**options):
    return Prediction("gain", lambda study, suites: {}, "greater", **options)


def judged(number, *tested, **options):
    """A claim judged on (prediction, numbers by cell, the outcome and reason of cells that can't tell)."""
    claim = Claim(number, f"claim {number}", tuple(one for one, _, _ in tested), **options)
    silent = ({cell: JudgedCell(cell, *why) for cell in values} if why else {} for _, values, why in tested)
    cells = zip(tested, silent, strict=True)
    return judge(claim, [judge_prediction(one, values, values, given) for (one, values, _), given in cells])


@pytest.fixture
def table():
    clear, open_, few = [0.1, 0.11, 0.12], [0.1, -0.2, 0.14], [0.1, 0.2]
    against = [-v for v in clear]
    return claim_cells(
        DESIGN,
        [
            judged(1, (gain(), {"a": clear, "b": open_, "c": few}, None)),
            judged(2, (gain(trained=True), {"a": clear}, (NOT_TESTABLE, Reason.UNTAUGHT))),
            judged(3, (gain(needs="a larger encoder"), {"a": []}, None)),
            judged(4, remark="It rained.", needs="sun"),
            judged(5, (gain(), {"a": open_}, None), kind="identity"),
            judged(6, (gain(), {"a": against, "b": few}, None)),
            judged(7, (gain(trained=True), {"a": clear}, (NO_SETTING, Reason.UNTUNED, "x"))),
            judged(8, (gain(depends="the encoder"), {"a": against, "b": clear}, None)),
        ],
    )


def test_every_cell_of_every_claim_has_a_row(table):
    assert list(table.columns) == list(COLUMNS)
    assert table["claim"].tolist() == [1, 1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 8]
    first = table.iloc[0]
    assert (first["page"], first["what"], first["cell"], first["n"]) == ("papers/made_up", "gain", "a", 3)
    assert first["low"] < first["mean"] < first["high"]
    assert first["mean"] == pytest.approx(0.11)
    assert (first["verdict"], first["outcome"]) == ("inconclusive", "supported")
    assert table.loc[table["claim"] == 2, "trained"].all()


def test_a_claim_without_parts_keeps_its_remark(table):
    (row,) = table[table["claim"] == 4].to_dict("records")
    assert (row["cell"], row["outcome"], row["reason"]) == ("", "not testable", "It rained.")


def test_needs_are_of_open_claims_about_methods(table):
    found = {row["need"]: (row["claims"], row["cells"]) for row in open_needs(table)}
    assert found == {
        "the paper's runs again, with models that learn their tasks": ([2], 1),
        "a larger encoder": ([3], 1),
        "sun": ([4], 1),
        "weaker or other settings of the method": ([7], 1),
        "more replicates: seeds, or encoders": ([1], 1),
        "more seeds or pairs, for a narrower interval": ([1], 1),
    }
    assert open_needs(table[table["claim"] == 6]) == [], "a contradicted claim is decided"


def test_every_open_cell_of_the_recorded_studies_needs_something(studies, verdicts):
    papers = ("shrink_the_longest", "istar", "softdecay", "isolayer")
    cells = pd.concat([claim_cells(studies[name].design, verdicts[name]) for name in papers], ignore_index=True)
    assert sorted(cells["claim"].unique()) == list(range(1, 26))
    undecided = cells[cells["outcome"].isin(["inconclusive", "not testable", NO_SETTING])]
    assert undecided["needs"].str.len().gt(0).all()


@pytest.mark.parametrize("name", STUDIES)
def test_every_recorded_run_stands_there_once(name, studies):
    study = studies[name]
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


def test_tasks_and_arms_stand_in_the_order_of_the_grid(head_to_head):
    study = head_to_head
    rows = pd.DataFrame(run_rows(study))
    assert list(rows["task"].unique()) == list(study.suites)
    for _, task in rows.groupby("task"):
        assert list(task["arm"].unique()) == [arm for arm in study.arms if arm in set(task["arm"])]
        assert all(seeds.is_monotonic_increasing for _, seeds in task.groupby("arm")["seed"])

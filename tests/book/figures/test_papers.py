"""What a paper reports, and what happened: differences of printed values, paired differences in points."""

import pandas as pd
import pytest

from isonb_lab.claims.printed import printed
from isonb_lab.figures import papers, recipes
from isonb_lab.papers.studies import load_study

LAYER = "Finetuned LM + Isotropy Layer"


def test_a_reported_gain_is_the_difference_of_two_printed_values():
    gains = papers.reported("istar", "Table 1", method="I-STAR", base="Base", metrics=["accuracy"], seeds=5)
    row = gains[(gains.model == "BERT") & (gains.task == "RTE")].iloc[0]
    values = printed("istar", "Table 1", model="BERT", task="RTE", metric="accuracy").set_index("method")
    assert row.gain == pytest.approx(values.value["I-STAR"] - values.value["Base"], abs=1e-3)
    errors = values["std"][["I-STAR", "Base"]]
    assert row.high - row.gain == pytest.approx(2.306 * ((errors**2).sum() / 5) ** 0.5, rel=1e-3)


def test_what_happened_is_the_heads_own_table_in_points():
    study = load_study("head_to_head")
    here = papers.happened(study, "I-STAR (lower)", "I-STAR (raise)")
    local = study.paired("score", "I-STAR (raise)", suites=["SST-2"]).iloc[0]
    row = here[(here.arm == "I-STAR (raise)") & (here.suite == "SST-2")].iloc[0]
    assert (row["mean"], row.low, row.high) == pytest.approx(
        (100 * local["mean"], 100 * local.low, 100 * local.high), abs=0.01
    )


def test_printed_gains_are_drawn_beside_none_of_ours():
    theirs = papers.reported("isolayer", "Table 2", method=LAYER, base="Finetuned LM", metrics=["accuracy"])
    ours = pd.DataFrame({name: [] for name in [*theirs.columns, "low", "high"]}, dtype=object)
    chart = papers.reported_forest(pd.concat([theirs, ours]), title="points").to_dict()
    rows = [row for table in chart["datasets"].values() for row in table]
    assert {row["low"] for row in rows} == {None}, "as JSON has it, and not NaN"


def test_a_slider_over_bars_starts_where_nothing_was_done():
    stops = {-1.0: [3.0, 0.5], 0.0: [2.0, 1.0], 1.0: [1.5, 1.5]}
    chart = recipes.turned_bars(stops, label="step").to_dict()
    (chosen,) = chart["params"]
    assert (chosen["value"], chosen["bind"]["min"], chosen["bind"]["step"]) == (0.0, -1.0, 1.0)
    (rows,) = chart["datasets"].values()
    assert {(row["stop"], row["after"]) for row in rows} == {(stop, bar) for stop in stops for bar in stops[stop]}
    assert [row["before"] for row in rows] == 3 * stops[0.0]

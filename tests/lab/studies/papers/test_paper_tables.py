"""The papers' printed tables with ours beside: every printed row, ours by training, the price of what wasn't run."""

from dataclasses import replace

import pytest

from isonb_lab.claims.printed import printed
from isonb_lab.papers import paper_tables
from isonb_lab.papers.studies import load_study
from tests.lab import own_runs


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study("trained_runs", runs=own_runs.write(tmp_path_factory.mktemp("own")))


@pytest.fixture(scope="module")
def result(study):
    return paper_tables.paired_scores(study, lambda run: run.get("method.name") == "isolayer", ["RTE", "SST-2"])


def cell(values):
    return f"{sum(values) / 3:.4f}" if (values := list(values)) else "–"


def test_a_printed_table_has_ours_below_each_task_and_the_price_of_what_was_not_run(result):
    rows = paper_tables.score_rows("isolayer", "Table 2", "Finetuned LM", {"layer": result}, cell)
    theirs = printed("isolayer", "Table 2", task="RTE", method="Finetuned LM", metric="accuracy")
    assert [row["encoder"] for row in rows if row["task"] == "RTE"] == [*theirs.model, f"{own_runs.BERT} (ours)"]
    ours = next(row for row in rows if row["encoder"].endswith("(ours)"))
    assert (ours["Finetuned LM"], ours["layer"]) == ("0.8040", "0.8160")  # as own_runs makes them
    assert all(
        row["encoder"].startswith("ours: not run, planned: ") for row in rows if row["encoder"].startswith("ours")
    )


def test_the_same_runs_with_another_number(study, result):
    def value(runs):
        return study.numbers("metric.end.tokens.isoscore_star", runs).to_dict()

    first = paper_tables.revalued(result, value)[0]
    assert first.gains == pytest.approx([0.01] * 3)
    revalued_run = paper_tables.revalued(result, value, before=lambda runs: dict.fromkeys(runs, 0.5))[0]
    assert list(revalued_run.plain.values()) == [0.5] * 3
    assert revalued_run.scores == first.scores
    assert paper_tables.revalued(result, lambda runs: {}) == []


def test_methods_with_the_same_plain_runs_share_a_row_where_each_has_one_setting(result):
    (item,) = (one for one in result if one.task == "RTE")
    other = replace(item, settings="no rows held out")
    rows = paper_tables.our_rows(["RTE"], "none", {"one": [other], "two": [item]}, cell)
    assert [(row["encoder"], row["one"] == row["two"]) for row in rows] == [
        (f"{own_runs.BERT} (ours, no rows held out)", True)
    ]
    weights = [replace(item, settings=f"weight {weight}") for weight in (1, 3)]
    rows = paper_tables.our_rows(["RTE"], "none", {"one": weights, "two": [item]}, cell)
    assert [row["encoder"].partition(" (ours")[2] for row in rows] == [", weight 1)", ", weight 3)", ")"]

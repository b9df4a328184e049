"""The papers' printed tables with ours beside: every printed row, ours by training, the price of what wasn't run."""

from dataclasses import replace

import pytest

from isonb_lab.claims.design import TASK_NAMES
from isonb_lab.claims.printed import printed
from isonb_lab.papers import arms, paper_tables
from isonb_lab.papers.prices import elsewhere, lacks, price
from isonb_lab.papers.studies import load_study
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.recordings import FOLDER, recorded
from tests.lab import own_runs

METHODS = ("istar", "cosreg", "entropy", "softdecay", "isolayer", "isobn")  # of the printed tables
ON_OTHER_PROCESSORS = ("neighbours_h200", "head_to_head_xeon")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study("printed_tables", runs=own_runs.write(tmp_path_factory.mktemp("own")))


def having(name):
    return lambda run: run.get("method.name") == name


@pytest.fixture(scope="module")
def result(study):
    return paper_tables.paired_scores(study, having("isolayer"), ["RTE", "SST-2"])


def cell(values):
    return f"{sum(values) / 3:.4f}" if (values := list(values)) else "–"


def test_a_printed_table_has_ours_below_each_task_and_the_price_of_what_was_not_run(study, result):
    lack = lacks(study, {"layer": having("isolayer")})
    rows = paper_tables.score_rows("isolayer", "Table 2", "Finetuned LM", {"layer": result}, cell, lack=lack)
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


def test_a_dash_has_the_price_of_its_own_method_and_of_plain_runs_trained_alike(study):
    """Five seeds of SoftDecay on RTE, as many plain ones; on QQP three of I-STAR."""
    soft = price(lambda run: arms.SOFTDECAY_LAYER.has(run) and run["task"] == "rte")
    assert soft.runs == 5 + 5
    lack = lacks(study, {"SoftDecay": having("softdecay"), "I-STAR": having("istar")})
    assert lack("QQP", ["I-STAR"]).startswith("I-STAR not run, planned: 6 runs, ")
    assert lack("RTE", ["SoftDecay"]).startswith("SoftDecay ran, without this number")


def test_a_method_that_is_not_planned_has_the_price_of_a_design_beside_it(study):
    """SoftDecay's own, five seeds and as many plain runs: it moves to MNLI, and S-BERT takes it, after its tuning."""
    soft, sbert = having("softdecay"), having("sbert")
    before = elsewhere(soft, "MNLI-mm")
    after = elsewhere(sbert, "MNLI-mm", [soft])
    assert before.runs == after.runs == 5 + 5
    assert before.flops < after.flops < 1.2 * before.flops
    assert elsewhere(soft, "RTE") == price(lambda run: arms.SOFTDECAY_LAYER.has(run) and run["task"] == "rte")
    assert elsewhere(sbert, "RTE") is None, "no design has it, and none is beside it"
    lack = lacks(study, {"S-BERT": sbert, "SoftDecay": soft})
    told = f"not run, not planned: 10 runs, {before.cpu_hours:.1f} h of one core"
    assert lack("MNLI-mm", ["SoftDecay"]) == f"SoftDecay {told}"
    assert lacks(study, {"one": soft, "two": soft})("MNLI-mm", ["one", "two"]) == f"{told} each"


def test_plain_runs_stand_alone_where_no_method_ran_and_an_average_is_no_task(study):
    columns = {"plain": paper_tables.paired_scores(study, paper_tables.is_plain, ["QNLI", "RTE"]), "S-BERT": []}
    metrics = ["GLUE leaderboard score"]
    rows = paper_tables.score_rows("softdecay", "Table 3", "plain", columns, cell, metrics=metrics)
    ours = {row["task"]: (row["encoder"], row["plain"]) for row in rows if "ours" in row["encoder"]}
    assert ours["RTE"] == (f"{own_runs.BERT} (ours)", "0.8040")
    assert ours["QNLI"] == ("ours: not run", "–")
    assert "Average" not in ours
    assert [paper_tables.printed_task({"task": task}) for task in ("mnli_mm", "sst2_joint")] == ["MNLI-mm", "SST-2"]


def test_a_method_that_did_not_act_has_no_score_and_no_gain_of_its_own(result):
    (item,) = (replace(one, scores=one.plain) for one in result if one.task == "RTE")
    (row,) = paper_tables.our_rows(["RTE"], "none", {"layer": [item]}, cell)
    assert (row["none"], row["layer"]) == ("0.8040", "as plain")
    assert paper_tables.gains([item]).empty


def test_tables_have_the_runs_of_every_recording_but_those_that_chose_a_setting():
    """And those of other processors, so that no pair of a method and plain training mixes two."""
    pool = load_study("printed_tables")
    for path in sorted(FOLDER.glob("*/runs.parquet")):
        runs = recorded(path.parent.name).runs
        if path.parent.name not in ON_OTHER_PROCESSORS and {"method.name", "task"} <= set(runs):
            runs = runs[runs["experiment"].eq("finetune") & runs["method.name"].isin(METHODS)]
            left = runs[runs["task"].isin(TASK_NAMES) & ~runs["run_id"].isin(pool.runs["run_id"])]
            random = left.reindex(columns=["method.direction"]).eq("random").any(axis=1)
            assert set(left.loc[~random, "seed"]) <= {0}, path
    kinds = dict(zip(pool.runs["run_id"], processor_kinds(pool.runs), strict=True))
    tasks = list(TASK_NAMES.values())
    for name in METHODS:
        for item in paper_tables.paired_scores(pool, having(name), tasks):
            assert all(kinds[run] == kinds[item.plain_runs.get(seed, run)] for seed, run in item.runs.items()), item

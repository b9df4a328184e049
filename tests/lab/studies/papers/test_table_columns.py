"""Ours in a printed table: the zetas of I-STAR's grid, a setting and seeds a column, each printed metric."""

import pytest

from isonb_lab.claims.printed import printed
from isonb_lab.pages.evidence import spread
from isonb_lab.papers import istar, paper_tables, shrink_the_longest, table_columns
from isonb_lab.papers.studies import load_study
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.settings import resolve
from isonb_lab.sweeps.grids import load_grid

ALBERT, BERT = "albert/albert-base-v2", "google-bert/bert-base-cased"
ISOTROPY = "end.tokens.isoscore_star_all_layers"


def write(folder, config, score, **metrics):
    """A record whose task has these metrics, all of them the score unless told."""
    names = ("accuracy", "f1", "matthews", "squad_f1", "exact_match")
    values = dict.fromkeys(names, score) | {f"baseline.{name}": 0.1 for name in names} | metrics
    write_record(folder / "records", Record(config, values, {"step.loss": [(0, 1.0)]}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The paper's grid on CoLA and RTE, two encoders: scores fall with the weight, and away from ζ = 0.8."""
    folder = tmp_path_factory.mktemp("grid")
    for run in load_grid("istar", "paper"):
        config, method = run.config, run.config.get("method", {})
        if config.get("task") in ("cola", "rte") and config["model"] in (ALBERT, BERT) and config["seed"] < 3:
            weight = method["weight"] if method["name"] == "istar" else 0
            away = abs(method["zeta"] - 0.8) if method["name"] == "istar" else 0
            single = 0.05 * (str(method.get("layers", "all")) != "all")
            score = 0.6 - 0.02 * weight - 0.1 * away - single + (0.1 if config["model"] == BERT else 0)
            write(folder, config, score + 0.001 * config["seed"], **{ISOTROPY: 0.3 + 0.02 * weight})
    return folder


def columns(study, tasks):
    """Ours of I-STAR's Table 1, as the chapter has them."""
    methods = {"CosReg": istar.is_cosreg, "I-STAR": istar.lowers}
    ours = {name: paper_tables.paired_scores(study, method, tasks) for name, method in methods.items()}
    return table_columns.with_settings(study, ours, ["method.weight", "method.include_pads"])


def test_table_1_has_each_encoder_at_its_own_zeta(folder):
    ours = columns(load_study("trained_runs", runs=folder), ["CoLA", "RTE"])["I-STAR"]
    means = {(one.task, one.model, one.settings): sum(one.scores.values()) / 3 for one in ours}
    assert means == {
        (task, model, f"I-STAR: weight {weight}, padding counted"): pytest.approx(0.601 - 0.02 * weight + gain)
        for task in ("CoLA", "RTE")
        for model, gain in ((ALBERT, 0), (BERT, 0.1))
        for weight in (-5, -3, -1)
    }


def test_table_2_and_the_figures_have_each_encoder_at_its_own_zeta(folder):
    own = load_study("istar_own", runs=folder)
    best = istar.best_settings(own).set_index(["task", "encoder"])
    assert set(best["setting"]) == {"λ = -5"}
    assert set(best.index) == {(task, model) for task in ("CoLA", "RTE") for model in (ALBERT, BERT)}
    assert [lead[0] for lead in best["lead"]] == pytest.approx([0.04] * 4)
    assert {istar.correlation(own, suite).estimate for suite in own.suites} == {-1.0}
    swept = istar.sweep(own)
    assert set(swept.layers) == {f"λ = -1, layer {layer}" for layer in range(1, 13)}
    assert "λ = -1, ζ = 0.8" not in swept.zetas
    assert "λ = -1, ζ = 0.2" in swept.zetas
    assert {istar.with_encoder(own, suite) for suite in own.suites} == {
        f"{model} on {task}" for task in ("CoLA", "RTE") for model in (ALBERT, BERT)
    }


def test_a_column_with_few_seeds_takes_none_from_another_and_each_tells_its_setting(tmp_path):
    """CosReg has two seeds at 0.3, and four below 0, which isn't the table's; I-STAR has four."""
    methods = {"none": 4, ("cosreg", 0.3): 2, ("cosreg", -1): 4, ("istar", -0.1): 4}
    for method, seeds in methods.items():
        name, *weight = [method] if isinstance(method, str) else method
        options = {"name": name} | dict(zip(["weight"], weight, strict=False))
        for seed in range(seeds):
            config = resolve({"task": "squad", "method": options, "seed": seed})
            write(tmp_path, config, 0.6 + len(weight) / 10, exact_match=0.5 - len(weight) / 10)
    study = load_study("trained_runs", runs=tmp_path)

    def cell(values):
        return f"{(listed := list(values))[0]:.1f} x {len(listed)}"

    rows = table_columns.rows_by_metric(study, "istar", "Table 1", "Base", columns(study, ["SQuAD"]), cell)
    ours = [row for row in rows if row["task"] == "SQuAD" and "(ours" in row["encoder"]]
    assert [(row["encoder"], row["Base"], row["CosReg"], row["I-STAR"]) for row in ours] == [
        ("tiny (ours, CosReg: weight 0.3, padding left out)", "0.6 x 2 / 0.5 x 2", "0.7 x 2 / 0.4 x 2", "–"),
        ("tiny (ours, I-STAR: weight -0.1, padding left out)", "0.6 x 4 / 0.5 x 4", "–", "0.7 x 4 / 0.4 x 4"),
    ]


def test_mrpc_has_accuracy_and_f1_as_the_paper_prints_them():
    """Of the book's runs at the paper's own setting, three seeds: F1 .859, .846 and .853 with SoftDecay."""
    study = load_study("trained_runs")
    found = paper_tables.paired_scores(study, lambda run: run.get("method.name") == "softdecay", ["MRPC"])
    rows = table_columns.rows_by_metric(study, "softdecay", "Table 2", "base", {"+SoftDecay": found}, spread)
    assert "0.852 (0.836 to 0.868), n = 3" in {row["+SoftDecay"].partition(" / ")[2] for row in rows}
    theirs = printed("softdecay", "Table 2", percent=False, task="MRPC", model="BERT", method="base").value
    assert next(row["base"] for row in rows if row["task"] == "MRPC") == " / ".join(map("{:.3f}".format, theirs))


def test_shrink_the_longest_tells_how_its_runs_were_trained(tmp_path):
    for run in load_grid("shrink_the_longest", "paper"):
        if run.config["seed"] == 0 and run.config["task"] == "cola":
            write(tmp_path, run.config, 0.6)
    study = load_study("shrink_the_longest", runs=tmp_path)
    assert [text.partition(" (")[2] for text in shrink_the_longest.trainings(study)] == [
        "all rows, epochs 10, batch size 64)"
    ] * 2
    assert len(shrink_the_longest.of_paper(study)) == len(study.runs) == 6

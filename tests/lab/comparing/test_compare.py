"""Runs against their matched controls: an independent calculation, simulated studies, refusals, the book's verdicts."""

import json
import math

import jupytext
import numpy as np
import pandas as pd
import papermill
import pytest
from scipy import stats

from isonb.cli import main
from isonb_lab import compare, plan_seeds
from isonb_lab.claims.comparing import against_plain
from isonb_lab.comparing import CompareError
from isonb_lab.comparing.runs import read_runs
from isonb_lab.methods import control_of
from isonb_lab.papers import arms
from isonb_lab.papers.studies import load_study
from isonb_lab.places import EXPERIMENTS_FOLDER


def made_up(effects, seeds=5, spread=1.5, **columns):
    """Runs of methods with known effects in points; paired differences have the standard deviation ``spread``."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        base = 80 + rng.normal(scale=2)
        for method, effect in {"none": 0.0, **effects}.items():
            score = base + effect + rng.normal(scale=0 if method == "none" else spread)
            rows.append({"seed": seed, "method.name": method, "metric.accuracy": score / 100})
    usual = {"status": "complete", "error": "", "experiment": "finetune", "task": "sst2", "model": "minilm"}
    frame = pd.DataFrame(rows).assign(**usual, **{"metric.baseline.accuracy": 0.51}, **columns)
    return frame.assign(run_id=[f"run{i}" for i in range(len(frame))])


def test_runs_from_before_and_after_an_option_came_are_of_one_setting():
    runs = made_up({"istar": 1.0}, seeds=6)
    later = runs["seed"] >= 3
    for pooling, settings in (("cls", 1), ("mean", 2)):  # the default of the option, and another value
        after = runs.assign(pooling=[pooling if new else None for new in later])
        assert read_runs(after)["setting"].nunique() == settings


def test_an_option_without_a_value_makes_an_arm_of_its_own_and_a_later_one_at_its_default_does_not():
    runs = made_up({"istar": 1.0, "isolayer": 1.0}, seeds=6)
    later = runs["seed"] >= 3
    after = np.where((runs["method.name"] == "istar") & later, 2, np.nan)
    alpha = np.where((runs["method.name"] == "isolayer") & later, 0.5, np.nan)
    found = read_runs(runs.assign(**{"method.after": after, "method.alpha": alpha}))
    assert set(found["arm"]) == {"none", "istar after=2", "istar after=None", "isolayer"}


def test_the_same_runs_are_met_across_versions_and_ways_of_keeping_them():
    runs = made_up({"isolayer": 1.0}, 3)
    isolayer = runs["method.name"] == "isolayer"
    new = runs.assign(
        **{"method.alpha": np.where(isolayer, 0.5, np.nan), "method.depth": np.where(isolayer, 1, np.nan)}
    )
    old = runs.assign(**{"method.depth": np.where(isolayer, "1", None)})  # text, as where another run has a word
    assert {pair.reason for pair in compare(new, old).pairs} == {"equal at every seed"}


@pytest.mark.parametrize("text", ["learning_rate=2e-4", "group_by_length=true", "patience=null", "seed=1"])
def test_a_condition_is_spelled_as_a_setting_is(text):
    runs = made_up({"istar": 1.0}).assign(learning_rate=0.0002, group_by_length=True, patience=np.nan)
    name, value = text.split("=")
    assert len(read_runs(runs, {name: value})) == (2 if name == "seed" else 10)
    with pytest.raises(CompareError, match=f"got {name}=7. Values of {name}: "):
        read_runs(runs, {name: "7"})


def test_the_numbers_are_those_of_an_independent_calculation():
    frame = made_up({"istar": 1.0, "cosreg": -3.0}, seeds=6)
    result = compare(frame, gain=1.0)
    wide = frame.pivot(index="seed", columns="method.name", values="metric.accuracy") * 100
    tests = {m: stats.ttest_rel(wide[m], wide["none"]) for m in ("istar", "cosreg")}
    first, second = sorted(tests, key=lambda m: tests[m].pvalue)
    holm = {first: 2 * tests[first].pvalue, second: max(2 * tests[first].pvalue, tests[second].pvalue)}
    for pair in result.pairs:
        low, high = tests[pair.arm].confidence_interval(0.95)
        assert (pair.interval.low, pair.interval.high) == pytest.approx((low, high))
        assert pair.interval.estimate == pytest.approx((wide[pair.arm] - wide["none"]).mean())
        assert pair.p == pytest.approx(min(holm[pair.arm], 1))
        assert (pair.verdict != "not significant") == (holm[pair.arm] <= 0.05)
        spread = (wide[pair.arm] - wide["none"]).std()
        assert power_of(pair.visible, spread, 6, 0.05 / 2) == pytest.approx(0.8, abs=0.01), "by the first of two tests"


def power_of(gain, spread, n, alpha):
    """Of Student's paired test, by the noncentral t law of scipy."""
    border, shift = stats.t.ppf(1 - alpha / 2, n - 1), gain / spread * math.sqrt(n)
    return stats.nct.sf(border, n - 1, shift) + stats.nct.cdf(-border, n - 1, shift)


def separate(column, control, arm):
    """A change of runs: the column of the control and of the arm."""
    return lambda f: f.assign(**{column: np.where(f["method.name"] == "none", control, arm)})


def similar(f):
    score = f["metric.accuracy"] * 100
    names = {"method.name": f["method.name"].replace("istar", "whitening"), "metric.spearman.all": score}
    names["metric.spearman.mean"] = score.where(f.index != 3)
    return f.assign(experiment="similarity", task="sts12", **names)


def undefined(f):
    return f.assign(task="cola", **{"metric.matthews": f["metric.accuracy"].where(f.index != 3)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f[f["seed"] < 2], "too few seeds: 2 in common, 3 are needed"),
        (lambda f: f[f["method.name"] != "none"], "its control wasn't run: --method none"),
        (separate("max_steps", 10, None), "other settings: max_steps None here and 10 there"),
        (separate("manifest.data.train", "a", "b"), "other rows: train"),
        (separate("manifest.data.model", "a", "b"), "other weights"),
        (separate("manifest.versions.torch", "2.11", "2.13"), "torch is 2.13"),
        (separate("metric.accuracy", 0.51, 0.84), "hasn't learned"),
        (undefined, "matthews is undefined in 1 of the 10 runs"),
        (similar, "some runs have spearman.all, some spearman.mean"),
    ],
)
def test_what_can_not_be_judged_is_refused_in_words(change, reason):
    report = compare(change(made_up({"istar": 3.0})))
    (pair,) = report.pairs
    assert pair.verdict == "refused"
    assert reason in pair.reason
    assert reason in " ".join(repr(report).split())


def test_failed_runs_are_counted_with_an_interval():
    frame = made_up({"istar": 0.0}, seeds=6)
    frame.loc[(frame["seed"] < 2) & (frame["method.name"] == "istar"), "metric.accuracy"] = 0.5
    (pair,) = compare(frame).pairs
    exact = stats.binomtest(2, 6).proportion_ci(method="exact")
    assert pair.failed.ends == pytest.approx((1 / 3, *exact))
    assert pair.control_failed.estimate == 0
    last = (frame["seed"] == 5) & (frame["method.name"] == "istar")
    frame.loc[last, ["status", "metric.accuracy"]] = "failed", np.nan
    (pair,) = compare(frame).pairs
    assert (pair.failed.estimate, pair.failed.n, len(pair.differences)) == (0.5, 6, 5)


def crashed(f, method, count):
    """The first runs of a method ended with an error."""
    lost = (f["method.name"] == method) & (f["seed"] < count)
    score, status = f["metric.accuracy"].mask(lost), f["status"].mask(lost, "failed")
    error = f["error"].mask(lost, "ValueError: the loss is NaN")
    return f.assign(status=status, error=error, **{"metric.accuracy": score})


def again(f):
    """Every run once more, of other rows: from 3 points above to 30 below."""
    score = f["metric.accuracy"] - np.where(f["method.name"] == "none", 0, 0.33)
    more = {"manifest.data.train": "b" * 64, "metric.accuracy": score, "run_id": f["run_id"] + "x"}
    first = f.assign(inputs=None, **{"manifest.data.train": "a" * 64})
    return pd.concat([first, f.assign(inputs="inputs-bbb", **more)], ignore_index=True)


def two_models(f):
    return f.assign(**{"manifest.data.model": np.where(f["seed"] < 4, "a", "b")})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: crashed(f, "istar", 5), '5 of 9 runs of the method ended with an error ("ValueError: the loss is N'),
        (lambda f: crashed(f, "none", 3), "3 of 9 runs of the control ended with an error"),
        (again, "mixed inputs: 2 values of inputs among the runs of the method"),
        (lambda f: again(f).drop(columns="inputs"), "mixed inputs: 2 values of manifest.data.train"),
        (lambda f: pd.concat([f, f]), "mixed inputs: seed 0 was run more than once among the runs of the method"),
        (two_models, "mixed inputs: 2 values of manifest.data.model"),
    ],
)
def test_runs_at_fault_are_broken_and_no_build_passes_on_them(change, reason, tmp_path, capsys):
    frame = change(made_up({"istar": 3.0}, 9))
    (pair,) = compare(frame).pairs
    assert (pair.verdict, pair.judged) == ("broken", False)
    assert reason in pair.reason
    frame.to_parquet(tmp_path / "runs.parquet")
    assert main(["compare", str(tmp_path / "runs.parquet")]) == 1
    assert "1 of 1 comparisons broken" in capsys.readouterr().err


def test_an_accident_breaks_nothing():
    (pair,) = compare(crashed(made_up({"istar": 3.0}, 9), "istar", 2)).pairs
    assert (pair.judged, len(pair.differences)) == (True, 7)


@pytest.mark.parametrize("rule", ["losses>0", "open>5", "high<-50"])
def test_a_rule_over_verdicts_is_broken_while_one_is_missing(rule, tmp_path, capsys):
    good, table = made_up({"istar": 3.0, "cosreg": 3.0}, 6), tmp_path / "runs.parquet"
    arguments = ["compare", str(table), "--fail-on", rule]
    good.to_parquet(table)
    assert main(arguments) == 0
    good[(good["method.name"] != "cosreg") | (good["seed"] < 2)].to_parquet(table)  # one pair is refused
    assert main(arguments) == 1
    assert f"broken    {rule} (it is undefined)" in capsys.readouterr().err
    assert main(["compare", str(table), "--fail-on", "refused>1"]) == 0
    assert main(["compare", str(table), "--where", "seed=0"]) == 1
    assert "nothing could be judged" in capsys.readouterr().err


def test_a_difference_that_no_seed_changes_is_told_as_such():
    report = compare(made_up({"istar": -5.0}, 4, spread=0.0))
    (pair,), (row,) = report.pairs, json.loads(report.to_json())["pairs"]
    assert (pair.verdict, pair.interval, pair.mean) == ("refused", None, pytest.approx(-5))
    assert "the same at every seed: -5.00 points at each of 4" in pair.reason
    assert (row["gain"], row["low"], row["p"], row["visible"]) == (pytest.approx(-5), None, None, None)


def test_rounding_of_the_scores_is_no_spread():
    runs = made_up({"istar": 0.0}, 3, spread=0.0)
    answers = {0: 8637, 1: 8834, 2: 8539}  # of 9815, and one more in each run of the method
    scores = [
        (answers[seed] + (name == "istar")) / 9815 for seed, name in zip(runs.seed, runs["method.name"], strict=True)
    ]
    (pair,) = compare(runs.assign(**{"metric.accuracy": scores})).pairs
    assert (pair.verdict, "the same at every seed" in pair.reason) == ("refused", True)


def test_what_records_warn_of_stands_below_the_table():
    frame = made_up({"whitening": 1.0}, seeds=4)
    text = separate("manifest.warnings", None, '["Whitening: few points."]')(frame)
    assert "whitening, 4 runs: Whitening: few points." in compare(text).notes
    assert compare(frame).notes == ()


def test_the_control_of_a_penalty_in_similarity_is_its_contrastive_loss():
    config = {"experiment": "similarity", "tuning_steps": 20, "tuning_rate": 1e-5, "temperature": 0.1}
    expected = {"name": "simcse", "steps": 20, "learning_rate": 1e-5, "temperature": 0.1}
    for name, control in (("istar", expected), ("whitening", {"name": "none"}), ("simcse", {"name": "none"})):
        assert control_of({**config, "method": {"name": name}}) == control


def test_two_versions_of_the_code_are_paired_run_by_run():
    """Runs that are equal are no gain and no loss."""
    old, new = made_up({"istar": 0.0}, 6), made_up({"istar": 0.0}, 6)
    istar = new["method.name"] == "istar"
    new.loc[istar, "metric.accuracy"] += 0.04 + 0.002 * (new.loc[istar, "seed"] % 2 - 0.5)
    report = compare(new, old)
    pairs = {pair.arm: pair for pair in report.pairs}
    assert (pairs["istar"].verdict, pairs["istar"].interval.estimate) == ("gain", pytest.approx(4))
    assert (pairs["none"].verdict, pairs["none"].reason) == ("not significant", "equal at every seed")
    assert (report.values()["losses"], bool(report.fault())) == (0, False)


def test_the_books_own_runs_give_the_books_own_verdicts():
    study = load_study("head_to_head")
    book = against_plain(study, arms.METHODS).dropna(subset="p").set_index(["arm", "suite"])
    cells = zip(study.runs["arm"], study.runs["suite"], strict=True)
    runs = study.runs[[cell in book.index or cell[0] == "none" for cell in cells]]
    result = compare(runs.drop(columns=["arm", "suite", "score", "majority", "rows", "metric", "failed", "source"]))
    judged = [pair for pair in result.pairs if pair.judged]
    assert len(judged) == len(book)
    ours = sorted((p.interval.estimate / 100, p.p, p.visible / 100) for p in judged)
    theirs = sorted(book[["mean", "p", "mde"]].itertuples(index=False, name=None))
    assert np.allclose(ours, theirs, atol=1e-8)
    assert sorted(p.verdict for p in judged) == sorted(book["outcome"].replace({"above": "gain", "below": "loss"}))


def test_a_plan_counts_the_seeds_that_a_pilot_asks_for():
    pilot = made_up({"istar": 1.0}, 3, **{"manifest.seconds": 60.0})
    report = plan_seeds(pilot, gain=1.0).iloc[0]
    spread = report["spread"]
    assert power_of(1.0, spread, report["seeds"] - 1, 0.05) < 0.8 <= power_of(1.0, spread, report["seeds"], 0.05)
    assert report["seeds_high"] > report["seeds"]
    assert report["hours"] == pytest.approx((report["seeds"] - 3) * 2 / 60)
    with pytest.raises(CompareError, match="3 seeds"):
        plan_seeds(pilot[pilot["seed"] < 2], gain=1.0)


def test_a_plan_asks_for_what_compare_judges_and_runs_each_control_once():
    pilot = made_up({"istar": 1.0, "cosreg": 1.0, "gor": 0.0}, 3, **{"manifest.seconds": 3600.0})
    moved = pilot["method.name"].isin(["cosreg", "gor"]) & (pilot["seed"] == 2)
    pilot = pilot[(pilot["method.name"] != "gor") | ~moved]  # two seeds
    report = plan_seeds(pilot, gain=1.0).set_index("arm")
    assert report.loc["gor", "reason"] == "too few seeds: 2 in common, 3 are needed"
    assert report["seeds"].isna().tolist() == [name == "gor" for name in report.index]
    seeds = report["seeds"].dropna().astype(int)
    assert report["hours"].sum() == pytest.approx((seeds - 3).sum() + seeds.max() - 3)
    assert plan_seeds(pilot, gain=1000.0)["seeds"].dropna().tolist() == [3, 3]


def tuned(f):
    """The same in similarity, where a penalty's control is the tuning alone, with options of its own."""
    control = f["method.name"] == "none"
    names = {"method.name": f["method.name"].mask(control, "simcse"), "method.steps": np.where(control, 100, np.nan)}
    scores = {"metric.spearman.all": 100 * f["metric.accuracy"]}
    return f.assign(experiment="similarity", task="sts12", tuning_steps=100, **names, **scores)


def lost(f):
    """One more run, with other settings, that ended with an error."""
    first = f[:1].assign(epochs=4, status="failed", run_id="lost", **{"metric.accuracy": np.nan})
    return pd.concat([f.assign(epochs=3), first], ignore_index=True)


@pytest.mark.parametrize("change", [tuned, lost])
def test_the_minutes_of_a_plan_are_those_of_arm_and_control(change):
    pilot = change(made_up({"istar": 1.0}, 3))
    seconds = {"none": 60.0, "simcse": 60.0, "istar": 180.0}
    report = plan_seeds(pilot.assign(**{"manifest.seconds": pilot["method.name"].map(seconds)}), gain=1.0)
    assert report["minutes_a_pair"].dropna().tolist() == [4.0]


def test_the_command_writes_every_form_and_fails_where_a_rule_holds(tmp_path, capsys):
    table = tmp_path / "runs.parquet"
    made_up({"istar": -5.0}, 6).to_parquet(table)
    files = {kind: tmp_path / f"out.{kind}" for kind in ("html", "json", "csv")}
    arguments = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    assert main(["compare", str(table), *arguments, "--fail-on", "losses>0"]) == 1
    assert main(["compare", str(table), "--fail-on", "losses>1"]) == 0
    assert main(["compare", str(table), "--fail-on", "glory>1"]) == 2
    assert main(["compare", str(table), "--gain", "1e-9"]) == 2
    assert main(["compare", str(tmp_path / "nothing")]) == 2
    output, page = capsys.readouterr(), files["html"].read_text()
    assert ("loss" in output.out, "glory" in output.err, "<svg" in page) == (True, True, True)
    assert "<script" not in page
    assert json.loads(files["json"].read_text())["pairs"][0]["verdict"] == "loss"
    assert pd.read_csv(files["csv"])["verdict"].tolist() == ["loss"]


@pytest.mark.slow
def test_the_report_runs_by_plain_papermill(tmp_path):
    table, notebook, out = tmp_path / "runs.parquet", tmp_path / "compare.ipynb", tmp_path / "report.ipynb"
    made_up({"istar": 5.0}, 6).to_parquet(table)
    jupytext.write(jupytext.read(EXPERIMENTS_FOLDER / "compare.md"), notebook)
    papermill.execute_notebook(notebook, out, {"runs": str(table)}, progress_bar=False)
    text = out.read_text()
    assert "istar" in text
    assert "not significant" not in text

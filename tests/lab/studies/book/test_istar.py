"""I-STAR's study: arms by their words, evidence recomputed from the recorded tables, live runs of Figure 2."""

from dataclasses import replace

import pandas as pd
import pytest
from scipy import stats

from isonb.lab.runs.record import Record
from isonb.lab.runs.recordings import recorded
from isonb.lab.runs.settings import resolve
from isonb.lab.studies.design import study_file
from isonb.lab.studies.study import Study
from isonb.lab.studies.summary import cell_rows

figure_2 = study_file("figure_2")
istar = study_file("istar")
disagreements, estimates = figure_2.disagreements, figure_2.estimates

SENTIMENT = {"task": "english_sentiment", "eval_examples": 400}


@pytest.fixture(scope="module")
def study():
    return Study.load("istar")


@pytest.fixture(scope="module")
def tables():
    """Runs and series as published, with nothing in between."""
    both = [recorded(name) for name in ("istar", "baselines")]
    runs = pd.concat([one.runs for one in both]).drop_duplicates("run_id")
    series = pd.concat([one.series for one in both]).drop_duplicates(["run_id", "name", "step"])
    return runs[runs["model"] == "minilm"], series


@pytest.fixture(scope="module")
def judged(study):
    """Every cell, those of scores too: the numbers are checked here, not whether the protocol can tell."""
    return replace(study, design=replace(study.design, untaught=False)).verdicts()


def cell_of(judged, claim, what, name):
    rows = [row for row in cell_rows(judged) if (row["claim"], row["cell"]) == (claim, name)]
    (row,) = (row for row in rows if row["what"].startswith(what))
    return row


def test_figure_2_against_its_truth(study, judged, tables):
    _, series = tables
    row = cell_of(judged, 6, "IsoScore of fewer points", "|S| = 20,000, |X| = 64")
    (run,) = study.runs.loc[study.runs["suite"] == "|S| = 20,000", "run_id"]
    part = series[(series["run_id"] == run) & (series["step"] == 64)].set_index("name")["value"]
    error = part["size.zeta0.isoscore_star.std"] / part["size.samples"] ** 0.5
    half = stats.t.ppf(0.975, part["size.samples"] - 1) * error
    assert row["mean"] == pytest.approx(part["size.zeta0.isoscore_star"] - 0.867339, abs=1e-6)
    assert row["high"] - row["mean"] == pytest.approx(half)


def test_the_printed_table_counted():
    found = istar.counted()
    assert (found["above"], found["tie"], found["below"], found["all"]) == (24, 1, 5, 30)  # as counted by eye
    assert (found["cos-above"], found["cos-over"]) == (9, 3)
    assert found["clear-above"] <= found["above"]
    assert found["clear-below"] <= found["below"]


def test_three_ways_to_one_number():
    values = [value for part in disagreements().values() for value in part]
    assert len(values) == 15
    assert 0 < max(values) < 1e-12
    assert disagreements(1) != disagreements()


def synthetic(value, sd=0.01):
    """A record of Figure 2 with two sizes, one of them above 768; with ζ the estimate is 0.1 higher."""
    series = {"size.samples": [(64, 10.0), (1000, 10.0)]}
    for key, plus in (("zeta0", 0.0), ("zeta0.2", 0.1)):
        series[f"size.{key}.isoscore_star"] = [(64, value + plus), (1000, 0.8)]
        series[f"size.{key}.isoscore_star.std"] = [(64, sd), (1000, sd)]
        series[f"size.{key}.expected"] = [(64, value), (1000, 0.8)]
    return Record(config=resolve({"experiment": "synthetic"}), metrics={}, series=series, manifest={})


def test_a_live_run_with_the_settings_of_a_recorded_one_stays_apart(study):
    both = Study.load("istar", live={"live: Figure 2": [synthetic(0.1)]})
    known, found = (
        table.set_index(["suite", "curve", "points"])["value"].to_dict() for table in map(estimates, (study, both))
    )
    assert found["live: Figure 2", "ζ = 0", 64] == 0.1
    assert found["live: Figure 2", "ζ = 0.2", 64] == 0.2
    assert {key: value for key, value in found.items() if key[0] != "live: Figure 2"} == known
    assert both.coverage().equals(study.coverage())


def tuned(weight, seed, score):
    method = {"name": "istar", "weight": weight} if weight else "none"
    config = resolve(SENTIMENT | {"method": method, "seed": seed})
    return Record(config=config, metrics={"accuracy": score, "baseline.accuracy": 0.5}, series={}, manifest={})


def test_best_weight_over_common_seeds(tmp_path):
    scores = {0: (0.7, 0.72), -1: (0.8, 0.79), 1: (0.6, 0.61)}
    records = [tuned(weight, seed, score) for weight, part in scores.items() for seed, score in enumerate(part)]
    records.append(tuned(1, 2, 0.99))  # a seed that the others don't have
    study = Study.of(istar.DESIGN, [], tmp_path, {"sentiment": records})
    best, lead = istar.best_weight(study, "sentiment")
    assert best == "λ = -1"
    assert lead == pytest.approx([0.1, 0.07])
    assert istar.best_weight(study, "nowhere") is None

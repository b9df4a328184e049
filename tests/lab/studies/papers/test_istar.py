"""I-STAR's study: evidence recomputed from the recorded tables, made-up runs with known answers, live Figure 2."""

import pytest
from made_up import scored_run, study_of
from scipy import stats

from isonb_lab.claims.summary import cell_rows
from isonb_lab.papers import figure_2, istar
from isonb_lab.papers.studies import load_study
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import recorded
from isonb_lab.runs.settings import resolve


def test_figure_2_against_its_truth(studies, verdicts):
    series = recorded("istar").series
    (row,) = (
        row
        for row in cell_rows(verdicts["istar"])
        if row["what"].startswith("IsoScore of fewer points") and row["cell"] == "|S| = 20,000, |X| = 64"
    )
    runs = studies["figure_2"].runs
    (run,) = runs.loc[runs["suite"] == "|S| = 20,000", "run_id"]
    part = series[(series["run_id"] == run) & (series["step"] == 64)].set_index("name")["value"]
    error = part["size.zeta0.isoscore_star.std"] / part["size.samples"] ** 0.5
    half = stats.t.ppf(0.975, part["size.samples"] - 1) * error
    assert row["mean"] == pytest.approx(part["size.zeta0.isoscore_star"] - 0.867339, abs=1e-6)
    assert row["high"] - row["mean"] == pytest.approx(half)


def test_the_printed_table_counted():
    outcome = istar.counted()
    assert (outcome["above"], outcome["tie"], outcome["below"], outcome["all"]) == (24, 1, 5, 30)  # as counted by eye
    assert (outcome["cos-above"], outcome["cos-over"]) == (9, 3)
    assert outcome["clear-above"] <= outcome["above"]
    assert outcome["clear-below"] <= outcome["below"]


def test_three_ways_to_one_number():
    result = figure_2.disagreements()
    values = [value for part in result.values() for value in part]
    assert len(values) == 15
    assert 0 < max(values) < 1e-12
    assert figure_2.disagreements(1) != result


def synthetic(value, sd=0.01):
    """A record of Figure 2 with two sizes, one of them above 768; with ζ the estimate is 0.1 higher."""
    series = {"size.samples": [(64, 10.0), (1000, 10.0)]}
    for key, plus in (("zeta0", 0.0), ("zeta0.2", 0.1)):
        series[f"size.{key}.isoscore_star"] = [(64, value + plus), (1000, 0.8)]
        series[f"size.{key}.isoscore_star.std"] = [(64, sd), (1000, sd)]
        series[f"size.{key}.expected"] = [(64, value), (1000, 0.8)]
    return Record(config=resolve({"experiment": "synthetic"}), metrics={}, series=series, manifest={})


def test_a_live_run_with_the_settings_of_a_recorded_one_stays_apart(studies):
    small, suite = studies["figure_2"], "live: Figure 2"
    both = load_study("figure_2", live={suite: [synthetic(0.1)]})
    reference, outcome = (
        figure_2.estimates(study).set_index(["suite", "curve", "points"])["value"].to_dict() for study in (small, both)
    )
    assert (outcome[suite, "ζ = 0", 64], outcome[suite, "ζ = 0.2", 64]) == (0.1, 0.2)
    assert {key: value for key, value in outcome.items() if key[0] != suite} == reference
    assert both.coverage().equals(small.coverage())


def result(scores, by_layer=(), task="english_sentiment", **options):
    """Records of one arm, a seed a score; IsoScore* of all layers falls as the score rises, that of layers is given."""
    method = {"name": "istar", "weight": -0.1} | options if options else "none"
    series = {"layer.end.tokens.isoscore_star": list(enumerate((0.9, *by_layer)))} if by_layer else {}
    settings = {"task": task, "eval_examples": 400, "method": method}
    return [
        scored_run(settings | {"seed": seed}, score, {"end.tokens.isoscore_star_all_layers": 1 - score}, series)
        for seed, score in enumerate(scores)
    ]


def study_with(*arms):
    return study_of(istar.DESIGN, {"sentiment": [record for arm in arms for record in arm]}, plan=())


def test_the_best_setting_over_common_seeds():
    arms = (result((0.7, 0.72), weight=0.1), result((0.8, 0.79), zeta=0), result((0.6, 0.61, 0.99), zeta=1))
    study = study_with(*arms, result((0.9, 0.9)))  # plain training isn't a setting
    best, lead = istar.best_setting(study, "sentiment")
    assert best == "λ = -0.1, ζ = 0"
    assert lead == pytest.approx([0.1, 0.07])
    assert istar.best_setting(study, "nowhere") is None
    few = study_with(result((0.7,), weight=0.1), result((0.8,), zeta=0), result((0.9,)))
    (row,) = istar.best_settings(few).itertuples()
    assert (row.setting, row.lead) == ("too few for a choice: 2 settings, 1 seed", [])
    assert istar.best_settings(few, study)["setting"].tolist() == istar.best_settings(study, few)["setting"].tolist()
    assert istar.best_settings(study_with(result((0.9,)))).empty


def test_isotropy_and_score_are_correlated_at_each_seed_over_both_signs_and_plain_training():
    """Isotropy is 1 - score, so that each seed says -1; a seed without every arm says nothing."""
    lower, plain, upper = result((0.8, 0.2, 0.9), weight=-0.1), result((0.7, 0.1)), result((0.6, 0.0), weight=0.1)
    assert istar.correlation(study_with(lower, plain), "sentiment") is None
    outcome = istar.correlation(study_with(lower, plain, upper), "sentiment")
    assert (outcome.ends, outcome.n) == (pytest.approx((-1, -1, -1)), 2)
    assert istar.correlation(study_with(lower, plain, result((0.6,), weight=0.1)), "sentiment") is None


def at_weights(scores):
    """Records as released: a score a seed by weight, 0 for plain training."""
    on = {"task": "sst2", "include_pads": True}
    return [
        result(some, **on, weight=weight) if weight else result(some, "", "sst2") for weight, some in scores.items()
    ]


def test_the_best_weight_of_each_sign_is_chosen_on_the_other_seeds():
    """At seed 2 weight -5 is best by luck: it isn't counted there, and -1 is, as the other seeds choose it."""
    scores = dict.fromkeys(istar.EVERY_WEIGHT.settings["method.weight"], (0.58, 0.58, 0.58)) | {0: (0.7, 0.7, 0.7)}
    scores |= {-1: (0.70, 0.71, 0.70), -5: (0.60, 0.60, 0.99), 0.5: (0.72, 0.74, 0.73)}
    best = istar.CLAIMS[2].predictions[-1].evidence
    outcome = best(study_with(*at_weights(scores)), [])
    assert list(outcome.values()) == pytest.approx([0.60 - 0.72, 0.60 - 0.74, 0.70 - 0.73])
    assert not best(study_with(*at_weights(scores | {5: (0.58,)})), []), "seeds count that have every weight"
    assert not best(study_with(*at_weights({0: (0.5, 0.5), -1: (0.6, 0.6)})), []), "one weight has no best"
    collapsed = dict.fromkeys((-5, -3, -1), (0.5, 0.5, 0.5))  # at the majority baseline
    assert not best(study_with(*at_weights(scores | collapsed)), []), "no negative weight learned"


def test_layers_are_compared_by_halves_and_the_last_with_the_others():
    plain, upper = result((0.7,), (0.1, 0.1, 0.2, 0.2)), result((0.7,), (0.5, 0.7, 0.3, 0.2), weight=0.1)
    study = study_with(plain, upper)
    _, early, last, *_ = istar.CLAIMS[7].predictions
    assert early.evidence(study, ["sentiment"]) == {("sentiment", 0): pytest.approx(0.5 - 0.05)}
    assert last.evidence(study, ["sentiment"]) == {("sentiment", 0): pytest.approx(0.2 - 0.5)}


def test_a_single_layer_is_compared_with_all_layers_at_the_same_weight_and_seed():
    on = {"task": "sst2", "weight": -1.0, "include_pads": True}  # as released
    arms = (result((0.8, 0.9), **on), result((0.7, 0.7), layers=1, **on), result((0.6,), layers=4, **on))
    other = result((0.1, 0.1), **on | {"weight": -3.0})
    (alone,) = istar.CLAIMS[9].predictions
    outcome = alone.evidence(study_with(*arms, other), ["SST-2"])
    assert sorted(outcome.values()) == pytest.approx([-0.2, -0.2, -0.1])

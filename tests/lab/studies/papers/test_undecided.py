"""What would decide an open claim, against the power of Student's test and against numbers worked out by hand."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isonb_lab.claims.verdicts import Claim, Prediction, judge, judge_prediction
from isonb_lab.papers import arms, isolayer, undecided
from isonb_lab.statistics.paired import seeds_needed
from isonb_lab.sweeps.cost import estimate
from isonb_lab.sweeps.grids import load_grid


def judged(*cells, **options):
    """A claim of a gain, by these numbers in the cells a, b ..."""
    prediction = Prediction("gain", lambda study, suites: {}, "greater", **options)
    names = "ab"[: len(cells)]
    units = {(name, seed): value for name, cell in zip(names, cells, strict=True) for seed, value in enumerate(cell)}
    return judge(Claim(1, "It gains", (prediction,)), [judge_prediction(prediction, units, names, {})])


STUDY = SimpleNamespace(
    home=lambda prediction: STUDY,
    suite_of=lambda cell: cell,
    runs=pd.DataFrame({"suite": ["a", "a", "b"], "manifest.seconds": [30.0, 40.0, 900.0]}),
)
OPEN = [0.03, -0.02, 0.02, -0.01, 0.005]


@pytest.mark.parametrize("room", [0.0, 0.025])
def test_so_many_seeds_decide_in_four_of_five_repetitions(room):
    (row,) = undecided.needs(STUDY, [judged(OPEN, expected_effect=room)])
    (count, unit, _), gap = row["what"].split(), max(np.mean(OPEN), room - np.mean(OPEN))
    n = int(count)
    power = [stats.nct.sf(stats.t.ppf(0.975, k - 1), k - 1, gap * k**0.5 / np.std(OPEN, ddof=1)) for k in (n - 1, n)]
    assert power[0] < 0.8 <= power[1]
    new = 2 * (n - len(OPEN))
    assert (row["runs"], row["hours"]) == (new, pytest.approx(new * 35 / 3600)), "runs that are there aren't made again"
    assert unit == "seeds:"


def test_so_many_seeds_decide_where_the_runs_have_many_already():
    """From twenty seeds on a cell has a bootstrap interval, which is one over seeds, too."""
    (row,) = undecided.needs(STUDY, [judged(OPEN * 4)])
    assert int(row["what"].removesuffix(" seeds: gain")) > 20


def test_a_decided_claim_needs_nothing_and_a_missing_encoder_is_named():
    assert undecided.needs(STUDY, [judged([0.1, 0.11, 0.12])]) == []
    relevant = judge(Claim(2, "It depends", (), needs="a larger encoder"), [])
    (row,) = undecided.needs(STUDY, [relevant])
    assert (row["what"], row["runs"], row["hours"]) == ("a larger encoder", None, None)


def test_a_mean_on_its_border_has_no_number_of_seeds():
    (row,) = undecided.needs(STUDY, [judged([0.02, -0.02, 0.03, -0.03, 0.0001])])
    assert (row["what"], row["runs"]) == ("another setting: gain", None)


def test_the_weakest_of_the_means_with_a_cell_left_out_decides():
    """The mean over both cells is clear, and without the first it isn't: the second cell alone says how many."""
    claim = judged([0.10, 0.12, 0.11, 0.13, 0.09], OPEN)
    assert (claim.outcome, claim.predictions[0].mean.low > 0) == ("inconclusive", True)
    (row,) = undecided.needs(STUDY, [claim])
    n = seeds_needed(float(np.std(OPEN, ddof=1)), float(np.mean(OPEN)))
    new = n - len(OPEN)
    assert (row["what"], row["runs"]) == (f"{n} seeds: gain", 2 * new * 2)
    assert row["hours"] == pytest.approx(2 * new * (35 + 900) / 3600)


def test_a_claim_whose_premise_is_not_shown_waits_for_that_first():
    """Whatever its own parts say, it isn't testable until then."""
    premise, part = (judged(values).predictions for values in (OPEN, [0.1, -0.1, 0.1, 0.02, 0.03]))
    claim = judge(Claim(1, "It gains", (part[0].prediction,), premise=(premise[0].prediction,)), part, premise)
    (row,), (first,) = (undecided.needs(STUDY, [one]) for one in (claim, judged(OPEN)))
    assert claim.outcome == "not testable"
    assert row == first | {"what": f"first what it takes for granted: {first['what']}"}


def test_a_run_that_several_weights_or_parts_share_counts_once(studies, verdicts):
    """C1 down: each weight and plain training once a seed and task, less the seeds that are recorded."""
    rows = undecided.needs(studies["head_to_head"], verdicts["head_to_head"])
    (row,) = (row for row in rows if row["claim"] == "C1 down")
    told = re.findall(r"(\d+) seeds: at the paper's setting: ([^;]*)λ of (-?)", row["what"])
    assert [what for _, what, _ in told] == ["IsoScore* of the tokens of all layers, ", "score, ", "score, "]
    counts = {sign: max(int(n) for n, _, other in told if other == sign) for sign in ("-", "")}
    lacking = 0
    for recorded, raised in ((10, len(arms.ISTAR_RAISE)), (3, 3)):  # STS-B has no weight of 0.5
        weights = {"-": len(arms.ISTAR_LOWER), "": raised}
        lacking += sum((n - recorded) * weights[sign] for sign, n in counts.items()) + max(counts.values()) - recorded
    assert row["runs"] == lacking > 0


def test_the_printed_effect_takes_so_many_seeds_by_the_first_five(studies, verdicts):
    rows = undecided.for_printed_effects(studies["istar"], verdicts["istar"])
    place, weights = "SST-2 with test rows (tiny)", {f"{weight:g}" for weight in (*arms.ISTAR_LOWER, *arms.ISTAR_RAISE)}
    of = {row["cell"]: row for row in rows if row["claim"] == 8}
    plain, treated = (studies["istar_own"].units("score", arm, [place]) for arm in ("none", "λ = -1"))
    first = [value - plain[unit] for unit, value in sorted(treated.items())][:5]
    spread = float(np.std(first, ddof=1))
    row = of[f"{place}, weight -1"]
    assert (row["seeds"], row["needed"]) == (10, seeds_needed(spread, arms.ISTAR_GAIN))
    assert row["spread"] == pytest.approx(spread)
    tasks = {place: weights, "STS-B": weights - {"0.5"}}
    assert set(of) == {f"{task}, weight {weight}" for task, some in tasks.items() for weight in some}


def test_what_a_larger_encoder_costs_is_what_the_grid_costs():
    large = [run for run in load_grid("isolayer", "paper") if "large" in run.config["model"]]
    text = isolayer.NEEDS
    assert f"{len(large)} runs" in text
    assert f"about {estimate(large).gpu_hours:.0f} hours of one A100" in text


def test_what_would_judge_a_claim_at_its_papers_setting_is_what_the_grids_hold(studies, verdicts):
    """Claim 25: the runs with both methods on its paper's tasks, held out as there, that aren't recorded."""
    (row,) = (row for row in undecided.needs(studies["isolayer"], verdicts["isolayer"]) if row["claim"] == 25)
    second = set(studies["isolayer"].others[arms.TRAINED].runs["run_id"])
    runs = {run.run_id: run for grid in arms.OWN_CELLS for run in load_grid(grid, "full") if run.run_id not in second}
    both = ("isolayer", "isobn")
    expected = [
        run for run in runs.values() if run.config.get("holdout") == 0.3 and run.config["method"]["name"] in both
    ]
    assert row["runs"] == len(expected) > 6
    assert row["hours"] == pytest.approx(estimate(expected).cpu_hours)

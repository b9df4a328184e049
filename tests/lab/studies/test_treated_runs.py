"""Runs found by their settings, and what runs at another setting than a claim's say of it."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pandas as pd
import pytest

from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import (
    Treated,
    Treatment,
    by_regime,
    runs_of_cells,
    setting_in_words,
    settings_by_run,
    treated_runs,
)
from isonb_lab.claims.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    NOT_OBSERVED,
    NOT_TESTABLE,
    OBSERVED,
    SUPPORTED,
    UNTESTED,
    Claim,
    Prediction,
    judge,
    judge_prediction,
)
from isonb_lab.papers import own_runs
from isonb_lab.papers.arms import TABLES, istar_at
from isonb_lab.papers.coverage import GRIDS
from isonb_lab.papers.istar import SINGLE_LAYERS
from isonb_lab.papers.paper_items import ITEMS
from isonb_lab.papers.studies import DESIGNS
from isonb_lab.runs.record import Record
from isonb_lab.runs.table import flat, series_table, table
from isonb_lab.sweeps.grids import load_grid

ISTAR = Treatment("istar", ("sst2", "rte"), {"method.weight": (-5, -1), "method.layers": ("all",)})
PLAIN = Treatment("none", ("sst2", "rte"))
UP, OPEN = [0.10, 0.12, 0.11, 0.13, 0.09], [0.2, -0.15, 0.1, -0.2, 0.05]
DOWN = [-value for value in UP]


def run(seed, score, method="none", task="sst2", **settings):
    named = {"run_id": f"{task}-{method}-{seed}-{settings}", "task": task, "model": "tiny", "seed": seed}
    named |= {"head": "pooler", "method.name": method, "score": score}
    return named | {key.replace("__", "."): value for key, value in settings.items()}


def study(*runs):
    frame = pd.DataFrame(runs)
    result = SimpleNamespace(runs=frame, settings=settings_by_run(frame))
    result.numbers = partial(Study.numbers, result)
    return result


def pairs(*runs, treatment=ISTAR, base=PLAIN, value="score", **options):
    """What these runs say, by the cell and the seed."""
    return Treated(value, treatment, base, **options)(study(*runs), ())


def istar(seed, score, weight=-1.0, layers="all", **settings):
    return run(seed, score, "istar", method__weight=weight, method__layers=layers, **settings)


def test_a_run_is_paired_with_the_plain_run_of_its_seed_and_training():
    """Whatever recording they are in and however much of them was watched; another head is another training."""
    runs = [run(1, 0.5, track_every=10), run(2, 0.5), run(1, 0.1, head="linear")]
    result = pairs(*runs, istar(1, 0.75, track_every=0), istar(2, 0.25))
    assert result == {("SST-2 (tiny)", 1): 0.25, ("SST-2 (tiny)", 2): -0.25}


def test_only_runs_with_the_settings_of_the_claim_count():
    assert pairs(run(1, 0.5), istar(1, 0.9, weight=-0.1), istar(1, 0.9, layers=4), istar(1, 0.9, task="cola")) == {}


def test_weights_of_the_paper_and_what_it_leaves_open_are_cells_of_their_own():
    result = pairs(run(1, 0.5), istar(1, 0.75), istar(1, 0.25, weight=-5.0))
    assert result == {("SST-2 (tiny), weight -1", 1): 0.25, ("SST-2 (tiny), weight -5", 1): -0.25}
    two = [istar(1, 0.75, method__include_pads=pads) for pads in (True, False)]
    names = {name for name, _ in pairs(run(1, 0.5), *two)}
    assert names == {"SST-2 (tiny), padding counted", "SST-2 (tiny), padding left out"}


def test_what_the_paper_leaves_open_of_a_method_is_never_mixed():
    """Two directions at one weight and seed: neither run takes the other's place."""
    two = [istar(1, 0.5 + gain, method__direction=name) for name, gain in (("own", 0.25), ("random", -0.25))]
    result = pairs(run(1, 0.5), *two)
    assert result == {("SST-2 (tiny), direction own", 1): 0.25, ("SST-2 (tiny), direction random", 1): -0.25}


def test_a_last_layer_has_the_number_that_its_encoder_gives_it():
    last = replace(ISTAR, settings={"method.layers": (-1,)}, by_model={"tiny": {"method.layers": (4,)}})
    here = istar(1, 0.75, layers=4)
    assert [last.has(here), last.has(here | {"model": "minilm"}), last.has(here | {"method.layers": -1.0})] == [1, 0, 1]
    assert last.varied == ("method.layers",)


@pytest.mark.parametrize("paper", ["istar", "shrink_the_longest", "softdecay", "isolayer"])
def test_the_grid_of_a_papers_size_has_the_treatments_of_its_claims(paper):
    """By the settings that its runs will have: what is run at the paper's size is judged at the paper's setting."""
    runs = [flat(run.config) for run in load_grid(paper, "paper")]
    treatments = {item for claim in DESIGNS[paper].claims for item in claim.treatments}
    assert treatments
    assert [item for item in treatments if not any(map(item.has, runs))] == []


@pytest.mark.parametrize("paper", ["istar", "shrink_the_longest", "softdecay", "isolayer"])
def test_each_run_of_a_papers_size_has_an_arm_in_a_study_of_its_pages(paper, monkeypatch):
    """With a folder of all of them as ``runs``: a study names its arm, and it takes no other run's place there."""
    records = [Record(run.config, {"accuracy": 0.5}) for run in load_grid(paper, "paper")]
    tables = table(records), series_table(records)
    monkeypatch.setattr(own_runs, "tables_of", lambda folder: tables)
    pages = {item.page for item in ITEMS if GRIDS[item.paper] == paper}
    read = set()
    for design in (one for one in DESIGNS.values() if one.page in pages or one.name == TABLES):
        study = own_runs.study_of_runs(design, "all of them")
        read |= {run for run, settings in study.settings.items() if design.arm(settings)}
    assert [record.config for record in records if record.run_id not in read] == []


def test_single_layers_are_judged_at_the_weight_that_the_paper_chose_for_an_encoder():
    """Its Figure 8 has DistilBERT at -3: each run of the paper's grid on a layer alone is one of claim 15."""
    runs = [flat(run.config) for run in load_grid("istar", "paper")]
    alone = [run for run in runs if run.get("method.name") == "istar" and run["method.layers"] != "all"]
    distil = [run for run in alone if "distilbert" in run["model"]]
    assert {run["method.weight"] for run in distil} == {-3}
    assert len(distil) == 30
    assert all(map(SINGLE_LAYERS.has, alone))
    assert not SINGLE_LAYERS.has(distil[0] | {"method.weight": -1})


def test_the_zeta_of_a_papers_encoder_is_that_of_its_task():
    released = istar(1, 0.5, task="rte") | {"method.include_pads": True, "method.unbiased": False}
    bert, own = released | {"model": "google-bert/bert-base-cased"}, istar_at((-1,))
    assert [own.has(bert | {"method.zeta": zeta}) for zeta in (0.2, 0.8)] == [False, True]
    assert own.has(released | {"method.zeta": 0.2})


def test_a_variant_is_compared_with_the_same_method_where_all_else_is_equal():
    first, every = (
        Treatment("istar", ("sst2",), {"method.weight": (-5, -1), "method.layers": layers})
        for layers in ((1,), ("all",))
    )
    runs = [istar(1, 0.5), istar(1, 0.9, weight=-5.0), istar(1, 0.75, layers=1)]
    assert pairs(*runs, treatment=first, base=every) == {("SST-2 (tiny)", 1): 0.25}


@pytest.mark.parametrize(("may_differ", "result"), [((), {}), (("head",), {("RTE (tiny)", 1): 0.25})])
def test_a_setting_may_differ_between_two_methods(may_differ, result):
    layer = Treatment("isolayer", ("rte",), {"head": ("linear",)})
    bn = Treatment("isobn", ("rte",), {"head": ("pooler",)})
    runs = [run(1, 0.75, "isolayer", "rte", head="linear"), run(1, 0.5, "isobn", "rte")]
    assert pairs(*runs, treatment=layer, base=bn, may_differ=may_differ) == result


def test_numbers_by_run_and_by_detail():
    values = {", raw": lambda _, ids: dict.fromkeys(ids, 2.0), ", centred": "score"}
    result = pairs(run(3, 0.5), treatment=PLAIN, base=None, value=values)
    assert result == {("SST-2 (tiny), raw", 3): 2.0, ("SST-2 (tiny), centred", 3): 0.5}


def test_runs_of_one_training_stand_together():
    settings = study(run(1, 0.5), istar(1, 0.5), run(2, 0.5, head="linear")).settings
    groups = by_regime(treated_runs(settings, ISTAR) + treated_runs(settings, PLAIN))
    assert {name: len(runs) for name, runs in groups.items()} == {
        "SST-2 (tiny), pooler head": 2,
        "SST-2 (tiny), linear head": 1,
    }


def test_the_runs_of_a_cell_have_all_words_of_its_name():
    """Of evidence that is a plain function, which names its cells as it likes."""
    settings = study(istar(1, 0.5), istar(1, 0.5, weight=-5.0), istar(2, 0.5, head="linear"), run(1, 0.5)).settings
    cells = {"SST-2 (tiny)": 3, "SST-2 (tiny), weight -1": 2, "SST-2 (tiny), linear head": 1}
    found = runs_of_cells(lambda study, suites: {}, ISTAR, settings, [*cells, "RTE (tiny)"])
    assert {cell: len(pairs) for cell, pairs in found.items()} == cells


def test_the_words_name_encoder_task_and_what_differs():
    rows = [istar(1, 0.5, weight=weight) for weight in (0.1, -0.1)]
    assert setting_in_words(rows, [ISTAR, PLAIN]) == "tiny; SST-2; weight -0.1, 0.1"
    assert setting_in_words([istar(1, 0.5)], [ISTAR]) == "tiny; SST-2; weight -1"
    assert setting_in_words([], [ISTAR]) == ""


# --- what is judged by which runs -------------------------------------------------------------------------------------


def part(values, treatment=None, **options):
    first = Prediction("gain", lambda study, suites: {}, "greater", treatment=treatment, **options)
    return judge_prediction(first, values, list(values), {})


def claim(*parts, premise=()):
    predictions, gains = ([part.prediction for part in some] for some in (parts, premise))
    return judge(Claim(1, "It gains", tuple(predictions), premise=tuple(gains)), parts, premise)


NONE = part({}, ISTAR)


@pytest.mark.parametrize(
    ("values", "outcome"), [(UP, OBSERVED), (DOWN, NOT_OBSERVED), (OPEN, UNTESTED), (None, UNTESTED)]
)
def test_runs_at_another_setting_contradict_nothing(values, outcome):
    evidence = part({"a": values} if values else {})
    result = claim(evidence, NONE)
    assert (result.outcome, result.decided) == (outcome, False)
    assert result.outcome_of(evidence) in (OBSERVED, NOT_OBSERVED, INCONCLUSIVE, NOT_TESTABLE)


def test_runs_with_the_treatment_decide_whatever_others_say():
    against, local = part({"a": DOWN}), part({"b": UP}, ISTAR)
    result = claim(against, local)
    assert (result.outcome, result.decided, result.deciding) == (SUPPORTED, True, (local,))
    assert (result.outcome_of(against), result.outcome_of(local)) == (NOT_OBSERVED, SUPPORTED)
    assert claim(part({"a": UP}), part({"b": DOWN}, ISTAR)).outcome == CONTRADICTED
    assert claim(part({"a": DOWN}), part({"b": OPEN}, ISTAR)).outcome == INCONCLUSIVE


def test_one_part_at_its_setting_is_not_the_claim():
    """What is missing was not tested there; what contradicts a part contradicts the claim."""
    assert claim(part({"a": DOWN}), part({"b": UP}, ISTAR), NONE).outcome == NOT_OBSERVED
    assert claim(part({"a": UP}), part({"b": DOWN}, ISTAR), NONE).outcome == CONTRADICTED


def test_a_part_that_needs_what_is_not_here_leaves_the_others_to_decide():
    larger = part({}, ISTAR, needs="a larger encoder")
    assert claim(part({"a": UP}), part({"b": OPEN}, ISTAR), larger).outcome == INCONCLUSIVE
    assert claim(part({"b": UP}, ISTAR), larger).outcome == INCONCLUSIVE
    assert claim(part({"b": DOWN}, ISTAR), larger).outcome == CONTRADICTED
    assert claim(part({"a": UP}), larger).outcome == OBSERVED
    assert claim(part({"a": UP}), part({"b": OPEN}, ISTAR), NONE, larger).outcome == OBSERVED


def test_a_claim_without_its_premise_is_not_testable():
    local, gain = part({"b": DOWN}, ISTAR), part({"a": UP}, ISTAR)
    assert claim(local, premise=[gain]).outcome == CONTRADICTED
    for nothing in (part({"a": OPEN}, ISTAR), part({"a": DOWN}, ISTAR)):
        assert claim(local, premise=[nothing]).outcome == NOT_TESTABLE
    assert claim(NONE, premise=[NONE]).outcome == UNTESTED

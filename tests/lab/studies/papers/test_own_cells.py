"""The grid of the papers' own cells with minilm, once its runs are published: which claims they judge, and how.

The runs are made up, from the grid itself, with gains whose verdicts are known.
"""

from dataclasses import replace

import pytest

from isonb_lab.claims.verdicts import CONTRADICTED, NOT_TESTABLE, SUPPORTED, Reason
from isonb_lab.papers import isolayer, istar, trained_runs
from isonb_lab.papers.studies import DESIGNS, load_study
from isonb_lab.runs.publishing import publish
from isonb_lab.runs.record import Record, write_record
from isonb_lab.sweeps.grids import load_grid

SEEDS = (1, 2, 3)
GAINS = {"entropy": 0.03, "softdecay": -0.04, "isolayer": 0.05, "isobn": 0.05, "none": 0.0}
CLAIMS = {4: "shrink_the_longest", 5: "shrink_the_longest", 9: "istar", 21: "softdecay", 23: "isolayer", 24: "isolayer"}


def made_up(config):
    """The record of a run: entropy with selected bars gains and raises A3, SoftDecay loses, IsoLayer gains..."""
    method, seed = config["method"], config["seed"]
    jitter = 0.0002 * (seed * (3 + len(method["name"])) % 13)
    weight = method["weight"] if method["name"] == "istar" else 0  # ... and I-STAR's isotropy rises as its score falls
    gain = GAINS.get(method["name"], -0.01 * weight) * (method.get("select") is not False)
    score, a3 = 0.8 + gain + jitter, 0.1 + gain + jitter
    metrics = dict.fromkeys(("accuracy", "f1", "matthews", "pearson", "spearman"), score)
    metrics |= {f"baseline.{name}": 0.5 if name in ("accuracy", "f1") else 0.0 for name in metrics}
    noise = 0.011 * ((7 * seed + 3 * round(weight)) % 5)
    metrics["end.tokens.isoscore_star_all_layers"] = 0.3 + 0.02 * weight + noise
    for place, share in (("cls", 0.5), ("second", 0.3 + jitter)):
        ev1 = {f"end.{place}.explained_variance_1{form}": share for form in ("", "_centered")}
        metrics |= ev1 | {f"end.{place}.isoscore": 0.9 - share}
    shares = {f"step.train.cls.anisotropy_3{form}": [(k, a3) for k in range(10)] for form in ("", "_centered")}
    return Record(config=config, metrics=metrics, series=shares | {"step.loss": [(0, 1.0)]}, manifest={})


def published(folder, changed=lambda config: {}, chosen=lambda config: True):
    """The folder with a recording of the chosen runs of the grid; ``changed``: metrics by a run's configuration."""
    for run in load_grid("own_cells_minilm", "full"):
        if run.config["seed"] in SEEDS and chosen(run.config):
            record = made_up(run.config)
            record.metrics.update(changed(run.config))
            write_record(folder / "records", record)
    publish(folder / "records", folder, "own_cells_minilm", series=trained_runs.SERIES)
    return folder


def judged(folder, name, number):
    """The judgement of a claim by the recording of a folder."""
    claims = tuple(claim for claim in DESIGNS[name].claims if claim.number == number)
    (verdict,) = load_study(replace(DESIGNS[name], claims=claims), folder=folder).verdicts()
    return verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return published(tmp_path_factory.mktemp("own_cells"))


@pytest.fixture(scope="module")
def verdicts(folder):
    return {number: judged(folder, name, number) for number, name in CLAIMS.items()}


@pytest.mark.parametrize(
    ("number", "outcome", "cells"),
    [
        (4, SUPPORTED, {"CoLA", "MRPC"}),
        (5, SUPPORTED, {"CoLA, raw", "CoLA, centred", "MRPC, raw", "MRPC, centred"}),
        (9, SUPPORTED, {"STS-B"}),
        (21, CONTRADICTED, {"CoLA", "MRPC", "RTE", "QNLI", "SST-2 with test rows"}),
        (23, SUPPORTED, {"RTE", "CoLA", "MRPC"}),
    ],
)
def test_the_runs_of_the_grid_judge_a_claim(verdicts, number, outcome, cells):
    verdict = verdicts[number]
    assert (verdict.outcome, verdict.decided) == (outcome, True)
    for part in verdict.deciding:
        assert {cell.name for cell in part.cells if cell.interval} == cells
        assert not [cell.name for cell in part.cells if cell.outcome == NOT_TESTABLE]
    if number == 9:
        assert verdict.deciding[0].cells[0].n == len(SEEDS), "a correlation over six weights and none, by seed"


def test_the_larger_encoder_of_claim_24_has_no_run_and_the_rest_is_judged(verdicts):
    *local, larger = (part for part in verdicts[24].predictions if part.prediction.treatment)
    assert [part.outcome for part in local] == [SUPPORTED, SUPPORTED]
    assert (larger.outcome, verdicts[24].decided) == (NOT_TESTABLE, False)


@pytest.mark.parametrize(("sign", "outcome"), [(1, SUPPORTED), (-1, CONTRADICTED)])
def test_where_the_larger_encoder_ran_it_is_judged(tmp_path, sign, outcome):
    """In it EV1 falls by 0.1 less than in the smaller one, and EV3 lies 0.1 above IsoBN's; or the other way round."""
    for run in load_grid("isolayer", "paper"):
        record, large = made_up(run.config), "large" in run.config["model"]
        moved, jitter = sign * 0.1 * large, 0.001 * run.config["seed"] * (1 + large)
        of_isobn = 0.6 if run.config["model"] == isolayer.SMALLER else 0.5 - sign * 0.1
        for form in ("", "_centered"):
            record.metrics[f"end.second.explained_variance_1{form}"] = 0.3 + moved + jitter
            record.metrics[f"end.second.explained_variance_3{form}"] = 0.5 + jitter
            record.metrics[f"end.features.explained_variance_3{form}"] = of_isobn
        if run.config["holdout"] and run.config["task"] != "rte":
            write_record(tmp_path / "records", record)
    found = {verdict.claim.number: verdict for verdict in load_study("isolayer", runs=tmp_path).verdicts()}
    assert (found[24].outcome, found[25].outcome) == (outcome, outcome)
    assert [part.outcome for part in found[25].deciding] == [SUPPORTED] * 3 + [outcome]


def test_a_task_that_plain_training_of_the_same_recipe_has_not_learned_decides_nothing(tmp_path):
    """Of CoLA's runs those of IsoLayer's design end at chance; SoftDecay's plain runs have learned."""

    def chance(config):
        if (config["task"], config["holdout"], config["head"]) != ("cola", 0.3, "linear"):
            return {}
        return {"matthews": 0.001 * config["seed"] * (1 + len(config["method"]["name"]) % 3)}

    verdict = judged(published(tmp_path, chance), "isolayer", 23)
    cells = {cell.name: cell for part in verdict.deciding for cell in part.cells}
    assert (cells["CoLA"].outcome, cells["CoLA"].reason) == (NOT_TESTABLE, Reason.UNTAUGHT)
    assert {cells[name].outcome for name in ("MRPC", "RTE")} == {SUPPORTED}


def judged_on_cola(folder, name, number, changed):
    """The judgement of a claim by I-STAR's runs on CoLA alone."""
    return judged(
        published(folder, changed, lambda run: (run["task"], run["schedule"]) == ("cola", "constant")), name, number
    )


def lowered(config):
    """The scores of runs with I-STAR at -1: 0.02 above plain training on all layers, 0.03 below on the last one."""
    gain = {"all": 0.02, "6": -0.03}.get(str(config["method"].get("layers")), 0.0)
    return {"matthews": 0.5 + gain + 0.001 * config["seed"] ** (1 + (gain > 0))}


def test_a_setting_that_a_tuning_tried_in_vain_counts_where_it_is_the_papers(tmp_path):
    """In the head to head no weight that was tried works on CoLA, without padding; as released it may."""
    verdict = judged_on_cola(tmp_path, "istar", 8, lowered)
    (gain,) = (part for part in verdict.predictions if part.prediction is istar.GAIN)
    assert [(cell.name, cell.outcome, cell.n) for cell in gain.cells] == [("CoLA", SUPPORTED, 3)]


def test_a_method_that_ends_at_chance_at_its_papers_setting_decides_nothing(tmp_path):
    """By its plan: an arm that hasn't learned the task says neither that it gains nor that it loses."""

    def chance(config):
        return {"matthews": 0.001 * config["seed"] if config["method"]["name"] == "istar" else 0.5}

    verdict = judged_on_cola(tmp_path, "istar", 8, chance)
    (gain,) = (part for part in verdict.predictions if part.prediction is istar.GAIN)
    assert [(cell.name, cell.outcome, cell.reason) for cell in gain.cells] == [("CoLA", NOT_TESTABLE, Reason.COLLAPSED)]


@pytest.mark.parametrize(("lost", "outcome"), [((-5, -3), SUPPORTED), ((-5, -3, -1, 5), None)])
def test_weights_that_end_at_chance_have_no_part_in_a_correlation(tmp_path, lost, outcome):
    """Their score is the lowest, at the lowest isotropy; of fewer than four points there is no correlation."""

    def chance(config):
        method = config["method"]
        return {"pearson": 0.0, "spearman": 0.0} if method["name"] == "istar" and method["weight"] in lost else {}

    folder = published(tmp_path, chance, lambda run: (run["task"], run["schedule"]) == ("stsb", "constant"))
    (part,) = (part for part in judged(folder, "istar", 9).predictions if part.prediction.treatment)
    assert [cell.outcome for cell in part.cells] == [outcome] * (outcome is not None)
    best = judged(folder, "istar", 8).predictions[-1]
    assert [cell.name for cell in best.cells] == ["STS-B"] * (-1 not in lost), "each sign has a weight that learned"


@pytest.mark.parametrize(("base", "of_others"), [(0.0, Reason.NOTHING_TO_LOSE), (0.5, Reason.CLAIMED)])
def test_what_has_learned_is_asked_of_each_cell_and_of_what_it_is_compared_with(tmp_path, base, of_others):
    """Layer 3 alone ends at chance, the other layers don't; then all layers together do."""

    def changed(config):
        layer = str(config["method"].get("layers"))
        score = {"all": base, "3": 0.0}.get(layer, 0.45 if config["method"]["name"] == "istar" else 0.5)
        return {"matthews": score + 0.001 * config["seed"] ** (1 + (layer == "all"))}

    verdict = judged_on_cola(tmp_path, "istar", 15, changed)
    cells = {cell.name: cell.reason for part in verdict.predictions[-1:] for cell in part.cells}
    assert cells.pop("CoLA, layers 3") is Reason.COLLAPSED
    assert list(cells.values()) == [of_others] * 5


def test_the_last_layer_is_that_of_the_encoder(tmp_path):
    """Minilm's sixth, where the fourth is the last of tiny."""
    verdict = judged_on_cola(tmp_path, "head_to_head", "C6", lowered)
    score, _ = (part for part in verdict.predictions if part.prediction.treatment)
    (cell,) = score.cells
    assert (cell.name, cell.outcome) == ("CoLA", CONTRADICTED)
    assert cell.interval.estimate == pytest.approx(-0.05, abs=0.01)
    assert verdict.setting.startswith("minilm; CoLA; layers 6;")


def test_the_figures_of_istar_take_the_runs_of_its_own_recipe_alone(folder):
    """Of the grid's plain runs on CoLA those at I-STAR's constant rate; CosReg at -1 is an arm of its own."""
    study = load_study("istar_own", folder=folder)
    minilm = study.recorded[study.recorded["model"] == "minilm"]
    assert set(minilm["schedule"]) == {"constant"}
    assert not minilm.duplicated(["suite", "arm", "seed"]).any()
    of_qnli = minilm[minilm["suite"] == "QNLI"]
    assert set(of_qnli["arm"]) == {"none", "λ = -1", "λ = +1", "CosReg", "CosReg -1"}
    assert {f"λ = -1, layer {layer}" for layer in range(1, 7)} < set(minilm.loc[minilm["suite"] == "CoLA", "arm"])
    assert istar.correlation(study, "STS-B").estimate < -0.9, "its six weights are all that is planned there"
    assert istar.correlation(study, "CoLA") is None, "one weight has no correlation"

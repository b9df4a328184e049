"""The papers' grids: every run resolves, counts are what the papers say."""

import functools
from collections import Counter

import pytest
import yaml

from isonb_lab.claims.printed import hyperparameters
from isonb_lab.data.tasks import KINDS, TASKS
from isonb_lab.methods import methods
from isonb_lab.places import EXPERIMENTS_FOLDER
from isonb_lab.sweeps import cost
from isonb_lab.sweeps.grids import SIZES, about_grid, load_grid

FOLDER = EXPERIMENTS_FOLDER
PAPERS = ("shrink_the_longest", "istar", "softdecay", "isolayer")
COUNTS = {
    ("calibration", "small"): 5 * 3,
    ("head_to_head_tuning", "small"): 9 * 3 * 6,
    ("head_to_head", "small"): (9 + 1) * 5 * 3 + 9 * 5 * 2 + (9 * 10 + 5),
    ("head_to_head_other_choice", "small"): (1 + 2) * 5 + (1 + 4) * 5 + (1 + 3) * 5,
    ("evidence_dose", "smoke"): 3,
    ("evidence_dose", "small"): 3 * (1 + 8 + 8) + (1 + 3) + (2 + 7),
    ("evidence_dose", "full"): 2 * (1 + 6 + 6) * 10,
    ("evidence_claims", "smoke"): 4,
    ("evidence_claims", "full"): 2 * ((3 + 2 + 2 + 2 + 2) * 10 + 3),
    ("evidence_methods", "smoke"): 6,
    ("own_cells", "smoke"): 3,
    # as released, then without padding: weights, zetas, layers and CosReg of I-STAR on two tasks
    ("own_cells", "full"): 2 * (10 * (8 + 4 + 4) + 3 * 2 + 10 * 8),
    ("own_cells_minilm", "smoke"): 4 + 2,
    # IsoLayer and IsoBN; SoftDecay; I-STAR; Shrink; Table 1 of I-STAR; head to head
    ("own_cells_minilm", "full"): 2 * 3 * 2 * 5 + 5 * 2 * 5 + 2 * 7 * 5 + 2 * 3 * 5 + 3 * (3 * 5 + 3 * 3) + 2 * 9 * 6,
    ("read_where", "smoke"): 2 * 2,
    ("read_where", "small"): 2 * (1 + 9),
    # failures; weight on two tasks; length; the levels of the linear head
    ("read_where", "full"): 8 * 60 + 2 * 3 * 30 + 3 * 30 + 6 * 30,
    ("real_models", "smoke"): 2 * 2,
    ("real_models", "small"): 4 * 2 + 3 * 2,
    ("evidence_methods", "full"): 5 * 6 + 6 * 6,
    ("evidence_istar", "smoke"): 3,
    ("evidence_istar", "full"): 2 * (1 + 2 * 13) * 5,
    ("evidence_head_to_head", "smoke"): 3,
    ("evidence_head_to_head", "small"): 5 * (3 + 8 * 3),
    ("evidence_head_to_head", "full"): 2 * 2 * 30,
    ("layer_doses", "smoke"): 1,
    ("layer_doses", "small"): 3 * 2 * 5,
    ("istar_doses", "smoke"): 3,
    ("istar_doses", "small"): 2 * (6 + 1 + 1) * 3,
    ("neighbours", "smoke"): 6,
    ("neighbours", "small"): 2 * (1 + 5 * 2) * 3,
    ("baselines", "smoke"): (21 + 4) * 4,
    ("baselines", "small"): 4 * 5 + 4 + 6 * 3 + 4 + 7 * 4 + 7,
    ("baselines", "full"): 4 * 5 + 4,
    ("baselines", "paper"): 4 * 4 * 5,
    ("shrink_the_longest", "smoke"): 3,
    ("shrink_the_longest", "paper"): 2 * 2 * 3 * 5,
    ("istar", "smoke"): 3 * 4 + 1,
    ("istar", "small"): 3,
    # Table 1; Figure 3 (15 cells, 6 more weights each); Figures 4, 5, 6 (one seed); 7 (5 zetas); 8 (30 layers); 2
    ("istar", "paper"): 27 * 3 * 5 + 15 * 6 * 5 + 3 + 10 + 3 + 3 * 5 * 5 + 30 * 5 + 3,
    ("istar_search", "smoke"): 2 * 5,
    ("istar_search", "paper"): 27 * 27 * (2 + 24),
    ("softdecay", "smoke"): 3 + 2,
    ("softdecay", "small"): 2 * 7 * (11 + 2 + 1),
    ("softdecay", "full"): 7 * (11 + 2 + 1),
    # plain, SoftDecay's alphas and WhiteBERT for five encoders, four more rows for one; GLUE, and QQP for BERT
    ("softdecay", "paper"): 5 * 7 * (3 + 5 + 1) + 7 * 4 + 3 * 5 * 2 + 2,
    ("isolayer", "smoke"): 3,
    ("isolayer", "paper"): 2 * 3 * 5 * (2 + 2 + 2),
}


@functools.cache
def runs(name, size):
    return tuple(load_grid(FOLDER / f"{name}.yaml", size))


def configs(name, size, **expected):
    results = [run.config for run in runs(name, size)]
    return [config for config in results if all(config.get(key) == value for key, value in expected.items())]


def test_every_grid_is_counted():
    grids = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yaml")}
    assert {(name, size) for name, grid in grids.items() for size in SIZES if size in grid} == set(COUNTS)
    assert all(len(about_grid(FOLDER / f"{name}.yaml")) > 50 for name in grids)


@pytest.mark.parametrize(
    ("name", "size"),
    [pytest.param(*key, marks=pytest.mark.slow if count > 10_000 else ()) for key, count in COUNTS.items()],
    ids=["-".join(key) for key in COUNTS],
)
def test_every_run_resolves_and_the_counts_are_right(name, size):
    result = runs(name, size)
    assert len(result) == len({run.run_id for run in result}) == COUNTS[name, size]
    if len(result) < 10_000:
        estimate = cost.estimate(result)
        assert (estimate.runs, estimate.assumed) == (len(result), ())
        assert 0 < estimate.gpu_hours < 200


def test_the_smallest_size_has_every_method_on_every_kind_of_task_and_needs_nothing():
    result = {(config["method"]["name"], TASKS[config["task"]].kind) for config in configs("baselines", "smoke")}
    assert result == {(name, kind) for name in methods() for kind in KINDS}
    for name in (*PAPERS, "baselines", "istar_search"):
        for config in configs(name, "smoke"):
            if config["experiment"] != "synthetic":
                assert config["model"] == "tiny"
                assert config["task"].startswith("english_")
            assert config.get("train_examples", 64) == 64


def test_istar_takes_weight_and_zeta_of_each_cell_from_the_paper():
    hub = {"albert-base-v2": "ALBERT", "bert-base-cased": "BERT", "distilbert-base-cased": "DistilBERT"}
    table = hyperparameters("istar", scope="Table 2")
    cells = {
        (row.model, row.task.lower().replace("-", ""), row.parameter): float(row.value) for row in table.itertuples()
    }
    seeds = Counter()
    for config in configs("istar", "paper"):
        method = config.get("method", {})
        if method.get("name") == "istar" and method["layers"] == "all":
            where = hub[config["model"].split("/")[1]], config["task"]
            if (method["weight"], method["zeta"]) == (cells[*where, "lambda"], cells[*where, "zeta"]):
                seeds[where] += 1
    assert len(seeds) == 27
    assert set(seeds.values()) == {5}


def test_shrink_the_longest_is_trained_as_printed():
    for row in hyperparameters("shrink_the_longest", scope="Table 1").itertuples():
        model = {"bert-base-uncased": "google-bert/", "roberta-base": "FacebookAI/"}[row.model] + row.model
        result = configs("shrink_the_longest", "paper", model=model, task=row.task.lower())
        assert len(result) == 15
        assert {config[row.parameter] for config in result} == {float(row.value)}
    for config in configs("shrink_the_longest", "paper"):
        assert config["batch_size"] == 64
        assert config["batch_size"] // config["accumulation"] == 8
        assert (config["schedule"], config["warmup"], config["max_length"]) == ("cosine", 0.1, 512)
    entropy = [config["method"] for config in configs("shrink_the_longest", "paper") if len(config["method"]) > 1]
    assert Counter(method["select"] for method in entropy) == {True: 20, False: 20}
    assert {(method["weight"], method["in_cluster"], method["reduction"]) for method in entropy} == {(1, 0, "sum")}

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

PAPERS = ("shrink_the_longest", "istar", "softdecay", "isolayer")
COUNTS = {  # as the papers say
    "baselines": 4 * 4 * 5,
    "shrink_the_longest": 2 * 2 * 3 * 5,
    # Table 1; Figure 3 (15 cells, 6 more weights each); Figures 4, 5, 6 (one seed); 7 (5 zetas); 8 (30 layers); 2
    "istar": 27 * 3 * 5 + 15 * 6 * 5 + 3 + 10 + 3 + 3 * 5 * 5 + 30 * 5 + 3,
    "istar_search": 27 * 27 * (2 + 24),
    # plain, SoftDecay's alphas and WhiteBERT for five encoders, four more rows for one; GLUE, and for BERT QQP and MNLI
    "softdecay": 5 * 7 * (3 + 5 + 1) + 7 * 4 + 3 * 5 * 2 + 3 * 2,
    "isolayer": 2 * 3 * 5 * (2 + 2 + 2),
}
GRIDS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in EXPERIMENTS_FOLDER.glob("*.yaml")}
EVERY = sorted((name, size) for name, grid in GRIDS.items() for size in SIZES if size in grid)


@functools.cache
def runs(name, size):
    return tuple(load_grid(name, size))


def configs(name, size, **expected):
    results = [run.config for run in runs(name, size)]
    return [config for config in results if all(config.get(key) == value for key, value in expected.items())]


@pytest.mark.parametrize(
    ("name", "size"),
    [pytest.param(*key, marks=pytest.mark.slow if key == ("istar_search", "paper") else ()) for key in EVERY],
)
def test_every_run_resolves_once_and_those_of_the_papers_are_counted(name, size):
    result = runs(name, size)
    assert len(result) == len({run.run_id for run in result})
    assert size != "paper" or len(result) == COUNTS[name]
    assert about_grid(name)
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

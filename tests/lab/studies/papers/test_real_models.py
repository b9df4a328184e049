"""The grid of real models: its size, and that its arms are those that the recorded held-out rows choose."""

import pandas as pd
import pytest

from isonb_lab.papers import real_models as plan
from isonb_lab.papers.methods_by_readers import RECORDING
from isonb_lab.sweeps.grids import load_grid

EQUAL = 0.01  # held-out scores that count as equal
SECOND = ("cola", "mrpc")  # tasks that may be the second


def test_the_grid_has_the_steps():
    assert len(load_grid("real_models", "small")) == 15 + 2 * (3 * len(plan.OPTIONS) + len(SECOND))
    full = load_grid("real_models", "full")
    assert len(full) == 10 * (2 * plan.ARMS + 1 + len(plan.FIRST_TOKEN)) + 6 * 2 * plan.ARMS
    read = {
        (run.config["model"], run.config["pooling"], run.config["seed"]) for run in full if run.config.get("readers")
    }
    assert len(read) == 10 * 3
    assert {run.config["seed"] for run in full} == set(plan.SEEDS)


@pytest.fixture(scope="module")
def chosen_on():
    """The runs of seed 0, with what each reached on held-out rows: after its last pass, or in its second stage."""
    runs, series = (pd.read_parquet(RECORDING / f"{name}.parquet") for name in ("runs", "series"))
    last = series.sort_values("step").groupby(["run_id", "name"])["value"].agg(["last", "max"]).unstack("name")
    second = last["max"].get("step.second.accuracy", pd.Series(dtype=float)).reindex(last.index)
    runs["held"] = runs["run_id"].map(second.fillna(last["last"]["step.validation.accuracy"]))
    runs["held.cola"] = runs["run_id"].map(last["last"]["step.validation.matthews"])
    return runs[runs["seed"] == 0]


@pytest.mark.parametrize("model", plan.POOLING)
def test_the_arms_are_those_that_the_recorded_held_out_rows_choose(model, chosen_on):
    """By pandas alone: the first option that lies within a point of the best."""
    runs = chosen_on[(chosen_on["model"] == model) & (chosen_on["task"] == plan.TASK)]
    arms = [run.config for run in load_grid("real_models", "full") if run.config["model"] == model][: plan.ARMS]
    plain = runs[runs["method.name"] == "none"].sort_values(["train_layers", "layers", "learning_rate"])
    chosen = plain[plain["held"] >= plain["held"].max() - EQUAL].iloc[0]
    assert {(arm["layers"], arm["train_layers"], arm["learning_rate"]) for arm in arms} == {
        (chosen["layers"], chosen["train_layers"], chosen["learning_rate"])
    }
    for name, options in plan.OPTIONS.items():
        tried = runs[runs["method.name"] == name]
        ((key, _),) = options[0].items()
        strongest = {option[key]: place for place, option in enumerate(options)}
        tried = tried[tried["held"] >= tried["held"].max() - EQUAL]
        values = [None if pd.isna(value) else value for value in tried[f"method.{key}"]]
        (arm,) = [arm for arm in arms if arm["method"]["name"] == name]
        assert arm["method"].get(key) == min(values, key=strongest.__getitem__), name


@pytest.mark.parametrize("model", plan.POOLING)
def test_the_second_task_is_the_first_that_plain_training_learned(model, chosen_on):
    cola, mrpc = (chosen_on[(chosen_on["model"] == model) & (chosen_on["task"] == task)].iloc[0] for task in SECOND)
    learned = {"cola": cola["held.cola"] >= 0.20, "mrpc": mrpc["held"] - mrpc["metric.baseline.accuracy"] >= 0.03}
    expected = next((task for task, enough in learned.items() if enough), "stsb")
    second = {run.config["task"] for run in load_grid("real_models", "full") if run.config["model"] == model}
    assert second == {plan.TASK, expected}

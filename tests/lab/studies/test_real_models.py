"""The choices of the plan of real models: its grid, its rules on held-out rows, and the steps that follow."""

import pandas as pd
import pytest

from isonb.errors import InputError
from isonb_lab.papers import real_models as STUDY
from isonb_lab.papers.methods_by_readers import RECORDING
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.settings import plan
from isonb_lab.sweeps.grids import load_grid


def write(folder, block, score):
    """Records of the runs of a block, ``score(config)`` their held-out score."""
    for run in STUDY._runs(block):
        config = plan(run).config
        series = {f"step.validation.{name}": [(1, 0.1), (2, score(config))] for name in ("accuracy", "matthews")}
        if config["method"]["name"] in ("whitening", "isolayer"):
            series["step.second.accuracy"] = [(1, score(config)), (2, 0.2)]
        metrics = {"baseline.accuracy": 0.68}
        write_record(folder, Record(config, manifest={}, metrics=metrics, series=series, named=plan(run).run_id))


def test_the_grid_has_the_steps():
    runs = {plan(run).run_id for block in STUDY.depth_blocks() for run in STUDY._runs(block)}
    assert len(runs) == 15
    small = {run.run_id for run in load_grid("real_models", "small")}
    assert runs < small
    assert len(small) == len(runs) + 2 * (3 * len(STUDY.OPTIONS) + len(STUDY.LEARNED))
    full = load_grid("real_models", "full")
    seeds = [(run.config["model"], run.config["seed"]) for run in full if run.config.get("readers")]
    assert seeds[:36:12] == [("smollm2", 1), ("mpnet", 1), ("smollm2", 2)]
    assert len(full) == 10 * (2 * STUDY.ARMS + 4) + 6 * 2 * STUDY.ARMS


@pytest.mark.parametrize("model", STUDY.POOLING)
def test_the_arms_are_those_that_the_recorded_held_out_rows_choose(model):
    """By pandas alone: the first option that lies within a point of the best."""
    runs, series = (pd.read_parquet(RECORDING / f"{name}.parquet") for name in ("runs", "series"))
    series = series[series["name"].str.startswith(("step.validation.accuracy", "step.second.accuracy"))]
    last = series.sort_values("step").groupby(["run_id", "name"])["value"].agg(["last", "max"]).unstack("name")
    held = last["max"].get("step.second.accuracy", pd.Series(dtype=float)).reindex(last.index)
    runs["held"] = runs["run_id"].map(held.fillna(last["last"]["step.validation.accuracy"]))
    runs = runs[(runs["seed"] == 0) & (runs["model"] == model) & (runs["task"] == "sst2_joint")]
    arms = [run.config for run in load_grid("real_models", "full") if run.config["model"] == model][: STUDY.ARMS]
    plain = runs[runs["method.name"] == "none"].sort_values(["train_layers", "layers", "learning_rate"])
    chosen = plain[plain["held"] >= plain["held"].max() - 0.01].iloc[0]
    assert {(arm["layers"], arm["train_layers"], arm["learning_rate"]) for arm in arms} == {
        (chosen["layers"], chosen["train_layers"], chosen["learning_rate"])
    }
    for name, options in STUDY.OPTIONS.items():
        tried = runs[runs["method.name"] == name]
        ((key, _),) = options[0].items()
        strongest = {option[key]: place for place, option in enumerate(options)}
        tried = tried[tried["held"] >= tried["held"].max() - 0.01]
        values = [None if pd.isna(value) else value for value in tried[f"method.{key}"]]
        (arm,) = [arm for arm in arms if arm["method"]["name"] == name]
        assert arm["method"].get(key) == min(values, key=strongest.__getitem__), name


def test_records_that_are_missing_are_named(tmp_path):
    with pytest.raises(
        InputError, match=r"records of the step before must be whole; got no sst2-joint-smollm2-none-s0"
    ):
        STUDY.next_blocks(tmp_path)


def test_each_step_follows_from_the_records_of_the_one_before(tmp_path):
    def depth(config):  # two layers are best by two points; of what is left within one point the least wins
        score = {("smollm2", 16, 2): 0.84, ("smollm2", 16, 1): 0.825, ("mpnet", 12, 1): 0.835, ("mpnet", 12, 2): 0.84}
        return score.get((config["model"], config["layers"], config["train_layers"]), 0.8)

    for block in STUDY.depth_blocks():
        write(tmp_path, block, depth)
    tuning = STUDY.next_blocks(tmp_path)
    assert [(block["task"], block["layers"], block["train_layers"]) for block in tuning] == [
        *((task, 16, 2) for task in ("sst2_joint", "cola", "mrpc")),
        *((task, 12, 1) for task in ("sst2_joint", "cola", "mrpc")),
    ]
    assert {block["learning_rate"] for block in tuning} == {1e-4}

    def option(config):
        if config["task"] == "cola":
            return 0.25 if config["model"] == "mpnet" else 0.1
        if config["task"] == "mrpc":
            return 0.70
        return {1: 0.7, 0.3: 0.8, 0.1: 0.805}.get(config["method"].get("weight"), 0.8)

    for block in tuning:
        write(tmp_path, block, option)
    full = STUDY.next_blocks(tmp_path)
    assert [(block["model"], block["seed"]) for block in full[:4]] == [
        ("smollm2", 1),
        ("mpnet", 1),
        ("smollm2", 2),
        ("mpnet", 2),
    ]
    arms = full[0]["method"]
    assert len(arms) == STUDY.ARMS == 12
    assert {"name": "cosreg", "weight": 0.3} in arms
    assert {"name": "softdecay", "alpha": -0.8} in arms
    assert {"name": "whitening", "k": None} in arms
    assert len(full) == 10 * (2 + 1) + 6 * 2
    assert [(block["task"], block["pooling"], block["seed"]) for block in full[20:33]] == [
        *(("sst2_joint", "mean", seed) for seed in range(1, 11)),
        ("stsb", "mean_after_first", 1),
        ("cola", "mean", 1),
        ("stsb", "mean_after_first", 2),
    ]
    assert [arm["name"] for arm in full[20]["method"]] == ["none", "cosreg", "spectrum_control", "whitening"]
    assert all(block["readers"] for block in full[:30])
    assert not any("readers" in block for block in full[30:])
    for block in full:
        plan({**block, "method": block["method"][-1]})

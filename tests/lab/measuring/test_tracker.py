"""Measures while a Trainer trains: the right points, once an update, without a part in the training."""

import json

import pytest
import torch
from transformers import Trainer, TrainingArguments

from isonb.integrations.hidden_states import Pooling
from isonb.measures.isoscore import isoscore
from isonb.points import pool
from isonb_lab.measuring.cloud import cloud_measures
from isonb_lab.measuring.tracker import Tracker, series_from_log
from tests.integrations import tiny


class Recording(Trainer):
    """Keeps the last hidden state and the mask of each training pass."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        request = {**inputs, "output_hidden_states": True} if model.training else inputs
        loss, outputs = super().compute_loss(model, request, True, num_items_in_batch)
        if model.training:
            values = outputs.hidden_states[-1].detach().clone(), inputs["attention_mask"]
            self.__dict__.setdefault("passes", []).append(values)
        return (loss, outputs) if return_outputs else loss


def train(folder, parts=1, kind="bert", dropout=0.0, trainer=Recording, every=1, changes=None):
    micro = {"per_device_train_batch_size": 16 // parts, "gradient_accumulation_steps": parts}
    tracker = Tracker(Pooling("last" if kind == "gpt2" else "cls"), every)
    network = trainer(
        model=tiny.model(kind, dropout),
        args=TrainingArguments(**tiny.arguments(folder, **micro, **({"max_steps": 4} | (changes or {})))),
        train_dataset=tiny.sentences(40),
        eval_dataset=tiny.sentences(12, seed=5),
        callbacks=[tracker],
    )
    network.tracker = tracker
    network.train()
    return network


def tracked(trainer, cloud="train.cls"):
    """Measures by step."""
    return {
        entry["step"]: {k.removeprefix(f"{cloud}."): v for k, v in entry.items() if k.startswith(cloud)}
        for entry in trainer.state.log_history
        if any(key.startswith(cloud) for key in entry)
    }


def defined(*points):
    return {name: value for name, value in cloud_measures(*points).items() if value is not None}


@pytest.mark.parametrize(("kind", "parts"), [("bert", 1), ("gpt2", 2)])
def test_values_are_those_of_the_points_that_were_trained_on(tmp_path, kind, parts):
    trained = train(tmp_path, parts, kind=kind, dropout=0.3, every=2)
    result = tracked(trained)
    assert list(result) == [2, 4]
    for step, values in result.items():
        first = {2: parts, 4: 2 * parts + 1}[step]  # 40 rows: the third update is one pass of 8
        passes = trained.passes[first : first + parts]
        points = torch.cat([pool([state], mask, trained.tracker.pooling.mode) for state, mask in passes])
        assert values == pytest.approx(defined(points), rel=1e-9), step
        assert len(points) == 16


def test_training_is_the_same_with_and_without(tmp_path):
    with_it, without = (train(tmp_path, 2, dropout=0.3, every=every) for every in (1, 0))
    assert torch.equal(tiny.weights(with_it.model), tiny.weights(without.model))
    assert tracked(without) == {}
    local = [entry for entry in with_it.state.log_history if "loss" in entry]
    assert [entry["loss"] for entry in local] == [e["loss"] for e in without.state.log_history if "loss" in e]


class Validating(Recording):
    """As the engine does: at each validation the tracker gets the points."""

    def evaluate(self, *args, **kwargs):
        result = super().evaluate(*args, **kwargs)
        rows = tiny.batch(tiny.sentences(12, seed=5))
        self.model.eval()
        with torch.no_grad():
            inputs = {name: rows[name] for name in ("input_ids", "attention_mask")}
            self.points = self.model.base_model(**inputs).last_hidden_state[:, 0]
        self.model.train()
        self.tracker.validation(self.points, rows["labels"])
        return result


def test_validation_points_are_logged_with_their_classes(tmp_path):
    trained = train(tmp_path, trainer=Validating, changes={"eval_strategy": "steps", "eval_steps": 2})
    result = tracked(trained, "validation.cls")
    assert list(result) == [2, 4]
    assert result[4] == pytest.approx(defined(trained.points, torch.arange(12) % 2), rel=1e-9)
    series = series_from_log(trained.state.log_history)
    assert series["step.validation.cls.isoscore"][-1] == (4, pytest.approx(isoscore(trained.points).item()))
    assert [step for step, _ in series["step.validation.loss"]] == [2, 4]
    assert [step for step, _ in series["step.train.loss"]] == [1, 2, 3, 4]
    assert not any("runtime" in name or "second" in name for name in series)
    json.dumps(trained.state.log_history, allow_nan=False)

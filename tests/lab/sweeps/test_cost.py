"""The cost estimate: its arithmetic against a profiler's count, its tables against models and data."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from isonb.errors import InputError
from isonb.models.loading import load
from isonb.models.locate import find
from isonb_lab.runs.settings import plan
from isonb_lab.sweeps import cost

BERT = "google-bert/bert-base-uncased"
COLA = {"task": "cola", "model": BERT, "protocol": "full"}


def flops(**options):
    return cost.work(plan(COLA | options)).flops


def test_forward_counts_what_a_profiler_counts():
    """The profiler sees the weights' products, not those of the fused attention: these are 4 d each pair of tokens."""
    encoder, size = load("tiny"), cost.encoder_size("tiny")
    ids = torch.ones(3, 40, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        encoder.model(input_ids=ids, attention_mask=ids)
    assert size.forward(0) * ids.numel() == pytest.approx(counter.get_total_flops(), rel=0.001)
    assert (size.forward(40) - size.forward(0)) * ids.numel() == 4 * 4 * 128 * 3 * 40 * 40


@pytest.mark.parametrize("name", ["tiny", "minilm"])
def test_sizes_in_the_table_are_the_models(name):
    config, size = find(name).config, cost.encoder_size(name)
    assert (size.layers, size.width) == (config.num_hidden_layers, config.hidden_size)
    assert size.inner == config.intermediate_size


def test_a_folder_is_read_and_an_unknown_model_said(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert cost.encoder_size(str(find("tiny").folder)) == cost.EncoderSize(4, 128, 512)
    result = cost.estimate([plan(COLA | {"model": "nobody/nothing"})])
    assert result.assumed == ("nobody/nothing",)
    assert "nobody/nothing" in str(result)
    assert result.flops == cost.estimate([plan(COLA)]).flops


@pytest.mark.parametrize(
    ("changes", "least", "most"),
    [
        ({"epochs": 6}, 1.8, 2.2),
        ({"train_examples": 100}, 0, 1 / 3),
        ({"max_length": 6}, 0, 0.6),
        ({"max_steps": 1}, 0, 0.2),
        ({"holdout": 0.5}, 0, 1),
        ({"validations": 50}, 1.5, 10),
        ({"model": "FacebookAI/roberta-large"}, 3, 10),
    ],
)
def test_costs_grow_as_they_should(changes, least, most):
    assert least < flops(**changes) / flops() < most


def test_methods_cost_what_they_add():
    none, isolayer = flops(), flops(method="isolayer")
    tokens = 3 * 250_000 / 12  # epochs, rows of all layers
    passes = tokens * cost.encoder_size(BERT).forward(11.3)
    assert flops(method="istar") - none == pytest.approx(passes, rel=0.01)
    assert flops(method={"name": "istar", "zeta": "auto"}) == none
    assert flops(method="simcse") > none
    assert none < isolayer < 1.3 * none


def test_estimates_add_up_and_say_what_they_are():
    two = cost.estimate([plan(COLA), plan(COLA | {"seed": 1})])
    first = cost.estimate([plan(COLA)])
    assert two.runs == 2
    assert two.gpu_hours == pytest.approx(2 * first.gpu_hours)
    assert cost.estimate([]).cpu_hours == 0
    assert cost.estimate([plan({"experiment": "synthetic"})]).flops > 1e11
    with pytest.raises(InputError, match="the GPU must be one of"):
        cost.estimate([plan(COLA)], "abacus")

"""The cost estimate: its arithmetic against a profiler's count, its tables against models and data."""

from pathlib import Path

import pytest
import torch
from cola import save_cola
from torch.utils.flop_counter import FlopCounterMode

from isonb.errors import InputError
from isonb.models.loading import load
from isonb.models.locate import find
from isonb_lab.data.batches import windows
from isonb_lab.data.rows import load_task
from isonb_lab.data.tasks import task_size
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
def test_sizes_in_the_table_are_those_of_the_folder(name):
    assert cost.encoder_size(name) == cost.encoder_size(str(find(name).folder))


def test_a_model_of_unknown_size_is_taken_for_bert(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    result = cost.estimate([plan(COLA | {"model": "nobody/nothing"})])
    assert result.assumed == ("nobody/nothing",)
    assert "nobody/nothing" in str(result)
    assert result.flops == cost.estimate([plan(COLA)]).flops


def test_needs_say_where_models_and_rows_are(bert, tmp_path, monkeypatch):
    (tmp_path / "org").mkdir()
    (tmp_path / "org/name").symlink_to(bert)
    monkeypatch.setenv("ISONB_MODELS", str(tmp_path))
    data = save_cola(tmp_path / "data")
    model, rows = cost.needs([plan(COLA | {"model": "org/name", "seed": seed}) for seed in (0, 1)], data)
    assert (model.where, model.runs, model.there) == (f"in {Path(bert).resolve()}", 2, True)
    assert (rows.where, rows.runs, rows.there) == (f"in {data / 'glue/cola'}", 2, True)


def test_needs_name_the_rows_of_methods_and_of_other_readers(tmp_path):
    run = plan({"task": "english_sentiment", "method": {"name": "sbert", "pairs": "rte"}, "readers": True})
    data = save_cola(tmp_path)
    missing = {need.name: need.where for need in cost.needs([run], data) if not need.there}
    assert set(missing) == {"rte", "sst2", "stsb_test", "squad"}
    assert "the split 'validation' must be at" in missing["squad"], "no run reads its training split"


@pytest.mark.parametrize(("length", "stride"), [(32, 8), (48, 16), (128, 64)])
def test_windows_of_a_span_task_are_counted(length, stride):
    config = {"task": "english_span", "model": "minilm", "max_length": length, "doc_stride": stride}
    rows = load_task("english_span", split="validation", limit=100)
    cut = windows(rows, find("minilm").tokenizer, length, stride, ["input_ids"])
    size = task_size("english_span")
    assert cost._windows(plan(config).settings, size.tokens) == pytest.approx(len(cut) / len(rows), rel=0.25)


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
    one, two = (cost.estimate([plan(COLA | {"seed": seed}) for seed in range(runs)]) for runs in (1, 2))
    assert (two.runs, two.gpu_hours) == (2, pytest.approx(2 * one.gpu_hours))
    assert cost.estimate([plan({"experiment": "synthetic"})]).flops > 1e11
    with pytest.raises(InputError, match="the GPU must be one of"):
        cost.estimate([plan(COLA)], "abacus")

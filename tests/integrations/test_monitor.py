"""IsotropyMonitor: sees what is there, stops what collapses, leaves alone what doesn't, and changes nothing."""

import json
import math

import pytest
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from isonb.errors import InputError, IsotropyWarning
from isonb.integrations.monitor import COLLAPSE, WATCHED, Gate, IsotropyMonitor

STEPS = 60


def encoder(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8))


def train(seed, collapsing, monitor):
    """Autoencoding keeps the vectors apart; a loss on their lengths alone pulls them into the origin's direction."""
    model, back = encoder(seed), nn.Linear(8, 16)
    optimizer = torch.optim.Adam([*model.parameters(), *back.parameters()], lr=3e-2)
    draw = torch.Generator().manual_seed(seed)
    for step in range(1, STEPS + 1):
        x = torch.randn(64, 16, generator=draw)
        z = model(x)
        loss = (z - 1).square().mean() if collapsing else (back(z) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if monitor.observe(z.detach(), step).kind == "stopped":
            return step
    return None


@pytest.mark.parametrize("seed", range(10))
def test_what_collapses_is_stopped_and_what_does_not_is_left_alone(seed):
    gate = Gate("relative_spread", low=0.1)
    assert train(seed, True, IsotropyMonitor(stop=[gate])) is not None
    assert train(seed, False, IsotropyMonitor(stop=[gate, *COLLAPSE])) is None


def test_a_gate_waits_and_a_single_slip_is_forgiven():
    gate = Gate("relative_spread", low=0.5, patience=2)
    monitor = IsotropyMonitor(["relative_spread"], stop=[gate])
    flat, spread, alone = torch.ones(4, 2), torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.ones(1, 2)
    kinds = [monitor.observe(x, k).kind for k, x in enumerate((flat, spread, flat, alone, flat))]
    assert kinds == ["measured"] * 4 + ["stopped"]  # what isn't defined neither closes nor forgives
    assert monitor.events[-1].reason == "relative_spread below 0.5, 2 times in a row"


def test_a_warning_names_the_step_and_the_events_are_kept(tmp_path):
    monitor = IsotropyMonitor(warn=[Gate("mean_cosine", high=0.5, patience=1)], path=tmp_path / "events.jsonl")
    with pytest.warns(IsotropyWarning, match="step 7: mean_cosine above 0.5"):
        monitor.observe(torch.rand(30, 8) + 5, 7)
    with pytest.warns(IsotropyWarning):
        monitor.observe(torch.ones(30, 8), 8)
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [7, 8]
    assert lines[1]["values"]["isoscore_unbiased"] is None


@pytest.mark.parametrize(
    ("x", "undefined"),
    [
        (torch.randn(1, 8), set(WATCHED)),
        (torch.eye(8), {"isoscore_unbiased"}),
        (torch.linalg.qr(torch.randn(32, 32))[0][:8], {"isoscore_unbiased"}),
        (torch.full((6, 8), torch.nan), set(WATCHED)),
        (torch.ones(6, 8), {"isoscore_unbiased", "participation_ratio"}),
        (torch.zeros(6, 8), {"isoscore_unbiased", "participation_ratio", "mean_cosine"}),
        (torch.randn(2, 3, 8), set(WATCHED)),
    ],
)
def test_what_is_not_defined_has_a_reason_and_closes_no_gate(x, undefined):
    gates = [Gate(name, low=1e9, patience=1) for name in undefined]
    monitor = IsotropyMonitor(stop=gates)
    event = monitor.observe(x, 1)
    assert set(event.undefined) == undefined
    assert all(math.isnan(event.values[name]) and reason for name, reason in event.undefined.items())
    assert event.kind == "measured"


def test_a_measure_that_draws_leaves_the_random_state_as_it_was():
    monitor = IsotropyMonitor({"drawn": lambda x: torch.rand(())})
    before = torch.get_rng_state()
    monitor.observe(torch.randn(4, 2, generator=torch.Generator()), 1)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["isotropy"]}, "measures must be some of isoscore"),
        ({"every": 0}, "every must be 1 or more"),
        (
            {"stop": [Gate("isotropy", low=0.1)]},
            "a gate must name a measure; got isotropy. Taken are isoscore_unbiased",
        ),
        ({"path": "/no/such/folder/events.jsonl"}, "path must be a file in a folder that is there"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(InputError, match=message):
        IsotropyMonitor(**options)
    with pytest.raises(InputError, match="a gate must have a limit"):
        Gate("isoscore")
    with pytest.raises(InputError, match="patience must be 1 or more; got 0"):
        Gate("isoscore", low=0.1, patience=0)


def fine_tune(folder, out, monitor, steps=6):
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    draw = torch.Generator().manual_seed(0)
    rows = [
        {"input_ids": torch.randint(5, 50, (7,), generator=draw), "attention_mask": torch.ones(7), "labels": k % 2}
        for k in range(48)
    ]
    options = {"max_steps": steps, "logging_steps": 2, "report_to": "none", "disable_tqdm": True, "use_cpu": True}
    trainer = Trainer(model, TrainingArguments(str(out), save_strategy="no", **options), train_dataset=rows)
    if monitor is not None:
        monitor.attach(trainer)
    trainer.train()
    return trainer


def test_training_is_the_same_with_it_and_its_values_are_in_the_log(bert, tmp_path):
    monitor = IsotropyMonitor(every=2)
    watched, plain = fine_tune(bert, tmp_path / "a", monitor), fine_tune(bert, tmp_path / "b", None)
    logs = [[entry for entry in t.state.log_history if "loss" in entry] for t in (watched, plain)]
    assert [entry["loss"] for entry in logs[0]] == [entry["loss"] for entry in logs[1]]
    assert [event.step for event in monitor.events] == [2, 4, 6]
    assert {f"isonb/{name}" for name in WATCHED} <= set(logs[0][-1])
    assert logs[0][-1]["isonb/mean_cosine"] == pytest.approx(monitor.events[-1].values["mean_cosine"])

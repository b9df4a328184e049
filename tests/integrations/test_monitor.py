"""IsotropyMonitor: sees what is there, stops what collapses, leaves alone what doesn't; processes decide together."""

import json
import math
import random
from types import SimpleNamespace

import gloo
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from isonb.errors import CloudWarning, InputError, IsotropyWarning
from isonb.integrations.gates import COLLAPSE, Gate, GateCounts
from isonb.integrations.hidden_states import Pooling, reads_forwards
from isonb.integrations.monitor import WATCHED, IsotropyMonitor
from isonb.measures.cosine import mean_cosine

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


@pytest.mark.parametrize("seed", range(3))
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
        (torch.linalg.qr(torch.randn(32, 32))[0][:8], {"isoscore_unbiased", "participation_ratio_unbiased"}),
        (torch.full((6, 8), torch.nan), set(WATCHED)),
        (torch.ones(6, 8), {"isoscore_unbiased", "participation_ratio_unbiased"}),
        (torch.zeros(6, 8), {"isoscore_unbiased", "participation_ratio_unbiased", "mean_cosine"}),
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


def test_the_limit_takes_points_of_every_layer():
    layers = torch.cat([torch.randn(600, 4, generator=torch.Generator().manual_seed(0)), torch.ones(600, 4)])
    monitor = IsotropyMonitor({"equal": lambda x: (x == 1).all(1).double().mean()}, limit=512)
    assert monitor.observe(layers, 1).values["equal"] == 0.5


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
        ({"limit": -5}, "limit must be 2 or more points; got -5"),
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
    for patience in (0, 2.5):
        with pytest.raises(InputError, match=f"patience must be at least 1 and an integer; got {patience}"):
            Gate("isoscore", low=0.1, patience=patience)
    for limits in ({"low": 0.9, "high": 0.1}, {"low": "a"}, {"high": float("nan")}):
        with pytest.raises(InputError, match="low and high must be numbers, low at most high; got low"):
            Gate("isoscore", **limits)


@pytest.mark.parametrize("measures", [("relative_spread", "mean_cosine"), ("mean_cosine", "mean_cosine")])
def test_a_checkpoint_has_the_counts_of_every_monitor_of_a_training(measures):
    gates = [Gate(name, low=low) for name, low in zip(measures, (1.5, 2.5), strict=True)]
    monitors = [IsotropyMonitor([gate.measure], every=1, stop=[gate]) for gate in gates]
    state = SimpleNamespace(global_step=1, stateful_callbacks={})
    for monitor in monitors:
        monitor.observe(torch.ones(4, 2), 1)
        monitor.on_step_end(None, state, None)
    for monitor in monitors:
        monitor.on_train_begin(None, state, None)
    assert [monitor.counts for monitor in monitors] == [[1], [1]]


GATES = (Gate("a", low=0.5, patience=2), Gate("b", high=0.5, patience=3))
ROUNDS, SEQUENCES = 8, 50


def values_of(sequence, process):
    """What a process reads at each step: inside, outside or nothing defined."""
    draw = random.Random(100 * sequence + process)
    return [{name: draw.choice((0.1, 0.9, float("nan"))) for name in "ab"} for _ in range(ROUNDS)]


def decisions():
    """By sequence and step: the closed gates with their processes; counts are saved and loaded half way."""
    process, report = torch.distributed.get_rank(), []
    for sequence in range(SEQUENCES):
        counts, closed = GateCounts(GATES), []
        for step, values in enumerate(values_of(sequence, process)):
            closed.append({gate.measure: on for gate, on in counts.update(values).items()})
            if step == ROUNDS // 2:
                box = [json.dumps(counts.state_dict())]
                torch.distributed.broadcast_object_list(box, 0)  # a checkpoint is what the first process saves
                counts = GateCounts(GATES)
                counts.load_state_dict(json.loads(box[0]))
        report.append(closed)
    return report


def monitored(folder):
    """Three steps, each by a monitor that goes on from what the first process saved of the one before."""
    process, kinds, state = torch.distributed.get_rank(), [], folder / "state.pt"
    for step in (1, 2, 3):
        monitor = IsotropyMonitor(every=1, stop=COLLAPSE, path=folder / "events.jsonl")
        if step > 1:
            monitor.load_state_dict(torch.load(state))
        torch.distributed.barrier()
        flat, spread = torch.ones(6, 4), torch.randn(6, 4, generator=torch.Generator().manual_seed(step))
        event = monitor.observe(flat if process == 1 and step > 1 else spread, step)
        kinds.append(event.kind)
        if process == 0:
            torch.save(monitor.state_dict(), state)
        torch.distributed.barrier()
    return kinds, event.reason


def on_this_process(folder):
    return decisions(), monitored(folder)


def test_two_processes_decide_as_one_process_alone_would_on_either_and_one_writes(tmp_path):
    (first, (kinds, reason)), (second, (others, _)) = gloo.run(on_this_process, tmp_path)
    assert kinds == others == ["measured", "measured", "stopped"]
    assert reason.endswith("2 times in a row, on process 1 of 2")
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]
    assert first == second
    closings = 0
    for sequence, closed in enumerate(first):
        alone = [GateCounts(GATES), GateCounts(GATES)]
        for step, got in enumerate(closed):
            want = [alone[process].update(values_of(sequence, process)[step]) for process in (0, 1)]
            on = {gate.measure: [process for process in (0, 1) if gate in want[process]] for gate in GATES}
            assert got == {name: processes for name, processes in on.items() if processes}
            closings += len(got)
    assert closings > SEQUENCES


def test_counts_of_another_number_of_processes_begin_anew(caplog):
    counts = GateCounts(GATES)
    counts.load_state_dict({repr(GATES[0]): [1, 0], repr(GATES[1]): [2, 2]})
    assert counts.own == [0, 0]
    assert "another number of processes" in caplog.text
    counts.load_state_dict({repr(GATES[1]): [2]})
    assert counts.own == [0, 2]


def pointing(cosine, n=64):
    """Unit vectors whose mean cosine is ``cosine``, at lengths that differ ten times."""
    draw = torch.Generator().manual_seed(0)
    around = torch.linalg.qr(torch.randn(2 * n, n, generator=draw, dtype=torch.float64))[0].T
    x = torch.cat([torch.full((n, 1), cosine**0.5, dtype=torch.float64), (1 - cosine) ** 0.5 * around], 1)
    return x * torch.logspace(0, 1, n, dtype=torch.float64).unsqueeze(1)


@pytest.mark.parametrize(("cosine", "stops"), [(0.9999, True), (0.99995, True), (0.9995, False), (0.9, False)])
def test_vectors_that_point_the_same_way_are_a_collapse(cosine, stops):
    x = pointing(cosine)
    assert mean_cosine(x).item() == pytest.approx(cosine, abs=1e-9)
    monitor = IsotropyMonitor(["isoscore"], stop=COLLAPSE)  # the measures of gates are taken, too
    kinds = [monitor.observe(x, step).kind for step in (1, 2)]
    assert kinds == ["measured", "stopped" if stops else "measured"]


@pytest.mark.parametrize(("kind", "blind"), [("bert", False), ("gpt2", True), ("llama", True), ("t5", False)])
def test_the_first_token_of_a_decoder_is_warned_of(kind, blind, recwarn):
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = AutoConfig.for_model(kind, vocab_size=40, bos_token_id=1, eos_token_id=2, **({} if kind == "t5" else size))
    model = AutoModel.from_config(config)
    recwarn.clear()
    Pooling("cls").check(model)
    messages = [str(warning.message) for warning in recwarn if issubclass(warning.category, CloudWarning)]
    assert len(messages) == blind
    assert all('points="cls" takes its first token, which has seen nothing' in item for item in messages)
    recwarn.clear()
    Pooling("last").check(model)
    assert not [entry for entry in recwarn if issubclass(entry.category, CloudWarning)]
    assert reads_forwards(Pooling("last").watch(model).encoder) == blind

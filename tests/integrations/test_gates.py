"""Gates: each process counts its own points, all decide together, and a training begins at 0."""

import json
import random

import gloo
import pytest
import tiny
import torch
from transformers import AutoConfig, AutoModel, Trainer, TrainingArguments

from isonb.errors import CloudWarning, InputError
from isonb.integrations.gates import COLLAPSE, Gate, GateCounts
from isonb.integrations.hidden_states import Pooling, reads_forwards
from isonb.integrations.monitor import IsotropyMonitor
from isonb.losses import PersistentEntropyLoss
from isonb.measures.cosine import mean_cosine

GATES = (Gate("a", low=0.5, patience=2), Gate("b", high=0.5, patience=3))
STEPS, SEQUENCES = 8, 50


def values_of(sequence, process):
    """What a process reads at each step: inside, outside or nothing defined."""
    draw = random.Random(100 * sequence + process)
    return [{name: draw.choice((0.1, 0.9, float("nan"))) for name in "ab"} for _ in range(STEPS)]


def _decisions(sequences):
    """By sequence and step: the closed gates with their processes; counts are saved and loaded half way."""
    process, report = torch.distributed.get_rank(), []
    for sequence in range(sequences):
        counts, closed = GateCounts(GATES), []
        for step, values in enumerate(values_of(sequence, process)):
            closed.append({gate.measure: on for gate, on in counts.update(values).items()})
            if step == STEPS // 2:
                box = [json.dumps(counts.state_dict())]
                torch.distributed.broadcast_object_list(box, 0)  # a checkpoint is what the first process saves
                counts = GateCounts(GATES)
                counts.load_state_dict(json.loads(box[0]))
        report.append(closed)
    return report


def test_two_processes_decide_as_one_process_alone_would_on_either():
    report = gloo.run(_decisions, SEQUENCES)
    assert report[0] == report[1]
    closings = 0
    for sequence, closed in enumerate(report[0]):
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


def pointing(cosine, n=64, d=16):
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


def trainer_of(folder, steps=3, kind=Trainer, **options):
    network = tiny.model()
    rows = [{"input_ids": torch.randint(5, 30, (5,)), "labels": torch.tensor(i % 2)} for i in range(16)]
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
    arguments = TrainingArguments(str(folder), max_steps=steps, per_device_train_batch_size=4, **quiet)
    return kind(model=network, args=arguments, train_dataset=rows, **options)


def hooks(model):
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def test_the_counts_begin_anew_with_each_training(tmp_path):
    monitor = IsotropyMonitor(every=1, stop=[Gate("mean_cosine", high=-1.0, patience=4)])
    for _ in range(2):
        trainer = trainer_of(tmp_path)
        monitor.attach(trainer)
        trainer.train()
        assert (trainer.state.global_step, monitor.counts) == (3, [3])
    monitor.reset()
    assert monitor.counts == [0]


def test_values_of_an_earlier_training_are_not_logged(tmp_path):
    monitor = IsotropyMonitor(every=3)
    for _ in range(2):
        trainer = trainer_of(tmp_path)
        monitor.attach(trainer).attach(trainer)
        trainer.train()
        logs = [entry for entry in trainer.state.log_history if "loss" in entry]
        assert ["isonb/mean_cosine" in entry for entry in logs] == [False, False, True]
    assert [event.step for event in monitor.events] == [3, 3]


def test_an_interrupted_training_leaves_no_hook(tmp_path):
    trainer = trainer_of(tmp_path)
    monitor = IsotropyMonitor(every=1).attach(trainer)
    before = hooks(trainer.model)

    def interrupt(module, *call):
        calls.append(hooks(trainer.model))
        raise KeyboardInterrupt

    calls = []
    handle = trainer.model.classifier.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    handle.remove()
    assert calls[0] > before + 1
    assert hooks(trainer.model) == before
    assert monitor._points.take() is None


def test_the_trainers_log_has_the_share_of_the_entropy(tmp_path):
    options = {"penalty": PersistentEntropyLoss(), "points": "tokens"}
    trainer = trainer_of(tmp_path, 2, kind=tiny.IsotropyTrainer, **options)
    trainer.train()
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [0 < entry["isonb_entropy_share"] <= 1 for entry in logs] == [True, True]


def test_what_is_no_trainer_is_refused():
    with pytest.raises(InputError, match=r"trainer must be a Trainer; got Linear. In a loop of your own call observe"):
        IsotropyMonitor().attach(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("way", ["attach", "callbacks", "lightning"])
@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.filterwarnings("ignore")
def test_lightning_takes_the_monitor_as_it_is(way, package, tmp_path, monkeypatch):
    pl = pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = tiny.model().float()
            self.ends = False

        def training_step(self, batch, index):
            if self.ends and index == 1:
                raise KeyboardInterrupt
            return self.inner(input_ids=batch[0], labels=batch[1]).loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.utils.data.TensorDataset(torch.randint(1, 30, (12, 5)), torch.randint(2, (12,)))
    monitor = IsotropyMonitor(every=1, stop=[Gate("mean_cosine", high=-1.0, patience=4)])
    other = IsotropyMonitor(every=1, pooling=Pooling("mean"))  # two in one training

    def trainer():
        inputs = {"attach": [], "callbacks": [monitor, other], "lightning": [monitor.lightning()]}[way]
        made = pl.Trainer(
            max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu",
            enable_model_summary=False, callbacks=inputs,
        )  # fmt: skip
        if way == "attach":
            monitor.attach(made).attach(made)
        return made

    loader, net = torch.utils.data.DataLoader(data, batch_size=4), Net()
    for _ in range(2):
        result = trainer()
        result.fit(net, loader)
        assert (result.global_step, monitor.counts, hooks(net)) == (3, [3], 0)
    result.save_checkpoint(tmp_path / "last.ckpt")
    assert monitor.state_key in torch.load(tmp_path / "last.ckpt", weights_only=False)["callbacks"]
    assert [event.step for event in monitor.events] == [1, 2, 3] * 2
    net.ends = True
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        trainer().fit(net, loader)
    assert hooks(net) == 0


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

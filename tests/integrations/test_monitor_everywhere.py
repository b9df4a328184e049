"""The monitor in the training loops and models of others: real libraries, every kind of input, several processes."""

import json
import math
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import gloo
import pytest
import tiny
import torch
from datasets import Dataset
from torch import nn
from transformers import (
    ResNetConfig,
    ResNetForImageClassification,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    Wav2Vec2Config,
    Wav2Vec2ForSequenceClassification,
)

from isonb.errors import InputError
from isonb.integrations.hidden_states import Pooling
from isonb.integrations.monitor import COLLAPSE, Gate, IsotropyMonitor
from isonb.measures.isoscore import isoscore

QUIET = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_strategy": "no"}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}


class Plain(nn.Module):
    """Neither a configuration nor token numbers: a map of places, then vectors, then a loss."""

    def __init__(self):
        super().__init__()
        self.places = nn.Conv2d(3, 5, 3)
        self.vectors = nn.Linear(5, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, pixels, labels):
        result = self.vectors(self.places(pixels).mean((-2, -1)))
        return {"loss": nn.functional.cross_entropy(self.head(result), labels)}


def rows(kind, count=24):
    """Training rows of a kind of model."""
    draw = torch.Generator().manual_seed(0)
    label = [torch.tensor(i % 2) for i in range(count)]
    if kind == "t5":
        arguments = [torch.randint(3, 60, (6,), generator=draw) for _ in range(count)]
        return [{"input_ids": item, "attention_mask": torch.ones_like(item), "labels": item[:4]} for item in arguments]
    if kind == "wav2vec2":
        return [{"input_values": torch.randn(600, generator=draw), "labels": entry} for entry in label]
    size, name = (16, "pixel_values") if kind == "vit" else (8, "pixels")
    return [{name: torch.randn(3, size, size, generator=draw), "labels": element} for element in label]


def model(kind):
    torch.manual_seed(0)
    if kind == "t5":
        return T5ForConditionalGeneration(T5Config(vocab_size=60, dropout_rate=0.0, **T5))
    if kind == "wav2vec2":
        sound = {"conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}
        more = {
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
            "mask_time_prob": 0.0,
            "layerdrop": 0.0,
        }
        return Wav2Vec2ForSequenceClassification(Wav2Vec2Config(**SMALL, **sound, **more))
    if kind == "vit":
        return ViTForImageClassification(ViTConfig(**SMALL, image_size=16, patch_size=8))
    return Plain()


def trainer_of(kind, folder, steps=4, size=4, trainer=Trainer, **more):
    arguments = TrainingArguments(str(folder), max_steps=steps, per_device_train_batch_size=size, **QUIET)
    return trainer(model=model(kind), args=arguments, train_dataset=rows(kind), **more)


KINDS = ["t5", "vit", "wav2vec2", "plain"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("points", ["cls", "mean", "tokens"])
def test_models_of_every_kind_are_measured_and_train_the_same(kind, points, tmp_path):
    module = {"plain": "places"}.get(kind)
    watched = trainer_of(kind, tmp_path / "a")
    monitor = IsotropyMonitor(every=2, pooling=Pooling(points), module=module).attach(watched)
    watched.train()
    alone = trainer_of(kind, tmp_path / "b")
    alone.train()
    assert [event.step for event in monitor.events] == [2, 4]
    assert all("mean_cosine" not in event.undefined for event in monitor.events)
    assert torch.equal(tiny.weights(watched.model), tiny.weights(alone.model))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [1, 2])
def test_the_penalty_of_the_mixin_reaches_models_of_every_kind(kind, parts, tmp_path):
    calls = []

    def penalty(points):
        calls.append(tuple(points.shape))
        return 1 - isoscore(points)

    module = {"plain": "vectors"}.get(kind)
    pooling = {"points": "mean", "layers": -1 if module else "all", "module": module}
    trainer = trainer_of(kind, tmp_path, 1, 8 // parts, tiny.IsotropyTrainer, penalty=penalty, **pooling)
    trainer.args.gradient_accumulation_steps = parts
    trainer.train()
    assert calls[0] == ((8, 4) if kind == "plain" else (16, 16))


def test_the_points_are_those_of_the_encoder_and_its_mask(tmp_path):
    network, batch = model("t5").train(), rows("t5", 4)
    inputs = {name: torch.stack([row[name] for row in batch]) for name in batch[0]}
    inputs["attention_mask"][:, 4:] = 0
    monitor = IsotropyMonitor(every=1, pooling=Pooling("mean"))
    monitor._begin(network)
    network(**inputs)
    got = monitor._points.take()
    text = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    want = network.encoder(**text).last_hidden_state[:, :4].mean(1)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        (Plain, {}, "must hold a transformers encoder or decoder; got Plain"),
        (Plain, {"module": "vector"}, r"module must name a submodule of Plain; got 'vector'. Try 'vectors'"),
        (lambda: nn.ModuleDict({"q": tiny.model(), "d": tiny.model()}), {}, "must hold one encoder; got q, d"),
        (tiny.model, {"pooling": Pooling(layers=9)}, "layers must name some of the 3 hidden states; got layers 9"),
    ],
)
def test_a_model_that_cannot_be_read_is_refused_when_attached(result, options, message, tmp_path):
    part = result()
    holder = type("Holder", (), {"model": part, "log": None, "add_callback": None})()
    with pytest.raises(InputError, match=message):
        IsotropyMonitor(**options).attach(holder)


def test_a_frozen_teacher_beside_a_trained_encoder_is_passed_over():
    both = nn.ModuleDict({"teacher": tiny.model().requires_grad_(False), "student": tiny.model()})
    monitor = IsotropyMonitor()
    monitor._points.check(both)
    monitor._points.start(both)
    assert monitor._points._seen.encoder is both["student"].bert


def test_nothing_raises_inside_a_step(tmp_path, caplog):
    """A measure that fails, a file that can't be written, a pass that isn't seen: the run goes on and it is told."""

    def broken(points):
        raise RuntimeError("not today")

    trainer = trainer_of("vit", tmp_path / "run")
    place = tmp_path / "events"
    place.mkdir()
    monitor = IsotropyMonitor({"mine": broken}, every=1, path=place / "iso.jsonl", warn=[Gate("mine", low=0)])
    monitor.attach(trainer)
    place.rmdir()
    trainer.train()
    assert trainer.state.global_step == 4
    assert [event.undefined["mine"] for event in monitor.events] == ["RuntimeError: not today"] * 4
    assert len([item for item in caplog.records if "can't be written" in item.message]) == 1


def test_a_hook_that_fails_is_told_and_ends_nothing():
    class Odd(nn.Module):
        def forward(self, x):
            return "words"

    net = nn.Sequential(nn.Linear(2, 2), Odd())
    monitor = IsotropyMonitor(every=1, module="1")
    monitor._begin(net)
    net(torch.ones(3, 2))
    assert "must give a tensor" in monitor._end(1).undefined["isoscore_unbiased"]


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_real_lightning_module_with_its_encoder_inside(package, parts, tmp_path, monkeypatch):
    pl = pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = tiny.model().float().eval()  # as from_pretrained gives it

        def training_step(self, batch, index):
            return self.inner(input_ids=batch[0], labels=batch[1]).loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    draw = torch.Generator().manual_seed(0)
    data = torch.utils.data.TensorDataset(
        torch.randint(1, 40, (48, 5), generator=draw), torch.randint(2, (48,), generator=draw)
    )

    def fit(monitor):
        net = Net()
        callbacks = [] if monitor is None else [monitor.lightning()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own, on workers and loggers
            trainer = pl.Trainer(
                max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu",
                enable_model_summary=False, accumulate_grad_batches=parts, callbacks=callbacks,
            )  # fmt: skip
            trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=8))
        return net, trainer, callbacks

    monitor = IsotropyMonitor(every=1)
    net, trainer, _ = fit(monitor)
    assert [event.step for event in monitor.events] == list(range(1, 6 // parts + 1))
    assert not monitor.events[0].undefined
    assert "isonb/mean_cosine" in trainer.callback_metrics
    assert torch.equal(tiny.weights(net), tiny.weights(fit(None)[0]))
    gate = IsotropyMonitor(every=1, stop=[Gate("mean_cosine", high=-1.0, patience=2)])
    _, stopped, (callback,) = fit(gate)
    assert stopped.global_step == 2
    again = IsotropyMonitor(every=1, stop=gate.stop)
    again.lightning().load_state_dict(callback.state_dict())
    assert again.counts == [2]
    with pytest.raises(InputError, match="module must name a submodule of Net"):
        fit(IsotropyMonitor(module="outer"))


def test_the_counts_of_the_gates_go_through_a_checkpoint(tmp_path):
    stop = [Gate("mean_cosine", high=-1.0, patience=3)]
    first = trainer_of("vit", tmp_path / "run", 2)
    first.args.save_strategy, first.args.save_steps = "steps", 2
    IsotropyMonitor(every=1, stop=stop).attach(first)
    first.train()
    again = trainer_of("vit", tmp_path / "run", 9)
    monitor = IsotropyMonitor(every=1, stop=stop).attach(again)
    again.train(resume_from_checkpoint=True)
    assert monitor.counts == [3]
    assert again.state.global_step == 3


def sentence_trainer(folder, make, steps, size=8, monitor=None):
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )

    from tests.lab.random_models import save

    torch.manual_seed(0)
    checkpoint = folder / "bert"
    if not checkpoint.exists():
        save("bert", checkpoint)
    encoder = SentenceTransformer(str(checkpoint), device="cpu")
    texts = [f"{a} {b}." for a in ("A dog", "The rain", "Anna", "A road") for b in ("ran", "fell", "slept", "ended")]
    data = Dataset.from_dict({"anchor": texts * 4, "positive": [text.upper() for text in texts] * 4})
    options = {"max_steps": steps, "per_device_train_batch_size": size, **QUIET}
    trainer = SentenceTransformerTrainer(
        model=encoder,
        args=SentenceTransformerTrainingArguments(str(folder / "run"), **options),
        train_dataset=data,
        loss=make(encoder),
    )
    if monitor is not None:
        monitor.attach(trainer)
    trainer.train()
    return trainer


def matryoshka(model):
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss

    return MatryoshkaLoss(model, MultipleNegativesRankingLoss(model), [16, 8, 4])


def cut_at_random(model):
    loss = matryoshka(model)
    loss.n_dims_per_step = 1
    return loss


def adaptive(model):
    from sentence_transformers.sentence_transformer.losses import AdaptiveLayerLoss, MultipleNegativesRankingLoss

    return AdaptiveLayerLoss(model, MultipleNegativesRankingLoss(model))


def cached(model):
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

    return CachedMultipleNegativesRankingLoss(model, mini_batch_size=4)


@pytest.mark.filterwarnings("ignore:The model's embedding dimension")
@pytest.mark.parametrize("make", [matryoshka, cut_at_random, adaptive, cached])
def test_losses_of_several_widths_and_layers_are_measured_at_the_full_vectors(make, tmp_path):
    sizes = []
    monitor = IsotropyMonitor({"size": lambda x: sizes.append(tuple(x.shape)) or x.mean()}, every=1)
    watched = sentence_trainer(tmp_path, make, 3, monitor=monitor)
    assert sizes == [(16, 16)] * 3  # two columns of eight texts, sixteen dimensions
    assert torch.equal(tiny.weights(watched.model), tiny.weights(sentence_trainer(tmp_path, make, 3).model))


def _two_ranks(every_rank):
    """Three steps, each by a monitor that goes on from what the first process saved of the one before."""
    folder = Path(tempfile.gettempdir()) / f"isonb-ranks-{os.getppid()}"
    folder.mkdir(exist_ok=True)
    rank, kinds, event = torch.distributed.get_rank(), [], None
    for step in (1, 2, 3):
        monitor = IsotropyMonitor(every=1, stop=COLLAPSE, path=folder / "events.jsonl")
        if event is not None:
            monitor.load_state_dict(torch.load(folder / f"{step - 1}.pt"))
        sick = rank == 1 and (every_rank or step > 1)
        flat, round_ = torch.ones(6, 4), torch.randn(6, 4, generator=torch.Generator().manual_seed(step))
        event = monitor.observe(flat if sick else round_, step)
        kinds.append(event.kind)
        if rank == 0:
            torch.save(monitor.state_dict(), folder / f"{step}.pt")
        torch.distributed.barrier()
    return kinds, event.reason, str(folder / "events.jsonl")


@pytest.mark.parametrize("every_rank", [True, False])
def test_a_gate_that_closes_on_one_process_closes_for_all_and_one_writes(every_rank):
    report = gloo.run(_two_ranks, every_rank)
    want = ["measured", "stopped", "stopped"] if every_rank else ["measured", "measured", "stopped"]
    assert [kinds for kinds, _, _ in report] == [want, want]
    assert report[0][1].endswith("2 times in a row, on process 1 of 2")
    file = Path(report[0][2])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    shutil.rmtree(file.parent)
    assert [line["step"] for line in lines] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size", "points"), [("t5", 2, "mean"), ("vit", 1, "cls")])
def test_a_thousand_steps_end_none_that_should_not(kind, size, points, tmp_path):
    trainer = trainer_of(kind, tmp_path, 1000, size)
    gates = COLLAPSE if size > 1 else [*COLLAPSE, Gate("isoscore_unbiased", low=0.5)]  # of one row nothing is defined
    monitor = IsotropyMonitor(every=1, stop=gates, pooling=Pooling(points)).attach(trainer)
    trainer.train()
    assert (trainer.state.global_step, len(monitor.events)) == (1000, 1000)


def test_vectors_that_are_nan_end_nothing(tmp_path):
    trainer = trainer_of("plain", tmp_path)
    torch.nn.init.constant_(trainer.model.vectors.weight, torch.nan)
    monitor = IsotropyMonitor(every=1, stop=COLLAPSE, module="vectors").attach(trainer)
    trainer.train()
    assert trainer.state.global_step == 4
    assert "must be finite" in monitor.events[-1].undefined["isoscore_unbiased"]


def test_a_named_model_of_images_without_layers_is_read():
    size = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}
    model = ResNetForImageClassification(ResNetConfig(**size)).train()
    monitor = IsotropyMonitor(every=1, module="resnet", pooling=Pooling("mean"))
    monitor._points.check(model)
    monitor._begin(model)
    model(pixel_values=torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert not math.isnan(monitor._end(1).values["mean_cosine"])
    with pytest.raises(InputError, match="must be one transformer; got ResNetModel"):
        IsotropyMonitor()._points.check(model)

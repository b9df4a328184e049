"""The monitor in the training loops and models of others: real libraries, every kind of input, several processes."""

import math

import pytest
import tiny
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer import losses
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
from isonb.integrations.monitor import Gate, IsotropyMonitor
from isonb.losses import PersistentEntropyLoss
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
    if kind == "t5":
        texts = [torch.randint(3, 60, (6,), generator=draw) for _ in range(count)]
        return [{"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids[:4]} for ids in texts]
    name, inputs = {
        "bert": ("input_ids", lambda: torch.randint(5, 30, (5,), generator=draw)),
        "wav2vec2": ("input_values", lambda: torch.randn(600, generator=draw)),
        "vit": ("pixel_values", lambda: torch.randn(3, 16, 16, generator=draw)),
        "plain": ("pixels", lambda: torch.randn(3, 8, 8, generator=draw)),
    }[kind]
    return [{name: inputs(), "labels": torch.tensor(i % 2)} for i in range(count)]


def model(kind):
    torch.manual_seed(0)
    if kind == "bert":
        return tiny.model()
    if kind == "t5":
        return T5ForConditionalGeneration(T5Config(vocab_size=60, dropout_rate=0.0, **T5))
    if kind == "wav2vec2":
        sound = {"conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}
        sound |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
        return Wav2Vec2ForSequenceClassification(Wav2Vec2Config(**SMALL, **sound, mask_time_prob=0.0, layerdrop=0.0))
    if kind == "vit":
        return ViTForImageClassification(ViTConfig(**SMALL, image_size=16, patch_size=8))
    return Plain()


def trainer_of(kind, folder, steps=4, size=4, trainer=Trainer, changes=None, **more):
    options = {"max_steps": steps, "per_device_train_batch_size": size, **QUIET, **(changes or {})}
    arguments = TrainingArguments(str(folder), **options)
    return trainer(model=model(kind), args=arguments, train_dataset=rows(kind), **more)


LOGGED = {"logging_strategy": "steps", "logging_steps": 1}


def logs_of(trainer):
    return [entry for entry in trainer.state.log_history if "loss" in entry]


KINDS = ["t5", "vit", "wav2vec2", "plain"]


@pytest.mark.parametrize(("kind", "points"), [("t5", "cls"), ("t5", "tokens"), *((kind, "mean") for kind in KINDS)])
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
def test_the_penalty_of_the_mixin_reaches_models_of_every_kind(kind, tmp_path):
    calls = []

    def penalty(points):
        calls.append(tuple(points.shape))
        return 1 - isoscore(points)

    module = {"plain": "vectors"}.get(kind)
    pooling = {"points": "mean", "layers": -1 if module else "all", "module": module}
    trainer = trainer_of(kind, tmp_path, 1, 4, tiny.IsotropyTrainer, penalty=penalty, **pooling)
    trainer.args.gradient_accumulation_steps = 2
    trainer.train()
    assert calls[0] == ((8, 4) if kind == "plain" else (16, 16))


def test_the_points_are_those_of_the_encoder_and_its_mask():
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


@pytest.mark.parametrize("points", ["mean", "tokens"])
@pytest.mark.parametrize("module", ["bert.encoder.layer.1", "bert.encoder.layer.0.output"])
def test_of_a_part_without_a_mask_the_points_are_those_of_the_penalty(points, module):
    network, batch = tiny.model(), tiny.batch(tiny.sentences(4))
    monitor = IsotropyMonitor(every=1, pooling=Pooling(points), module=module)
    monitor._begin(network)
    network(**batch)
    got, (want, _) = monitor._points.take(), tiny.points(monitor.pooling, network, batch)
    torch.testing.assert_close(got, want.detach())


def test_packed_texts_have_no_points_of_their_own():
    network, texts = tiny.model(), {"input_ids": torch.tensor([[3, 4, 5]]), "position_ids": torch.tensor([[0, 1, 0]])}
    monitor = IsotropyMonitor(every=1, pooling=Pooling("mean"))
    monitor._begin(network)
    network(**texts)
    assert "a row must hold one text" in monitor._end(1).undefined["isoscore_unbiased"]


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        (Plain, {}, "must hold a transformers encoder or decoder; got Plain"),
        (Plain, {"module": "vector"}, r"module must name a submodule of Plain; got 'vector'. Try 'vectors'"),
        (lambda: nn.ModuleDict({"q": tiny.model(), "d": tiny.model()}), {}, "must hold one encoder; got q, d"),
        (tiny.model, {"pooling": Pooling(layers=9)}, "layers must name some of the 3 hidden states; got layers 9"),
    ],
)
def test_a_model_that_cannot_be_read_is_refused_when_attached(result, options, message):
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


def test_each_training_counts_from_zero_and_logs_its_own_values(tmp_path):
    monitor = IsotropyMonitor(every=3, stop=[Gate("mean_cosine", high=-1.0, patience=2)])
    for _ in range(2):
        trainer = trainer_of("bert", tmp_path, 3, changes=LOGGED)
        monitor.attach(trainer).attach(trainer)
        trainer.train()
        assert monitor.counts == [1]
        assert ["isonb/mean_cosine" in entry for entry in logs_of(trainer)] == [False, False, True]
        logged = logs_of(trainer)[-1]["isonb/mean_cosine"]
        assert logged == pytest.approx(monitor.events[-1].values["mean_cosine"])
    assert [event.step for event in monitor.events] == [3, 3]
    monitor.reset()
    assert monitor.counts == [0]


def test_an_interrupted_training_leaves_no_hook(tmp_path):
    trainer, calls = trainer_of("bert", tmp_path), []
    monitor = IsotropyMonitor(every=1).attach(trainer)
    before = tiny.hooks(trainer.model)

    def interrupt(module, *call):
        calls.append(tiny.hooks(trainer.model))
        raise KeyboardInterrupt

    handle = trainer.model.classifier.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    handle.remove()
    assert calls[0] > before + 1
    assert tiny.hooks(trainer.model) == before
    assert monitor._points.take() is None


def test_the_trainers_log_has_the_share_of_the_entropy(tmp_path):
    options = {"penalty": PersistentEntropyLoss(), "points": "tokens", "changes": LOGGED}
    trainer = trainer_of("bert", tmp_path, 2, trainer=tiny.IsotropyTrainer, **options)
    trainer.train()
    assert [0 < entry["isonb_entropy_share"] <= 1 for entry in logs_of(trainer)] == [True, True]


def test_what_is_no_trainer_is_refused():
    with pytest.raises(InputError, match=r"trainer must be a Trainer; got Linear. In a loop of your own call observe"):
        IsotropyMonitor().attach(torch.nn.Linear(2, 2))


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


def sentence_trainer(bert, folder, make, monitor=None):
    torch.manual_seed(0)
    encoder = SentenceTransformer(bert, device="cpu")
    texts = [f"{a} {b}." for a in ("A dog", "The rain", "Anna", "A road") for b in ("ran", "fell", "slept", "ended")]
    data = Dataset.from_dict({"anchor": texts * 4, "positive": [text.upper() for text in texts] * 4})
    arguments = SentenceTransformerTrainingArguments(str(folder), max_steps=3, per_device_train_batch_size=8, **QUIET)
    trainer = SentenceTransformerTrainer(model=encoder, args=arguments, train_dataset=data, loss=make(encoder))
    if monitor is not None:
        monitor.attach(trainer)
    trainer.train()
    return trainer


def matryoshka(model):
    return losses.MatryoshkaLoss(model, losses.MultipleNegativesRankingLoss(model), [16, 8, 4])


def adaptive(model):
    return losses.AdaptiveLayerLoss(model, losses.MultipleNegativesRankingLoss(model))


def cached(model):
    return losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=4)


@pytest.mark.filterwarnings("ignore:The model's embedding dimension")
@pytest.mark.parametrize("make", [matryoshka, adaptive, cached])
def test_losses_of_several_widths_and_layers_are_measured_at_the_full_vectors(make, bert, tmp_path):
    sizes = []
    monitor = IsotropyMonitor({"size": lambda x: sizes.append(tuple(x.shape)) or x.mean()}, every=1)
    watched, plain = sentence_trainer(bert, tmp_path, make, monitor), sentence_trainer(bert, tmp_path, make)
    assert sizes == [(16, 16)] * 3  # two columns of eight texts, sixteen dimensions
    assert torch.equal(tiny.weights(watched.model), tiny.weights(plain.model))


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

"""Contrastive tuning: the losses, what a method's penalty and layer see, what is left behind."""

import itertools
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
import torch
from torch import nn

from isonb.errors import DegenerateError
from isonb.integrations.hidden_states import Pooling
from isonb.models.loading import load
from isonb_lab.data.labelled_pairs import LabelledPairs
from isonb_lab.data.tasks import TaskError
from isonb_lab.encoders.vectors import SentenceVector, TokenizedSentences, first_token
from isonb_lab.engines import contrast
from isonb_lab.engines.contrast import OBJECTIVES, info_nce, tension_loss, tune
from isonb_lab.methods import Contrast, Method, methods
from tests.integrations import tiny
from tests.support import gpu

TEXTS = ["the cat sleeps", "a dog sees the old man", "men walk", "the women saw a cat and a dog", "she runs", "no rain"]
TURNED = TEXTS[1:] + TEXTS[:1]
SHORT = Contrast(steps=3, batch_size=4, learning_rate=1e-3)


@pytest.fixture
def encoder(bert):
    return load(bert)


def values(series, name):
    return [value for _, value in series[name]]


def test_info_nce_is_the_cross_entropy_of_cosines():
    first, second = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cosines = torch.cosine_similarity(first[:, None], second[None], dim=-1)
    torch.testing.assert_close(
        info_nce(first, second, 0.3), nn.functional.cross_entropy(cosines / 0.3, torch.arange(5))
    )
    assert info_nce(3 * first, first, 1e-3).item() == pytest.approx(0.0, abs=1e-12)


def test_tension_loss_is_the_binary_cross_entropy_of_products():
    first, second = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    same = torch.tensor([1, 0, 0, 1])
    p = torch.sigmoid((first * second).sum(-1))
    torch.testing.assert_close(tension_loss(first, second, same), nn.functional.binary_cross_entropy(p, same.double()))


PAIRS = LabelledPairs(TEXTS, TURNED, [0, 1, 2] * 2, ["entailment", "neutral", "contradiction"])
LABELLED = {"sbert": PAIRS, "supervised_simcse": LabelledPairs(TEXTS, TURNED, [0] * 6, PAIRS.names)}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_tuning_lowers_the_loss_and_leaves_a_frozen_model(objective, encoder):
    before, state = tiny.weights(encoder.model), torch.random.get_rng_state()
    settings = Contrast(objective, steps=30, batch_size=6, learning_rate=3e-3, negatives=2)
    series = tune(encoder, TEXTS, settings, seed=0, pairs=LABELLED.get(objective), progress=False)
    losses = values(series, "step.train.loss")
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    assert not torch.equal(tiny.weights(encoder.model), before)
    assert not encoder.model.training
    assert not any(p.requires_grad or p.grad is not None for p in encoder.model.parameters())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_tension_switches_its_rate_and_reads_the_second_sentences_with_its_twin(encoder):
    tokens = TokenizedSentences.read(encoder, TEXTS, 32)
    objective = OBJECTIVES["tension"](encoder, tokens, Contrast("tension", steps=10, learning_rate=1.0, negatives=2))
    calls = []
    objective.beside.register_forward_pre_hook(
        lambda _, args, settings: calls.append(settings["input_ids"]), with_kwargs=True
    )
    _, inputs = objective.loss([0, 1, 2, 3, 4, 5])
    rows, others = (
        [[i for i in row if i != tokens.pad] for row in ids.tolist()] for ids in (inputs["input_ids"], *calls)
    )
    assert [a == b for a, b in zip(rows, others, strict=True)] == [True, False, False, True, False, False]
    rates = []
    for _ in range(10):
        rates.append(round(objective.optimizer.param_groups[0]["lr"], 6))
        objective.optimizer.step()
        objective.schedule.step()
    assert rates == [1.0, 1.0, 0.8, 0.8, 0.6, 0.6, 0.4, 0.4, 0.2, 0.2]


class Vectors(nn.Module):
    """What a loss of Sentence Transformers asks of a model, of vectors that are there already."""

    device = torch.device("cpu")

    def forward(self, features):
        return {"sentence_embedding": features["vectors"]}


def test_losses_of_pairs_are_those_of_sentence_transformers(encoder):
    losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    triplets = LabelledPairs(
        [*TEXTS[:3], *TEXTS[:3]], [*TEXTS[3:], *TEXTS[4:], TEXTS[3]], [0] * 3 + [2] * 3, PAIRS.names
    )
    for name, pairs, sides in (("sbert", PAIRS, 2), ("supervised_simcse", triplets, 3)):
        tokens = TokenizedSentences.read(encoder, pairs.texts, 32)
        objective = OBJECTIVES[name](encoder, tokens, Contrast(name), pairs=pairs)
        calls, rows = [], list(range(objective.rows))
        hook = objective.vector.register_forward_hook(lambda _, __, out: calls.append(out))  # noqa: B023
        value, _ = objective.loss(rows)
        hook.remove()
        columns = [{"vectors": part} for part in calls[0].split(len(rows))]
        assert len(columns) == sides
        if name == "sbert":
            reference = losses.SoftmaxLoss(Vectors(), encoder.dim, 3)
            reference.classifier = objective.beside
            other = reference(columns, torch.tensor(pairs.labels))
        else:
            mapped = [{"vectors": objective.beside(column["vectors"])} for column in columns]
            other = losses.MultipleNegativesRankingLoss(Vectors(), scale=1 / 0.05)(mapped, torch.empty(0))
        assert value.item() == pytest.approx(other.item(), rel=1e-5)


def test_pairs_without_entailment_are_refused(encoder):
    pairs = LabelledPairs(TEXTS, TEXTS[::-1], [0] * 6, ["equivalent"])
    with pytest.raises(TaskError, match=r"needs pairs with the label entailment; got 0"):
        tune(encoder, TEXTS, Contrast("supervised_simcse"), seed=0, pairs=pairs, progress=False)


class Recorder(nn.Module):
    """A penalty that keeps the shapes of its points."""

    def __init__(self, power=1.0):
        super().__init__()
        self.shapes, self.power = [], power

    def forward(self, points):
        self.shapes.append(tuple(points.shape))
        return self.power * points.square().mean()


@dataclass(frozen=True)
class Penalised(Method):
    name: ClassVar[str] = "penalised"
    pooling: Pooling = field(default_factory=Pooling)

    def points(self):
        return self.pooling


@pytest.mark.parametrize("pooling", [Pooling(), Pooling("mean"), Pooling("tokens", "all"), Pooling("cls", [1, 2])])
def test_a_penalty_sees_each_sentence_once(pooling, encoder):
    recorder = Recorder()
    tune(encoder, TEXTS, SHORT, seed=0, method=Penalised(pooling=pooling), penalty=recorder, progress=False)
    tokens = TokenizedSentences.read(encoder, TEXTS, 32)
    order = [rows for _, rows in itertools.islice(contrast._batches(6, 4, 0), 3)]
    count = [4 if pooling.mode != "tokens" else sum(len(tokens.ids[row]) for row in rows) for rows in order]
    layers = 1 if pooling.layers == -1 else 2
    assert recorder.shapes == [(layers * n, 16) for n in count]


def test_the_penalty_is_part_of_the_loss_and_moves_the_model(bert):
    longer, tokens = Contrast(steps=20, batch_size=6, learning_rate=3e-3), Penalised(pooling=Pooling("tokens"))
    without, with_it = (
        tune(load(bert), TEXTS, longer, seed=0, method=tokens, penalty=Recorder(power), progress=False)
        for power in (0.0, 50.0)
    )
    assert values(without, "step.train.penalty") == [0.0] * 20
    added = values(with_it, "step.train.penalty")
    first = values(with_it, "step.train.loss")[0] - values(without, "step.train.loss")[0]
    assert first == pytest.approx(added[0], rel=1e-4)
    # layer norm holds the length of tokens, so what a penalty can do here is little
    assert added[-1] < added[0]


def test_a_loss_that_isnt_finite_is_refused_and_the_model_frozen(encoder):
    with pytest.raises(DegenerateError, match=r"contrastive tuning must be finite; got .* at update 1"):
        tune(encoder, TEXTS, SHORT, seed=0, penalty=Recorder(float("inf")), progress=False)
    assert not encoder.model.training
    assert not any(p.requires_grad for p in encoder.model.parameters())


class Scale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.raw, self.calls = nn.Parameter(torch.ones(dim)), 0

    def forward(self, x, mask=None):
        self.calls += self.training
        return x * self.raw


@pytest.mark.parametrize("site", ["tokens", "vector", "pooled"])
def test_the_layer_is_trained_at_its_site_with_its_own_rate(site, encoder):
    @dataclass(frozen=True)
    class Layered(Method):
        def learning_rates(self):
            return {"raw": 0.5}

    vector = SentenceVector(first_token(encoder), Scale(16), site)
    tune(encoder, TEXTS, Contrast(steps=1, batch_size=6, learning_rate=0.0), seed=0, method=Layered(), vector=vector)
    assert vector.layer.calls == 1
    assert not vector.training
    moved = (vector.layer.raw - 1).abs()
    assert moved.max() == pytest.approx(0.5, rel=1e-3)  # the first update of AdamW has the size of the rate
    assert not vector.layer.raw.requires_grad


@gpu
@pytest.mark.parametrize("objective", ["simcse", "tension"])
def test_tuning_on_an_accelerator(objective, bert):
    encoder = load(bert, device="cuda")
    settings = Contrast(objective, steps=2, batch_size=4, learning_rate=1e-3, negatives=1)
    state = torch.cuda.get_rng_state()
    series = tune(encoder, TEXTS, settings, seed=0, method=methods()["istar"](), progress=False)
    assert len(series["step.train.penalty"]) == 2
    assert torch.equal(torch.cuda.get_rng_state(), state)

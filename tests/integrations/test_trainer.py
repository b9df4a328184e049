"""The Trainer with a penalty: one update, however it is cut into micro-batches."""

from functools import partial

import pytest
import tiny
import torch
import torch.distributed as dist
from gloo import run
from support import normal
from tiny import IsotropyTrainer
from torch import Tensor
from torch.utils.data import IterableDataset
from transformers import Trainer, TrainingArguments

from isonb.errors import InputError, PrecisionWarning, ShapeError
from isonb.integrations.hidden_states import Pooling
from isonb.integrations.trainer import IsotropyTrainerMixin
from isonb.integrations.union import asked, carrying, penalty_gradients, rehearsal, value_of
from isonb.losses import (
    CosRegLoss,
    GORLoss,
    IsoScoreLoss,
    IStarLoss,
    PersistentEntropyLoss,
    SIGRegLoss,
    SpectrumControlLoss,
)
from isonb.measures.isoscore import isoscore
from isonb.streaming.moments import Moments


def one_minus_isoscore(points: Tensor) -> Tensor:
    """Not additive: the value of a union isn't the mean of the values of its parts."""
    return 3 * (1 - isoscore(points))


def between_labels(points: Tensor, labels: Tensor | None) -> Tensor:
    """Uses the labels, to show that they arrive in the order of the points."""
    assert labels is not None
    means = torch.stack([points[labels == label].mean(0) for label in (0, 1)])
    return -(means[0] - means[1]).square().sum()


def trainer_of(
    folder, parts=1, size=8, rows=20, kind="bert", dropout=0.0, seed=0, trainer=IsotropyTrainer, changes=None, **options
):
    """A trainer on batches of ``size`` in ``parts`` micro-batches."""
    if trainer is IsotropyTrainer:
        options = {"penalty": one_minus_isoscore} | options
    micro = {"per_device_train_batch_size": size // parts, "gradient_accumulation_steps": parts}
    return trainer(
        model=tiny.model(kind, dropout, seed),
        args=TrainingArguments(**tiny.arguments(folder, **micro, **(changes or {}))),
        train_dataset=tiny.sentences(rows),
        eval_dataset=tiny.sentences(6),
        **options,
    )


def train(*places, **options):
    """The same after two updates."""
    trainer = trainer_of(*places, **options)
    trainer.train()
    return trainer


def assert_same_weights(first, other, atol=1e-12):
    torch.testing.assert_close(tiny.weights(first.model), tiny.weights(other.model), rtol=0, atol=atol)


EVERY = {"points": "tokens", "layers": "all"}
CASES = {
    "cls": {"points": "cls"},
    "labels": {"points": "cls", "penalty": between_labels},
    "two layers": {"points": "mean", "layers": [0, 1], "penalty": between_labels},
    "tokens": EVERY,
    "pads": EVERY | {"include_pads": True},
    "an uneven last batch": {"rows": 14},
}
LOSSES = {
    "entropy": {"points": "cls", "penalty": PersistentEntropyLoss(select=False, min_points=2)},
    "selected bars": {"points": "cls", "penalty": PersistentEntropyLoss(min_points=2, in_cluster=0.5)},
    "entropy of all tokens": {"points": "tokens", "penalty": PersistentEntropyLoss(select=False)},
    "I-STAR": EVERY | {"penalty": IStarLoss(2.0)},
    "I-STAR, running": EVERY | {"penalty": IStarLoss(2.0), "running_shrinkage": True},
    "I-STAR unbiased": EVERY | {"penalty": IStarLoss(-1.0, unbiased=True)},
    "CosReg": {"points": "tokens", "penalty": CosRegLoss(2.0)},
    "IsoScore": {"points": "mean", "penalty": IsoScoreLoss(weight=0.2)},
    "spectrum": {"points": "mean", "penalty": SpectrumControlLoss(0.1)},
    "GOR": {"points": "cls", "penalty": GORLoss(0.5)},
    "SIGReg": {"points": "cls", "penalty": SIGRegLoss(0.1, 20, seed=0, normalize=True)},
}


CUT = CASES | {name: LOSSES[name] for name in ("selected bars", "I-STAR", "I-STAR, running")}


@pytest.mark.parametrize("options", CUT.values(), ids=CUT)
def test_four_micro_batches_make_the_same_update_as_one(tmp_path, options):
    whole, cut = (train(tmp_path, parts, **options) for parts in (1, 4))
    assert_same_weights(cut, whole)
    for now, then in zip(cut.state.log_history[:2], whole.state.log_history[:2], strict=True):
        assert now["isonb_penalty"] == pytest.approx(then["isonb_penalty"], abs=1e-12)
        assert now["loss"] == pytest.approx(then["loss"], abs=1e-6)  # the Trainer sums losses in float32


def train_on_this_rank(folder):
    """Each loss, some with one and all with two micro-batches, on this process's share of the same batches."""
    gloo, result = {"changes": {"ddp_backend": "gloo"}}, {}
    for name, options in LOSSES.items():
        for parts in (1, 2) if name in ("entropy", "I-STAR") else (2,):
            trained = train(folder, parts, size=8 // dist.get_world_size(), **gloo, **options)
            result[name, parts] = tiny.weights(trained.model), trained.state.log_history[0]["isonb_penalty"]
    return result


@pytest.mark.slow
def test_two_processes_make_the_same_update(tmp_path):
    both = run(train_on_this_rank, tmp_path)
    wholes = {name: train(tmp_path, 1, **options) for name, options in LOSSES.items()}
    for (name, parts), (weights, penalty) in (item for result in both for item in result.items()):
        whole = wholes[name]
        off = (weights - tiny.weights(whole.model)).abs().max().item()
        assert off < 1e-10, f"{name}, {parts} micro-batches: weights differ by {off}"
        assert penalty == pytest.approx(whole.state.log_history[0]["isonb_penalty"], abs=1e-10), name


def test_the_shrinkage_covariance_is_measured_at_each_epochs_start(tmp_path, monkeypatch):
    measured = []

    class Watched(IStarLoss):
        def forward(self, points, shrinkage_cov=None, mask=None):
            measured.append(shrinkage_cov)
            return super().forward(points, shrinkage_cov, mask)

    epochs = {"max_steps": -1, "num_train_epochs": 2}
    options = EVERY | {"dropout": 0.3, "rows": 16, "changes": epochs}
    trained = train(tmp_path, 1, penalty=Watched(0.0), **options)
    assert len(measured) == 4
    assert torch.equal(measured[0], measured[1])
    assert not torch.equal(measured[1], measured[2])
    points, _ = tiny.points(Pooling("tokens", "all"), tiny.model(dropout=0.3).eval(), tiny.batch(tiny.sentences(16)))
    torch.testing.assert_close(measured[0], Moments().update(points).cov)
    # data order and dropout go on as if nothing had been measured
    assert_same_weights(trained, train(tmp_path, 1, trainer=Trainer, dropout=0.3, rows=16, changes=epochs), atol=0)
    few = train(tmp_path, 1, penalty=Watched(0.0), shrinkage_rows=10, **options)
    assert not torch.equal(few.shrinkage.cov, trained.shrinkage.cov)
    assert_same_weights(few, trained, atol=0)


@pytest.mark.parametrize("options", [{"zeta": "auto"}, {"zeta": 0}, {"unbiased": True}], ids=str)
def test_an_istar_that_gives_the_covariance_no_weight_measures_none(tmp_path, options):
    loss = IStarLoss(**options)
    trained = train(tmp_path, penalty=loss, **EVERY)
    assert trained.shrinkage is None
    assert_same_weights(trained, train(tmp_path, penalty=lambda points: loss(points), **EVERY), atol=0)


class Compared(IStarLoss):
    """Compares its value with that by the covariance of the training data at the same step."""

    trainer, values = None, ()

    def forward(self, points, shrinkage_cov=None, mask=None):
        model, rows = self.trainer.model.eval(), tiny.batch(self.trainer.train_dataset)
        with torch.no_grad():
            exact = tiny.points(Pooling("tokens", "all"), model, rows)[0].T.cov()
        model.train()
        value, want = (super(Compared, self).forward(points, cov, mask) for cov in (shrinkage_cov, exact))
        self.values += (abs(value - want).item(),)
        return value


def test_a_running_covariance_is_as_near_to_that_of_the_step_as_one_of_each_epoch(tmp_path):
    """Steps so large that the covariance moves by half in an epoch, and dropout, which the running one has in it."""
    changes = {"max_steps": -1, "num_train_epochs": 3, "learning_rate": 0.005}
    passes, largest = [], []
    for running in (True, False):
        penalty = Compared(-1.0)
        options = EVERY | {"penalty": penalty, "running_shrinkage": running}
        trainer = penalty.trainer = trainer_of(tmp_path, rows=64, dropout=0.1, changes=changes, **options)
        measure, counted = trainer.shrinkage.refresh, []
        trainer.shrinkage.refresh = lambda *args, measure=measure, counted=counted: counted.append(measure(*args))
        trainer.train()
        assert len(penalty.values) == 24
        assert penalty.values[0] < 1e-12  # begins as in the paper
        passes.append(len(counted))
        largest.append(max(penalty.values))
    assert passes == [1, 3]
    assert 1e-3 < largest[0] < min(0.07, 1.5 * largest[1])


@pytest.mark.parametrize(("start", "running"), [(2, False), (4, False), (4, True), (6, True)])
def test_a_resumed_training_goes_on_with_the_covariance_of_its_epoch(tmp_path, start, running):
    """Four updates an epoch: 2 and 6 are in the middle of one, 4 is the end of the first."""
    options = EVERY | {"penalty": IStarLoss(-1.0), "running_shrinkage": running}
    saving = {"max_steps": 8, "save_strategy": "steps", "save_steps": 2, "learning_rate": 0.05}
    whole = train(tmp_path, size=4, rows=16, changes=saving, **options)
    again = trainer_of(tmp_path / "again", size=4, rows=16, seed=5, changes=saving, **options)
    again.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{start}"))
    assert again.state.global_step == 8
    assert torch.equal(tiny.weights(whole.model), tiny.weights(again.model))
    assert torch.equal(whole.shrinkage.cov, again.shrinkage.cov)


def test_weights_in_half_precision_are_warned_of(tmp_path):
    args = TrainingArguments(**tiny.arguments(tmp_path))
    message = r"weights in torch.bfloat16 are trained .* dtype=torch.float32, and train in half"
    with pytest.warns(PrecisionWarning, match=message):
        IsotropyTrainer(model=tiny.model().bfloat16(), args=args, penalty=None)
    frozen = tiny.model().bfloat16().requires_grad_(False)
    frozen.classifier.float().requires_grad_(True)
    IsotropyTrainer(model=frozen, args=args, penalty=None)


class MeanOfMeans(Trainer):
    """The plain Trainer told that its loss isn't scaled, as it is with this classifier."""

    loss_is_scaled_for_ga = False


class IsotropyMeanOfMeans(IsotropyTrainerMixin, MeanOfMeans):
    """The mixin over a Trainer that is told so."""


def summed(outputs, labels, num_items_in_batch=None):
    return torch.nn.functional.cross_entropy(outputs.logits, labels, reduction="sum") / num_items_in_batch


class Summed(Trainer):
    """A loss that honours num_items_in_batch, as causal language models have."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = summed(outputs, inputs["labels"], num_items_in_batch or len(inputs["labels"]))
        return (loss, outputs) if return_outputs else loss


class IsotropySummed(IsotropyTrainerMixin, Summed):
    """The mixin over a Trainer with a loss of its own."""


def halves(points):
    return (one_minus_isoscore(points[:4]) + one_minus_isoscore(points[4:])) / 2


SMOOTH = {"changes": {"label_smoothing_factor": 0.1}, "penalty": between_labels}
SAME = {  # an update in so many micro-batches, and what it equals in one
    **{kind: (2, EVERY | {"kind": kind}, EVERY | {"kind": kind}) for kind in ("albert", "gpt2")},
    "gradient checkpointing": (2, EVERY | {"changes": {"gradient_checkpointing": True}}, EVERY),
    "labels that are smoothed": (2, SMOOTH, SMOOTH),
    "a loss function": (2, {"compute_loss_func": summed, "penalty": between_labels}, {"penalty": between_labels}),
    "a loss that is scaled": (2, {"trainer": IsotropySummed, "penalty": one_minus_isoscore}, {}),
    "a loss that is told not to be scaled": (2, {"trainer": IsotropyMeanOfMeans, "penalty": one_minus_isoscore}, {}),
    "the mean over micro-batches": (2, {"per_micro_batch": True}, {"penalty": halves}),
}


# transformers 6 will rename the method that the Trainer calls; both names work today
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing.*` is deprecated:FutureWarning")
@pytest.mark.parametrize(("parts", "cut", "whole"), SAME.values(), ids=SAME)
def test_other_models_losses_and_trainers_make_the_same_update(tmp_path, parts, cut, whole):
    assert_same_weights(train(tmp_path, parts, **cut), train(tmp_path, 1, **whole))


def test_the_update_is_minus_the_gradient_of_loss_plus_penalty(tmp_path):
    trained = train(tmp_path, 2, size=20, changes={"max_steps": 1}, weight=0.7, points="tokens", layers="all")
    model = tiny.model()
    before, pooling = tiny.weights(model), Pooling("tokens", "all")
    batch = tiny.batch(tiny.sentences(20))
    with pooling.watch(model) as states:
        loss = model(**batch).loss
    (loss + 0.7 * one_minus_isoscore(pooling.points(states, batch)[0])).backward()
    slope = torch.cat([w.grad.flatten() for w in model.parameters()])
    torch.testing.assert_close(tiny.weights(trained.model), before - 0.5 * slope, rtol=0, atol=1e-12)


def test_weight_zero_and_no_penalty_are_the_plain_trainer(tmp_path):
    plain = train(tmp_path, 1, dropout=0.3, trainer=Trainer)
    assert_same_weights(train(tmp_path, 1, dropout=0.3, weight=0.0), plain, atol=0)
    bare = train(tmp_path, 1, penalty=None, dropout=0.3)
    assert_same_weights(bare, plain, atol=0)
    assert [log.keys() for log in bare.state.log_history] == [log.keys() for log in plain.state.log_history]


def test_what_a_penalty_draws_does_not_touch_dropout(tmp_path):
    drawn = []

    def noisy(points):
        drawn.append(torch.randn(3))
        return 0 * points.sum()

    plain = train(tmp_path, 2, dropout=0.3, trainer=MeanOfMeans)
    assert_same_weights(train(tmp_path, 2, dropout=0.3, penalty=noisy), plain)
    assert len(drawn) == 2
    assert not torch.equal(*drawn)


def test_the_log_holds_the_penalty_and_evaluation_does_not(tmp_path):
    trained = train(tmp_path, 2, weight=2.0, changes={"logging_steps": 2})
    first = trained.state.log_history[0]
    plain = train(tmp_path, 2, weight=2.0, changes={"logging_steps": 1})
    each = [entry["isonb_penalty"] for entry in plain.state.log_history[:2]]
    assert first["isonb_penalty"] == pytest.approx(sum(each) / 2, abs=1e-12)
    assert 0 < first["isonb_penalty"] < first["loss"]
    model = trained.model.eval()
    with torch.no_grad():
        want = model(**tiny.batch(tiny.sentences(6))).loss.item()
    assert trained.evaluate()["eval_loss"] == pytest.approx(want, abs=1e-6)
    assert "isonb_penalty" not in trained.state.log_history[-1]


class Endless(IterableDataset):
    """Two batches an epoch, as nobody knows before its end."""

    def __iter__(self):
        return iter(tiny.sentences(16))


def test_the_logged_mean_is_over_updates_where_an_epochs_length_is_not_known(tmp_path):
    each, all_four = (trainer_of(tmp_path, changes={"max_steps": 4, "logging_steps": steps}) for steps in (1, 4))
    for trainer in (each, all_four):
        trainer.train_dataset = Endless()
        trainer.train()
    want = sum(entry["isonb_penalty"] for entry in each.state.log_history[:4]) / 4
    assert all_four.state.log_history[0]["isonb_penalty"] == pytest.approx(want, abs=1e-12)


def test_typed_errors(tmp_path, monkeypatch):
    frozen = tiny.model()
    frozen.bert.requires_grad_(False)
    args = TrainingArguments(**tiny.arguments(tmp_path))
    trainer = IsotropyTrainer(model=frozen, args=args, train_dataset=tiny.sentences(8), penalty=one_minus_isoscore)
    with pytest.raises(InputError, match="must depend on trainable weights"):
        trainer.train()
    for unused in ({"running_shrinkage": True}, {"shrinkage_rows": 10}):
        with pytest.raises(InputError, match=r"running_shrinkage must come with a penalty that uses .* got CosRegLoss"):
            trainer_of(tmp_path, penalty=CosRegLoss(), **unused)
    monkeypatch.setattr(TrainingArguments, "n_gpu", 2)
    with pytest.raises(InputError, match=r"each process must have one device; got 2 under nn\.DataParallel"):
        train(tmp_path)


def test_half_precision_points_get_a_float32_gradient_that_does_not_underflow():
    points = [normal(4, 3, dtype=torch.float16).requires_grad_()]
    _, (gradient,) = penalty_gradients(lambda x, labels: 1e-9 * x.sum(), [(points[0], None)])
    assert gradient.dtype == torch.float32
    assert bool((gradient > 0).all())
    scaled = torch.autograd.grad(2.0**16 * carrying(points[0], gradient), points[0])[0]
    assert bool((scaled > 0).all())


def test_a_constant_penalty_and_one_that_skips_a_part_give_zero():
    parts = [normal(2, 3), normal(2, 3, seed=1)]
    for penalty in (lambda x, labels: x.new_zeros(()), lambda x, labels: x[:2].sum()):
        _, gradients = penalty_gradients(penalty, [(part, None) for part in parts])
        assert bool((gradients[1] == 0).all())


@pytest.mark.parametrize(("result", "got"), [(lambda x: x.sum(-1), r"shape \(5,\)"), (lambda x: 1.0, "float")])
def test_a_penalty_that_is_not_one_number_is_refused(result, got):
    for look in (
        lambda: value_of(result, normal(5, 3)),
        lambda: penalty_gradients(lambda x, labels: result(x), [(normal(5, 3), None)]),
    ):
        with pytest.raises(ShapeError, match=f"a penalty must return a tensor of one number; got {got}"):
            look()


class Counting(torch.nn.Module):
    """Dropout, and a running statistic as batch normalisation has one."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return torch.nn.functional.dropout(self.linear(x), 0.5)


def test_a_rehearsal_repeats_dropout_and_keeps_buffers():
    model, x = Counting(), normal(4, 8, dtype=torch.float32)
    with rehearsal(model):
        first = [model(x), model(x)]
        assert not first[0].requires_grad
    again = [model(x), model(x)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(*first)
    assert model.calls == 2


def test_a_rehearsal_that_fails_leaves_no_trace_either():
    model, state = Counting(), torch.get_rng_state()
    with pytest.raises(RuntimeError, match="cannot be multiplied"), rehearsal(model):
        model(torch.ones(4, 7))  # counted, then refused
    assert model.calls == 0
    assert torch.equal(torch.get_rng_state(), state)


def test_a_penalty_that_is_compiled_or_partly_called_gets_what_it_takes():
    offers = {"labels": 3, "shrinkage_cov": 4}
    entropy, star = PersistentEntropyLoss(), IStarLoss()
    for loss, name in ((entropy, "labels"), (star, "shrinkage_cov")):
        compiled = torch.compile(loss, backend="eager")
        for penalty in (loss, compiled, partial(loss), partial(compiled), loss.forward):
            assert asked(penalty, **offers) == {name: offers[name]}
    star_alone = IStarLoss(unbiased=True)
    for penalty in (star_alone, torch.compile(star_alone, backend="eager"), partial(star_alone), star_alone.forward):
        assert asked(penalty, **offers) == {}
    assert asked(partial(star, shrinkage_cov=torch.eye(2)), **offers) == {}  # given once for all


def test_a_graph_that_waits_outlives_a_rehearsal():
    """It holds buffers, as BERT's holds the places of its words; the rehearsal puts them back without touching them."""
    model, weight = torch.nn.Linear(8, 8), torch.nn.Parameter(torch.ones(4, 1))
    model.register_buffer("places", torch.arange(4))
    waiting = torch.nn.functional.embedding(model.places, weight).sum()
    with rehearsal(model):
        model(torch.ones(4, 8))
    waiting.backward()
    assert weight.grad.flatten().tolist() == [1.0] * 4


def test_weights_cast_in_a_rehearsal_do_not_lose_their_graph_under_autocast():
    model, x = torch.nn.Linear(8, 8), normal(4, 8, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with rehearsal(model):
            model(x)
        model(x).float().sum().backward()
    assert model.weight.grad is not None
    assert bool(model.weight.grad.any())

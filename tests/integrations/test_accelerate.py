"""The Accelerate loop: one update on any number of micro-batches and processes, every row measured once."""

from types import SimpleNamespace

import pytest
import tiny
import torch
from accelerate import Accelerator
from accelerate.data_loader import prepare_data_loader
from accelerate.state import AcceleratorState, GradientState, PartialState
from gloo import run
from support import assert_same
from torch.utils.data import DataLoader

from isonb.errors import FitWarning, InputError, ShapeError
from isonb.integrations.accelerate import groups, measure, own_rows, update
from isonb.integrations.hidden_states import Pooling
from isonb.losses import CosRegLoss, IStarLoss, PersistentEntropyLoss
from isonb.losses.istar import ShrinkageCovariance
from isonb.measures.isoscore import isoscore
from isonb.metrics import IsoScore

pytestmark = pytest.mark.filterwarnings("ignore:without shrinkage_cov:isonb.errors.FitWarning")
CASES = {
    "I-STAR": (IStarLoss(2.0), Pooling("tokens", "all")),
    "entropy": (PersistentEntropyLoss(select=False, min_points=2), Pooling("cls")),
}
ROWS = tiny.sentences(22)


@pytest.fixture(autouse=True)
def fresh():
    """Accelerate keeps its state in classes; the tests must not find one another's."""
    yield
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def train(name, size, parts):
    """Two updates of 8 rows: ``size`` a micro-batch on each process."""
    penalty, pooling = CASES[name]
    accelerator, model = Accelerator(cpu=True), tiny.model()
    loader = DataLoader(ROWS, batch_size=size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    logs = []
    for batches, _ in zip(groups(loader, parts), range(2), strict=False):
        logs.append(update(accelerator, model, optimizer, batches, penalty, pooling, weight=0.5))
    return tiny.weights(model), [log["isonb_penalty"] for log in logs], [log["task"] for log in logs]


def score(size):
    accelerator, model = Accelerator(cpu=True), tiny.model()
    model, loader = accelerator.prepare(model, DataLoader(ROWS, batch_size=size))
    metric = measure(accelerator, model, loader, IsoScore(), Pooling("mean"))
    return metric.compute()


def want_score():
    with torch.no_grad():
        points, _ = tiny.points(Pooling("mean"), tiny.model().eval(), tiny.batch(ROWS))
    return isoscore(points)


@pytest.mark.parametrize("name", CASES)
def test_micro_batches_make_the_same_update(name):
    assert_same(train(name, 2, 4), train(name, 8, 1), rtol=1e-6, atol=1e-9)


def one_update(parts=1, **options):
    """A batch of eight in ``parts``; weights before and after, the log, the rate that is left."""
    model, rows = tiny.model(), 8 // parts
    batches = [tiny.batch(ROWS[low : low + rows]) for low in range(0, 8, rows)]
    accelerator, before = Accelerator(cpu=True), tiny.weights(model).clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
    pooling = Pooling("tokens", "all")
    options = {"penalty": IStarLoss(2.0), "pooling": pooling} | options
    options = {key: scheduler if value == "its own" else value for key, value in options.items()}
    log = update(accelerator, model, optimizer, batches, **options)
    return before, tiny.weights(model), log, optimizer.param_groups[0]["lr"]


def test_the_update_is_minus_the_gradient_of_loss_plus_penalty():
    pooling, fresh, batch = Pooling("tokens", "all"), tiny.model(), tiny.batch(ROWS[:8])
    before, after, log, _ = one_update(weight=0.5)
    with pooling.watch(fresh) as states:
        loss = fresh(**batch).loss
    extra = 0.5 * IStarLoss(2.0)(pooling.points(states, batch)[0])
    (loss + extra).backward()
    assert_same(after, before - 0.5 * torch.cat([w.grad.flatten() for w in fresh.parameters()]))
    assert_same(log["isonb_penalty"], extra.detach())
    assert log["task"].item() == pytest.approx(loss.item(), abs=1e-6)


def test_an_update_without_the_covariance_of_a_larger_sample_warns():
    with pytest.warns(FitWarning, match="without shrinkage_cov"):
        one_update()


def test_the_gradient_of_both_together_is_clipped():
    before, free, log, _ = one_update(2)
    assert "grad_norm" not in log
    length = ((free - before) / 0.5).norm().item()
    _, after, log, _ = one_update(2, max_norm=length / 4)
    assert log["grad_norm"].item() == pytest.approx(length, rel=1e-6)
    assert_same(after - before, (free - before) / 4, rtol=1e-4, atol=1e-9)
    assert_same(one_update(2, max_norm=2 * length)[1], free)


def test_the_shrinkage_covariance_reaches_the_penalty():
    cov = torch.eye(8).double() * 3
    _, after, log, _ = one_update(2, shrinkage_cov=cov)
    _, want, expected, _ = one_update(2, penalty=lambda points: IStarLoss(2.0)(points, cov))
    assert_same(after, want, rtol=1e-9)
    assert_same(log["isonb_penalty"], expected["isonb_penalty"])
    assert [one_update(2, scheduler=item)[3] for item in (None, "its own")] == [0.5, 0.25]
    assert (after - one_update(2)[1]).abs().max() > 1e-4
    for penalty in (CosRegLoss(), IStarLoss(unbiased=True)):
        with pytest.raises(InputError, match=f"must use a shrinkage_cov where .* got {type(penalty).__name__}"):
            one_update(penalty=penalty, shrinkage_cov=cov)


def test_a_penalty_that_is_not_one_number_is_refused():
    for parts in (1, 2):
        with pytest.raises(ShapeError, match="a penalty must return a tensor of one number; got float"):
            one_update(parts, penalty=lambda points: 1.0)


def test_a_batch_without_labels_is_refused():
    with pytest.raises(InputError, match=r"each batch must have labels, .*; got batch 0 with input_ids"):
        update(None, tiny.model(), None, [{"input_ids": ROWS[0]["input_ids"]}], *CASES["I-STAR"])


def test_an_accelerator_that_accumulates_by_itself_is_refused():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    with pytest.raises(InputError, match="gradient_accumulation_steps of the Accelerator must be 1; got 4"):
        update(accelerator, None, None, [], *CASES["entropy"])


def test_every_row_is_measured_once():
    assert_same(score(5), want_score())


def test_a_group_of_no_batch_is_refused_and_not_an_empty_training():
    with pytest.raises(InputError, match="size must be 1 or more batches; got 0"):
        list(groups([{"n": 1}], 0))


@pytest.mark.parametrize("even", [True, False])
def test_each_row_is_one_process_own_whether_batches_are_filled_up_or_not(even):
    """Five rows, two a batch: of the second process the last batch is whole, unless it is filled up with copies."""
    count = 0
    for process in (0, 1):
        loader = prepare_data_loader(
            DataLoader(range(5), 2), num_processes=2, process_index=process, put_on_device=False, even_batches=even
        )
        accelerator = SimpleNamespace(gradient_state=GradientState(), process_index=process, even_batches=even)
        count += sum(own_rows(accelerator, len(batch)) for batch in loader)
    assert count == 5


def test_a_measurement_leaves_the_model_and_the_random_numbers_as_they_were():
    accelerator, model = Accelerator(cpu=True), tiny.model(dropout=0.5).train()
    flags, state = [module.training for module in model.modules()], torch.get_rng_state()
    measure(accelerator, model, accelerator.prepare(DataLoader(ROWS, 5, shuffle=True)), IsoScore(), Pooling("mean"))
    assert [module.training for module in model.modules()] == flags
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("seeded", [False, True])
def test_a_covariance_of_each_epoch_leaves_the_order_of_the_rows(seeded):
    """Of one of two processes, whose loaders hold the generator deep inside."""

    def order(shrinkage):
        Accelerator(cpu=True)
        model, loader, rows = tiny.model(), DataLoader(ROWS, 4, shuffle=True), []
        places = {"num_processes": 2, "process_index": 0, "put_on_device": False}
        loader = prepare_data_loader(loader, use_seedable_sampler=seeded, **places)
        for _ in range(2):
            if shrinkage is not None:
                shrinkage.refresh(model, loader)
            rows += [batch["input_ids"] for batch in loader]
        return torch.cat(rows)

    assert torch.equal(order(None), order(ShrinkageCovariance()))


def on_this_rank():
    result = {(name, parts): train(name, 4 // parts, parts) for name in CASES for parts in (1, 2)}
    return result | {size: score(size) for size in (3, 4, 5, 16)}


@pytest.mark.slow
def test_two_processes():
    for result in run(on_this_rank):
        for name in CASES:
            for parts in (1, 2):
                assert_same(result[name, parts], train(name, 8, 1), rtol=1e-6, atol=1e-9)
        for size in (3, 4, 5, 16):  # 22 rows: the last batches are filled up with copies
            assert_same(result[size], want_score())

"""Losses: saved values and gradients, published numbers, degenerate batches, mixed precision, shrinkage covariance."""

import math

import numpy as np
import pytest
import torch
from golden_cases import assert_matches, cases, load, shrinkage, values
from laws import LOSSES
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from support import Q8, as_on_an_accelerator, assert_same, check_gradient, check_rejects, leaf, normal, uneven
from torch import nn

from isonb.barcodes.entropy import prominent_bars
from isonb.checks import strict
from isonb.errors import DegenerateError, DtypeError, InputError, NotFittedError, ShapeError
from isonb.losses import (
    CosRegLoss,
    GaoCosineLoss,
    GORLoss,
    IsoScoreLoss,
    IStarLoss,
    JointLoss,
    PersistentEntropyLoss,
    ShrinkageCovariance,
    SpectrumControlLoss,
)
from isonb.losses.common import attached_zero
from isonb.losses.sigreg import random_directions, sigreg_penalty
from isonb.points import points_from_hidden_states

SAVED = {case: values("losses", case) for case in cases("losses")}
P4 = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]], dtype=torch.float64)


def slope(loss, x, *args):
    x = leaf(x)
    value = loss(x, *args)
    return value.detach(), torch.autograd.grad(value, x)[0]


@pytest.mark.parametrize(("case", "kind"), [(case, kind) for case in SAVED for kind in SAVED[case]["entropy"]])
def test_saved_entropy(case, kind):
    saved = SAVED[case]["entropy"][kind]
    options = {"select": "all_bars" not in kind, "in_cluster": 0.5 if "0.5" in kind else 0.0}
    loss = PersistentEntropyLoss(**options, max_dim=int(kind.endswith("_with_h1")))
    value, grad = slope(loss, load(case)["points"])
    assert value.item() == pytest.approx(-saved["value"], rel=1e-9)
    if case != "ties_dups_32x8":  # which of tied edges is in the tree is arbitrary
        assert_matches(-grad, saved["grad"])


@pytest.mark.parametrize("case", SAVED)
def test_saved_istar_and_cosreg(case):
    x, saved = load(case)["points"], SAVED[case]
    value, grad = slope(IStarLoss(weight=-2.0), x, shrinkage(case))
    assert value.item() == pytest.approx(-2 * (1 - saved["isoscore_star"]["value_zeta_0.2_saved_c0"]), rel=1e-9)
    # saved with a singular-value decomposition; on ties its gradient loses digits
    assert_matches(grad / 2, saved["isoscore_star"]["grad_zeta_0.2_saved_c0"], rtol=1e-8, atol=1e-11)
    value, grad = slope(CosRegLoss(weight=3.0), x)
    assert value.item() == pytest.approx(3 * saved["cosreg"]["value"], rel=1e-9, abs=1e-12)
    assert_matches(grad / 3, saved["cosreg"]["grad"], atol=1e-14)
    assert_same(GaoCosineLoss(weight=3.0)(x), value)


def test_published_numbers():
    assert IStarLoss(1.0, 0.3)(P4, torch.eye(2)).item() == pytest.approx(1 - 0.628944, abs=1e-6)
    assert IsoScoreLoss(unbiased=True)(Q8).item() == pytest.approx(-math.log(0.594711), abs=1e-5)
    assert IStarLoss(zeta="auto")(Q8).item() == pytest.approx(1 - 0.586115, abs=1e-5)


def test_joint_loss_follows_the_published_steps():
    joint = JointLoss(s=0.15).double()
    totals = []
    for l1, l2 in ((1.0, 4.0), (0.8, 3.5), (0.6, 3.0)):
        totals.append(joint(*torch.tensor([l1, l2], dtype=torch.float64)).item())
        if len(totals) == 2:
            assert (joint.mean1.item(), joint.mean2.item()) == pytest.approx((0.985, 3.9625), rel=1e-13)
    assert totals == pytest.approx([2.5, 2.09375, 1.689862], abs=1e-6)
    state = {name: value.clone() for name, value in joint.state_dict().items()}
    assert set(state) == {"mean1", "mean2", "step"}
    joint.eval()(torch.tensor(9.0), torch.tensor(9.0))
    assert all(torch.equal(value, state[name]) for name, value in joint.state_dict().items())
    restored = JointLoss().double()
    restored.load_state_dict(state)
    again = joint.train()(torch.tensor(0.5).double(), torch.tensor(2.0).double())
    assert_same(restored(torch.tensor(0.5).double(), torch.tensor(2.0).double()), again)


def test_a_loss_that_is_not_finite_moves_no_mean():
    """A loss scaler skips such a step; a mean of it would spoil all later ones."""
    plain, disturbed = JointLoss(), JointLoss()
    for pair in ((math.inf, 4.0), (1.0, 4.0), (0.8, math.nan), (math.nan, 3.5), (0.8, 3.5), (0.6, 3.0)):
        one, two = map(torch.tensor, pair)
        total = disturbed(one, two)
        if math.isfinite(sum(pair)):
            assert_same(total, plain(one, two), rtol=0, atol=0)
    assert_same(tuple(disturbed.state_dict().values()), tuple(plain.state_dict().values()), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_running_means_move_in_a_module_of_half_precision(dtype):
    plain, joint = JointLoss(), nn.Sequential(JointLoss(), nn.Linear(2, 2)).to(dtype)[0]
    for k in range(100):
        losses = torch.tensor(1000.0 + k), torch.tensor(2.0)
        total = joint(*losses)
        assert_same(total, plain(*losses), rtol=0, atol=0)
    assert joint.to("meta").mean1.is_meta


def test_joint_loss_has_constant_means():
    x = leaf(torch.tensor([2.0, 6.0], dtype=torch.float64))
    total = JointLoss()(x[0] ** 2, x[1])
    grad = torch.autograd.grad(total, x)[0]  # means 4 and 6: factors 5/4 and 5/6
    assert grad.tolist() == pytest.approx([0.5 * 4 * 5 / 4, 0.5 * 5 / 6])
    assert JointLoss()(torch.tensor(0.0), torch.tensor(2.0)).item() == pytest.approx(0.5)
    assert JointLoss(alpha=1.0)(torch.tensor(1.0), torch.tensor(4.0)).item() == pytest.approx(2.5)  # 1 at the scale 2.5
    assert JointLoss()(torch.tensor(1.0).bfloat16(), torch.tensor(2.0)).dtype == torch.float32
    x = leaf(torch.tensor([0.6, -0.9], dtype=torch.float64))  # negative losses fall too
    grad = torch.autograd.grad(JointLoss()(x[0], x[1]), x)[0]  # sizes 0.6 and 0.9: factors 0.75/0.6 and 0.75/0.9
    assert grad.tolist() == pytest.approx([0.625, 0.375 / 0.9])


def reference_entropy(points, select):
    """Entropy of the bars of one group, through scipy's spanning tree."""
    tree = minimum_spanning_tree(cdist(points, points)).tocoo()
    bars = torch.from_numpy(tree.data)
    bars = bars[prominent_bars(bars)] if select else bars
    p = bars / bars.sum()
    return -(p * p.log()).sum(), len(bars)


@pytest.mark.parametrize("select", [True, False])
def test_entropy_of_labels(select):
    x, labels = normal(40, 6) * 2, torch.tensor([3] * 12 + [-1] * 4 + [8] * 24)[torch.randperm(40)]
    parts = {label: reference_entropy(x[labels == label], select) for label in (3, 8)}
    total = sum(h for h, _ in parts.values())
    assert_same(PersistentEntropyLoss(select)(x, labels), -total)
    assert_same(PersistentEntropyLoss(select, reduction="mean", weight=3.0)(x, labels), -1.5 * total)
    even = sum(h / math.log(m) for h, m in parts.values())
    assert_same(PersistentEntropyLoss(select, normalize=True)(x, labels), -even)
    four = reference_entropy(x[labels == -1], False)[0]
    assert_same(PersistentEntropyLoss(select, min_points=4)(x, labels), -total - four)
    assert_same(PersistentEntropyLoss(select)(x, labels * 0), PersistentEntropyLoss(select)(x))
    equal = torch.arange(40) % 4  # groups of one size need no padding
    alone = sum(PersistentEntropyLoss(select)(x[equal == label]) for label in range(4))
    assert_same(PersistentEntropyLoss(select)(x, equal), alone)
    check_gradient(lambda z: PersistentEntropyLoss(select)(z, torch.arange(14) % 2), uneven(14, 5))
    ignored = torch.cat([labels, torch.full((9,), -100)])
    more = torch.cat([x, normal(9, x.shape[1], dtype=x.dtype)])
    for looked_at in (True, False):
        with strict(looked_at):
            assert_same(PersistentEntropyLoss(select)(more, ignored), -total)


def test_in_cluster_term_has_two_signs():
    x = normal(30, 4)
    plain = PersistentEntropyLoss()(x)
    code, described = (PersistentEntropyLoss(in_cluster=0.3, in_cluster_sign=sign)(x) for sign in (1, -1))
    assert_same(code - plain, plain - described)
    assert code < plain


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4])
def test_small_batches_do_not_stop_a_run(name, rows):
    x = leaf(uneven(5, 4)[:rows])
    loss = LOSSES[name](x)
    loss.backward()
    assert loss.shape == ()
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(x.grad).all())
    if rows < 2 and name != "SpectrumControlLoss":
        assert loss.item() == 0
        assert not x.grad.any()


def test_labels_of_every_small_size():
    labels = torch.tensor([0] * 1 + [1] * 2 + [2] * 3 + [3] * 4 + [4] * 5)
    x = uneven(15, 4)
    value, grad = slope(PersistentEntropyLoss(), x, labels)
    assert not grad[:10].any()
    assert_same((value, grad[10:]), slope(PersistentEntropyLoss(), x[10:]))
    value, grad = slope(PersistentEntropyLoss(), x[:10], labels[:10])
    assert value.item() == 0
    assert not grad.any()
    same = x[:1].repeat(6, 1)  # a label all of whose points are equal
    more = torch.cat([labels, labels.new_full((6,), 5)])
    value, grad = slope(PersistentEntropyLoss(in_cluster=0.1), torch.cat([x, same]), more)
    assert bool(torch.isfinite(grad).all())
    assert_same(slope(PersistentEntropyLoss(), same), (torch.zeros(()).double(), torch.zeros(6, 4).double()))


def test_minus_log_isoscore_ends_at_its_floor(monkeypatch):
    x = leaf(normal(12, 1) @ normal(1, 5, seed=1))
    assert IsoScoreLoss()(x).item() == pytest.approx(-math.log(1e-12), rel=1e-2)
    assert IsoScoreLoss(floor=0.1)(x).item() == pytest.approx(-math.log(0.1))
    with pytest.raises(InputError, match="from 1e-12 to 1 or None; got 0"):
        IsoScoreLoss(floor=0)
    as_on_an_accelerator(monkeypatch)
    loss = IsoScoreLoss(unbiased=True)(x, torch.arange(12) < 3)  # three points say nothing
    assert loss.item() == pytest.approx(-math.log(1e-3))
    assert not torch.autograd.grad(loss, x)[0].any()


def test_gao_takes_the_module():
    table = nn.Embedding(9, 4)
    assert_same(GaoCosineLoss()(table), CosRegLoss()(table.weight))
    GaoCosineLoss()(table).backward()
    assert table.weight.grad.any()
    padded = nn.Embedding(9, 4, padding_idx=0)
    GaoCosineLoss()(padded).backward()
    assert bool(torch.isfinite(padded.weight.grad).all())
    with pytest.raises(DtypeError, match=r"^GaoCosineLoss: points must be a matrix, or a module .*; got ReLU"):
        GaoCosineLoss()(nn.ReLU())
    with pytest.raises(ShapeError, match=r"^GaoCosineLoss: points must have shape \(n, d\)"):
        GaoCosineLoss()(nn.LayerNorm(4))


def test_spectrum_control():
    x = uneven(3, 9, 5)
    s = torch.linalg.svdvals(x)
    k = torch.arange(1.0, 4.0, dtype=torch.float64)
    want = (s[:, :3] - 2 * torch.exp(-0.5 * k**1.5)).square().sum(-1).mean()
    assert_same(SpectrumControlLoss(1.0, c1=2.0, c2=0.5, power=1.5, top=3)(x), want)
    want = 2 * (s[:, :3] - 2 * k**-0.5).square().sum(-1).mean()
    assert_same(SpectrumControlLoss(2.0, c1=2.0, power=0.5, prior="polynomial", top=3)(x), want)


def test_bad_input():
    x, labels = uneven(8, 3), torch.arange(8) % 2
    entropy = PersistentEntropyLoss()
    for call, kind, match in (
        (lambda: entropy(x, labels.bool()), DtypeError, "labels must be integers"),  # a mask, it seems
        (lambda: IStarLoss()(x, labels.bool(), labels.bool()), InputError, "one mask"),
        (lambda: entropy(x, labels.tolist()), DtypeError, r"got list\. Pass torch\.as_tensor\(labels\)\.long\(\)"),
        (lambda: CosRegLoss()(x, mask=[True] * 8), DtypeError, r"got list\. Pass torch\.as_tensor\(mask\)\.bool\(\)"),
        (lambda: entropy(x, labels[:5]), ShapeError, r"shape \(8,\)"),
        (lambda: GORLoss()(x.unsqueeze(0)), ShapeError, r"^GORLoss: .*\(n, d\)"),
        (lambda: sigreg_penalty(x, torch.eye(4)), ShapeError, "3 dimensions of the points"),
        (lambda: sigreg_penalty(x, torch.eye(3)[:0]), ShapeError, "directions must hold at least 1"),
        (lambda: random_directions(3, 0), ShapeError, "at least 1"),
        (lambda: IStarLoss()(x, torch.eye(4)), ShapeError, "shrinkage_cov"),
        (lambda: IStarLoss()(x[:, :1]), ShapeError, "dimensions"),
        (lambda: IStarLoss(unbiased=True)(x, torch.eye(3)), InputError, "without shrinkage_cov; got both"),
    ):
        with pytest.raises(kind, match=match):
            call()
    assert_same(attached_zero(x), torch.zeros(()).double())


class Encoder(nn.Module):
    """Stands for a transformer: an embedding and two layers, with dropout that must be off while measuring."""

    def __init__(self):
        super().__init__()
        self.table, self.drop = nn.Embedding(30, 6), nn.Dropout(0.5)
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])
        self.layers[1].eval()

    def forward(self, input_ids, attention_mask, output_hidden_states, return_dict):
        states = [self.table(input_ids)]
        for layer in self.layers:
            states.append(torch.tanh(layer(self.drop(states[-1]))))
        return type("Output", (), {"hidden_states": tuple(states)})


def loader_of(generator=None):
    rows = torch.randint(0, 30, (20, 7), generator=torch.Generator().manual_seed(3))
    mask = (torch.arange(7) < torch.arange(20).unsqueeze(-1) % 5 + 3).long()
    data = [{"input_ids": r, "attention_mask": m, "labels": torch.tensor(1)} for r, m in zip(rows, mask, strict=True)]
    return torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, generator=generator)


@pytest.mark.parametrize(("layers", "chosen"), [("all", [1, 2]), (1, [1]), (-1, [2]), ([0, 2], [0, 2])])
@pytest.mark.parametrize("include_pads", [False, True])
def test_shrinkage_covariance(layers, chosen, include_pads):
    torch.manual_seed(0)
    model, loader = Encoder(), loader_of()
    got = ShrinkageCovariance(layers, include_pads).refresh(model, loader)
    rows = []
    model.eval()
    for batch in torch.utils.data.DataLoader(loader.dataset, batch_size=20):
        states = model(batch["input_ids"], batch["attention_mask"], True, True).hidden_states
        keep = batch["attention_mask"].bool() | include_pads
        rows += [states[layer][keep] for layer in chosen]
    assert_same(got, torch.cat(rows).T.cov(), rtol=1e-4, atol=1e-6)


def test_shrinkage_covariance_leaves_no_trace():
    torch.manual_seed(0)
    model, generator = Encoder(), torch.Generator().manual_seed(5)
    loader, measure = loader_of(generator), ShrinkageCovariance(max_rows=30)
    loader.iteration = 3  # of Accelerate's loaders: the epoch of the order, counted when a pass ends
    before = torch.get_rng_state(), generator.get_state(), [m.training for m in model.modules()]
    numpy = np.random.get_state()[1].copy()  # noqa: NPY002

    def forward(model, batch):
        np.random.rand()  # noqa: NPY002
        loader.iteration += 1
        return model(**batch, output_hidden_states=True, return_dict=True).hidden_states, batch["attention_mask"]

    measure.forward = lambda model, batch: forward(model, {k: v for k, v in batch.items() if k != "labels"})
    cov = measure.refresh(model, loader)
    assert loader.iteration == 3
    assert (np.random.get_state()[1] == numpy).all()  # noqa: NPY002
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], generator.get_state())
    assert before[2] == [m.training for m in model.modules()]
    assert not cov.requires_grad
    assert cov is measure.cov
    again = ShrinkageCovariance()
    again.load_state_dict(measure.state_dict())
    assert torch.equal(again.cov, cov)
    full = ShrinkageCovariance().refresh(model, loader)
    assert not torch.allclose(cov, full)
    with pytest.raises(NotFittedError, match="must be fitted before it is used"):
        ShrinkageCovariance().cov  # noqa: B018


@pytest.mark.parametrize("nested", [1, 2])
def test_generators_are_kept_however_deep_they_lie(nested):
    class Shard:  # as that of Accelerate
        def __init__(self, batch_sampler):
            self.batch_sampler = batch_sampler

        def __iter__(self):
            yield from self.batch_sampler

    generator = torch.Generator().manual_seed(5)
    data = loader_of().dataset
    batches = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(data, generator=generator), 4, False)
    loader = torch.utils.data.DataLoader(data, batch_sampler=batches if nested == 1 else Shard(batches))
    before = generator.get_state()
    ShrinkageCovariance().refresh(Encoder(), loader)
    assert torch.equal(before, generator.get_state())
    next(iter(loader))
    assert not torch.equal(before, generator.get_state())


def test_points_of_training_replace_older_ones_in_the_shrinkage_covariance(monkeypatch):
    first, rest = uneven(40, 4), uneven(4, 6, 4, seed=1) + 1
    measure = ShrinkageCovariance(forward=lambda model, batch: ([batch, batch], None))
    assert_same(measure.refresh(nn.Identity(), [first.unsqueeze(0)]), first.T.cov())
    weights = np.full(40, 0.5)  # 20 rows in all
    for points in rest:
        cov, weights = measure.update(points), np.append(weights * (1 - 6 / 20), np.ones(6))
        seen = torch.cat([first, *rest])[: len(weights)]
        assert_same(cov, torch.tensor(np.cov(seen.T, aweights=weights, ddof=0) * 20 / 19))
    assert_same(measure.update(first), first.T.cov())  # more than those behind it: all are replaced
    with pytest.raises(NotFittedError, match="Call refresh"):
        ShrinkageCovariance().update(first)
    before = measure.cov
    with pytest.raises(DegenerateError, match="must be finite"):
        measure.update(first * math.nan)
    assert measure.cov is before
    resumed = ShrinkageCovariance()
    resumed.load_state_dict(measure.state_dict())
    assert resumed.update(first.to("meta")).is_meta  # a checkpoint's state is on the CPU
    with torch.inference_mode():
        measure.refresh(nn.Identity(), [first.unsqueeze(0) + 0])
    IStarLoss()(leaf(first), measure.cov).backward()
    assert_same(measure.update(first), first.T.cov())
    as_on_an_accelerator(monkeypatch)  # where values aren't looked at
    assert torch.equal(measure.cov, measure.update(first * math.nan))


def test_points_from_hidden_states():
    states = load("minilm_tokens_3s")["hidden_states"]
    mask = load("minilm_tokens_3s")["attention_mask"]
    points, real = points_from_hidden_states(tuple(states), mask)
    assert_same(points[real], torch.cat([state[mask.bool()] for state in states[1:]]))
    points, real = points_from_hidden_states(tuple(states), mask, layers=-1, include_pads=True)
    assert real is None
    assert_same(points, states[-1].flatten(0, 1))
    check_rejects(points_from_hidden_states, ShapeError, "7 hidden states", tuple(states), mask, 7)
    check_rejects(points_from_hidden_states, ShapeError, '"all"', tuple(states), mask, "last")


def test_what_a_shrinkage_covariance_refuses_leaves_it_as_it_was():
    measure = ShrinkageCovariance(forward=lambda model, batch: ([batch, batch], None))
    cov = measure.refresh(nn.Identity(), used_up := iter([uneven(3, 2, 4)]))
    with pytest.raises(InputError, match="must have cov, count, mean, scatter; got cov"):
        measure.load_state_dict({"cov": torch.eye(2)})
    with pytest.raises(InputError, match=r"got 0 points, no batch on 1 of 1\. A generator is used up"):
        measure.refresh(nn.Identity(), used_up)
    with pytest.raises(InputError, match="got 1 points, no batch on 0 of 1"):
        measure.refresh(nn.Identity(), [uneven(1, 1, 4)])
    assert measure.cov is cov
    measure.load_state_dict({})
    assert measure.state_dict() == {}


@pytest.mark.parametrize("rows", [-1, 0, 2.5, True, math.nan, None, "all"])
def test_the_rows_of_a_shrinkage_covariance_are_a_whole_number(rows):
    with pytest.raises(InputError, match=r"^ShrinkageCovariance: max_rows must be at least 1 and an integer"):
        ShrinkageCovariance(max_rows=rows)

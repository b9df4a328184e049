"""Persistent entropy and the feature rule against a literal reference, saved values and closed forms."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from golden_cases import assert_matches, cases, load, points, values
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from support import (
    assert_same,
    check_cuda,
    check_dtypes,
    check_finite_gradient,
    check_gradient,
    check_rejects,
    gpu,
    gradient,
    leaf,
    never_waiting,
    normal,
)
from torch import Tensor

import isonb.barcodes.entropy
from isonb.barcodes.entropy import persistent_entropy, prominent_bars
from isonb.barcodes.rips import h0_barcode, rips_barcode
from isonb.errors import DegenerateError, DtypeError, InputError, ShapeError

CLOUDS = [case for case in cases("topology") if case != "barcodes_a"]
BARS = sorted(values("topology", "barcodes_a"))
WORKED = {  # barcodes and the features they must give, worked by hand
    (9, 4, 2, 1.5, 1, 0.5): [9, 4],
    (10, 9, 8, 1.2, 1.1, 1.05, 1, 0.9): [10, 9],
    (5, 4.8, 4.6, 4.4, 4.2, 4): [5, 4.8, 4.6, 4.4],
    (10, 1.01, 1, 1, 1, 1, 0.99): [10, 1.01],
}


def lengths(*shape: int, seed: int = 0) -> Tensor:
    return normal(*shape, seed=seed).abs() + 0.05


def features_by_passes(bars: np.ndarray, keep_breaking: bool = True) -> int:
    """How many of the longest bars are features: the rule as it is told, pass by pass and bar by bar."""
    bars = sorted((float(bar) for bar in bars if bar > 0), reverse=True)
    if len(bars) < 4 or bars[0] == bars[-1]:
        return len(bars)
    longest, shortest, others = bars[0], bars[-1], bars[1:-1]
    alpha = shortest / longest
    while True:
        listed = np.array([*others, shortest, longest])
        n = len(listed)
        most = math.ceil(n * alpha * (alpha - 1 - math.log(alpha)) / (1 - alpha) ** 2)
        before, stop = listed.sum(), n - 3
        for i in range(1, n - 2):
            tail = listed[i:]
            replaced = tail.sum() / math.exp(scipy_entropy(tail))
            after = tail.sum() + i * replaced
            if before / after < 1:
                stop = i
                break
            before = after
        if most >= stop:
            return stop + int(keep_breaking)
        others = others[:stop]


@pytest.mark.parametrize("name", BARS)
def test_saved_bars(name):
    bars, saved = load("barcodes_a")[name], values("topology", "barcodes_a")[name]
    if "entropy" in saved:
        assert_same(persistent_entropy(bars), bars.new_tensor(saved["entropy"]), rtol=1e-12)
    if "grad" in saved:
        got = torch.autograd.grad(persistent_entropy(x := leaf(bars)), x)[0]
        assert_same(got, bars.new_tensor(saved["grad"]), rtol=1e-9, atol=1e-14)
    if "selected" in saved:
        chosen = prominent_bars(bars)
        assert int(chosen.sum()) == saved["selected"]
        assert bars[chosen].min() >= bars[~chosen].max()
        assert_same(persistent_entropy(bars, chosen), bars.new_tensor(saved["selected_entropy"]), rtol=1e-12)


def entropy_of(x: Tensor, select: bool, max_dim: int) -> Tensor:
    """The sum over dimensions of the entropy of all bars, or of the features."""
    barcode = [death - birth for birth, death in rips_barcode(x, max_dim)]
    return sum(persistent_entropy(bars, prominent_bars(bars) if select else None) for bars in barcode)


@pytest.mark.parametrize("case", CLOUDS)
def test_saved_entropies_of_clouds(case):
    x, saved = points(case), values("topology", case)
    assert_same(persistent_entropy(h0_barcode(x)), x.new_tensor(saved["entropy"]))
    if "selected" in saved:
        bars = h0_barcode(x)
        assert_same(bars[prominent_bars(bars)], x.new_tensor(saved["selected"]))
    for max_dim, name in enumerate(("h0", "h0_h1")):
        for select, kind in enumerate(("all_bars", "selected")):
            want = saved.get(f"{name}_{kind}")
            if want is None:
                continue
            got = entropy_of(z := leaf(x), bool(select), max_dim)
            assert_same(got.detach(), x.new_tensor(want["value"]))
            if "grad" in want:
                assert_matches(torch.autograd.grad(got, z)[0], want["grad"], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("bars", WORKED)
def test_worked_examples(bars):
    bars = torch.tensor(bars, dtype=torch.float64)
    assert bars[prominent_bars(bars)].tolist() == WORKED[tuple(bars.tolist())]
    assert bars[prominent_bars(bars, keep_breaking=False)].tolist() == WORKED[tuple(bars.tolist())][:-1]


def test_worked_entropies():
    want = {(9, 4, 2, 1.5, 1, 0.5): 1.392143, (5, 4.8, 4.6, 4.4, 4.2, 4): 1.788874}
    for bars, value in want.items():
        assert persistent_entropy(torch.tensor(bars)).item() == pytest.approx(value, abs=1e-6)
    assert_same(persistent_entropy(torch.full((7,), 0.3).double()), torch.tensor(math.log(7)).double(), rtol=1e-7)
    assert persistent_entropy(torch.tensor([0.0, 2.0, 0.0])).item() == 0


@given(st.integers(1, 60), st.sampled_from(("uniform", "exponential", "lognormal", "gamma")), st.integers(0, 2**32 - 1))
def test_features_equal_the_rule_pass_by_pass(m, law, seed):
    draw = np.random.default_rng(seed)
    bars = {
        "uniform": lambda: draw.random(m),
        "exponential": lambda: draw.exponential(size=m) * (draw.random(m) > 0.2),
        "lognormal": lambda: draw.lognormal(sigma=3, size=m),
        "gamma": lambda: draw.gamma(100, size=m),
    }[law]()
    for keep in (True, False):
        chosen = prominent_bars(torch.tensor(bars), keep).numpy()
        assert chosen.sum() == features_by_passes(bars, keep)
        assert not chosen[bars == 0].any()
        if 0 < chosen.sum() < m:
            assert bars[chosen].min() >= bars[~chosen].max()


def test_features_of_large_barcodes_do_not_depend_on_how_the_table_is_cut(monkeypatch):
    bars = lengths(3, 700, seed=5)
    want = [features_by_passes(row) for row in bars.numpy()]
    for entries in (1, 5000, 2**30):
        monkeypatch.setattr(isonb.barcodes.entropy, "TABLE", {"cpu": entries})
        assert prominent_bars(bars).sum(-1).tolist() == want


@pytest.mark.parametrize("ratio", [0.5, 0.99, 0.9985, 0.99901, 0.99999, 1 - 1e-9, 1e-12, 1e-200])
def test_bound_on_the_number_of_long_bars(ratio):
    """Near equal lengths the formula cancels; compare with many digits."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        alpha = mpmath.mpf(ratio)
        want = float(alpha * (alpha - 1 - mpmath.log(alpha)) / (1 - alpha) ** 2)
    got = isonb.barcodes.entropy._long_share(torch.tensor(ratio, dtype=torch.float64)).item()
    assert got == pytest.approx(want, rel=1e-10)


def test_few_or_equal_bars_are_all_features():
    assert prominent_bars(torch.tensor([3.0, 1.0, 2.0])).tolist() == [True] * 3
    assert prominent_bars(torch.tensor([3.0, 0.0, 2.0, 1.0])).tolist() == [True, False, True, True]
    assert prominent_bars(torch.full((9,), 0.7)).tolist() == [True] * 9
    assert prominent_bars(torch.full((9,), 0.1).double() * (1 + 2e-16 * torch.arange(9).double())).all()
    assert not prominent_bars(torch.zeros(5)).any()
    assert prominent_bars(torch.tensor([2.0])).tolist() == [True]


def test_separate_clusters_have_one_feature_less_than_there_are_clusters():
    two = 0.1 * normal(60, 5) + 20 * normal(2, 5, seed=1).repeat_interleave(30, 0)
    for clusters, x in ((2, two), (4, points("four_clusters_200x10"))):
        bars = h0_barcode(x)
        assert prominent_bars(bars, keep_breaking=False).sum() == clusters - 1
        assert prominent_bars(bars).sum() == clusters


def test_gradient_is_the_closed_form():
    bars = lengths(4, 9)
    check_gradient(persistent_entropy, bars, twice=True)
    shares = bars / bars.sum(-1, keepdim=True)
    value = persistent_entropy(bars).unsqueeze(-1)
    got = torch.autograd.grad(persistent_entropy(x := leaf(bars)).sum(), x)[0]
    assert_same(got, -(shares.log() + value) / bars.sum(-1, keepdim=True))


def test_zero_and_masked_bars_are_left_out():
    bars, keep = lengths(6), torch.tensor([1, 0, 1, 1, 0, 1])
    for filler in (0.0, 5.0, float("nan"), float("inf"), -1.0):
        padded = torch.where(keep.bool(), bars, filler)
        assert_same(persistent_entropy(padded, keep), persistent_entropy(bars[keep.bool()]))
        assert torch.equal(prominent_bars(padded, mask=keep)[keep.bool()], prominent_bars(bars[keep.bool()]))
        assert not prominent_bars(padded, mask=keep)[~keep.bool()].any()
    zeros = torch.where(keep.bool(), bars, 0.0)
    check_finite_gradient(persistent_entropy, zeros)
    assert bool((gradient(persistent_entropy, zeros)[~keep.bool()] == 0).all())
    check_finite_gradient(persistent_entropy, torch.tensor([0.0, 3.0, 0.0]))


def test_entropy_through_the_points():
    check_gradient(lambda x: persistent_entropy(h0_barcode(x)), normal(2, 8, 3))
    duplicates = torch.cat([normal(6, 3), normal(6, 3)[:3]])
    check_finite_gradient(lambda x: persistent_entropy(h0_barcode(x)), duplicates)


def test_batch_equals_loop_and_order_does_not_matter():
    bars = torch.where(lengths(5, 30, seed=3) > 0.3, lengths(5, 30, seed=3), 0.0)
    for function in (persistent_entropy, prominent_bars, partial(prominent_bars, keep_breaking=False)):
        assert_same(function(bars), torch.stack([function(row) for row in bars]))
        assert_same(function(bars.view(5, 1, 30)), function(bars).unsqueeze(1))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    assert_same(persistent_entropy(bars[:, order]), persistent_entropy(bars))
    assert torch.equal(prominent_bars(bars[:, order]), prominent_bars(bars)[:, order])


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 7.0, 1e300])
def test_scale_does_not_matter(scale):
    bars = lengths(40)
    assert_same(persistent_entropy(bars * scale), persistent_entropy(bars))
    assert torch.equal(prominent_bars(bars * scale), prominent_bars(bars))


def test_dtypes():
    check_dtypes(persistent_entropy, lengths(3, 20).float())
    assert torch.equal(prominent_bars(lengths(50).float()), prominent_bars(lengths(50).float().double()))


def test_no_gradient_through_the_selection():
    assert not prominent_bars(lengths(9).requires_grad_()).requires_grad


@pytest.mark.parametrize("function", [persistent_entropy, prominent_bars])
def test_errors(function):
    check_rejects(function, DtypeError, "torch.Tensor", [1.0, 2.0])
    check_rejects(function, DtypeError, "floating-point", torch.tensor([1, 2]))
    check_rejects(function, ShapeError, "at least one number", torch.ones(3, 0))
    check_rejects(function, ShapeError, "at least one number", torch.tensor(1.0))
    check_rejects(function, DegenerateError, "finite and >= 0", torch.tensor([1.0, -1.0]))
    check_rejects(function, DegenerateError, "finite and >= 0", torch.tensor([1.0, float("inf")]))
    check_rejects(function, ShapeError, "mask", torch.ones(3), mask=torch.ones(2, dtype=torch.bool))
    check_rejects(function, InputError, "mask", torch.ones(3), mask=torch.ones(3))


def test_no_positive_bar():
    check_rejects(persistent_entropy, DegenerateError, "at least one positive bar", torch.zeros(2, 3))
    nothing = torch.zeros(3, dtype=torch.bool)
    check_rejects(persistent_entropy, DegenerateError, "at least one positive bar", torch.ones(3), mask=nothing)


def test_the_limit_where_values_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(isonb.barcodes.entropy, "check_values", lambda x: False)
    assert persistent_entropy(torch.zeros(2, 3)).tolist() == [0.0, 0.0]
    check_finite_gradient(persistent_entropy, torch.zeros(3))


@gpu
def test_cuda():
    bars = lengths(4, 50)
    check_cuda(persistent_entropy, bars)
    on_device = bars.cuda()
    with never_waiting():
        chosen = prominent_bars(on_device)
    assert torch.equal(chosen.cpu(), prominent_bars(bars))

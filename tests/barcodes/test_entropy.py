"""Persistent entropy and the feature rule against a literal reference, saved values and closed forms."""

import math

import numpy as np
import pytest
import torch
from golden_cases import assert_matches, cases, load, points, values
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from support import assert_same, check_finite_gradient, check_gradient, check_rejects, gradient, leaf, normal
from torch import Tensor

import isonb.barcodes.entropy
from isonb.barcodes.entropy import persistent_entropy, prominent_bars
from isonb.barcodes.rips import h0_barcode, rips_barcode
from isonb.errors import DegenerateError, DtypeError, ShapeError

CLOUDS = [case for case in cases("topology") if case != "barcodes_a"]
BARS = sorted(values("topology", "barcodes_a"))
WORKED = [  # barcodes, how many features they must give, and their entropy, worked by hand
    ((9, 4, 2, 1.5, 1, 0.5), 2, 1.392143),
    ((10, 9, 8, 1.2, 1.1, 1.05, 1, 0.9), 2, None),
    ((5, 4.8, 4.6, 4.4, 4.2, 4), 4, 1.788874),
    ((10, 1.01, 1, 1, 1, 1, 0.99), 2, None),
    ((0.3,) * 7, 7, math.log(7)),
    (tuple(0.1 * (1 + 2e-16 * k) for k in range(9)), 9, math.log(9)),  # equal up to rounding
    ((3.0, 0.0, 2.0, 1.0), 3, None),
    ((0.0, 2.0, 0.0), 1, 0.0),
    ((0.0,) * 5, 0, None),
]


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


@pytest.mark.parametrize(("bars", "features", "entropy"), WORKED)
def test_worked_examples(bars, features, entropy):
    bars = torch.tensor(bars, dtype=torch.float64)
    assert sorted(bars[prominent_bars(bars)].tolist(), reverse=True) == sorted(bars.tolist(), reverse=True)[:features]
    if 1 < features < int((bars > 0).sum()):
        assert int(prominent_bars(bars, keep_breaking=False).sum()) == features - 1
    assert entropy is None or persistent_entropy(bars).item() == pytest.approx(entropy, abs=1e-6)


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


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_neither_scale_nor_order_matters(scale):
    bars, order = lengths(40), torch.randperm(40, generator=torch.Generator().manual_seed(0))
    assert_same(persistent_entropy(bars[order] * scale), persistent_entropy(bars))
    assert torch.equal(prominent_bars(bars[order] * scale), prominent_bars(bars)[order])
    assert not prominent_bars(bars.requires_grad_()).requires_grad


@pytest.mark.parametrize("function", [persistent_entropy, prominent_bars])
def test_what_is_no_barcode_is_refused(function):
    for kind, match, bars in (
        (DtypeError, "floating-point", torch.tensor([1, 2])),
        (ShapeError, "at least one number", torch.ones(3, 0)),
        (ShapeError, "at least one number", torch.tensor(1.0)),
        (DegenerateError, "finite and >= 0", torch.tensor([1.0, -1.0])),
        (DegenerateError, "finite and >= 0", torch.tensor([1.0, float("inf")])),
    ):
        check_rejects(function, kind, match, bars)
    check_rejects(function, ShapeError, "mask", torch.ones(3), mask=torch.ones(2, dtype=torch.bool))
    nothing = torch.zeros(3, dtype=torch.bool)
    for bars, mask in ((torch.zeros(2, 3), None), (torch.ones(3), nothing)):
        check_rejects(persistent_entropy, DegenerateError, "at least one positive bar", bars, mask=mask)

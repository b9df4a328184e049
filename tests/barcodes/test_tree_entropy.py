"""The entropy of the bars of a tree in one step of autograd, against the plain form in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same, check_gradient, nasty, normal, some_mask

from isonb.barcodes.inputs import tree_edges
from isonb.barcodes.tree_entropy import Choice, entropy_term, tree_entropy_and_share, value_and_slopes
from isonb.checks import strict
from isonb.losses import PersistentEntropyLoss
from isonb.numerics.distances import edge_lengths

RULES = st.builds(Choice, st.booleans(), st.booleans(), st.sampled_from([0.0, 0.3, -0.2]), st.booleans())


def plain(x: torch.Tensor, mask: torch.Tensor | None, rule: Choice) -> torch.Tensor:
    """The term as it reads: lengths of the edges, then the entropy of those that are kept."""
    edges, real, _ = tree_edges(x, mask)
    bars = edge_lengths(x, edges)
    return entropy_term(bars if real is None else torch.where(real, bars, 0.0), rule)


KINDS = ["normal", "grid", "equal", "copies", "clusters", "far point", "tiny", "huge"]


@settings(max_examples=150)
@given(
    n=st.integers(2, 40),
    d=st.sampled_from([1, 3, 40]),
    kind=st.sampled_from(KINDS),
    masked=st.booleans(),
    rule=RULES,
    seed=st.integers(0, 999),
)
def test_value_and_gradient_are_those_of_the_plain_form(n, d, kind, masked, rule, seed):
    x = nasty(normal(3, n, d, seed=seed), kind).requires_grad_()
    mask = some_mask(3, n, keep=2) if masked and n > 2 else None
    got, want = tree_entropy_and_share(x, mask, rule)[0], plain(x, mask, rule)
    assert_same(got, want, rtol=1e-9, atol=1e-12)
    slopes = [torch.autograd.grad(value.sum(), x)[0] for value in (got, want)]
    spread = float((x.max() - x.min()).detach())
    usual = 1e-3 / spread if spread else 1e-300  # bars all alike have no slope but rounding
    largest = slopes[1].abs().amax().clamp_min(usual)
    assert_same(slopes[0] / largest, slopes[1] / largest, rtol=1e-7, atol=1e-9)


@settings(max_examples=60)
@given(n=st.integers(3, 40), d=st.sampled_from([3, 40, 300]), rule=RULES, seed=st.integers(0, 999))
def test_float32_equals_float64(n, d, rule, seed):
    x = normal(2, n, d, seed=seed).float()
    edges = tree_edges(x, None)[0]
    results = []
    for points in (x, x.double()):
        bars = edge_lengths(points, edges)
        results.append(value_and_slopes(bars, rule._replace(select=False)))  # which bars are kept may hang on rounding
    assert_same(results[0], results[1], rtol=1e-5, atol=1e-5, dtype=False)


def test_slopes_of_nearly_equal_bars_lose_no_digit_in_float32():
    """The two terms of a slope nearly cancel."""
    bars, rule = 1 + 1e-3 * normal(2, 30).float(), Choice(False, True, 0.0, False)
    got, want = (value_and_slopes(lengths, rule)[1] for lengths in (bars, bars.double()))
    assert_same(got, want, rtol=1e-5, dtype=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", [{}, {"in_cluster": 0.7, "reduction": "mean"}, {"normalize": True, "min_points": 2}])
def test_labels_give_the_same_by_one_forest_that_nothing_waits_for(kind, rule):
    x, labels = nasty(normal(1, 41, 3), kind)[0], torch.randint(-2, 5, (41,), generator=torch.manual_seed(3))
    results = []
    for look in (True, False):
        loss, leaf = PersistentEntropyLoss(**rule), x.clone().requires_grad_()
        with strict(look):
            value = loss(leaf, labels)
        results.append((value, *torch.autograd.grad(value, leaf), loss.logged.get("entropy_share", torch.zeros(()))))
    assert_same(*results, rtol=1e-9)


@pytest.mark.parametrize("select", [True, False])
def test_it_can_be_derived_twice(select):
    x = normal(9, 4)
    check_gradient(PersistentEntropyLoss(select, in_cluster=0.2 if select else 0.0), x, twice=True)


@pytest.mark.parametrize("select", [True, False])
def test_the_share_of_the_maximum_says_how_even_the_bars_are_whatever_their_number(select):
    even, uneven = torch.arange(30.0).unsqueeze(1), torch.arange(30.0).square().unsqueeze(1)
    for points, least, most in ((even, 1.0, 1.0), (uneven, 0.8, 0.9999)):
        for rows in (8, 17, 30):
            loss = PersistentEntropyLoss(select, weight=0.1)
            value = loss(torch.cat([points[:rows], points[:rows] + 1000]), torch.arange(2 * rows) // rows)
            share = loss.logged["entropy_share"]
            assert least - 1e-5 <= share <= most + 1e-5
            assert not share.requires_grad
            if not select:
                assert -value / (2 * 0.1 * math.log(rows - 1)) == pytest.approx(share.item(), rel=1e-5)
    loss(torch.zeros(2, 1))
    assert loss.logged == {}

"""SoftDecay: saved values, the derivative where an SVD's breaks, masks, domain of alpha, dtypes."""

import numpy as np
import pytest
import torch
from golden_cases import assert_matches, cases, load, values
from support import assert_same, check_finite_gradient, check_gradient, check_rejects, leaf, normal, some_mask, uneven

from isonb.errors import DegenerateError, InputError, ShapeError
from isonb.layers.soft_decay import _SoftDecay, negative_count, soft_decay

CASES = [case for case in cases("layers") if "softdecay" in values("layers", case)]
BATCHED = [case for case in cases("layers") if "softdecay_batched" in values("layers", case)]


def by_svd(x, alpha=-0.2, mode="code"):
    """The definition, through numpy's SVD."""
    u, s, v = np.linalg.svd(x.numpy(), full_matrices=False)
    f = -np.log(1 - alpha * (s + alpha) + (1e-7 if mode == "code" else 0)) / alpha
    f = f if mode == "code" else np.maximum(f, 0)
    return torch.from_numpy((u * (f * s[..., :1] / f[..., :1])[..., None, :]) @ v)


def weighted(x, alpha, weights):
    """The scalar whose gradient is saved."""
    x = leaf(x)
    alpha = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    loss = (soft_decay(x, alpha) * weights).sum()
    return loss, *torch.autograd.grad(loss, (x, alpha))


@pytest.mark.parametrize("case", CASES)
def test_saved_values(case):
    x, saved = load(case)["points"], values("layers", case)
    for key, output in saved["softdecay"].items():
        if key.startswith("alpha"):
            assert_matches(soft_decay(x, float(key.removeprefix("alpha_"))), output, rtol=1e-8, atol=1e-9)
    # close singular values cost the SVD digits, so 1e-5; on the lattice the saved values are central differences
    near = 1e-6 if case == "lattice_27x3" else 1e-7
    assert_matches(weighted(x, -0.2, torch.roll(x, 1, 0))[1], saved["softdecay"]["grad"], rtol=1e-5, atol=near)
    if small := saved.get("small_scale"):  # singular values below alpha
        x = x * small["scale"]
        assert_matches(soft_decay(x, -0.6), small["alpha_-0.6"], rtol=1e-8, atol=1e-10)
        if "grad_alpha_-0.2" in small:
            slope = weighted(x, -0.2, torch.roll(x, 1, 0))[1]
            assert_matches(slope, small["grad_alpha_-0.2"], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("case", BATCHED)
def test_saved_batch(case):
    inputs, saved = load(case), values("layers", case)["softdecay_batched"]
    x = inputs["tokens"] if "tokens" in inputs else inputs["hidden_states"][-1]
    for alpha in (-0.2, -0.6):
        assert_matches(soft_decay(x, alpha), saved[f"alpha_{alpha}"], rtol=1e-8, atol=1e-9)
    loss, slope, by_alpha = weighted(x, -0.2, torch.roll(x, 1, 1))
    assert loss.item() == pytest.approx(saved["loss_alpha_-0.2"], rel=1e-9)
    assert by_alpha.item() == pytest.approx(saved["grad_wrt_alpha_at_-0.2"], rel=1e-8)
    assert_matches(slope, saved["grad_alpha_-0.2"], rtol=1e-5, atol=1e-7)
    out = soft_decay(x, -0.2, mask=inputs["attention_mask"])
    for row, entry in zip(out, saved["valid_tokens_only_per_sample"], strict=True):
        assert_matches(row[: entry["tokens"]], entry["alpha_-0.2"], rtol=1e-8, atol=1e-9)
        assert not row[entry["tokens"] :].any()


@pytest.mark.parametrize("mode", ["code", "safe"])
@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (6, 6), (1, 4), (4, 1), (2, 5, 7)])
def test_definition(mode, shape):
    x = uneven(*shape) * 2
    assert_same(soft_decay(x, -0.4, mode), by_svd(x, -0.4, mode), rtol=1e-8, atol=1e-9)


def test_gradient_of_alpha():
    x = uneven(3, 4, 6)
    for alpha in (torch.tensor(-0.3), torch.tensor([-0.1, -0.5, -0.9])):
        check_gradient(soft_decay, x, alpha)
        check_gradient(lambda z, a: soft_decay(z, a, "safe"), x, alpha)
    alone = torch.stack([soft_decay(m, float(a)) for m, a in zip(x, alpha, strict=True)])
    assert_same(soft_decay(x, alpha), alone)


def central_differences(function, x, step=1e-6):
    slopes = [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in torch.eye(x.numel()).double()]
    return torch.stack(slopes)


@pytest.mark.parametrize("values", [[4, 2, 2, 1], [4, 2, 2 + 1e-9, 2 - 1e-9], [4, 1, 1 + 1e-5, 1 + 3e-5], [3, 3, 2, 1]])
def test_gradient_at_repeated_singular_values(values):
    # with a twofold largest value the central difference is the even share of its two slopes, which is the choice made
    left, right = (torch.linalg.qr(normal(k, 4, seed=k))[0] for k in (5, 7))
    x = left * torch.tensor(values, dtype=torch.float64) @ right.T
    weights = normal(5, 7, seed=3)
    slope = torch.autograd.grad((soft_decay(z := leaf(x), -0.3, "safe") * weights).sum(), z)[0]
    want = central_differences(lambda flat: (soft_decay(flat.view(5, 7), -0.3, "safe") * weights).sum(), x.flatten())
    assert_same(slope.flatten(), want, rtol=1e-5, atol=1e-6)


def test_gradient_stays_on_the_row_space():
    # rank 2 of 4: moving along matrices of the same row and column space, code mode is smooth
    x = normal(5, 2, seed=1) @ normal(2, 7, seed=2)
    left, right = normal(2, 2, seed=3), normal(2, 2, seed=4)
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    step = u[:, :2] @ left @ v[:2] + x @ normal(7, 7, seed=5) @ v[:2].T @ right @ v[:2]
    weights = normal(5, 7, seed=6)
    slope = torch.autograd.grad((soft_decay(z := leaf(x), -0.3) * weights).sum(), z)[0]
    up, down = (soft_decay(x + h * step, -0.3) for h in (1e-6, -1e-6))
    assert (slope * step).sum().item() == pytest.approx((((up - down) / 2e-6) * weights).sum().item(), rel=1e-6)


@pytest.mark.parametrize("mode", ["code", "safe"])
def test_finite_gradient(mode):
    x = uneven(2, 6, 5)
    zero_rows = x.clone()
    zero_rows[:, 3:5] = 0
    duplicates = torch.cat([x, x[:, :2]], 1)
    rank_one = normal(2, 6, 1) @ normal(2, 1, 5, seed=2)
    for hard in (zero_rows, duplicates, rank_one, x[:, :1], torch.zeros(2, 6, 5), torch.eye(5), torch.ones(4, 3)):
        for dtype in (torch.float64, torch.float32):
            check_finite_gradient(lambda z: soft_decay(z, -0.3, mode), hard.to(dtype))
    assert soft_decay(zero_rows, -0.3, mode)[:, 3:5].abs().max() < 1e-12
    assert_same(soft_decay(rank_one, -0.3), rank_one, rtol=1e-8)
    assert not soft_decay(torch.zeros(3, 4)).any()


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e-12, 1e12, 1e20, 1e30])
def test_gradient_of_float32_at_any_scale(scale):
    large = uneven(4, 3) * scale**6  # no square fits float64 either
    assert_same(soft_decay(large) / scale**6, by_svd(large) / scale**6, rtol=1e-8)
    x, alpha = uneven(4, 7).float() * scale, torch.tensor(-0.2)

    def slopes(x, alpha):
        x, alpha = leaf(x), leaf(alpha)
        weight = normal(4, 7, seed=5).to(x)
        return torch.autograd.grad((soft_decay(x, alpha) * weight).sum(), (x, alpha))

    got, want = slopes(x, alpha), slopes(x.double(), alpha.double())
    assert_same(got[0], want[0].float(), rtol=1e-3, atol=1e-4)
    assert_same(got[1] / scale, (want[1] / scale).float(), rtol=1e-3, atol=1e-4)


def test_alpha_zero_is_the_identity():
    x = uneven(3, 6, 4)
    for mode in ("code", "safe"):
        assert_same(soft_decay(x, 0.0, mode), x)
        check_gradient(lambda z, m=mode: soft_decay(z, 0.0, m), x)
    assert_same(soft_decay(x, -1e-6, "safe"), x, rtol=1e-4, atol=1e-5)
    alpha = torch.zeros((), dtype=torch.float64, requires_grad=True)
    slope = torch.autograd.grad((soft_decay(x, alpha, "safe") * uneven(3, 6, 4, seed=5)).sum(), alpha)[0]
    near = [(soft_decay(x, a, "safe") * uneven(3, 6, 4, seed=5)).sum() for a in (-1e-5, -2e-5)]
    assert slope.item() == pytest.approx(((near[0] - near[1]) / 1e-5).item(), rel=1e-3)


def test_safe_mode_leaves_a_tiny_matrix_alone():
    x = uneven(4, 3) * 1e-3
    assert_same(soft_decay(x, -0.5, "safe"), x)
    check_gradient(lambda z: soft_decay(z, -0.5, "safe"), x)
    assert negative_count(x, -0.5).item() == 3


@pytest.mark.parametrize(("alpha", "scale"), [(0.2, 10.0), (-1.2, 0.1), (-2.0, 1.0)])
def test_outside_the_domain(alpha, scale):
    x = torch.eye(3) * scale
    check_rejects(soft_decay, DegenerateError, f"s = {scale:g} at alpha = {alpha:g}", x, alpha)
    y = _SoftDecay.apply(leaf(x).unsqueeze(0), torch.tensor([[alpha]]), "code", False)  # as on an accelerator
    assert bool(torch.isfinite(y).all())


def test_bad_input():
    x = uneven(4, 3)
    check_rejects(soft_decay, InputError, "mode must be one of", x, -0.2, "paper")
    check_rejects(soft_decay, ShapeError, "alpha must be", x, torch.ones(2))
    check_rejects(negative_count, DegenerateError, "must fit", x * 1e200)
    check_rejects(soft_decay, DegenerateError, "-1 < alpha", x, -1.0, "safe")
    check_rejects(soft_decay, DegenerateError, "alpha", x, float("nan"))


def test_negative_count():
    x = uneven(3, 6, 4)
    s = torch.linalg.svdvals(x)
    assert negative_count(x, -0.9).tolist() == (s < 0.9).sum(-1).tolist()
    mask = some_mask(3, 6)
    want = [int((torch.linalg.svdvals(m[k]) < 0.9).sum()) for m, k in zip(x, mask, strict=True)]
    assert negative_count(x, -0.9, mask).tolist() == want
    assert negative_count(x, torch.tensor([-0.1, -0.5, -0.9])).shape == (3,)
    assert negative_count(x, 0.5).tolist() == [0, 0, 0]  # f is positive everywhere

"""Layers: saved IsoBN sequences, state, placement of SoftDecay, mixed precision, what happens to hard batches."""

import copy

import pytest
import torch
from golden_cases import assert_matches, cases, load, values
from support import assert_same, check_gradient, check_rejects, gpu, leaf, some_mask, uneven

from isonb.checks import strict
from isonb.errors import DegenerateError, DtypeError, InputError, NotFittedError, ShapeError
from isonb.layers import IsoBN, IsotropyLayer, SoftDecay
from isonb.layers.isobn import isobn_scale
from isonb.layers.soft_decay import soft_decay

SEQUENCES = [case for case in cases("layers") if "isobn" in values("layers", case)]
LAYERS = {
    "SoftDecay": lambda: SoftDecay(),
    "SoftDecay, safe": lambda: SoftDecay(alpha=-0.4, mode="safe"),
    "IsoBN": lambda: IsoBN(8),
    "IsotropyLayer": lambda: IsotropyLayer(8, activation="tanh"),
}


@pytest.mark.parametrize("case", SEQUENCES)
def test_saved_sequence_of_isobn(case):
    saved, x = values("layers", case)["isobn"], load(case)["points"]
    size = saved["rows_per_batch"]
    layer = IsoBN(x.shape[-1]).double()
    # three dimensions of the encoder are dead: the saved factors contain correlations of their rounding noise
    tolerances = {"rtol": 3 / 384, "atol": 1e-3} if case.startswith("minilm") else {}
    for k in range(3):
        out = layer(x[k * size : (k + 1) * size])
        if f"train_output_{k + 1}" in saved:
            assert_matches(out, saved[f"train_output_{k + 1}"], **tolerances)
    layer.eval()
    assert_matches(layer(x[3 * size : 4 * size]), saved["eval_output"], **tolerances)
    scale = torch.tensor(saved["eval_scale_vector"], dtype=torch.float64)
    assert_same(layer.scale, scale, **({"rtol": 3 / 384} if tolerances else {}))
    if "running_std" in saved:
        assert_same(layer.running_std, torch.tensor(saved["running_std"], dtype=torch.float64))
        diagonal = torch.tensor(saved["running_cov_diagonal"], dtype=torch.float64)
        assert_same(layer.running_cov.diagonal(), diagonal)
    if "eval_output_with_eps_0.1_beta_1" in saved and not tolerances:
        layer.eps, layer.beta = 0.1, 1.0
        assert_matches(layer(x[3 * size : 4 * size]), saved["eval_output_with_eps_0.1_beta_1"])


def test_isobn_state_travels():
    layer, x = IsoBN(6), uneven(20, 6).float()
    with pytest.raises(NotFittedError, match="IsoBN must be fitted before it is used"):
        copy.deepcopy(layer).eval()(x)
    layer(x)
    fresh = IsoBN(6)
    fresh.load_state_dict(layer.state_dict())
    assert_same(fresh.eval()(x), layer.eval()(x))
    before = layer.state_dict()["running_cov"].clone()
    layer(x * 3)
    assert torch.equal(layer.running_cov, before)
    assert set(layer.state_dict()) == {"running_cov", "running_std", "batches"}


def test_isobn_passes_its_factors_as_constants():
    layer, x = IsoBN(5).double(), leaf(uneven(12, 5))
    layer(x).sum().backward()
    assert_same(x.grad, layer.scale.expand(12, 5))
    check_rejects(isobn_scale, ShapeError, r"cov must be \(4, 4\)", torch.eye(3), torch.ones(4))


def test_isobn_with_dead_dimensions_and_small_batches():
    x = uneven(16, 6).float()
    x[:, 2], x[:, 4] = 0.3, 1e-33 * x[:, 4]
    layer = IsoBN(6)
    lone = x[:1]
    assert_same(layer(lone), lone)  # nothing seen yet
    assert int(layer.batches) == 0
    for rows in (x, x[:1], x[:2], x[:1].repeat(4, 1), x[:0]):
        out = layer(rows)
        assert out.shape == rows.shape
        assert bool(torch.isfinite(out).all())
    assert bool(torch.isfinite(layer.scale).all())
    assert_same(IsoBN(6)(x[:1].repeat(4, 1)), x[:1].repeat(4, 1))  # no variance at all
    with pytest.raises(ShapeError, match="6 dimensions"):
        layer(uneven(4, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_isobn_keeps_its_statistics(dtype):
    """In float32 in a module of half precision, and without rows that aren't finite where those aren't looked at."""
    plain, layer, x = IsoBN(6), IsoBN(6).to(dtype), uneven(20, 6).float()
    for _ in range(30):
        plain(x)
        layer(x)
        with strict(False):
            layer(x / 0)
    assert_same(tuple(layer.state_dict().values()), tuple(plain.state_dict().values()), rtol=0, atol=0)


def test_rows_that_are_not_finite_are_no_overflow():
    layer, bad = IsoBN(6), torch.tensor([[1.0, float("nan"), 1.0, 1.0, 1.0, 1.0]])
    layer(uneven(20, 6).float())
    for mode in (layer, layer.eval()):  # of one row no statistics are taken
        with pytest.raises(DegenerateError, match=r"^IsoBN: x must be finite; got nan at index \(0, 1\)"):
            mode(bad)


def test_a_result_beyond_half_precision_is_refused():
    x = (1 + 3 * torch.eye(4)) * 16_000
    assert SoftDecay()(x).max() > 65_504
    with pytest.raises(DegenerateError, match=r"^SoftDecay: the image of the points must fit torch\.float16; got inf"):
        SoftDecay()(x.half())


def test_soft_decay_layer():
    x, mask = uneven(3, 6, 8), some_mask(3, 6)
    for mode in ("code", "safe"):
        layer = SoftDecay(alpha=-0.4, mode=mode).double()
        assert_same(layer(x, mask), soft_decay(x, -0.4, mode, mask), rtol=1e-6, atol=1e-7)
        layer(x, mask).sum().backward()
        assert bool(layer.raw.grad != 0)
        fixed = SoftDecay(alpha=-0.4, mode=mode, trainable=False).double()
        assert not list(fixed.parameters())
        assert_same(fixed(x, mask), layer(x, mask))
        restored = SoftDecay(mode=mode).double()
        restored.load_state_dict(layer.state_dict())
        assert_same(restored(x[0]), layer(x[0]))
        assert "alpha=-0.4" in repr(layer)
        check_gradient(lambda z, m=layer: m(z), x)
    with pytest.raises(InputError, match="-1 < alpha < 0"):
        SoftDecay(alpha=-1, mode="safe")


def test_soft_decay_alpha_learns_and_stays_inside():
    torch.manual_seed(0)
    layer, x = SoftDecay(alpha=-0.5, mode="safe"), uneven(6, 8).float() * 3
    target = soft_decay(x, -0.9, "safe")
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(150):
        optimiser.zero_grad()
        (layer(x) - target).square().sum().backward()
        optimiser.step()
    assert layer.alpha.item() == pytest.approx(-0.9, abs=0.02)
    code = SoftDecay()
    code.raw.data.fill_(0.5)
    with pytest.raises(DegenerateError, match=r"alpha = 0\.5"):
        code(x * 10)


def test_isotropy_layer():
    x = uneven(5, 8)
    layer = IsotropyLayer(8).double()
    assert_same(layer(x), x)
    check_gradient(layer, x)
    assert_same(IsotropyLayer(8, activation=torch.relu).double()(x), x.relu())
    assert_same(IsotropyLayer(8, activation="tanh").double()(x), x.tanh())
    assert_same(IsotropyLayer(8)(x.float().numpy()), x.float())
    for bad, kind, match in (
        (x[:, :5], ShapeError, r"^IsotropyLayer: x must have 8 dimensions; got \(\d+, 5\)\. Make the layer with d="),
        (x.long(), DtypeError, "^IsotropyLayer: x must be a floating-point tensor"),
        (x.tolist(), DtypeError, "^IsotropyLayer: x must be a torch.Tensor; got list"),
    ):
        with pytest.raises(kind, match=match):
            IsotropyLayer(8)(bad)
    assert not torch.equal(IsotropyLayer(8, init="default").linear.weight, torch.eye(8))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_result_has_the_dtype_of_the_input(name, dtype):
    layer = LAYERS[name]().to(dtype)
    x = uneven(12, 8).to(dtype)
    assert layer(x).dtype == dtype
    layer(x).float().sum().backward() if list(layer.parameters()) else None


@gpu
@pytest.mark.parametrize("name", LAYERS)
def test_cuda(name):
    layer, x = LAYERS[name]().double(), uneven(12, 8)
    on_device = copy.deepcopy(layer).cuda()(x.cuda())
    assert_same(on_device.cpu(), layer(x), rtol=1e-7, atol=1e-9)

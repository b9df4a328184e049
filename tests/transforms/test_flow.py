"""The flow inverts, its log-determinant is that of the Jacobian, and training makes points more normal."""

import copy
import math

import numpy as np
import pytest
import torch
from support import assert_same, check_gradient, gpu, normal, uneven
from torch.autograd.functional import jacobian

from isonb.errors import InputError, NotFittedError, ShapeError
from isonb.transforms import Whitening
from isonb.transforms.flow import GlowFlow, fit_flow


def stirred(d, levels=2, x=None):
    """A flow off its start: every parameter moved."""
    flow = GlowFlow(d, levels=levels, depth=2, width=8, seed=3).double()
    flow.begin(uneven(40, d) if x is None else x)
    with torch.no_grad():
        for k, parameter in enumerate(flow.parameters()):
            parameter.add_(0.05 * normal(*parameter.shape, seed=k))
    return flow


@pytest.mark.parametrize(("d", "levels"), [(4, 1), (5, 2), (9, 3), (16, 3), (17, 4)])
def test_inverse_is_exact(d, levels):
    flow, x = stirred(d, levels), uneven(20, d)
    z, _ = flow(x)
    assert not torch.allclose(z, x, atol=0.1)
    assert_same(flow.inverse(z), x, rtol=1e-9, atol=1e-10)
    assert_same(flow(flow.inverse(x))[0], x, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("d", "levels"), [(4, 1), (5, 2), (9, 3)])
def test_log_determinant_is_that_of_the_jacobian(d, levels):
    flow, x = stirred(d, levels), uneven(3, d)
    _, logdet = flow(x)
    for point, got in zip(x, logdet, strict=True):
        matrix = jacobian(lambda row: flow(row.unsqueeze(0))[0][0], point)
        assert got.item() == pytest.approx(torch.linalg.slogdet(matrix).logabsdet.item(), rel=1e-9)


def test_a_flow_keeps_its_digits_under_autocast():
    x = uneven(40, 6).float()
    flow = stirred(6, x=x.double()).float()
    z, logdet = flow(x)
    again, trained = GlowFlow(6, levels=2).begin(x), fit_flow(x, flow=GlowFlow(6, levels=2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert all(torch.equal(*pair) for pair in zip(flow(x), (z, logdet), strict=True))
        assert_same(flow.inverse(z), x, rtol=1e-4, atol=1e-5)
        begun, later = GlowFlow(6, levels=2).begin(x), fit_flow(x, flow=GlowFlow(6, levels=2))
    for one, other in ((begun, again), (later, trained)):
        assert all(torch.equal(*pair) for pair in zip(one.parameters(), other.parameters(), strict=True))


def test_bad_input():
    x, flow = uneven(10, 6), stirred(6)
    for call, kind, match in (
        (lambda: GlowFlow(6, levels=2)(x), NotFittedError, "GlowFlow must be fitted"),
        (lambda: flow(uneven(4, 5)), ShapeError, "6 dimensions"),
        (lambda: flow.inverse(uneven(4, 5)), ShapeError, "6 dimensions"),
        (lambda: flow.begin(x[:1]), ShapeError, "at least 2 points"),
        (lambda: GlowFlow(6, levels=3), ShapeError, "3 levels need 8 channels"),
        (lambda: fit_flow(x, batch_size=1), ShapeError, "batch_size"),
        (lambda: fit_flow(x, batch_size=2.5), ShapeError, "batch_size"),
    ):
        with pytest.raises(kind, match=match):
            call()


def test_bits_per_dimension():
    flow, x = stirred(6), uneven(50, 6)
    z, logdet = flow(x)
    density = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(-1) + logdet
    assert flow.bits_per_dimension(x).item() == pytest.approx(-density.mean().item() / 6 / math.log(2))
    check_gradient(flow.bits_per_dimension, x[:4])
    batch = x.view(5, 10, 6)
    assert_same((flow(batch)[0], flow(batch)[1]), (z.view(5, 10, 6), logdet.view(5, 10)))
    assert_same(flow.inverse(flow(batch)[0]), batch, atol=1e-9)
    assert flow.transform(x.float()).dtype == torch.float64
    assert_same(flow.transform(x[:0]), x[:0])


def released_step(x, step):
    """One step as the released code writes it: an image of one pixel, all scales by exp(3 logs)."""

    def actnorm(x, norm):
        return (x + norm.shift) * torch.exp(3.0 * norm.log_scale)

    first, _, _, second, _, _, last = step.coupling
    x = actnorm(x, step.norm) @ torch.eye(x.shape[-1]).double().flip(0)
    single, two = x.split(x.shape[-1] // 2, -1)
    hidden = torch.relu(actnorm(single @ first.weight.T, step.coupling[1]))
    hidden = torch.relu(actnorm(hidden @ second.weight.T, step.coupling[4]))
    shift = (hidden @ last.linear.weight.T + last.linear.bias) * torch.exp(3.0 * last.log_scale)
    return torch.cat([single, two + shift], -1), (3.0 * step.norm.log_scale).sum()


def released_bits(x, steps, depth):
    """Bits per dimension of two levels, by the released formulas."""
    volume, length, d = 0.0, 0.0, x.shape[-1]
    for level in range(2):
        for step in steps[depth * level : depth * (level + 1)]:
            x, part = released_step(x, step)
            volume = volume + part
        if level == 0:
            x, out = x.split(d // 2, -1)
            length = (out**2).sum(-1)
    return ((length + (x**2).sum(-1)) / 2 + d * math.log(2 * math.pi) / 2 - volume).mean() / d / math.log(2)


def test_training_is_the_released_one_step_by_step():
    """Its optimiser in numpy: gradients cut to length 1, moments as they are, decay beside them."""
    x = uneven(160, 8)
    flow = GlowFlow(8, levels=2, depth=2, width=8, seed=3).double().begin(x[:32])
    twin, start = copy.deepcopy(flow), flow.bits_per_dimension(x).item()
    assert released_bits(x, flow.steps, 2).item() == pytest.approx(start, rel=1e-12)
    fit_flow(x, flow=flow, seed=1, epochs=2)
    parameters = list(twin.parameters())
    m, v = ([np.zeros(tuple(entry.shape)) for entry in parameters] for _ in range(2))
    generator = torch.Generator().manual_seed(1)
    for order in [torch.randperm(160, generator=generator) for _ in range(2)]:
        for rows in order.split(32):
            slopes = torch.autograd.grad(released_bits(x[rows], twin.steps, 2), parameters)
            cut = min(1, 1 / math.sqrt(sum(float((slope**2).sum()) for slope in slopes)))
            for k, (parameter, slope) in enumerate(zip(parameters, slopes, strict=True)):
                g = cut * slope.numpy()
                m[k], v[k] = 0.9 * m[k] + 0.1 * g, 0.999 * v[k] + 0.001 * g**2
                old = parameter.detach().numpy()
                new = old - 1e-3 * (m[k] / (np.sqrt(v[k]) + 1e-6) + 0.01 * old)
                parameter.data = torch.from_numpy(new)
    for ours, theirs in zip(flow.parameters(), parameters, strict=True):
        assert_same(ours, theirs, rtol=1e-8, atol=1e-10)
    got = flow.bits_per_dimension(x).item()
    assert got == pytest.approx(released_bits(x, twin.steps, 2).item(), rel=1e-10)
    assert got < start - 0.03


def test_begin_normalises_every_step():
    x = uneven(200, 8, mean=5.0)
    flow = GlowFlow(8, levels=2, depth=2).double().begin(x)
    z, _ = flow(x)  # couplings still add nothing
    assert_same(z.mean(0), torch.zeros(8).double(), atol=1e-9)
    assert_same(z.std(0, correction=0), torch.ones(8).double(), rtol=1e-6)
    hidden = flow.steps[0].norm(x).flip(-1)[:, :4]
    for layer in list(flow.steps[0].coupling)[:5]:
        hidden = layer(hidden)
    assert_same(hidden.mean(0), torch.zeros(32).double(), atol=1e-9)
    constant = torch.ones(5, 4)
    assert bool(torch.isfinite(GlowFlow(4, levels=1).begin(constant)(constant)[0]).all())


def test_training_repeats_and_resumes():
    x, curve = uneven(70, 6).float(), []
    first, two = fit_flow(x, seed=4), fit_flow(x, seed=4, progress=lambda step, bits: curve.append((step, bits)))
    assert_same(first.transform(x), two.transform(x))
    assert not first.training
    assert not first.transform(x).requires_grad
    assert [step for step, _ in curve] == [1, 2, 3]
    assert 0 < curve[0][1] < 10
    assert not torch.allclose(fit_flow(x, seed=5).transform(x), first.transform(x))
    before = first.bits_per_dimension(x).item()
    again = fit_flow(x, epochs=10, flow=first)
    assert again is first
    assert first.bits_per_dimension(x).item() < before
    assert fit_flow(x[:33], epochs=1).begun  # a last batch of one row is left out


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_vectors_come_from_where_no_gradient_is_recorded(mode):
    x = uneven(40, 4)
    with mode():
        trained = fit_flow(x + 0)
    assert_same(trained(x)[0], fit_flow(x)(x)[0], rtol=0, atol=0)


def test_files(tmp_path):
    x = uneven(40, 6).float()
    flow = fit_flow(x, batch_size=8)
    flow.save(tmp_path)
    result = GlowFlow.load(tmp_path)
    assert torch.equal(result.transform(x), flow.transform(x))
    flow.double().save(tmp_path / "double")
    assert GlowFlow.load(tmp_path / "double").transform(x).dtype == torch.float64
    Whitening().fit(x).save(tmp_path / "other")
    with pytest.raises(InputError, match="must hold a GlowFlow"):
        GlowFlow.load(tmp_path / "other")


@gpu
def test_cuda():
    flow, x = stirred(9, 3), uneven(20, 9)
    want = flow.transform(x)
    assert_same(flow.cuda().transform(x.cuda()).cpu(), want, rtol=1e-8)

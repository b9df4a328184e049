"""What every function of a cloud keeps: batches, masks, types, gradients, devices, sizes, and invariances."""

import pytest
import torch
from laws import LAWS
from support import (
    assert_same,
    check_asynchronous,
    check_batch_equals_loop,
    check_cuda,
    check_dtypes,
    check_finite_gradient,
    check_gradient,
    check_invariant,
    check_mask_equals_drop,
    gpu,
    gradient,
    normal,
    some_mask,
    tensors,
    uneven,
)

import isonb

pytestmark = pytest.mark.unit


def every(of=lambda law: True):
    """One test a law."""
    return pytest.mark.parametrize("law", [pytest.param(law, id=name) for name, law in LAWS.items() if of(law)])


@every()
@pytest.mark.parametrize("shape", [(3, 9, 4), (3, 9, 20)])  # many rows, and few
def test_batches_and_masks(law, shape):
    x, mask = uneven(*shape), some_mask(*shape[:2])
    check_invariant(law, x if law.batched else x[0], law.keeps)
    if law.batched:
        check_batch_equals_loop(law, x)
    if law.masked and not law.padded:
        check_mask_equals_drop(law, x[0], mask[0], rows=law.rows, slope=law.smooth, rtol=1e-8, atol=1e-10)
    if law.masked and law.batched:
        check_batch_equals_loop(law, x, mask)


@every(lambda law: law.smooth)
@pytest.mark.parametrize("shape", [(5, 8), (8, 4), (6, 6)])  # every path through the maths
def test_gradients(law, shape):
    x, mask = uneven(*shape), some_mask(shape[0])
    check_gradient(law, x, twice=law.twice)
    if law.masked:
        check_gradient(lambda z: law(z, mask=mask), x)


@every()
def test_types(law):
    check_dtypes(law, uneven(30, 6))


@every(lambda law: "scale" in law.keeps)
@pytest.mark.parametrize("size", [1e-30, 1e-15, 1e15, 1e30])
def test_what_does_not_notice_a_scale_notices_no_extreme_one_in_float32(law, size):
    x = uneven(20, 6).float()
    assert_same(law(x * size), law(x.double()), rtol=1e-4, atol=1e-6, dtype=False)
    if law.smooth:
        slope = gradient(law, x * size).double() * size
        assert_same(slope, gradient(law, x.double()), rtol=1e-3, atol=1e-5)
    if "row lengths" in law.keeps:
        short = torch.cat([x, x[:1] * size])  # beside rows of common length too
        assert_same(law(short), law(torch.cat([x, x[:1]])), rtol=1e-4, atol=1e-6)
        check_finite_gradient(law, short)


@every(lambda law: law.batched)
@pytest.mark.parametrize("masked", [False, True])
def test_an_empty_batch_gives_an_empty_result(law, masked):
    options = {"mask": torch.zeros(0, 6, dtype=torch.bool)} if masked and law.masked else {}
    x = torch.zeros(0, 6, 4, requires_grad=True)
    out = tensors(law(x, **options))
    assert [part.shape for part in out] == [(0, *part.shape) for part in tensors(law(uneven(6, 4)))]
    if out[0].requires_grad:
        out[0].sum().backward()
        assert x.grad.shape == x.shape


@every()
def test_nothing_is_read_back(law):
    for shape in ((2, 20, 5), (3, 20, 70)) if law.batched else ((20, 5), (20, 70)):
        x, mask = uneven(*shape), torch.ones(shape[:-1], dtype=torch.bool)
        check_asynchronous(law, x)
        if law.masked:
            check_asynchronous(law, x, mask=mask)


def test_a_value_that_is_read_back_is_seen():
    with pytest.raises(Exception, match="meta"):
        check_asynchronous(isonb.rips_barcode, uneven(9, 2))  # H1 is computed on the CPU and has to see the distances


@every()
def test_the_default_device_and_dtype_of_others_and_a_lazy_sign_change_nothing(law):
    x = normal(70, 9).float()
    lazy = torch.complex(x, -x).conj().imag
    assert lazy.is_neg()
    want = law(x)
    try:
        torch.set_default_device("meta")  # stands for "cuda"
        torch.set_default_dtype(torch.float64)
        got = law(x), law(lazy)
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
    for result in got:
        assert_same(result, want, rtol=0, atol=0)


@gpu
@every(lambda law: law.smooth and not law.waits)
def test_cuda(law):
    for shape in ((40, 6), (8, 30)):
        check_cuda(law, uneven(*((2,) if law.batched else ()), *shape))


@gpu
@every(lambda law: law.waits or not law.smooth)
def test_cuda_where_a_decomposition_waits_or_no_gradient_is(law):
    x = normal(40, 6)
    assert_same(tuple(out.cpu() for out in tensors(law(x.cuda()))), law(x), rtol=1e-8, atol=1e-10)

"""The blockwise product is the product."""

import pytest
import torch
from support import assert_same, normal

from isonb.numerics.products import add_upper_gram, gram


@pytest.mark.parametrize("shape", [(3, 5), (384, 128), (401, 130), (2, 450, 140), (0, 400, 128), (12, 66, 700)])
def test_blocks_mirror_the_product(shape):
    x = normal(*shape)
    assert_same(gram(x), x @ x.mT, rtol=1e-12, atol=1e-11)
    assert_same(gram(x.mT), x.mT @ x, rtol=1e-12, atol=1e-11)
    assert_same(gram(x), gram(x).mT, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 5), (401, 130), (130, 401), (5, 0), (450, 1)])
def test_adding_above_the_diagonal(shape):
    x, start = normal(*shape), normal(shape[0], shape[0], seed=1)
    out = start.clone()
    add_upper_gram(out, x)
    assert_same(out.triu(), (start + x @ x.mT).triu(), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("shape", [(3, 5), (401, 130), (2, 450, 140)])
def test_a_function_of_the_entries_is_that_of_the_product(shape):
    x = normal(*shape)
    half = x.square().sum(-1) / 2
    result = gram(x, lambda block, i, j: block.sub_(half[..., i, None]).sub_(half[..., None, j]).exp_())
    assert_same(result, (-torch.cdist(x, x).square() / 2).exp(), rtol=1e-9, atol=1e-11)


def test_a_recorded_product_has_its_gradient():
    x = normal(400, 130).requires_grad_()
    gram(x).sum().backward()
    assert_same(x.grad, 2 * x.detach().sum(0).expand_as(x), rtol=1e-9, atol=1e-9)

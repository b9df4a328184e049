"""The rehearsal leaves no trace, and the carried gradient is the gradient of the union's penalty."""

import torch
from support import normal

from isonb.integrations.union import carrying, penalty_gradients, rehearsal


def test_half_precision_points_get_a_float32_gradient_that_does_not_underflow():
    points = [normal(4, 3, dtype=torch.float16).requires_grad_()]
    _, (gradient,) = penalty_gradients(lambda x, labels: 1e-9 * x.sum(), [(points[0], None)])
    assert gradient.dtype == torch.float32
    assert bool((gradient > 0).all())
    scaled = torch.autograd.grad(2.0**16 * carrying(points[0], gradient), points[0])[0]
    assert bool((scaled > 0).all())


def test_a_constant_penalty_and_one_that_skips_a_part_give_zero():
    parts = [normal(2, 3), normal(2, 3, seed=1)]
    for penalty in (lambda x, labels: x.new_zeros(()), lambda x, labels: x[:2].sum()):
        _, gradients = penalty_gradients(penalty, [(part, None) for part in parts])
        assert bool((gradients[1] == 0).all())


class Counting(torch.nn.Module):
    """Dropout, and a running statistic as batch normalisation has one."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return torch.nn.functional.dropout(self.linear(x), 0.5)


def test_a_rehearsal_repeats_dropout_and_keeps_buffers():
    model, x = Counting(), normal(4, 8, dtype=torch.float32)
    with rehearsal(model):
        first = [model(x), model(x)]
        assert not first[0].requires_grad
    again = [model(x), model(x)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(*first)
    assert model.calls == 2


def test_weights_cast_in_a_rehearsal_do_not_lose_their_graph_under_autocast():
    model, x = torch.nn.Linear(8, 8), normal(4, 8, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with rehearsal(model):
            model(x)
        model(x).float().sum().backward()
    assert model.weight.grad is not None
    assert bool(model.weight.grad.any())

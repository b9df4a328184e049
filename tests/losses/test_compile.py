"""Losses under torch.compile: one graph, the value and the gradient of the uncompiled loss."""

import shutil

import pytest
import torch
from laws import LOSSES
from support import assert_same, leaf, uneven

import isonb

pytestmark = pytest.mark.filterwarnings("ignore:::torch")  # the compiler warns of its own code

CALLS = {name: (loss, ()) for name, loss in LOSSES.items() if " " not in name and name != "GaoCosineLoss"} | {
    "IStarLoss": (isonb.IStarLoss(), (torch.eye(4), torch.arange(12) < 9)),
    "entropy by label": (isonb.PersistentEntropyLoss(in_cluster=0.5, reduction="mean"), (torch.arange(12) % 2,)),
}


@pytest.fixture(autouse=True)
def fresh():
    """What one test compiled must not serve another."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def assert_compiles(name, backend):
    loss, rest = CALLS[name]
    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    for seed in (0, 1):
        x, y = leaf(uneven(12, 4, seed=seed).float()), leaf(uneven(12, 4, seed=seed).float())
        got, want = compiled(x, *rest), loss(y, *rest)
        assert_same(got, want, rtol=1e-5, atol=1e-6)
        got.sum().backward()
        want.sum().backward()
        assert_same(x.grad, y.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_one_graph(name):
    assert_compiles(name, "aot_eager")


def test_the_joint_loss_and_its_means():
    compiled, plain = isonb.JointLoss(), isonb.JointLoss()
    run = torch.compile(compiled, backend="aot_eager", fullgraph=True)
    for a, b in ((1.0, 4.0), (0.8, 3.5), (0.6, 3.0)):
        assert_same(run(torch.tensor(a), torch.tensor(b)), plain(torch.tensor(a), torch.tensor(b)), rtol=1e-6)
    assert_same(list(compiled.buffers()), list(plain.buffers()), rtol=1e-6)


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SpectrumControlLoss", "entropy by label"])
def test_inductor(name):
    assert_compiles(name, "inductor")

"""What a loss sends to a card, and what trees of boxes do."""

from collections import Counter
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import isonb
from isonb.checks import strict
from isonb.numerics import compiled, dispatch
from tests.benchmarks.harness import Comparison, Peer, Reading, gaussian, gradient_of, relative_error, size_of


class Sent(TorchDispatchMode):
    """Counts the operators that do work, and those that make the host wait for a value."""

    WAITS = ("_local_scalar_dense", "nonzero", "_unique2", "equal", "masked_select", "_linalg_svd", "_linalg_eigh")

    def __init__(self):
        super().__init__()
        self.count = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        self.count["waits"] += name in self.WAITS
        self.count["operators"] += not func.is_view and name not in ("detach", "empty")
        return func(*args, **(kwargs or {}))


def losses(d):
    labels = torch.arange(64) % 2
    return {
        "I-STAR": (isonb.IStarLoss(), (torch.eye(d),)),
        "IsoScore loss": (isonb.IsoScoreLoss(), ()),
        "CosReg": (isonb.CosRegLoss(), ()),
        "Gao's cosine": (isonb.GaoCosineLoss(), ()),
        "GOR": (isonb.GORLoss(), ()),
        "SIGReg": (isonb.SIGRegLoss(slices=64, seed=0), ()),
        "spectrum control": (isonb.SpectrumControlLoss(), ()),
        "persistent entropy": (isonb.PersistentEntropyLoss(), ()),
        "persistent entropy by label": (isonb.PersistentEntropyLoss(in_cluster=1.0), (labels,)),
    }


def kernels(small):
    """Operators of a loss with its gradient as a card gets them, counted on the CPU: no compiled loops, no checks."""
    x = gaussian(64, 16 if small else 768)
    for name, (loss, rest) in losses(x.shape[1]).items():
        both = gradient_of(lambda z, loss=loss, rest=rest: loss(z, *rest), x)
        with strict(False), mock.patch.object(compiled, "_numba", return_value=None):
            value = both()
            with Sent() as sent:
                both()
        torch._dynamo.reset()
        try:
            graph = torch.compile(loss, backend="eager", fullgraph=True)
            graph(x, *rest)
            whole = "one graph"
        except torch._dynamo.exc.TorchDynamoException:
            whole = "the graph breaks"
        values = {"what": name, "size": size_of(x), "operators": sent.count["operators"], "waits": sent.count["waits"]}
        error = relative_error(value, both())
        yield Reading(values | {"compiled": whole}, error, 1e-3)


def boxes(small):
    """Neighbours in few dimensions by a kd-tree, where the table of ways takes one, beside the product."""
    for d in (3,) if small else (2, 3, 5):
        x = gaussian(600 if small else 10_000, d)

        def by_product(x=x):
            with mock.patch.object(dispatch, "BOXES", {}):
                return isonb.knn(x, 10)

        error = relative_error(isonb.knn(x, 10)[0], by_product()[0])
        peer = Peer("the same by a product", by_product, error, 1.0, floor=True)
        yield Comparison("neighbours by boxes", size_of(x), lambda x=x: isonb.knn(x, 10), [peer], 1e-4, 3)


SUITES = {"kernels": kernels, "boxes": boxes}

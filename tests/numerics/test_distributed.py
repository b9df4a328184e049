"""Two processes with unequal shards give the loss and, averaged, every gradient of one process with all rows."""

import laws
import pytest
import torch
import torch.distributed as dist
from gloo import run
from support import assert_same, normal, uneven
from torch import nn

from isonb.errors import InputError, ShapeError
from isonb.layers import IsoBN, SoftDecay
from isonb.losses import (
    CosRegLoss,
    IsoScoreLoss,
    IStarLoss,
    JointLoss,
    PersistentEntropyLoss,
    ShrinkageCovariance,
    SpectrumControlLoss,
)
from isonb.losses.sigreg import random_directions
from isonb.numerics.distributed import all_rows, all_sum, from_first, process_group, union_moments

WORLD = 2
SHARDS = {"unequal": (17, 6), "one empty": (0, 23)}
BASE = torch.diag(torch.arange(1.0, 6.0, dtype=torch.float64))


def data(rows=slice(None)):
    """Inputs, labels (one of them rare on each process) and a mask."""
    x = uneven(23, 7) * 2
    labels = torch.arange(23) % 3
    return x[rows], labels[rows], (torch.arange(23) % 5 > 0)[rows]


def joint(points, labels, mask):
    """Two steps of the joint loss; the task loss is a mean over this process's rows."""
    loss = JointLoss().double()
    total = points.new_zeros(())
    for step in (1, 2):
        task = ((points - step) ** 2).sum() / max(points.numel(), 1)
        total = total + loss(task, IsoScoreLoss()(step * points + points**2), count=points.shape[0])
    return total


LOSSES = {
    "entropy": lambda p, labels, mask: PersistentEntropyLoss(in_cluster=0.1)(p, labels),
    "entropy, one group": lambda p, labels, mask: PersistentEntropyLoss(select=False, normalize=True)(p),
    "entropy, no group large enough": lambda p, labels, mask: PersistentEntropyLoss(min_points=50)(p, labels),
    "I-STAR": lambda p, labels, mask: IStarLoss(-2.0)(p, BASE),
    "I-STAR, masked": lambda p, labels, mask: IStarLoss(2.0, 0.4)(p, BASE, mask),
    **{name: lambda p, labels, mask, loss=loss: loss(p, mask=mask)
       for name, loss in laws.LOSSES.items() if not name.startswith(("PersistentEntropy", "Gao"))},
    "joint": joint,
}  # fmt: skip


def encoder():
    """A small linear encoder, the same everywhere."""
    model = nn.Linear(7, 5).double()
    with torch.no_grad():
        model.weight.copy_(normal(5, 7, seed=11))
        model.bias.copy_(normal(5, seed=12))
    return model


def measured(loss, rows):
    """Value of a loss and the gradients of the encoder's parameters."""
    model = encoder()
    x, labels, mask = data(rows)
    value = loss(model(x), labels, mask)
    value.backward()
    return value.detach(), *(parameter.grad for parameter in model.parameters())


def shard_of(rank, sizes):
    """The rows of a process."""
    start = sum(sizes[:rank])
    return slice(start, start + sizes[rank])


def in_ddp(rank):
    """The same through DistributedDataParallel, which averages by itself."""
    model = nn.parallel.DistributedDataParallel(encoder())
    x, _, mask = data(shard_of(rank, SHARDS["unequal"]))
    points = model(x)
    (IStarLoss()(points, BASE, mask) + CosRegLoss()(points) + PersistentEntropyLoss()(points)).backward()
    return [parameter.grad for parameter in model.parameters()]


def shrinkage_of(x):
    """The shrinkage covariance of some rows, five a batch, and after an update with twice the points."""
    measure = ShrinkageCovariance(forward=lambda model, batch: ([batch, model(batch)], None))
    return measure.refresh(encoder(), list(x.unsqueeze(1).split(5))), measure.update(2 * encoder()(x))


def layers_on(x):
    """What the layers that look at a batch make of it, and SoftDecay's gradients averaged over the processes."""
    batch_norm, decay, model = IsoBN(7, group="world").double(), SoftDecay(group="world").double(), encoder()
    for _ in range(2):
        normed = batch_norm(x)
    decayed = decay(model(x))
    decayed.pow(3).sum().backward()
    grads = [model.weight.grad, decay.raw.grad]
    if dist.is_initialized():
        for grad in grads:
            dist.all_reduce(grad)
    return normed, decayed.detach(), *grads


def refused(rank):
    """What a process says where the second has no batch, and of masked matrices, which would be merged."""
    measure = ShrinkageCovariance(forward=lambda model, batch: ([batch, batch], None))
    with pytest.raises(InputError) as shrinkage:
        measure.refresh(nn.Identity(), [uneven(2, 3, 4)][rank:])
    with pytest.raises(ShapeError) as matrices:
        SpectrumControlLoss()(uneven(2, 3, 4), mask=torch.ones(2, 3).bool())
    return str(shrinkage.value), str(matrices.value)


def collectives(rank):
    """What the building blocks give."""
    rows = (torch.arange(2.0), torch.arange(2.0, 5.0))[rank].unsqueeze(-1).requires_grad_()
    gathered = all_rows(rows)
    (gathered * torch.arange(5.0).unsqueeze(-1)).sum().backward()
    flags = all_rows(torch.tensor([True] * (rank + 1)))
    torch.manual_seed(rank)
    return {
        "rows": gathered.detach(),
        "slope": rows.grad,
        "flags": flags,
        "sum": all_sum(torch.tensor([rank + 1.0])),
        "first": from_first(torch.tensor([rank + 1.0])),
        "directions": random_directions(3, 2),
    }


def work():
    """One process: every loss on every split."""
    rank = dist.get_rank()
    result = {"collectives": collectives(rank), "ddp": in_ddp(rank)}
    for split, sizes in SHARDS.items():
        rows = shard_of(rank, sizes)
        result["moments", split] = union_moments(data(rows)[0] + 1e4, data(rows)[2])[:3]
        for name, loss in LOSSES.items():
            value, *grads = measured(loss, rows)
            for grad in grads:
                dist.all_reduce(grad)
            result[split, name] = value, *(grad / WORLD for grad in grads)
    result["shrinkage"] = shrinkage_of(data(shard_of(rank, SHARDS["unequal"]))[0])
    result["alone"] = IStarLoss(group=None)(data(shard_of(rank, SHARDS["unequal"]))[0])
    half = dist.new_group([0])
    result["subgroup"] = CosRegLoss(group=half)(data(shard_of(0, SHARDS["unequal"]))[0]) if rank == 0 else None
    result["refused"] = refused(rank)
    result["layers"] = layers_on(data(shard_of(rank, SHARDS["unequal"]))[0])
    return result


@pytest.fixture(scope="module")
def processes():
    """What each of the two processes found."""
    return run(work, world=WORLD)


@pytest.mark.parametrize("split", SHARDS)
@pytest.mark.parametrize("name", LOSSES)
def test_loss_and_gradients_of_the_union(processes, name, split):
    want = measured(LOSSES[name], slice(None))
    for result in processes:
        assert_same(result[split, name], want, rtol=1e-9, atol=1e-10)


def test_through_distributed_data_parallel(processes):
    model = encoder()
    x, _, mask = data()
    points = model(x)
    (IStarLoss()(points, BASE, mask) + CosRegLoss()(points) + PersistentEntropyLoss()(points)).backward()
    for result in processes:
        assert_same(result["ddp"], [parameter.grad for parameter in model.parameters()], atol=1e-10)


@pytest.mark.parametrize("split", SHARDS)
def test_moments_of_the_union(processes, split):
    x, _, mask = data()
    remaining = x[mask] + 1e4
    want = torch.tensor(float(mask.sum())).double(), remaining.mean(0), remaining.T.cov() * (len(remaining) - 1)
    for result in processes:
        assert_same(result["moments", split], want, rtol=1e-8)


def test_collectives(processes):
    for rank, result in enumerate(processes):
        blocks = result["collectives"]
        assert blocks["rows"].flatten().tolist() == [0, 1, 2, 3, 4]
        assert blocks["flags"].tolist() == [True] * 3
        assert blocks["sum"].item() == 3
        assert blocks["first"].item() == 1
        torch.manual_seed(0)
        assert torch.equal(blocks["directions"], random_directions(3, 2))
        local = [0, 1] if rank == 0 else [2, 3, 4]
        assert blocks["slope"].flatten().tolist() == [WORLD * k for k in local]  # the sum of both processes' gradients


def test_shrinkage_covariance_of_the_union(processes):
    x = data()[0]
    cov = encoder()(x).detach().T.cov()
    for result in processes:
        assert_same(result["shrinkage"], (cov, shrinkage_of(x)[1]), rtol=1e-8)


def test_all_processes_refuse_what_one_can_not_do(processes):
    for result in processes:
        shrinkage, matrices = result["refused"]
        assert "got 6 points, no batch on 1 of 2." in shrinkage
        assert "points must have shape (n, d) where the rows of several processes are gathered" in matrices


def test_layers_on_the_union(processes):
    normed, decayed, *grads = layers_on(data()[0])
    for rank, result in enumerate(processes):
        local = shard_of(rank, SHARDS["unequal"])
        # the loss here is a sum over rows, so gradients add over processes instead of being averaged
        assert_same(result["layers"], (normed[local], decayed[local], *grads), rtol=1e-8, atol=1e-9)


def test_group_none_and_subgroups_stay_local(processes):
    rows = data(shard_of(0, SHARDS["unequal"]))[0]
    assert_same(processes[0]["alone"], IStarLoss()(rows))
    assert_same(processes[0]["subgroup"], CosRegLoss()(rows))
    assert not torch.allclose(processes[0]["alone"], processes[1]["alone"])


def test_without_processes():
    x = uneven(6, 3)
    assert process_group("world") is None
    assert process_group(None) is None
    assert all_rows(x) is x
    assert all_sum(x) is x
    assert from_first(x) is x
    n, mean, scatter = union_moments(x)
    assert n.item() == 6
    assert_same((mean, scatter), (x.mean(0), x.T.cov() * 5))
    with pytest.raises(InputError, match="'everyone'"):
        process_group("everyone")

"""Penalties of the lab's own: a push in a random direction, a late start, and the Laplacian term."""

import pytest
import torch

from isonb.losses import IStarLoss
from isonb_lab.engines import finetune
from isonb_lab.methods import method_from
from isonb_lab.methods.laplacian import LaplacianLoss
from isonb_lab.methods.shared import RandomDirection
from tests.support import assert_same, normal

SMOKE = {"protocol": "smoke", "task": "english_sentiment", "model": "tiny", "cloud_examples": 0, "precision": "float32"}


def test_a_random_direction_keeps_value_and_length():
    points = torch.randn(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    loss = IStarLoss(-1.0, 0.2)
    cov = torch.eye(6, dtype=torch.float64)
    (true,) = torch.autograd.grad(loss(points, cov), points)
    turned = RandomDirection(loss)(points, cov)
    assert turned.item() == pytest.approx(loss(points, cov).item())
    torch.manual_seed(1)
    (other,) = torch.autograd.grad(turned, points)
    assert float(other.norm()) == pytest.approx(float(true.norm()))
    assert abs(float(torch.cosine_similarity(other.flatten(), true.flatten(), 0))) < 0.3


def test_a_late_penalty_leaves_the_first_epoch_as_it_is():
    assert isinstance(method_from({"name": "istar", "direction": "random"}).penalty(), RandomDirection)
    late = {"name": "istar", "weight": -1, "after": 1}
    runs = [
        finetune.run(SMOKE | {"epochs": 2, "track_every": 1, "method": method}, progress=False)
        for method in ("none", late, {"name": "istar", "weight": -1})
    ]
    plain, waited, early = (dict(run.series["step.train.loss"]) for run in runs)
    steps = sorted(plain)
    half = len(steps) // 2
    assert [waited[step] for step in steps[: half - 1]] == pytest.approx([plain[step] for step in steps[: half - 1]])
    assert early[steps[0]] != pytest.approx(plain[steps[0]])
    assert waited[steps[-1]] != pytest.approx(plain[steps[-1]])


def over_pairs(points, labels):
    unit, labels = torch.nn.functional.normalize(points, dim=-1), torch.tensor(labels)
    same = (labels[:, None] == labels).fill_diagonal_(False)
    return (unit @ unit.mT * same).sum() / len(points) ** 2


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 1, 0, 0, 1], [3] * 8, list(range(8))])
def test_only_pairs_of_one_label_count(labels):
    points = normal(8, 5).requires_grad_()
    loss, want = LaplacianLoss(weight=-2.0)(points, torch.tensor(labels)), -2 * over_pairs(points, labels)
    assert_same(loss, want)
    assert_same(*(torch.autograd.grad(value, points) for value in (loss, want)))


def test_without_labels_all_pairs_count():
    points = normal(8, 5)
    assert_same(LaplacianLoss()(points), over_pairs(points, [0] * 8))

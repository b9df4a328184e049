"""The Laplacian term against a sum over pairs."""

import pytest
import torch

from isonb_lab.methods.laplacian import LaplacianLoss
from tests.support import normal


def by_pairs(points, labels):
    unit = [row / row.norm() for row in points]
    pairs = [(i, j) for i in range(len(unit)) for j in range(len(unit)) if i != j and labels[i] == labels[j]]
    return sum(unit[i] @ unit[j] for i, j in pairs) / len(unit) ** 2


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 1, 0, 0, 1], [3] * 8, list(range(8))])
def test_only_pairs_of_one_label_count(labels):
    points = normal(8, 5).requires_grad_()
    loss = LaplacianLoss(weight=-2.0)(points, torch.tensor(labels))
    assert loss.item() == pytest.approx(-2 * float(by_pairs(points.detach(), labels)), abs=1e-12)
    (slope,) = torch.autograd.grad(loss, points)
    again = points.detach().clone().requires_grad_()
    reference = torch.autograd.grad(-2 * by_pairs(again, labels) + 0 * again.sum(), again)[0]
    assert torch.allclose(slope, reference, atol=1e-12)


def test_without_labels_all_pairs_count():
    points = normal(8, 5)
    assert LaplacianLoss()(points).item() == pytest.approx(float(by_pairs(points, [0] * 8)), abs=1e-12)

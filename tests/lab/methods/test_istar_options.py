"""The options of I-STAR that tell harm from haste: a late start, a push in a random direction."""

import pytest
import torch

from isonb.losses import IStarLoss
from isonb_lab.engines import finetune
from isonb_lab.methods import method_from
from isonb_lab.methods.shared import RandomDirection

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

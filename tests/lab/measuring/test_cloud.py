"""Maps of the plane: near points stay near, the same seed draws the same map."""

import numpy as np
import pytest
import torch

from isonb.errors import InputError
from isonb.lab.measuring.cloud import plane_map


def two_groups(n):
    points = torch.randn(2 * n, 6, generator=torch.Generator().manual_seed(0))
    return points + 30 * (torch.arange(2 * n) < n).unsqueeze(1)


def test_two_groups_stay_two_groups():
    flat = plane_map(two_groups(20))
    assert flat.shape == (40, 2)
    one, other = flat[:20], flat[20:]
    within = max(np.linalg.norm(part - part.mean(0), axis=1).max() for part in (one, other))
    assert np.linalg.norm(one.mean(0) - other.mean(0)) > 2 * within


def test_too_few_points_are_refused():
    with pytest.raises(InputError, match="n >= 5"):
        plane_map(torch.zeros(4, 3))

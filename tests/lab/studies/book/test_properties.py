"""Eight properties of a score: clouds have the covariance that they are said to have, the rule decides as written."""

import numpy as np
import pandas as pd
import pytest
import torch

from isonb.measures.isoscore import isoscore
from isonb_lab.papers import properties


@pytest.fixture(scope="module")
def suite():
    return properties.properties(4000, 2, seed=3)


def covariance(cloud):
    return torch.from_numpy(np.stack([np.cov(draw.numpy().T) for draw in cloud])).mean(0)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("mean", 20, torch.eye(5)),
        ("scale", 9, 9 * torch.eye(5)),
        ("maximum variance", 25, torch.diag(torch.tensor([25.0] + [1.0] * 9))),
        ("dimensions used", 9, torch.diag((torch.arange(25) < 9).double())),
        ("high dimension", 16, torch.eye(16)),
        ("rotation", 90, torch.tensor([[1.0, -0.8], [-0.8, 1.0]])),
        ("sample size", 4000, torch.diag(properties.DECAY**2)),
    ],
)
def test_clouds_have_the_covariance_of_the_table(suite, name, value, expected):
    cloud = suite[name].build(value)
    scale = float(expected.max())
    torch.testing.assert_close(covariance(cloud) / scale, expected.double() / scale, atol=0.08, rtol=0)


def test_stability_goes_from_a_line_to_a_ball(suite):
    line, mixed = (suite["global stability"].build(share) for share in (0, 0.5))
    assert float(isoscore(line).max()) < 1e-9
    half = (9 / ((3 - 2 * 0.5) ** 2 + 2 * 0.5**2) - 1) / 2
    assert float(isoscore(mixed).mean()) == pytest.approx(half, abs=0.05)


def runs(*rows, index=None):
    return pd.DataFrame(rows, index=index or range(1, len(rows) + 1), dtype=float)


@pytest.mark.parametrize(
    ("kind", "table", "expected"),
    [
        ("constant", runs([0.5, 0.5], [0.6, 0.6]), properties.HAS),
        ("constant", runs([0.5, 0.5], [0.7, 0.7]), properties.LACKS),
        ("constant", runs([0.5, 0.5], [0.5, 0.9]), properties.HAS),  # two standard errors more are allowed
        ("linear", runs([0.0, 0.0], [0.5, 0.5], [1.0, 1.0], index=[1, 13, 25]), properties.HAS),
        ("linear", runs([0.0, 0.0], [0.8, 0.8], [1.0, 1.0], index=[1, 13, 25]), properties.LACKS),
        ("falls", runs([1.0, 1.0], [0.6, 0.6], [0.3, 0.3]), properties.HAS),
        ("falls", runs([1.0, 1.0], [0.9, 0.9], [0.8, 0.8]), properties.LACKS),  # too little
        ("rises", runs([0.1, 0.1], [0.9, 0.9], [0.7, 0.7]), properties.LACKS),  # not in order
        ("rises", runs([0.1, 0.1], [0.5, 0.5], [0.7, 0.7]), properties.HAS),
        ("rises", runs([0.1, np.nan], [0.5, 0.5], [0.7, 0.7]), properties.UNDEFINED),
    ],
)
def test_the_rule(kind, table, expected):
    assert properties.has_property(kind, table) == expected

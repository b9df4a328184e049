"""Random halves: each item once, and the spread that theory gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from isonb.errors import InputError
from isonb.lab.statistics.halves import halves, standard_error


@pytest.mark.parametrize("n", [40, 41])
def test_a_mean_gets_its_textbook_error(n: int) -> None:
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * torch.tensor(
        [1.0, 5.0, 0.1]
    )
    got = standard_error(lambda rows: x[rows].mean(0), n, draws=6000)
    torch.testing.assert_close(got, x.std(0) / n**0.5, rtol=0.04, atol=0)


def test_a_pair_statistic_gets_the_error_that_new_samples_show() -> None:
    """Mean cosine of 60 points off the origin: the error from one sample is the spread over 300 fresh ones."""
    draw = torch.Generator().manual_seed(1)
    clouds = torch.randn(300, 60, 5, generator=draw, dtype=torch.float64) + 0.5

    def mean_cosine(x: Tensor) -> Tensor:
        unit = x / x.norm(dim=-1, keepdim=True)
        n = x.shape[-2]
        return (unit.sum(-2).square().sum(-1) - n) / (n * (n - 1))

    truth = mean_cosine(clouds).std()
    got = torch.stack([standard_error(lambda rows, x=x: mean_cosine(x[rows]), 60, 100) for x in clouds[:40]]).mean()
    torch.testing.assert_close(got, truth, rtol=0.12, atol=0)


@pytest.mark.parametrize(("n", "draws"), [(3, 10), (10, 1)])
def test_too_little_to_halve(n: int, draws: int) -> None:
    with pytest.raises(InputError, match="at least 4 items and 2 draws"):
        halves(n, draws)

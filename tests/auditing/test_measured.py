"""Readings of parts are those of the measure itself, whatever was computed once for all parts."""

import pytest
import torch
from support import normal

from isonb.auditing.measured import AUDITED, GROUPS, groups_of, of_parts
from isonb.measures.registry import MEASURES


@pytest.mark.parametrize("d", [12, 300])
def test_a_part_reads_what_its_rows_alone_read(d):
    x = normal(200, d).float() * torch.linspace(1, 3, d) + 2
    group = groups_of(200, torch.Generator().manual_seed(0))
    parts = [group >= 0, group != 3, group < GROUPS // 2, group == 1]
    values = of_parts(x, parts, AUDITED)
    assert list(values) == list(AUDITED)
    for name, read in values.items():
        assert read == pytest.approx([float(MEASURES[name](x[part])) for part in parts], rel=2e-5, abs=1e-6)


def test_equal_rows_have_neither_a_spread_nor_a_dimension_in_any_part():
    values = of_parts(torch.ones(30, 4), [torch.arange(30) < 20], AUDITED)
    assert values == {"mean_cosine": [1.0], "common_mean": [1.0]}

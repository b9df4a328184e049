"""Readings of parts are those of the measure itself, whatever was computed once for all parts."""

import pytest
import torch
from support import normal

from isonb.auditing.measured import AUDITED, GROUPS, groups_of, of_part
from isonb.errors import DegenerateError
from isonb.measures.registry import MEASURES


@pytest.mark.parametrize("name", AUDITED)
def test_a_part_reads_what_its_rows_alone_read(name):
    x = normal(200, 12).float() + 2
    group = groups_of(200, torch.Generator().manual_seed(0))
    read = of_part(MEASURES[name], x)
    for part in (group >= 0, group != 3, group < GROUPS // 2, group == 1):
        assert read(part) == float(MEASURES[name](x[part]))


def test_copies_have_no_dimension_in_any_part():
    with pytest.raises(DegenerateError):
        of_part(MEASURES["two_nn"], torch.ones(30, 4))(torch.arange(30) < 20)

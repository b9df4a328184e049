"""The recorded studies and their verdicts, loaded and judged once for all tests."""

import functools

import pytest

from isonb_lab.claims.study import Study
from isonb_lab.papers.studies import DESIGNS


@pytest.fixture(scope="session")
def studies():
    """Every recorded study by its name; one that others refer to is loaded once."""

    @functools.cache
    def loaded(name):
        return Study.load(DESIGNS[name], others={other: loaded(other) for other in DESIGNS[name].others})

    return {name: loaded(name) for name in DESIGNS}


@pytest.fixture(scope="session")
def head_to_head(studies):
    return studies["head_to_head"]


@pytest.fixture(scope="session")
def verdicts(studies):
    """The verdicts of each study."""
    return {name: study.verdicts() for name, study in studies.items()}

"""The recorded studies and their verdicts, loaded and judged once for all tests."""

import pytest

from isonb_lab.papers.studies import DESIGNS, load_study


@pytest.fixture(scope="session")
def studies():
    """Every recorded study by its name."""
    return {name: load_study(name) for name in DESIGNS}


@pytest.fixture(scope="session")
def head_to_head(studies):
    return studies["head_to_head"]


@pytest.fixture(scope="session")
def verdicts(studies):
    """The verdicts of each study."""
    return {name: study.verdicts() for name, study in studies.items()}

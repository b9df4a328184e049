"""A shell to display in."""

import pytest
from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture
def shell():
    """It ends with its test."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()

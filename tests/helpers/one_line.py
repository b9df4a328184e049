"""A mistake at the command line, as every command tells it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from isonb import cli


def assert_one_line(capsys: pytest.CaptureFixture[str], folder: Path, arguments: Sequence[str], message: str) -> None:
    """The command ends with code 2 and one line of error that says ``told``; ``folder`` is left as it was."""
    before = sorted(folder.rglob("*"))
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert message in err
    assert sorted(folder.rglob("*")) == before

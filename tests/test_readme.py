"""The training script of the README runs as it stands."""

import json
import math
import re
from pathlib import Path

import pytest

from isonb import FitWarning

README = Path(__file__).parent.parent / "README.md"

# The script is meant for a GPU too: without one, the Trainer's default of pinned memory is only a warning.
pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning")


def script(text: str) -> str:
    """The one Python block between the markers."""
    between = text.partition("<!-- train:start -->")[2].partition("<!-- train:end -->")[0]
    blocks = re.findall(r"^```python\n(.*?)^```$", between, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, "README.md needs one python block between <!-- train:start --> and <!-- train:end -->"
    return blocks[0]


@pytest.mark.slow
def test_the_training_script_learns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with pytest.warns(FitWarning, match="few for 384 dimensions"):
        exec(compile(script(README.read_text(encoding="utf-8")), str(README), "exec"), names)
    said = capsys.readouterr().out
    for name in ("istar", "entropy"):
        losses, penalties = (json.loads(re.search(f"{name} {what} (.*)", said)[1]) for what in ("task loss", "penalty"))
        assert max(losses[-2:]) < 0.6 < min(losses[:2]), "the task loss falls well below that of guessing, 0.693"
        assert all(math.isfinite(value) and value != 0 for value in penalties)
    istar = json.loads(re.search("istar penalty (.*)", said)[1])
    assert istar[-1] < istar[0], "the negative weight lowers isotropy"
    assert (tmp_path / "runs" / "whitened" / "modules.json").is_file()

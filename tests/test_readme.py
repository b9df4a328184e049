"""The training script of the README runs as it stands."""

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
def test_the_training_script_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with pytest.warns(FitWarning, match="few for 384 dimensions"):
        exec(compile(script(README.read_text(encoding="utf-8")), str(README), "exec"), names)
    history = names["trainer"].state.log_history
    penalties = [entry["isonb_penalty"] for entry in history if "isonb_penalty" in entry]
    assert penalties
    assert all(math.isfinite(value) and value != 0 for value in penalties)
    assert (tmp_path / "runs" / "whitened" / "modules.json").is_file()
    assert "istar" in capsys.readouterr().out

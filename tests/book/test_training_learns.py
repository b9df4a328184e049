"""The chapter on training teaches what it trains: the task loss falls in every loop and arm of it."""

from pathlib import Path

import jupytext
import pytest

PAGE = Path(__file__).parent.parent.parent / "book" / "practice" / "use_it_in_training.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")  # told on the page
def test_the_task_loss_falls_in_every_loop_and_every_arm():
    names = {"__name__": "__main__"}
    for cell in jupytext.read(PAGE).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, str(PAGE), "exec"), names)
            if "parameters" in cell.metadata.get("tags", []):
                names["seeds"] = 1
        if hasattr(names.get("curves"), "groupby") and "loops" in names:  # a table, and no longer a list of rows
            break
    guess = 0.693
    assert {name for name, ends in names["loops"].items() if ends["last quarter"] < guess - 0.05} == set(names["loops"])
    assert all(ends["last quarter"] < ends["first quarter"] for ends in names["loops"].values())
    runs = names["curves"].groupby(["method", "seed"])["task loss"]
    assert len(runs) == 4 * names["seeds"]
    for (method, seed), losses in runs:
        assert losses.iloc[-2:].mean() < min(losses.iloc[:2].mean(), guess) - 0.05, (method, seed, losses.tolist())

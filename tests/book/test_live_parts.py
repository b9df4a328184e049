"""The live parts of the built book: an effect on a score means something only where the plain model has learned."""

import json
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"
LIVE = (
    "papers/shrink_the_longest_more",
    "papers/istar_more",
    "papers/softdecay_more",
    "papers/isolayer_more",
    "results/plain_encoders",
)

pytestmark = pytest.mark.browser  # which runs after the book is built


def glued(notebook):
    """The glued values of an executed chapter, by name."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    named = [
        (output["metadata"]["scrapbook"], output["data"])
        for output in outputs
        if "scrapbook" in output.get("metadata", {})
    ]
    return {scrap["name"]: next(iter(data.values())) for scrap, data in named}


@pytest.mark.parametrize("name", LIVE)
def test_the_live_plain_model_is_clearly_above_the_majority_baseline(name):
    notebook = BOOK / f"{name}.ipynb"
    if not notebook.exists():
        pytest.skip("run `make book` first")
    assert float(glued(notebook)["live-ahead"]) > 0

"""The live parts of the built book: an effect on a score means something only where the plain model has learned."""

from pathlib import Path

import nbformat
import pytest

from isonb_lab.runtime.glue import glued

BOOK = Path(__file__).resolve().parents[2] / "book"
LIVE = ("papers/shrink_the_longest", "papers/istar", "papers/softdecay", "papers/isolayer", "results/plain_encoders")

pytestmark = pytest.mark.browser  # which runs after the book is built


@pytest.mark.parametrize("name", LIVE)
def test_the_live_plain_model_is_clearly_above_the_majority_baseline(name):
    notebook = BOOK / f"{name}.ipynb"
    if not notebook.exists():
        pytest.skip("run `make book` first")
    assert float(glued(nbformat.read(notebook, as_version=4))["live-ahead"]) > 0

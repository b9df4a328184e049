"""The built book: from any claim to the runs behind it in two clicks, and live parts whose plain model has learned."""

import re
from pathlib import Path

import nbformat
import pytest

from isonb_lab.figures import runs
from isonb_lab.figures.claims import claims_anchor
from isonb_lab.papers.studies import load_study
from isonb_lab.runtime.glue import glued

BOOK = Path(__file__).resolve().parents[2] / "book"
HTML = BOOK.parent / "_build" / "html" / "book"
PAPERS = ("shrink_the_longest", "istar", "softdecay", "isolayer")

pytestmark = pytest.mark.browser  # which runs after the book is built


def page(name):
    path = HTML / f"{name}.html"
    if not path.exists():
        pytest.skip("run `make book` first")
    return path.read_text(encoding="utf-8")


def section(text, anchor):
    """A page from an anchor to the next section."""
    body = text[text.index(f'id="{anchor}"') :]
    return body.partition("<section")[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_each_mark_leads_to_the_claims_and_these_to_their_runs(paper):
    anchor = f"runs-of-{paper.replace('_', '-')}"
    marks = re.findall(rf"\.\./papers/{paper}\.html#([\w-]+)", page("results/claims"))
    assert len(marks) > 5
    assert set(marks) == {claims_anchor(paper)}
    assert f"results/ledger.html#{anchor}" in section(page(f"papers/{paper}"), claims_anchor(paper))
    listed = section(page("results/ledger"), anchor)
    for row in runs.run_rows(load_study(paper)):
        assert row["run"] in listed


def test_the_files_of_the_runs_come_with_the_book():
    match = re.findall(r'href="(\.\./\.\./_downloads/[^"]+\.parquet)"', page("results/ledger"))
    source = BOOK / "results" / "ledger.md"
    assert len(match) == source.read_text(encoding="utf-8").count("{download}") > 0
    for file in match:
        assert (HTML / "results" / file).resolve().is_file()


@pytest.mark.parametrize("name", [*(f"papers/{paper}" for paper in PAPERS), "results/plain_encoders"])
def test_the_live_plain_model_is_clearly_above_the_majority_baseline(name):
    """An effect on a score means something only there."""
    notebook = BOOK / f"{name}.ipynb"
    if not notebook.exists():
        pytest.skip("run `make book` first")
    assert float(glued(nbformat.read(notebook, as_version=4))["live-ahead"]) > 0

"""Sentences are outputs of the kernel: they change with a parameter, and one that no longer holds says so."""

from pathlib import Path

import nbformat
import papermill
import pytest
from plain import plain_chapter

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import PageError
from isonb_lab.pages.notebooks.plain import plain
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.outputs import PARAGRAPH
from isonb_lab.pages.prose import sentences
from isonb_lab.pages.sentences import NO_LONGER, NOT_YET, contradict

TEXT = """**The answer.** The number is {glue}`n`, one of few{glue}`few-enough`.

```{note}
Plain words, and $x_1$.
```

- {glue}`n` again; a word: {glue}`word`.
"""
CELLS = (
    "from isonb_lab import pages\n\npages.check_parameters()",
    'pages.glue("n", n)\npages.glue("word", "a_b")\npages.assert_facts(few_enough=n < 5)',
)


@pytest.fixture
def run(tmp_path):
    """Execute the notebook of a chapter by papermill, as a reader has it."""

    def executed(chapter, **parameters):
        nbformat.write(plain(chapter, chapter.fresh(), Index(Book(chapter.root)), {}), tmp_path / "in.ipynb")
        options = {"progress_bar": False, "parameters": parameters, "cwd": tmp_path}
        return papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", **options)

    return executed


def paragraphs(notebook):
    """What the cells of paragraphs show."""
    cells = [cell for cell in notebook.cells if PARAGRAPH in cell.metadata.get("tags", [])]
    return [output.data["text/markdown"] for cell in cells for output in cell.outputs]


def text(notebook):
    """All Markdown that the other cells show; the grade of an exercise is a result."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    others = [cell for cell in cells if PARAGRAPH not in cell.metadata.get("tags", [])]
    outputs = [output for cell in others for output in cell.outputs if output.output_type == "display_data"]
    return [output.data["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]


def test_a_sentence_has_the_number_of_its_kernel_wherever_that_is_computed(book, run):
    book = plain_chapter(book, "small", *CELLS, text=TEXT)
    (chapter,) = book.pick(["small"])
    before = plain(chapter, chapter.fresh(), Index(book), {})
    assert f"The number is {NOT_YET}" in paragraphs(before)[0]
    shown = [run(chapter, **inputs) for inputs in ({}, {"n": 7})]
    assert paragraphs(shown[0]) == ["**The answer.** The number is 3, one of few.", "- 3 again; a word: a_b."]
    assert paragraphs(shown[1]) == [
        f"**The answer.** The number is 7, one of few{NO_LONGER}.",
        "- 7 again; a word: a_b.",
    ]
    assert text(shown[0]) == []
    assert len(text(shown[1])) == 1
    assert "doesn't hold here with n = 7:" in text(shown[1])[0]
    assert "few enough" in text(shown[1])[0]


def test_the_build_stops_at_a_sentence_that_does_not_hold():
    with pytest.raises(PageError, match="Rewrite the sentence"):
        contradict("few")


@pytest.mark.slow
def test_with_other_parameters_ten_sentences_of_a_page_change_and_a_claim_says_that_it_fails(run):
    (chapter,) = Book(Path(__file__).resolve().parents[2]).pick(["foundations/clouds_and_cones"])
    first, second = (run(chapter, draws=10, **other) for other in ({}, {"n_topics": 3}))
    before, after = (sentences("\n\n".join(paragraphs(executed))) for executed in (first, second))
    assert NOT_YET not in "".join(before + after), "every number has been computed"
    assert NO_LONGER not in "".join(before)
    assert len(set(after) - set(before)) >= 10
    assert any(NO_LONGER in sentence for sentence in after)
    assert all("doesn't hold here with" in note for note in text(second))
    assert text(first) == []

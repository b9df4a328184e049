"""Sentences are outputs of the kernel: they change with a parameter, and one that no longer holds says so."""

from pathlib import Path

import nbformat
import papermill
import pytest

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import PageError
from isonb_lab.pages.notebooks.plain import plain
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.notebooks.student import student
from isonb_lab.pages.outputs import PARAGRAPH
from isonb_lab.pages.prose import sentences
from isonb_lab.pages.sentences import NO_LONGER, NOT_YET, contradict

TEXT = """# A page

**The answer.** The number is {glue}`n`, one of few{glue}`few-enough`.

```{note}
Plain words, and $x_1$.
```

- {glue}`n` again; a word: {glue}`word`.
"""
CELLS = """
```{code-cell} ipython3
pages.glue("n", n)
pages.glue("word", "a_b")
pages.assert_facts(few_enough=n < 5)
```
"""


@pytest.fixture
def run(tmp_path):
    """Execute the notebook of a chapter by papermill, as a reader has it."""

    def executed(chapter, notebook, **parameters):
        nbformat.write(plain(chapter, notebook, Index(Book(chapter.root)), {}), tmp_path / "in.ipynb")
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


@pytest.mark.parametrize("copy", [lambda chapter: chapter.fresh(), student], ids=["notebook", "student"])
def test_a_sentence_has_the_number_of_its_kernel_wherever_that_is_computed(book, run, copy):
    book = small(book)
    chapter = book.pick(["small"])[0]
    before = plain(chapter, copy(chapter), Index(book), {})
    assert f"The number is {NOT_YET}" in paragraphs(before)[0]
    shown = [run(chapter, copy(chapter), **inputs) for inputs in ({}, {"n": 7})]
    assert paragraphs(shown[0]) == ["**The answer.** The number is 3, one of few.", "- 3 again; a word: a_b."]
    assert paragraphs(shown[1]) == [
        f"**The answer.** The number is 7, one of few{NO_LONGER}.",
        "- 7 again; a word: a_b.",
    ]
    assert text(shown[0]) == []
    assert len(text(shown[1])) == 1
    assert "doesn't hold here with n = 7:" in text(shown[1])[0]
    assert "few enough" in text(shown[1])[0]


def small(book):
    source = book.root / "book" / "small.md"
    header = "---\nkernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n---\n\n"
    declared = "\n```{code-cell} ipython3\n:tags: [parameters]\n\nn: int = 3  # a number; range 1..9\n```\n"
    check = "\n```{code-cell} ipython3\nfrom isonb_lab import pages\n\npages.check_parameters()\n```\n"
    source.write_text(header + TEXT + declared + check + CELLS, encoding="utf-8")
    toc = book.root / "_toc.yml"
    toc.write_text(toc.read_text(encoding="utf-8") + "  - file: book/small.ipynb\n", encoding="utf-8")
    return Book(book.root)


def test_the_build_stops_at_a_sentence_that_does_not_hold():
    with pytest.raises(PageError, match="Rewrite the sentence"):
        contradict("few")


@pytest.mark.slow
def test_with_other_parameters_ten_sentences_of_the_book_change_and_a_claim_says_that_it_fails(run):
    book = Book(Path(__file__).resolve().parents[2])
    runs = {
        "foundations/clouds_and_cones": ({"draws": 10}, {"draws": 10, "n_topics": 3}),
        "papers/four_recipes": ({}, {"steps": 5}),
    }
    changed, failed = [], []
    for name, (usual, other) in runs.items():
        (chapter,) = book.pick([name])
        first, second = (run(chapter, chapter.fresh(), **inputs) for inputs in (usual, other))
        before, after = (sentences("\n\n".join(paragraphs(executed))) for executed in (first, second))
        assert NOT_YET not in "".join(before + after), "every number has been computed"
        assert NO_LONGER not in "".join(before)
        changed += [sentence for sentence in after if sentence not in before]
        failed += [sentence for sentence in after if NO_LONGER in sentence]
        assert all("doesn't hold here with" in note for note in text(second))
        assert text(first) == []
    assert len(changed) >= 10, changed
    assert failed

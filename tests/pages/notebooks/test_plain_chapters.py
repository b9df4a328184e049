"""Every chapter as a plain notebook: nothing raw is left."""

import importlib.util
import os
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from markdown_it import MarkdownIt
from reading import RAW, prose

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import PageError
from isonb_lab.pages.notebooks.markdown import Reader
from isonb_lab.pages.notebooks.plain import CAPTION, plain
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.outputs import code_cells

ROOT = Path(__file__).resolve().parents[3]
BOOK = Book(ROOT)
INDEX = Index(BOOK)
SOURCE = re.compile(r"\{[a-zA-Z][\w:+-]*\}`|^ *[`:]{3,} *\{|^:{3,}|^\([\w:.-]+\)=|\{\{|^:[a-z]+: ", re.MULTILINE)


def values(chapter):
    """A value for each name that the chapter's text takes, as a run leaves them."""
    names = sorted(set(re.findall(r"\{glue(?::text)?\}`([^`:]+)", chapter.source.read_text(encoding="utf-8"))))
    return {name: f"{number}.{number} ± 0.5" for number, name in enumerate(names, start=11)}


@pytest.fixture(scope="module", params=BOOK.chapters, ids=lambda chapter: chapter.slug)
def chapter(request):
    return request.param


@pytest.fixture(scope="module")
def notebook(chapter):
    """The chapter as a plain notebook, made once for its tests."""
    return plain(chapter, chapter.fresh(), INDEX, values(chapter))


def drawn(text):
    """The words of Markdown as a viewer of notebooks draws them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return "\n".join(part.content for token in tokens for part in token.children or [token])


def test_nothing_raw_is_left(chapter, notebook):
    nbformat.validate(notebook)
    text = prose(notebook)
    assert not SOURCE.findall(text)
    assert not RAW.findall(drawn(text))
    assert all(value in text for value in values(chapter).values())
    assert not set(INDEX.citations) & set(re.findall(r"[\w-]+", text)), "no key of a citation"
    assert not {label for label in INDEX.labels if label in text}, "no label"
    assert text.count("<details>") == text.count("</details>")


def test_links_lead_to_notebooks(chapter, notebook):
    text = prose(notebook)
    reference = {other.notebook for other in BOOK.chapters}
    for target in re.findall(r"\]\(([^)#]+\.ipynb)\)", text):
        assert (chapter.notebook.parent / target).resolve() in reference
    assert not re.findall(r"\]\((?!https?:)[^)#]+(?<!\.ipynb)\)", text)


def test_hidden_code_is_folded_and_solutions_are_closed(chapter, notebook):
    hidden = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:
        tags, folded = set(cell.metadata.get("tags", [])), cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert folded or "parameters" in tags or not hidden & tags
        assert not (folded and "parameters" in tags)
    source = chapter.source.read_text(encoding="utf-8")
    bodies = re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", source, re.MULTILINE | re.DOTALL)
    inside = sum(body.count("{code-cell}") for body in bodies)
    assert sum(cell.metadata.get("jupyter", {}).get("outputs_hidden", False) for cell in code) == inside
    pictures = len(re.findall(r"^    name: fig-", source, re.MULTILINE))
    captions = [cell for cell in notebook.cells if CAPTION in cell.metadata.get("tags", [])]
    assert len(captions) == pictures
    numbers = [text for page, text in INDEX.labels.values() if page == chapter.name and text.startswith("Fig.")]
    assert [cell.source.split("*")[1] for cell in captions] == numbers


def test_a_directive_that_no_notebook_shows_is_refused():
    with pytest.raises(PageError, match=r"none can show the directive \{mermaid\}"):
        Reader({}).shown("```{mermaid}\ngraph\n```\n")


@pytest.mark.parametrize("repository", ["", "git+https://example.org/isonb"])
@pytest.mark.parametrize("present", [True, False])
def test_a_notebook_that_is_opened_alone_installs_the_package_first(present, repository, monkeypatch):
    chapter = BOOK.chapters[0]
    monkeypatch.setattr("isonb_lab.pages.notebooks.plain._repository", lambda checkout: repository)
    notebook = plain(chapter, chapter.fresh(), INDEX, {})
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    ran = []
    shell = SimpleNamespace(run_line_magic=lambda name, line: ran.append(f"{name} {line}"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: present or None)
    exec(TransformerManager().transform_cell(first.source), {"get_ipython": lambda: shell})
    up = os.path.relpath(BOOK.root, chapter.source.parent)
    expected = f'"isonb @ {repository}" "isonb-lab @ {repository}#subdirectory=book"'
    expected = expected if repository else f'"{up}" "{up}/book"'
    assert ran == ([] if present else [f"pip install --quiet {expected}"])
    assert [cell.source for cell in code_cells(notebook)] == [cell.source for cell in chapter.code]

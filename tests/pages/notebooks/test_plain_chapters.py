"""Every chapter as a plain notebook: nothing raw is left, and an edited line is that line of the source."""

import difflib
import re
from pathlib import Path

import nbformat
import pytest

from isonb.pages.chapters import Book, Chapter
from isonb.pages.errors import PageError, PairingError
from isonb.pages.notebooks.edits import bind, keep
from isonb.pages.notebooks.markdown import Reader
from isonb.pages.notebooks.plain import CAPTION, plain
from isonb.pages.notebooks.two_sided import raw, reworded, shown
from isonb.pages.notebooks.words import NOT_RUN, Index

ROOT = Path(__file__).resolve().parents[3]
BOOK = Book(ROOT)
INDEX = Index(BOOK)
RAW = re.compile(r"\{[a-zA-Z][\w:+-]*\}`|^ *[`:]{3,} *\{|^:{3,}|^\([\w:.-]+\)=|\{\{|^:[a-z]+: ", re.MULTILINE)
each_chapter = pytest.mark.parametrize("chapter", BOOK.chapters, ids=lambda chapter: chapter.slug)


def values(chapter):
    """A value for each name that the chapter's text takes, as a run leaves them."""
    names = sorted(set(re.findall(r"\{glue(?::text)?\}`([^`:]+)", chapter.source.read_text(encoding="utf-8"))))
    return {name: f"{number}.{number} ± 0.5" for number, name in enumerate(names, start=11)}


def prose(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


@each_chapter
def test_nothing_raw_is_left(chapter):
    given = values(chapter)
    made = plain(chapter, chapter.fresh(), INDEX, given)
    nbformat.validate(made)
    text = prose(made)
    assert not RAW.findall(text)
    assert all(value in text for value in given.values())
    assert not set(INDEX.citations) & set(re.findall(r"[\w-]+", text)), "no key of a citation"
    assert not {label for label in INDEX.labels if label in text}, "no label"
    assert text.count("<details>") == text.count("</details>")
    assert NOT_RUN not in text
    assert prose(plain(chapter, chapter.fresh(), INDEX, {})).count(NOT_RUN) >= len(given)


@each_chapter
def test_links_lead_to_notebooks(chapter):
    text = prose(plain(chapter, chapter.fresh(), INDEX, {}))
    known = {other.notebook for other in BOOK.chapters}
    for target in re.findall(r"\]\(([^)#]+\.ipynb)\)", text):
        assert (chapter.notebook.parent / target).resolve() in known
    assert not re.findall(r"\]\((?!https?:)[^)#]+(?<!\.ipynb)\)", text)


@each_chapter
def test_any_line_of_prose_can_be_edited_and_only_that_line_changes(chapter):
    """Roles on that line stay: what is added is the line as it was written with one word more."""
    words = INDEX.words(chapter, values(chapter))
    reader = Reader(words)
    tried = 0
    for cell in chapter.cells.cells:
        if cell.cell_type != "markdown":
            continue
        pieces = reader.pieces(cell.source)
        assert raw(pieces) == cell.source
        lines = shown(pieces).splitlines()
        for number, line in enumerate(lines):
            if len(line) < 30 or line.startswith(("<", "**Exercise", "**Solution")):
                continue
            edited = reworded(pieces, "\n".join([*lines[:number], f"{line} indeed", *lines[number + 1 :]]))
            changed = [d for d in difflib.ndiff(cell.source.splitlines(), edited.splitlines()) if d[0] in "-+"]
            assert len(changed) == 2
            assert changed[1] == "+" + changed[0][1:] + " indeed"
            tried += 1
    assert tried > 5


@each_chapter
def test_hidden_code_is_folded_and_solutions_are_closed(chapter):
    made = plain(chapter, chapter.fresh(), INDEX, {})
    hidden = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    for cell in code:
        tags, folded = set(cell.metadata.get("tags", [])), cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert folded or "parameters" in tags or not hidden & tags
        assert not (folded and "parameters" in tags)
    source = chapter.source.read_text(encoding="utf-8")
    bodies = re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", source, re.MULTILINE | re.DOTALL)
    inside = sum(body.count("{code-cell}") for body in bodies)
    assert sum(cell.metadata.get("jupyter", {}).get("outputs_hidden", False) for cell in code) == inside
    pictures = len(re.findall(r"^    name: fig-", source, re.MULTILINE))
    captions = [cell for cell in made.cells if CAPTION in cell.metadata.get("tags", [])]
    assert len(captions) == pictures
    numbers = [words for page, words in INDEX.labels.values() if page == chapter.name and words.startswith("Fig.")]
    assert [cell.source.split("*")[1] for cell in captions] == numbers


@pytest.fixture
def copy(tmp_path):
    """A chapter of its own, and its plain notebook."""
    (chapter,) = BOOK.pick(["barcodes_more"])
    own = Chapter(tmp_path, chapter.name)
    own.source.parent.mkdir(parents=True)
    own.source.write_bytes(chapter.source.read_bytes())
    notebook = plain(own, own.fresh(), INDEX, values(chapter))
    bind(own, notebook)
    return own, notebook


def changed(chapter, before):
    now = chapter.source.read_text(encoding="utf-8")
    return [d for d in difflib.ndiff(before.splitlines(), now.splitlines()) if d[0] in "-+"]


def cell_with(notebook, text):
    (cell,) = [cell for cell in notebook.cells if text in cell.source]
    return cell


def test_cells_are_edited_added_moved_and_removed(copy):
    chapter, notebook = copy
    before = chapter.source.read_text(encoding="utf-8")
    keep(chapter, notebook)
    assert chapter.source.read_text(encoding="utf-8") == before

    def saved():
        keep(Chapter(chapter.root, chapter.name), notebook)
        return changed(chapter, before)

    cell_with(notebook, "example = [10, 9").source += "\ndel example"
    assert saved() == ["+ del example"]
    at = notebook.cells.index(cell_with(notebook, "## The experiment"))
    notebook.cells[at:at] = [nbformat.v4.new_code_cell("2 + 2"), nbformat.v4.new_markdown_cell("A word of mine.")]
    assert "+ 2 + 2" in saved()
    assert "+ A word of mine." in saved()
    notebook.cells[at + 1].source += " And one more."
    assert "+ A word of mine. And one more." in saved()
    del notebook.cells[at : at + 2]
    assert saved() == ["+ del example"]
    cell = cell_with(notebook, "del example")
    cell.source = cell.source.removesuffix("\ndel example")
    assert saved() == []


def test_cells_that_are_split_merged_or_pasted_keep_their_roles(copy):
    """As JupyterLab does it: the second half, and what is pasted, are new cells."""
    chapter, notebook = copy
    before = chapter.source.read_text(encoding="utf-8")
    count = before.count("{glue}")
    cell = cell_with(notebook, "The last column is a warning.")
    at, whole = notebook.cells.index(cell), cell.source
    first, second = whole.split("\n\nThe last column is a warning.")
    second = "The last column is a warning." + second
    cell.source = first
    notebook.cells.insert(at + 1, nbformat.v4.new_markdown_cell(second))

    def saved():
        keep(Chapter(chapter.root, chapter.name), notebook)
        return changed(chapter, before)

    assert sorted(saved()) == ["+ ", "+ +++"]
    pasted = nbformat.v4.new_markdown_cell(notebook.cells.pop(at + 1).source)
    notebook.cells.insert(at + 1, pasted)
    assert sorted(saved()) == ["+ ", "+ +++"]
    del notebook.cells[at + 1]
    cell.source = whole
    assert saved() == []
    assert chapter.source.read_text(encoding="utf-8").count("{glue}") == count


def test_an_edit_on_both_sides_is_told_and_nothing_is_written(copy):
    chapter, notebook = copy
    chapter.source.write_text(chapter.source.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    before = chapter.source.read_bytes()
    cell_with(notebook, "# Barcodes: loops").source += " Indeed."
    with pytest.raises(PairingError, match=r"barcodes_more\.md was edited since"):
        keep(Chapter(chapter.root, chapter.name), notebook)
    assert chapter.source.read_bytes() == before


def test_a_directive_that_no_notebook_shows_is_refused():
    with pytest.raises(PageError, match=r"none can show the directive \{mermaid\}"):
        Reader({}).pieces("```{mermaid}\ngraph\n```\n")

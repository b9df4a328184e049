"""Tools that run a notebook where it stands leave a pair that opens, and nothing of theirs in the source."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from plain import plain_chapter

from isonb.pages.__main__ import main
from isonb.pages.chapters import Book, Chapter
from isonb.pages.notebooks.edits import save

WAYS = {
    "papermill": ["papermill", "FILE", "FILE", "-p", "n", "7", "-k", "python3"],
    "papermill without parameters": ["papermill", "FILE", "FILE", "-k", "python3"],
    "papermill that fails": ["papermill", "FILE", "FILE", "-p", "n", "0", "-k", "python3"],
    "papermill, twice": ["papermill", "FILE", "FILE", "-p", "n", "7", "-p", "m", "1", "-k", "python3"],
    "jupyter execute": ["jupyter", "execute", "--inplace", "FILE"],
    "nbconvert": ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", "FILE"],
    "nbconvert that clears": ["jupyter", "nbconvert", "--clear-output", "--inplace", "FILE"],
}


@pytest.fixture
def chapter(book):
    book = plain_chapter(book, "quick", "print('n is', n)", "print(6 / n)")
    assert main(["--root", str(book.root), "pair", "quick"]) == 0
    return book.pick(["quick"])[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_notebook_run_in_place_stays_a_pair(chapter, way, capsys):
    source = chapter.source.read_bytes()
    program, *words = [str(chapter.notebook) if word == "FILE" else word for word in WAYS[way]]
    command = [Path(sys.executable).with_name(program), *words]
    for _ in range(2 if way.endswith("twice") else 1):
        subprocess.run(command, capture_output=True, check=False)
    ran = nbformat.read(chapter.notebook, as_version=4)
    save(Chapter(chapter.root, chapter.name), ran)  # as Lab does with the notebook as it is now
    assert chapter.source.read_bytes() == source
    for again in (["pair"], ["pair", "--keep"]):
        assert main(["--root", str(chapter.root), *again, "quick"]) == 0
        assert chapter.source.read_bytes() == source
    written = nbformat.read(chapter.notebook, as_version=4)
    assert [cell.source for cell in written.cells if cell.cell_type == "code"] == [cell.source for cell in chapter.code]
    printed = "".join(out.get("text", "") for cell in written.cells for out in cell.get("outputs", []))
    assert ("This page was run with n = 7 (default 3)." in printed) == ("n is 7" in printed) == ("7" in words)
    assert ("n is" in printed) == (way != "nbconvert that clears")


def test_a_notebook_from_elsewhere_is_not_overwritten(chapter, capsys):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("Mine.")])
    nbformat.write(made, chapter.notebook)
    for words in (["pair"], ["pair", "--keep"]):
        assert main(["--root", str(chapter.root), *words, "quick"]) == 1
        assert "Keep it: move it. Drop it" in capsys.readouterr().err
    assert "Mine." in chapter.notebook.read_text(encoding="utf-8")


def test_an_edit_beside_what_papermill_left_is_kept(chapter, capsys):
    made = nbformat.read(chapter.notebook, as_version=4)
    for cell in made.cells:
        cell.metadata["papermill"] = {"status": "completed", "duration": 0.1}
        cell.metadata["tags"] = cell.metadata.get("tags", [])
    injected = nbformat.v4.new_code_cell("# Parameters\nn = 7\n", metadata={"tags": ["injected-parameters"]})
    made.cells.insert(2, injected)
    made.cells[0].source += ", and more"
    nbformat.write(made, chapter.notebook)
    assert main(["--root", str(chapter.root), "pair", "quick"]) == 1
    assert "Keep it: python -m isonb.pages pair --keep book/quick" in capsys.readouterr().err
    assert main(["--root", str(chapter.root), "pair", "--keep", "quick"]) == 0
    text = chapter.source.read_text(encoding="utf-8")
    assert "# A chapter, and more\n" in text
    assert "papermill" not in text
    assert "n = 7" not in text
    assert Book(chapter.root).pick(["quick"])[0].code[0].metadata["tags"] == ["parameters"]

"""Student notebooks: no solution stays, all else is the chapter's, they run empty, and filled they are it."""

import re
import shutil
import symtable
from collections import Counter
from pathlib import Path

import nbclient
import nbformat
import pytest
from reading import prose

from isonb_lab.pages.__main__ import main
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.notebooks.plain import FOLDED
from isonb_lab.pages.notebooks.student import ANSWER, CHECK, EMPTY, student

ROOT = Path(__file__).resolve().parents[2]
BOOK = Book(ROOT)
SAMPLE = ROOT / "tests" / "book" / "sample"
SOLUTION = re.compile(r"^[`:]{3,}\{solution-start\}.*?\n(.*?)^[`:]{3,}\{solution-end\}", re.MULTILINE | re.DOTALL)
each_chapter = pytest.mark.parametrize("chapter", BOOK.chapters, ids=lambda chapter: chapter.slug)


@pytest.fixture
def book(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "sample")
    return Book(tmp_path / "sample")


def to_fill(notebook):
    return [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", [])]


def solutions(chapter):
    """The code of each solution cell, read from the source and not by the code under test."""
    bodies = SOLUTION.findall(chapter.source.read_text(encoding="utf-8"))
    code = [re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", body, re.MULTILINE | re.DOTALL) for body in bodies]
    texts = [re.sub(r"\A(?::[^\n]*\n)+\n?", "", cell).strip("\n") for cells in code for cell in cells]
    return [text for text in texts if not text.startswith("pages.check(")]


def run(notebook, folder):
    folder.mkdir(parents=True, exist_ok=True)
    result = nbformat.from_dict(notebook)
    nbclient.NotebookClient(
        result, kernel_name="python3", timeout=60, resources={"metadata": {"path": folder}}
    ).execute()
    return result


@each_chapter
def test_solutions_are_gone_and_all_else_is_the_chapters(chapter):
    notebook = student(chapter)
    assert [cell.id for cell in notebook.cells] == [cell.id for cell in chapter.cells.cells]
    sources = {cell.id: cell.source for cell in chapter.cells.cells}
    inside = {cell.id for cell in to_fill(notebook)}
    assert [sources[cell.id] for cell in to_fill(notebook)] == solutions(chapter)
    checked = [cell.source for cell in notebook.cells if cell.source.startswith("pages.check(")]
    filled = Counter(cell.source for cell in to_fill(notebook))
    assert filled[ANSWER] == len(checked)
    assert set(filled) <= {EMPTY, ANSWER}
    graded = [cell.metadata.nbgrader for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert [entry.grade_id for entry in graded if entry.grade] == [f"{CHECK.match(text)[1]}-check" for text in checked]
    assert all(
        cell.source == sources[cell.id] for cell in notebook.cells if cell.cell_type == "code" and cell.id not in inside
    )
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    source = chapter.source.read_text(encoding="utf-8")
    assert "{solution-" not in text
    assert text.count("**Your solution:**") == source.count("{solution-start}")
    assert text.count("{exercise-start}") == source.count("{exercise-start}")
    for body in SOLUTION.findall(source):
        prose = re.sub(r"^```\{code-cell\}.*?^```$", "", body, flags=re.MULTILINE | re.DOTALL)
        report = [line for line in prose.splitlines() if len(line) > 40]
        assert not any(line in text for line in report)


def test_it_runs_empty(book, capsys):
    assert main(["--root", str(book.root), "student"]) == 0
    assert "1 notebooks without solutions are in _build/student" in capsys.readouterr().out
    path = book.build / "student" / "sample.ipynb"
    written = nbformat.read(path, as_version=4)
    nbformat.validate(written)
    result = run(written, path.parent)
    assert [cell.outputs for cell in to_fill(result)] == [[], []]
    assert all(cell.execution_count for cell in result.cells if cell.cell_type == "code")


def test_work_is_not_overwritten(book, capsys):
    command = ["--root", str(book.root), "student"]
    path = book.build / "student" / "sample.ipynb"
    assert main(command) == main(command) == 0
    worked = nbformat.read(path, as_version=4)
    text = prose(worked)
    assert "**Exercise 1.1 (One · easy)**" in text
    assert not re.search(r"\{[\w:-]+\}`|```\{", text), "nothing raw"
    to_fill(worked)[0].source = "mine = 1"
    nbformat.write(worked, path)
    assert main(command) == 1
    assert "sample.ipynb were worked in" in capsys.readouterr().err
    assert "mine = 1" in path.read_text(encoding="utf-8")
    assert main([*command, "--force"]) == 0
    assert "mine = 1" not in path.read_text(encoding="utf-8")


NUMBERED = [chapter for chapter in BOOK.chapters if chapter.name in BOOK.numbered]


def names(source):
    """Names that a cell takes from other cells or from Python, and names that it sets for them."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    top = symtable.symtable("\n".join(lines), "cell", "exec")
    defined = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    used, inner = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}, top.get_children()
    while inner:
        scope = inner.pop()
        used |= {s.get_name() for s in scope.get_symbols() if s.is_global() and s.is_referenced()}
        inner += scope.get_children()
    return used - defined, defined


@pytest.mark.parametrize("chapter", NUMBERED, ids=lambda chapter: chapter.slug)
def test_no_exercise_of_a_numbered_page_needs_a_name_from_a_folded_cell(chapter):
    inside = {cell.id for cell in to_fill(student(chapter))}
    visited, folded, missing = set(), set(), {}
    for cell in chapter.code:
        used, result = names(cell.source)
        tags = set(cell.metadata.get("tags", []))
        if cell.id in inside and used & folded - visited:
            missing[cell.source.splitlines()[0]] = sorted(used & folded - visited)
        (folded if FOLDED & tags and "parameters" not in tags else visited).update(result)
    assert missing == {}

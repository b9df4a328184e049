"""The rules every chapter keeps, checked on its source alone: no kernel, a few seconds for the whole book.

The Python of the cells is read by ruff as that of any file, with pyproject.toml.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from markdown_it import MarkdownIt

from isonb.errors import install_line
from isonb.runtime.files import update
from isonb_lab.pages.chapters import Book, Chapter
from isonb_lab.pages.errors import LintError, ParameterError
from isonb_lab.pages.notebooks.markdown import Reader, blocks, nested_blocks
from isonb_lab.pages.notebooks.plain import FOLDED
from isonb_lab.pages.prose import number_count, sentences, word_count

ANSWER, LIMITS = "**The answer.**", "What this does not show"
CHECK = "pages.check_parameters()"
WORDS, BARS = 2500, 12  # of a numbered page: words of prose, folded cells
ALL, NUMBERS, LONG, SHARE = 14_000, 150, 30, 0.05  # words of all numbered pages; of one: numbers, and long sentences
PAGES = 35  # of the whole book
LINES, WIDTH = 12, 80  # of an open cell
HEADER_FILTER = "isonb,-jupytext.text_representation.jupytext_version"
CONFIG = Path(__file__).resolve().parents[3] / "pyproject.toml"


def _parameters(chapter: Chapter) -> Iterator[str]:
    try:
        _ = chapter.smoke
    except ParameterError as error:
        yield str(error).removeprefix(f"{chapter.name}: ")
        return
    tagged = ["parameters" in cell.metadata.get("tags", []) for cell in chapter.code]
    below = chapter.code[tagged.index(True) + 1 :][:1]
    if not any(CHECK in cell.source.splitlines() for cell in below):
        yield f"the cell below the parameters must have {CHECK}, so that they are checked wherever it runs"


def _numbered(chapter: Chapter) -> bool:
    """Whether the page is on the path through the book, not a supplement or a page to look things up."""
    return chapter.name in Book(chapter.root).numbered


def _shape(chapter: Chapter) -> Iterator[str]:
    text = chapter.prose
    tokens = MarkdownIt().parse(text)
    heads = [(token.tag, after.content) for token, after in pairwise(tokens) if token.type == "heading_open"]
    if [level for level, _ in heads].count("h1") != 1 or heads[0][0] != "h1":
        yield "the page must begin with its one title (# Title)"
    if ("h2", LIMITS) not in heads:
        yield f"the page must say what its runs can't: ## {LIMITS}"
    if not _numbered(chapter):
        return
    listed = sentences(text)
    if (share := sum(len(item.split()) > LONG for item in listed) / len(listed)) > SHARE:
        yield f"of a numbered page at most {SHARE:.0%} of the sentences pass {LONG} words; it has {share:.1%}"
    if (count := number_count(text)) > NUMBERS:
        yield f"a numbered page has at most {NUMBERS} numbers; it has {count}. Move a table to a supplement"
    if ANSWER not in text.partition("\n## ")[0]:
        yield f"a numbered page opens with its answer: {ANSWER}"
    if (length := len(text.split())) > WORDS:
        yield f"a numbered page has at most {WORDS} words of prose; it has {length}. Move a section to a supplement"
    folded = sum(any(tag.startswith("hide-") for tag in cell.metadata.get("tags", [])) for cell in chapter.code)
    if folded > BARS:
        yield f"a numbered page has at most {BARS} folded cells; it has {folded}. Move pictures to isonb_lab/figures"


def _calls(chapter: Chapter, number: int, source: str) -> list[tuple[str, bool]]:
    """The calls of a cell by name, and whether it runs with the cell, not inside a function."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError as error:
        raise LintError(f"{chapter.name}: code cell {number} isn't Python: {error}") from None
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(ast.unparse(call.func), id(call) not in inside) for call in calls]


def _figures(chapter: Chapter) -> Iterator[str]:
    called: set[str] = set()
    for number, cell in enumerate(chapter.code, start=1):
        calls = _calls(chapter, number, cell.source)
        called |= {name for name, _ in calls}
        removed = "remove-cell" in cell.metadata.get("tags", [])
        if not removed and any(name == "pages.live" for name, _ in calls):
            yield f"code cell {number}: a live control needs a kernel, which a page has none of; tag it remove-cell"
        shown = [n for n, here in calls if here and (n == "pages.show" or n.split(".")[-1] in ("Image", "SVG"))]
        if len(shown) > 1:
            yield f"code cell {number}: one picture a cell, so that each has its own number; it shows {len(shown)}"
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        named = str(figure.get("name", "")).startswith("fig-") and str(figure.get("caption", "")).strip()
        if shown and not named:
            yield f"code cell {number}: a picture needs 'mystnb: {{figure: {{caption: ..., name: fig-...}}}}'"
    text = chapter.prose
    if not all(block.options.get("alt") for block in nested_blocks(text) if block.name in ("figure", "image")):
        yield "a figure or image directive needs ':alt: what the picture shows'"
    if re.search(r"!\[\s*\]\(", text):
        yield "an image needs a text alternative: ![what it shows](file)"
    moves = any(name.endswith((".slider", "binding_range")) for name in called)
    if _numbered(chapter) and moves and "pages.live" not in called:
        yield "where a picture has a slider, the same control must exist for live sessions (pages.live)"


def _exercises(chapter: Chapter) -> Iterator[str]:
    hinted: dict[str, bool] = {}
    solutions, label = {}, ""
    for block in blocks(chapter.prose):
        if block.name in ("exercise-start", "exercise-end"):
            label = block.options.get("label", "without a :label:") if block.name == "exercise-start" else ""
        elif block.name == "solution-start":
            solutions[block.title.strip()] = block.options
        if label:
            hinted[label] = hinted.get(label, False) or block.title == "Hint"
    for label, hint in hinted.items():
        if not hint:
            yield f"exercise {label} needs a hint, folded, before its end"
        if label not in solutions:
            yield f"exercise {label} needs its solution-start ... solution-end"
        elif "dropdown" not in solutions[label].get("class", ""):
            yield f"the solution of {label} must be folded: ':class: dropdown'"


def _open(chapter: Chapter) -> list[bool]:
    """Whether each code cell is open on the page: not folded by its tags, nor in a solution."""
    reader, is_open = Reader({}), []
    for cell in chapter.cells.cells:
        if cell.cell_type == "code":
            is_open.append(not (reader.solution or FOLDED & set(cell.metadata.get("tags", []))))
        else:
            reader.shown(cell.source)
    return is_open


def _short(chapter: Chapter) -> Iterator[str]:
    for number, (cell, is_open) in enumerate(zip(chapter.code, _open(chapter), strict=True), start=1):
        lines = cell.source.splitlines() or [""]
        if is_open and (len(lines) > LINES or max(map(len, lines)) > WIDTH):
            size = f"{len(lines)} lines of up to {max(map(len, lines))}"
            must = f"an open cell has at most {LINES} lines of {WIDTH} columns"
            yield f"code cell {number}: {must}; it has {size}. Fold it"


def canonical(text: str) -> str:
    """The source as jupytext writes it: one spelling of header, cell options and white space."""
    notebook = jupytext.reads(text, fmt="md:myst")
    header = notebook.metadata.setdefault("jupytext", {})
    header.pop("formats", None)  # pyproject.toml says what is paired with what
    header["notebook_metadata_filter"] = HEADER_FILTER
    header.get("text_representation", {}).pop("jupytext_version", None)
    whole = nbformat.reads(jupytext.writes(notebook, fmt="ipynb"), as_version=4)
    return str(jupytext.writes(whole, fmt="md:myst"))


def _round_trip(chapter: Chapter) -> Iterator[str]:
    text = chapter.source.read_text(encoding="utf-8")
    if canonical(text) != text:
        yield "Jupyter would save this file differently; run: python -m isonb_lab.pages lint --fix"


RULES: list[Callable[[Chapter], Iterator[str]]] = [_parameters, _shape, _figures, _exercises, _short, _round_trip]


def problems(chapter: Chapter) -> list[str]:
    """Every rule that a chapter breaks, each as ``file: what must hold``."""
    return [f"{chapter.name}.md: {problem}" for rule in RULES for problem in rule(chapter)]


def check(chapters: Sequence[Chapter]) -> None:
    broken = [problem for chapter in chapters for problem in problems(chapter)]
    if (count := sum(word_count(chapter.prose) for chapter in chapters if _numbered(chapter))) > ALL:
        broken.append(f"the numbered pages have at most {ALL:,} words together; they have {count:,}")
    roots = {chapter.root for chapter in chapters}
    broken += [
        f"the book has at most {PAGES} pages; it has {count}. Merge one into another"
        for count in (len(Book(root).pages) for root in roots)
        if count > PAGES
    ]
    if broken:
        raise LintError("\n".join(broken))


def _ruff(chapters: Sequence[Chapter], *commands: Sequence[str]) -> tuple[str, list[list[str]]]:
    """What ruff says of the chapters as notebooks, and the sources of their code cells after these commands."""
    if importlib.util.find_spec("ruff") is None:
        raise LintError(f"chapters are read by ruff; got no such package. Install it: {install_line('dev')}")
    with tempfile.TemporaryDirectory(prefix="isonb-style-") as folder:
        files = {Path(folder, f"{chapter.slug}.ipynb"): chapter for chapter in chapters}
        for file, chapter in files.items():
            nbformat.write(chapter.fresh(), file)
        text = ""
        for command in commands:
            config = ["--config", str(CONFIG)] if CONFIG.is_file() else []
            whole = [sys.executable, "-m", "ruff", *command, *config, "--no-cache", "--quiet", folder]
            done = subprocess.run(whole, capture_output=True, text=True, check=False)
            if done.returncode > 1:
                raise LintError(f"ruff must read the chapters' cells; it said: {done.stderr.strip()[:500]}")
            text += done.stdout
        for file, chapter in files.items():
            text = text.replace(str(file), f"{chapter.name}.md")
        notebooks = [nbformat.read(file, as_version=4).cells for file in files]
    return text, [[cell.source for cell in cells if cell.cell_type == "code"] for cells in notebooks]


def _formatted(chapters: Sequence[Chapter], *before: Sequence[str]) -> list[list[str]]:
    """The sources of code cells as ruff formats them: those that a reader sees no wider than a page."""
    _, narrow = _ruff(chapters, *before, ["format", f"--line-length={WIDTH}"])
    _, wide = _ruff(chapters, *before, ["format"])
    return [
        [a if is_open else b for a, b, is_open in zip(*sources, _open(chapter), strict=True)]
        for chapter, *sources in zip(chapters, narrow, wide, strict=True)
    ]


def check_style(chapters: Sequence[Chapter]) -> None:
    """Raise :class:`LintError` with what ruff finds in the cells of chapters, and with the cells it would format."""
    text, _ = _ruff(chapters, ["check", "--output-format=concise"])
    broken = text.splitlines()
    for chapter, sources in zip(chapters, _formatted(chapters), strict=True):
        broken += [
            f"{chapter.name}.md: code cell {number} isn't formatted; run: python -m isonb_lab.pages lint --fix"
            for number, (cell, source) in enumerate(zip(chapter.code, sources, strict=True), start=1)
            if cell.source != source
        ]
    if broken:
        raise LintError("\n".join(broken))


def fix(chapters: Sequence[Chapter]) -> list[Chapter]:
    """Rewrite the sources as Jupyter would save them, their Python as ruff formats it. Returns those that changed."""
    changed = []
    for chapter, sources in zip(chapters, _formatted(chapters, ["check", "--fix"]), strict=True):
        notebook: Any = chapter.fresh()
        for cell, source in zip((c for c in notebook.cells if c.cell_type == "code"), sources, strict=True):
            cell.source = source
        if update(chapter.source, canonical(jupytext.writes(notebook, fmt="md:myst"))):
            changed.append(chapter)
    return changed

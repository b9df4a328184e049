"""The Python of chapters under the project's own style: ruff reads their cells as notebooks, with pyproject.toml."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat

from isonb.pages.chapters import Chapter
from isonb.pages.errors import LintError
from isonb.pages.visible import WIDTH, visible

__all__ = ["check", "formatted", "problems"]

CONFIG = Path(__file__).resolve().parents[2] / "pyproject.toml"


def _ruff(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("ruff") is None:
        raise LintError("chapters are read by ruff; got no such package. Install it: pip install 'isonb[dev]'.")
    config = ["--config", str(CONFIG)] if CONFIG.is_file() else []
    command = [sys.executable, "-m", "ruff", *arguments, *config, "--no-cache", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise LintError(f"ruff must read the chapters' cells; it said: {done.stderr.strip()[:500]}")
    return done


def _write(chapters: Sequence[Chapter], folder: Path) -> dict[str, Chapter]:
    named = {f"{chapter.slug}.ipynb": chapter for chapter in chapters}
    for name, chapter in named.items():
        nbformat.write(chapter.fresh(), folder / name)
    return named


def problems(chapters: Sequence[Chapter]) -> list[str]:
    """What ruff finds in the cells of chapters: ``chapter.md: code cell N, line L: rule and what must hold``."""
    with tempfile.TemporaryDirectory(prefix="isonb-style-") as name:
        folder = Path(name)
        named = _write(chapters, folder)
        found = json.loads(_ruff("check", "--output-format=json", folder=folder).stdout or "[]")
        lines = [
            f"{named[Path(one['filename']).name].name}.md: code cell {_code_cell(one, named)}, "
            f"line {one['location']['row']}: {one['code']} {one['message']}"
            for one in found
        ]
        for file, chapter in named.items():
            pairs = enumerate(zip(chapter.code, _formatted(folder / file, chapter), strict=True), start=1)
            lines += [
                f"{chapter.name}.md: code cell {number} isn't formatted; run: python -m isonb.pages lint --fix"
                for number, (cell, source) in pairs
                if cell.source != source
            ]
    return lines


def _code_cell(found: dict[str, object], named: dict[str, Chapter]) -> int:
    """The number of the code cell: ruff counts all cells."""
    cells = named[Path(str(found["filename"])).name].cells.cells
    number = int(str(found.get("cell") or 1))
    return sum(cell.cell_type == "code" for cell in cells[:number])


def formatted(chapter: Chapter) -> list[str]:
    """The sources of the chapter's code cells after ruff's own repairs and formatting."""
    with tempfile.TemporaryDirectory(prefix="isonb-style-") as name:
        folder = Path(name)
        (file,) = _write([chapter], folder)
        _ruff("check", "--fix", "--quiet", folder=folder)
        return _formatted(folder / file, chapter)


def _formatted(notebook: Path, chapter: Chapter) -> list[str]:
    """The sources of code cells as ruff formats them: those that a reader sees no wider than a page."""
    before = notebook.read_bytes()
    _ruff("format", "--quiet", "--line-length", str(WIDTH), folder=notebook)
    narrow = _sources(notebook)
    notebook.write_bytes(before)
    _ruff("format", "--quiet", folder=notebook)
    return [a if seen else b for a, b, seen in zip(narrow, _sources(notebook), visible(chapter), strict=True)]


def _sources(notebook: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]


def check(chapters: Sequence[Chapter]) -> None:
    """Raise :class:`LintError` with all that ruff finds in these chapters."""
    if found := problems(chapters):
        raise LintError("\n".join(found))

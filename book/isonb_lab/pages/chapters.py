"""The chapters of the book: where they are, what their source says, and the key that tells when one must run again.

A page of ``_toc.yml`` that names an ``.ipynb`` is a chapter: its source is the MyST ``.md`` of the same name, and the
notebook is generated. Any other page is plain text.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jupytext
import yaml  # type: ignore[import-untyped]

import isonb
from isonb_lab.pages.errors import ChapterError, ParameterError
from isonb_lab.pages.parameters import Parameter, Value, parse_parameters, validate_parameters
from isonb_lab.pages.site import Site

PACKAGE = Path(isonb.__file__).parent
SETTINGS = ("smoke", "early", "slides")  # of a chapter, in its front matter
SCRATCH = re.compile(r"\.|__pycache__$")  # what tools leave: checkpoints of notebooks, compiled modules


@dataclass(frozen=True)
class Chapter:
    """One executable page: ``name`` is its path in the table of contents without the extension."""

    root: Path
    name: str

    @property
    def source(self) -> Path:
        """The committed MyST Markdown."""
        return self.root / f"{self.name}.md"

    @property
    def notebook(self) -> Path:
        """The generated notebook beside it."""
        return self.root / f"{self.name}.ipynb"

    @property
    def title(self) -> str:
        """Its title, or its name where it has none or isn't here."""
        if not self.source.is_file():  # a notebook that runs alone has no other pages
            return self.name
        lines = (line for cell in self.cells.cells for line in cell.source.splitlines())
        return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), self.name)

    @property
    def slug(self) -> str:
        """A flat name for files: the path after ``book/``, dashes for slashes."""
        return self.name.removeprefix("book/").replace("/", "-")

    @cached_property
    def cells(self) -> Any:
        """The clean notebook read from the source: no outputs, cell ids that depend on the content alone."""
        if not self.source.is_file():
            raise ChapterError(f"{self.name}: _toc.yml lists a chapter without a source; write {self.name}.md.")
        notebook = jupytext.reads(self.source.read_text(encoding="utf-8"), fmt="md:myst")
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        visited: set[str] = set()
        for number, cell in enumerate(notebook.cells):
            digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
            cell["id"] = digest if digest not in visited else f"{digest}-{number}"
            visited.add(digest)
        return notebook

    @property
    def prose(self) -> str:
        """The Markdown cells as one text."""
        return "\n\n".join(cell.source for cell in self.cells.cells if cell.cell_type == "markdown")

    def fresh(self) -> Any:
        """A copy of :attr:`cells` to write outputs into."""
        return copy.deepcopy(self.cells)

    @property
    def code(self) -> list[Any]:
        """The code cells in order."""
        return [cell for cell in self.cells.cells if cell.cell_type == "code"]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the cell tagged ``parameters`` declares; :class:`ParameterError` unless there is exactly one."""
        tagged = [cell for cell in self.code if "parameters" in cell.metadata.get("tags", [])]
        if len(tagged) != 1:
            got = f"got {len(tagged)}. Add ':tags: [parameters]' to one code cell."
            raise ParameterError(f"{self.name}: exactly one cell must be tagged parameters; {got}")
        try:
            return parse_parameters(tagged[0].source)
        except ParameterError as error:
            raise ParameterError(f"{self.name}: {error}") from None

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the front matter says of it under ``isonb``; :class:`ParameterError` for a name that nothing reads."""
        settings: dict[str, Any] = self.cells.metadata.get("isonb", {})
        if unknown := sorted(set(settings) - set(SETTINGS)):
            names = f"{', '.join(SETTINGS)}; got {', '.join(unknown)}. Correct the name, or leave it out."
            raise ParameterError(f"{self.name}: the front matter's isonb must have no names but {names}")
        return settings

    @property
    def smoke(self) -> dict[str, Value]:
        """Values that run the chapter in seconds, from the front matter ``isonb: {smoke: {name: value}}``."""
        return self.validate(self.settings.get("smoke", {}))

    @property
    def early(self) -> bool:
        """Whether it is started before the others (front matter ``isonb: {early: true}``): it takes the longest."""
        return bool(self.settings.get("early", False))

    @property
    def slides(self) -> bool:
        """Whether it is a lesson's slides (front matter ``isonb: {slides: true}``)."""
        return bool(self.settings.get("slides", False))

    def validate(self, values: Mapping[str, object]) -> dict[str, Value]:
        """Parameter values checked before any kernel starts; errors name the chapter."""
        try:
            return validate_parameters(self.parameters, values)
        except ParameterError as error:
            raise ParameterError(f"{self.name}: {error}") from None

    def key(self, parameters: Mapping[str, Value], environment: str) -> str:
        """What the outputs depend on: code cells, parameters, and the environment's own key."""
        code = [[cell.source, sorted(cell.metadata.get("tags", []))] for cell in self.code]
        content = json.dumps([self.name, code, sorted(parameters.items()), environment])
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Book:
    """A folder with ``_toc.yml`` and ``_config.yml``; everything built goes to ``_build`` below it."""

    root: Path

    @property
    def build(self) -> Path:
        """The folder of everything built."""
        return self.root / "_build"

    @cached_property
    def pages(self) -> tuple[str, ...]:
        """Every page of the table of contents, in order, with its extension where it has one."""
        return tuple(_files(self._contents))

    @cached_property
    def numbered(self) -> dict[str, tuple[str, ...]]:
        """The names of the numbered pages in order, each with those of its supplements: the sections below it."""
        parts = [part for part in self._contents.get("parts", []) if part.get("numbered")]
        files = [[file.removesuffix(".ipynb") for file in _files(page)] for part in parts for page in part["chapters"]]
        return {page: tuple(supplements) for page, *supplements in files}

    @cached_property
    def site(self) -> Site:
        """What ``_config.yml`` says of the place of the pages; nothing where there is no such file."""
        path = self.root / "_config.yml"
        config = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return Site.of(config.get("sphinx", {}).get("config", {}).get("isonb_site", {}))

    @cached_property
    def _contents(self) -> dict[str, Any]:
        path = self.root / "_toc.yml"
        if not path.is_file():
            raise ChapterError(f"no _toc.yml in {self.root}. Run this in the folder of the book, or pass --root.")
        return dict(yaml.safe_load(path.read_text(encoding="utf-8")))

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """The executable pages, in order."""
        return tuple(Chapter(self.root, p.removesuffix(".ipynb")) for p in self.pages if p.endswith(".ipynb"))

    def pick(self, names: Sequence[str]) -> tuple[Chapter, ...]:
        """The chapters with these names (a unique end of the path is enough); all of them for no name."""
        return tuple(map(self._chapter, names)) if names else self.chapters

    def _chapter(self, name: str) -> Chapter:
        end = name.removesuffix(".md").removesuffix(".ipynb").strip("/")
        named = [chapter for chapter in self.chapters if f"/{chapter.name}".endswith(f"/{end}")]
        if len(named) != 1:
            names = ", ".join(chapter.name for chapter in self.chapters) or "none"
            raise ChapterError(f"{name} names {len(named)} chapters. There are: {names}.")
        return named[0]

    @cached_property
    def environment(self) -> str:
        """A key of all that chapters run on: the package, what lies beside the pages, the pins, Python's version.

        Beside the pages lie recorded tables and grids. A chapter may read any of it, so all of it counts but the pages
        themselves and the bibliography.
        """
        digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
        pages = {self.root / f"{page.removesuffix('.ipynb')}{end}" for page in self.pages for end in (".md", ".ipynb")}
        for folder in (PACKAGE, self.root / "book"):
            for path in sorted(set(folder.rglob("*")) - pages):
                name = path.relative_to(folder)
                if path.is_file() and path.suffix != ".bib" and not any(map(SCRATCH.match, name.parts)):
                    digest.update(name.as_posix().encode())
                    digest.update(hashlib.sha256(path.read_bytes()).digest())
        pins = self.root / "requirements.txt"
        digest.update(pins.read_bytes() if pins.is_file() else b"")
        return digest.hexdigest()


def _files(node: object) -> Iterator[str]:
    """The files of a table of contents, depth first, as sphinx-external-toc orders them."""
    if isinstance(node, list):
        for item in node:
            yield from _files(item)
    elif isinstance(node, dict):
        yield from (str(node[key]) for key in ("root", "file") if key in node)
        for key in ("parts", "subtrees", "chapters", "sections", "entries"):
            yield from _files(node.get(key, []))

"""What the roles of a chapter read as: citations, titles, and the numbers that the book gives."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from isonb_lab.pages.chapters import Book, Chapter
from isonb_lab.pages.notebooks.markdown import key, roles

YEAR = re.compile(r" (\d{4})$")
TITLED = re.compile(r"(?P<text>.*?)\s*<(?P<target>[^<>]*)>", re.DOTALL)
TITLE = re.compile(r"^# +(.+?) *$", re.MULTILINE)
EXERCISE = re.compile(
    r"^[`:]{3,}\{exercise(?:-start)?\} *(?P<title>.*)\n(?:(?!:label:):.*\n)*:label: *(?P<label>\S+)", re.M
)
FIGURE = re.compile(r"^ *(?:name: *|:name: *)(?P<label>fig-[\w-]+) *$", re.MULTILINE)
SECTION = re.compile(r"^\((?P<label>[\w-]+)\)=\n+#+ +(?P<title>.+?) *$", re.MULTILINE)


def citation(role: str, keys: str, names: Mapping[str, str]) -> str:
    """A citation as the book prints it.

    >>> citation("cite:t", "a1", {"a1": "Doe 2020"}), citation("cite", "a1,b2", {"a1": "Doe 2020"})
    ('Doe (2020)', '(Doe, 2020; b2)')
    """
    named = [names.get(name.strip(), name.strip()) for name in keys.split(",")]
    if role == "cite:t":
        return ", ".join(YEAR.sub(r" (\1)", name) for name in named)
    return "(" + "; ".join(YEAR.sub(r", \1", name) for name in named) + ")"


def short_citations(bibliography: str) -> dict[str, str]:
    """Author and year of each entry of a BibTeX file, by key.

    >>> short_citations("@misc{a1, author = {Doe, Ann and Roe, Bo and Poe, Cy}, year = {2020}}")
    {'a1': 'Doe et al. 2020'}
    """
    from pybtex.database import parse_string  # type: ignore[import-untyped]  # of the book extra, as in sphinx

    citations = {}
    for name, entry in parse_string(bibliography, "bibtex").entries.items():
        names = [" ".join(person.last_names).strip("{}") for person in entry.persons.get("author", [])]
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        citations[name] = f"{who} {entry.fields.get('year', '')}".strip()
    return citations


class Index:
    """The numbers and titles that the pages of a book have, read from their sources."""

    def __init__(self, book: Book) -> None:
        self.book = book

    @cached_property
    def texts(self) -> dict[str, str]:
        """The source of each page, by its name in the table of contents without the extension."""
        paths = {page.removesuffix(".ipynb"): self.book.root / page for page in self.book.pages}
        files = {name: path.with_suffix(".md") for name, path in paths.items()}
        return {name: path.read_text(encoding="utf-8") for name, path in files.items() if path.is_file()}

    @cached_property
    def citations(self) -> dict[str, str]:
        file = self.book.root / "book" / "references.bib"
        return short_citations(file.read_text(encoding="utf-8") if file.is_file() else "")

    @cached_property
    def numbers(self) -> dict[str, str]:
        """What the numbers of a page's figures begin with, such as "4.": a supplement goes on with its page's."""
        results: dict[str, str] = {}
        for number, (page, supplements) in enumerate(self.book.numbered.items(), start=1):
            results |= dict.fromkeys((page, *supplements), f"{number}.")
        return results

    @cached_property
    def labels(self) -> dict[str, tuple[str, str]]:
        """The page of each label, and what a reference to it reads as."""
        results: dict[str, tuple[str, str]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        for name, text in self.texts.items():
            number = self.numbers.get(name, "")
            results |= {match["label"]: (name, match["title"]) for match in SECTION.finditer(text)}
            for kind, pattern in (("Exercise", EXERCISE), ("Fig.", FIGURE)):
                for match in pattern.finditer(text):
                    counts[kind, number] += 1
                    results[match["label"]] = (name, f"{kind} {number}{counts[kind, number]}")
        return results

    def references(self, chapter: Chapter) -> dict[str, str]:
        """What the roles of this chapter read as, but for values of its run: those are the kernel's."""
        text = self.texts[chapter.name]
        values = {key("exercise", match["label"]): self.labels[match["label"]][1] for match in EXERCISE.finditer(text)}
        for role, content in roles(text):
            reference = self._reference(role, content, chapter.name)
            if reference is not None:
                values[key(role, content)] = reference
        return values

    def _reference(self, role: str, content: str, page: str) -> str | None:
        if role.startswith("glue"):
            return None
        if role.startswith("cite"):
            return citation(role, content, self.citations)
        if role == "math":
            return f"${content}$"
        titled = TITLED.fullmatch(content)
        text, target = (titled["text"], titled["target"]) if titled else ("", content)
        name = posixpath.normpath(posixpath.join(page, "..", target))
        if role == "link":
            return f"({target}.ipynb)" if name in self._chapters else None
        if role == "doc":
            return self._linked(text or self.title(name), name, page)
        if role in ("ref", "numref"):
            name, called = self.labels.get(target, ("", target))
            return self._linked(text or called, name, page)
        if role == "download":
            return text or f"`{posixpath.basename(target)}`"
        call = "()" if role == "py:func" else ""
        return f"`{text or (target.rsplit('.', 1)[-1] if target.startswith('~') else target)}{call}`"

    def title(self, name: str) -> str:
        """The title of a page, or its name where there is none."""
        match = TITLE.search(self.texts.get(name, ""))
        return match[1] if match else posixpath.basename(name)

    @cached_property
    def _chapters(self) -> set[str]:
        return {chapter.name for chapter in self.book.chapters}

    def _linked(self, text: str, name: str, page: str) -> str:
        """A link from a page to the notebook of another chapter; pages that have none are named."""
        if name == page:
            return text
        if name not in self._chapters:
            return f"*{text}*" if name in self.texts else text
        return f"[{text}]({posixpath.relpath(name, posixpath.dirname(page))}.ipynb)"

"""The bibliography: what is cited is there, and what is there is cited."""

import re
from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"
PACKAGE = BOOK.parent / "isonb"
ENTRY = re.compile(r"^@\w+\{([^,]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
CITED = re.compile(r"\{cite(?::[a-z]+)?\}`([^`]+)`")


def entries():
    """Each entry's key, with the first author's family name and the year."""
    found = {}
    for key, body in ENTRY.findall((BOOK / "references.bib").read_text(encoding="utf-8")):
        author = re.search(r"(?:author|editor) = \{+(.+?)(?:,| and|\}+,?$)", body, re.MULTILINE)
        year = re.search(r"year = \{(\d{4})", body)
        assert author, f"{key} has no author"
        assert year, f"{key} has no year"
        found[key] = (re.sub(r"[{}\\\"]", "", author[1]), year[1])
    return found


def cited():
    texts = (path.read_text(encoding="utf-8") for path in BOOK.rglob("*.md"))
    return {key.strip() for text in texts for keys in CITED.findall(text) for key in keys.split(",")}


def test_every_citation_is_in_the_bibliography():
    assert not cited() - set(entries())


def test_every_entry_is_cited_in_a_chapter_or_named_in_a_docstring():
    code = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))

    def named(author, year):
        return re.search(rf"\b{author}\b.{{0,60}}\(?{year}", code) is not None

    rest = {key: who for key, who in entries().items() if key not in cited()}
    assert [key for key, who in rest.items() if not named(*who)] == []

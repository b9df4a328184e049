"""The prose of a page: its sentences and its numbers, as a reader of the page meets them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

SILENT = {"code-cell", "math", "index", "eval-rst", "bibliography", "raw", "figure", "table"}  # without prose
OPTIONS = re.compile(r"\A(?::[\w-]+:.*\n)*")
ROLE = re.compile(r"\{[\w:]+\}`([^`<]*?)\s*(?:<[^`]*>)?`")  # {doc}`words <page>`: its words
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)
WORD = re.compile(r"[^\W_][\w'’-]*")
NUMBER = re.compile(r"\{glue\}`|(?<![\w.`/])\d[\d.,]*")
END = re.compile(r"(?<=[.?!:;])\s+")
FEWEST = 3  # words of a sentence: fewer are a heading or a cell


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs, headings and items of Markdown, in boxes too; not its code, formulas and tables.

    >>> list(paragraphs("# Soup\\n\\n```{tip}\\nMore {term}`salt <NaCl>`.\\n```\\n\\n| a |\\n|---|\\n| b |\\n"))
    ['Soup', 'More salt.']
    """
    row = 0
    for token in MarkdownIt().enable("table").parse(FORMULA.sub("", text)):
        row += (token.type == "table_open") - (token.type == "table_close")
        if token.type == "fence":
            directive = re.match(r"\{([\w-]+)\}", token.info)
            if directive and directive[1] not in SILENT:
                yield from paragraphs(OPTIONS.sub("", token.content))
        elif token.type == "inline" and not row:
            yield ROLE.sub(r"\1", token.content)


def word_count(text: str) -> int:
    """How many words the prose of a page has.

    >>> word_count("Soup needs $x^2$ salt.")
    3
    """
    return sum(len(WORD.findall(paragraph)) for paragraph in paragraphs(text))


def sentences(text: str) -> list[str]:
    """The sentences of the prose; a colon or a semicolon ends one, too.

    >>> sentences("Soup needs more salt. It will rain tomorrow.")
    ['Soup needs more salt.', 'It will rain tomorrow.']
    """
    parts = (part for paragraph in paragraphs(text) for part in END.split(" ".join(paragraph.split())))
    return [part for part in parts if len(part.split()) >= FEWEST]


def number_count(text: str) -> int:
    """How many numbers a page has, those of the kernel included.

    >>> number_count("Of 46 runs {glue}`open` are open.")
    2
    """
    return len(NUMBER.findall(text))

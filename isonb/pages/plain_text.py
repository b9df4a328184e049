"""A chapter's text outside Sphinx: its roles as words, its glued numbers filled in, its Markdown as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from isonb.pages.values import GLUE_PREFIX

__all__ = ["as_html", "glued", "in_words", "short_citations"]

ROLE = re.compile(r"\{(?P<role>[a-z:]+)\}`(?P<text>[^`]*)`")
TARGET = re.compile(r"(?P<words>.*?)\s*<[^<>]*>", re.DOTALL)
ENTRY = re.compile(r"@\w+\{(?P<key>[^,]+),(?P<body>.*?)(?=^@|\Z)", re.MULTILINE | re.DOTALL)
WORDS = {"numref": "the figure", "ref": "there"}


def glued(notebook: Any) -> dict[str, str]:
    """The values that the cells of an executed notebook keep for the text, by name."""
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    found = {}
    for out in outputs:
        scrap = out.get("metadata", {}).get("scrapbook", {})
        if scrap.get("mime_prefix") == GLUE_PREFIX:
            found[scrap["name"]] = str(out["data"][GLUE_PREFIX + "text/plain"])
    return found


def short_citations(bibliography: str) -> dict[str, str]:
    """Author and year of each entry of a BibTeX file, by key.

    >>> short_citations("@misc{a1, author = {Doe, Ann and Roe, Bo and Poe, Cy}, year = {2020}}")
    {'a1': 'Doe et al. 2020'}
    """
    found = {}
    for entry in ENTRY.finditer(bibliography):
        author = re.search(r"author = \{(.*?)\},?\s*$|author = \{(.*?)\},", entry["body"], re.MULTILINE)
        year = re.search(r"year = \{(\d+)", entry["body"])
        names = [_family(name) for name in re.split(r"\s+and\s+", (author[1] or author[2]))] if author else []
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        found[entry["key"].strip()] = f"{who} {year[1] if year else ''}".strip()
    return found


def _family(name: str) -> str:
    """The family name of "Doe, Ann" and of "Ann Doe", and all of "{The Project}"."""
    whole = name.startswith("{") or "," in name
    return (name.split(",")[0] if whole else name.split()[-1]).strip("{} ")


def in_words(text: str, values: Mapping[str, str], citations: Mapping[str, str]) -> str:
    r"""The text with each role as plain words; a value that isn't known is a dash.

    >>> in_words("Gain {glue}`g` {cite}`a1`, see {doc}`../papers/istar`.", {"g": "3"}, {"a1": "Doe 2020"})
    'Gain 3 (Doe 2020), see *istar*.'
    """

    def word(found: re.Match[str]) -> str:
        role, content = found["role"], found["text"]
        if role.startswith("glue"):
            return values.get(content.partition(":")[0], "–")
        if role.startswith("cite"):
            named = "; ".join(citations.get(key.strip(), key.strip()) for key in content.split(","))
            return named if role == "cite:t" else f"({named})"
        if titled := TARGET.fullmatch(content):
            return titled["words"]
        if role == "math":
            return f"${content}$"
        if role == "doc":
            return f"*{content.rsplit('/', 1)[-1].replace('_', ' ')}*"
        return WORDS.get(role, f"`{content.removeprefix('~').rsplit('.', 1)[-1]}`")

    return ROLE.sub(word, text)


def as_html(text: str) -> str:
    r"""Markdown as HTML; formulas between the marks that MathJax looks for, raw HTML as text.

    >>> as_html("**Bold** $a_b$ <b>")
    '<p><strong>Bold</strong> \\(a_b\\) &lt;b&gt;</p>\n'
    """

    def formula(content: str, options: Mapping[str, Any]) -> str:
        marks = "[]" if options.get("display_mode") else "()"
        return f"\\{marks[0]}{html.escape(content)}\\{marks[1]}"

    reader = MarkdownIt("commonmark", {"html": False}).use(dollarmath_plugin, renderer=formula)
    reader.add_render_rule("math_inline", lambda _, tokens, i, *__: formula(tokens[i].content, {}))
    return str(reader.render(text))

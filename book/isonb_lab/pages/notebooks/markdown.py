"""MyST as plain Markdown: what a cell writes in roles and directives, in words that any notebook shows.

Boxes become the coloured boxes of Jupyter, folded boxes and solutions ``<details>``; both are plain where a viewer
knows neither. What a role reads as is looked up (:mod:`isonb_lab.pages.notebooks.references`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin

from isonb_lab.pages.errors import PageError

PARSER = MarkdownIt("commonmark").use(colon_fence_plugin).use(myst_block_plugin).disable("inline")
BLOCKS = {"fence", "colon_fence", "myst_target", "myst_line_comment"}  # tokens that aren't running text
BOXES = {"admonition", "note", "tip", "hint", "important", "warning", "caution", "attention", "danger", "seealso"}
HEAD = re.compile(r"\{(?P<name>[\w:-]+)\} *(?P<title>.*)")
OPTION = re.compile(r":(?P<name>[\w-]+): *(?P<value>.*)\n?")
SPAN = r"(?P<code>(?<!`)(?P<ticks>`+)(?!`)[\s\S]*?(?<!`)(?P=ticks)(?!`))"
ROLE = r"\{(?P<role>[a-zA-Z][\w:+-]*)\}`(?P<text>[^`]*)`|(?<=\])\((?P<page>[\w./-]+)\)"
INLINE = re.compile(f"{SPAN}|{ROLE}")
FOLDED = ("<details><summary>", "</summary>\n\n", "\n</details>")
COLOURED = ('<div class="alert alert-info">\n\n**', "**\n\n", "\n</div>")


@dataclass(frozen=True)
class Block:
    """Some lines of a text: a directive by its ``name``, "code", "label" (or comment), or running text without one."""

    source: str
    name: str = ""
    title: str = ""
    body: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a text in order.

    >>> [(item.name, item.body or item.source) for item in blocks("Soup.\\n\\n```{tip}\\n:class: hot\\nSalt.\\n```")]
    [('', 'Soup.\\n\\n'), ('tip', 'Salt.\\n'), ('', '')]
    """
    lines, at = text.splitlines(keepends=True), 0
    for token in PARSER.parse(text):
        if token.type not in BLOCKS or token.level or token.map is None:
            continue
        start, end = token.map
        yield Block("".join(lines[at:start]))
        at, source = end, "".join(lines[start:end])
        if head := HEAD.fullmatch(token.info.strip()):
            options, body = {}, token.content
            while match := OPTION.match(body):
                options[match["name"]], body = match["value"], body[match.end() :]
            yield Block(source, head["name"], head["title"], body.lstrip("\n"), options)
        else:
            yield Block(source, "code" if "fence" in token.type else "label")
    yield Block("".join(lines[at:]))


def nested_blocks(text: str) -> Iterator[Block]:
    """The blocks of a text, and those in its boxes."""
    for block in blocks(text):
        yield block
        if block.name in BOXES:
            yield from nested_blocks(block.body)


def key(role: str, text: str) -> str:
    """The name under which the words of a role are kept.

    >>> key("doc", "a long\\ntitle <page>")
    'doc a long title <page>'
    """
    return f"{role} {' '.join(text.split())}"


def roles(text: str) -> Iterator[tuple[str, str]]:
    """The (role, text) of each role of a text, and ("link", page) of each link to a page without its extension."""
    for match in re.finditer(ROLE, text):
        yield ("link", match["page"]) if match["page"] else (match["role"], match["text"])


class Reader:
    """Reads the Markdown cells of a chapter in order: a solution may begin in one and end in another."""

    def __init__(self, references: Mapping[str, str]) -> None:
        """``references`` are what roles read as, by :func:`key`; one that isn't there is shown as it is written."""
        self.references = references
        self.solution = ""  # the label of the exercise whose solution we are in

    def shown(self, text: str) -> str:
        """What one cell shows; :class:`PageError` for a directive that no plain notebook can show."""
        before, inside, note = "", "", ", in words"
        for block in blocks(text):
            if block.name == "solution-start":
                before, inside, note, self.solution = before + inside, "", "", block.title.strip()
            elif block.name == "solution-end":
                before, inside, self.solution = before + self._solution(inside, note), "", ""
            else:
                inside += self._block(block)
        return (before + (self._solution(inside, note) if self.solution else inside)).strip("\n")

    def inline(self, text: str) -> str:
        """Running text, its roles as words."""

        def word(match: re.Match[str]) -> str:
            if match["code"]:
                return match[0]
            name = "link" if match["page"] else match["role"]
            return self.references.get(key(name, match["page"] or match["text"]), match[0])

        return INLINE.sub(word, text)

    def _number(self, label: str) -> str:
        return self.references.get(key("exercise", label), "Exercise")

    def _block(self, block: Block) -> str:
        title = self.inline(block.title)
        match block.name:
            case "":
                return self.inline(block.source)
            case "code":
                return block.source
            case name if name in BOXES:
                opening, closing, last = FOLDED if "dropdown" in block.options.get("class", "") else COLOURED
                inside = "".join(map(self._block, blocks(block.body)))
                return f"\n{opening}{title if name == 'admonition' else name.capitalize()}{closing}{inside}{last}\n"
            case "exercise-start":
                return f"**{self._number(block.options.get('label', ''))} ({title})**\n\n"
            case "figure" | "image":
                caption = f"\n*{block.body.strip()}*\n" if block.body.strip() else ""
                return f"![{block.options.get('alt', '')}]({title.strip()})\n{caption}"
            case "label" | "index" | "exercise-end":
                return ""
        must = "a chapter must be shown by any notebook"
        raise PageError(f"{must}; none can show the directive {{{block.name}}}. Use a box.")

    def _solution(self, inside: str, note: str) -> str:
        """A solution up to its end or that of the cell, folded; ``note`` is said of what goes on from another cell."""
        number = self._number(self.solution)
        if inside.strip():
            return f"<details><summary>Solution to {number}{note}</summary>\n\n{inside.rstrip()}\n\n</details>\n"
        return inside if note else f"**Solution to {number}**: in the folded cell below.\n{inside}"

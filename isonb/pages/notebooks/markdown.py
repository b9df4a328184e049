"""MyST as plain Markdown: what a cell writes in roles and directives, in words that any notebook shows.

Boxes become the coloured boxes of Jupyter, folded boxes and solutions ``<details>``; both are plain where a viewer
knows neither. What a role reads as is looked up (:mod:`isonb.pages.notebooks.words`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from isonb.pages.errors import PageError
from isonb.pages.notebooks.two_sided import Piece

BOXES = {"admonition", "note", "tip", "hint", "important", "warning", "caution", "attention", "danger", "seealso"}
OPEN = re.compile(r"(?P<fence>`{3,}|:{3,})\{(?P<name>[\w:-]+)\}(?P<space> *)(?P<title>.*)")
CODE = re.compile(r"(?P<fence>`{3,}|~{3,})")
UNSEEN = re.compile(r"\([\w:.-]+\)=|%.*")  # a label, a comment
SPAN = r"(?P<code>(?<!`)(?P<ticks>`+)(?!`)[\s\S]*?(?<!`)(?P=ticks)(?!`))"
ROLE = r"\{(?P<role>[a-zA-Z][\w:+-]*)\}`(?P<text>[^`]*)`|(?<=\])\((?P<page>[\w./-]+)\)"
INLINE = re.compile(f"{SPAN}|{ROLE}")
NOTHING = re.compile(r"\s*\Z")


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

    def __init__(self, words: Mapping[str, str]) -> None:
        """``words`` are what roles read as, by :func:`key`; one that isn't there is shown as it is written."""
        self.words = words
        self.solution = ""  # the label of the exercise whose solution we are in
        self.groups = itertools.count(1)

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of one cell; :class:`PageError` for a directive that no plain notebook can show."""
        lines = text.splitlines(keepends=True)
        if not self.solution:
            return self._block(lines, 0, "")[0]
        return self._folded(lines, 0, "", ", in words")[0]

    def _number(self, label: str) -> str:
        return self.words.get(key("exercise", label), "Exercise")

    def inline(self, text: str) -> list[Piece]:
        """The pieces of running text."""
        made, done = [], 0
        for match in INLINE.finditer(text):
            name = "link" if match["page"] else match["role"]
            word = None if match["code"] else self.words.get(key(name, match["page"] or match["text"]))
            if word is not None:
                made += [*_same(text[done : match.start()]), Piece(match[0], word)]
                done = match.end()
        return made + _same(text[done:])

    def _block(self, lines: list[str], at: int, until: str) -> tuple[list[Piece], int]:
        """The pieces up to the fence ``until`` (or the end, or the end of a solution), and where that stands."""
        made: list[Piece] = []
        running: list[str] = []

        def flush() -> None:
            made.extend(self.inline("".join(running)))
            running.clear()

        while at < len(lines):
            line = lines[at].rstrip("\n")
            if until and line.strip() == until:
                break
            directive, code = OPEN.fullmatch(line), CODE.match(line)
            if directive:
                if directive["name"] == "solution-end" and self.solution:
                    break
                flush()
                inner, at = self._directive(directive, lines, at)
                made += inner
            elif code:
                flush()
                end = _closing(lines, at + 1, code["fence"])
                made += _same("".join(lines[at : end + 1]))
                at = end + 1
            elif UNSEEN.fullmatch(line):
                flush()
                made.append(Piece(lines[at], ""))
                at += 1
            else:
                running.append(lines[at])
                at += 1
        flush()
        return made, at

    def _directive(self, head: re.Match[str], lines: list[str], at: int) -> tuple[list[Piece], int]:
        """The pieces of the directive that begins at ``at``, and the line after it."""
        name = head["name"]
        if name in BOXES:
            return self._box(head, lines, at)
        end = _closing(lines, at + 1, head["fence"]) + 1
        whole = "".join(lines[at:end])
        if name == "index":
            while end < len(lines) and not lines[end].strip():
                whole += lines[end]
                end += 1
            return [Piece(whole, "")], end
        if name == "exercise-start":
            label = re.search(r"^:label: *(\S+)", whole, re.MULTILINE)
            group, first = next(self.groups), f"{head['fence']}{{{name}}}{head['space']}"
            rest = whole.removeprefix(first + head["title"])
            number = self._number(label[1] if label else "")
            opening, closing = Piece(first, f"**{number} (", group), Piece(rest, ")**\n\n", group)
            return [opening, *self.inline(head["title"]), closing], end
        if name == "exercise-end":
            return [Piece(whole, "")], end
        if name == "solution-start":
            self.solution = head["title"].strip()
            return self._folded(lines, end, whole, "")
        if name in ("figure", "image"):
            alt = re.search(r"^:alt: *(.*)$", whole, re.MULTILINE)
            said = "\n".join(line for line in whole.splitlines()[1:-1] if line and not line.startswith(":"))
            picture = f"![{alt[1] if alt else ''}]({head['title'].strip()})\n"
            return [Piece(whole, picture + (f"\n*{said}*\n" if said else ""))], end
        raise PageError(f"a chapter must be shown by any notebook; none can show the directive {{{name}}}. Use a box.")

    def _box(self, head: re.Match[str], lines: list[str], at: int) -> tuple[list[Piece], int]:
        named = head["name"] == "admonition"
        first = f"{head['fence']}{{{head['name']}}}{head['space']}"
        body = at + 1
        while body < len(lines) and re.match(r":[\w-]+:", lines[body]):
            body += 1
        while body < len(lines) and not lines[body].strip():
            body += 1
        rest = "".join(lines[at:body]).removeprefix(first + (head["title"] if named else ""))
        folded = re.search(r"^:class:.*\bdropdown\b", rest, re.MULTILINE)
        opening, closing, last = FOLDED if folded else COLOURED
        group = next(self.groups)
        title = self.inline(head["title"]) if named else [Piece("", head["name"].capitalize(), group)]
        inside, end = self._block(lines, body, head["fence"])
        fence = lines[end] if end < len(lines) else ""
        before = "\n" if at and lines[at - 1].strip() else ""
        ends = (
            Piece(first, before + opening, group),
            Piece(rest, closing, group),
            Piece(fence, last + _tail(fence), group),
        )
        return [ends[0], *title, ends[1], *inside, ends[2]], end + 1

    def _folded(self, lines: list[str], at: int, start: str, what: str) -> tuple[list[Piece], int]:
        """A solution from ``at`` on: folded, up to its end or that of the cell; after its end comes other text."""
        number, group = self._number(self.solution), next(self.groups)
        inside, end = self._block(lines, at, "")
        ended, close = end < len(lines), ""
        if ended:
            fence = OPEN.fullmatch(lines[end].rstrip("\n"))
            after = _closing(lines, end + 1, fence["fence"] if fence else "```") + 1
            close = "".join(lines[end:after])
            end, self.solution = after, ""
        if all(NOTHING.match(piece.plain) for piece in inside):
            told = f"**Solution to {number}**: in the folded cell below.{_tail(start)}" if start else ""
            made = [Piece(start, told), *inside, *([Piece(close, "")] if close else [])]
        else:
            last = f"\n</details>{_tail(close)}" if ended else "\n\n</details>"
            opening = Piece(start, f"<details><summary>Solution to {number}{what}</summary>\n\n", group)
            made = [opening, *inside, Piece(close, last, group)]
        rest, end = self._block(lines, end, "") if start == "" else ([], end)
        return [*made, *rest], end


FOLDED = ("<details><summary>", "</summary>\n\n", "\n</details>")
COLOURED = ('<div class="alert alert-info">\n\n**', "**\n\n", "\n</div>")


def _same(text: str) -> list[Piece]:
    return [Piece(text, text)] if text else []


def _tail(text: str) -> str:
    """The end of its last line."""
    return "\n" if text.endswith("\n") else ""


def _closing(lines: list[str], at: int, fence: str) -> int:
    """The line of the fence that closes one."""
    return next((number for number in range(at, len(lines)) if lines[number].strip() == fence), len(lines) - 1)

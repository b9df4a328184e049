"""MyST as plain Markdown: what a cell writes in roles and directives, in words that any notebook shows.

Boxes become the coloured boxes of Jupyter, folded boxes and solutions ``<details>``; both are plain where a viewer
knows neither. What a role reads as is looked up (:mod:`isonb_lab.pages.notebooks.references`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from isonb_lab.pages.errors import PageError

BOXES = {"admonition", "note", "tip", "hint", "important", "warning", "caution", "attention", "danger", "seealso"}
OPEN = re.compile(r"(?P<fence>`{3,}|:{3,})\{(?P<name>[\w:-]+)\} *(?P<title>.*)")
CODE = re.compile(r"(?P<fence>`{3,}|~{3,})")
UNSEEN = re.compile(r"\([\w:.-]+\)=|%.*")  # a label, a comment
SPAN = r"(?P<code>(?<!`)(?P<ticks>`+)(?!`)[\s\S]*?(?<!`)(?P=ticks)(?!`))"
ROLE = r"\{(?P<role>[a-zA-Z][\w:+-]*)\}`(?P<text>[^`]*)`|(?<=\])\((?P<page>[\w./-]+)\)"
INLINE = re.compile(f"{SPAN}|{ROLE}")
FOLDED = ("<details><summary>", "</summary>\n\n", "\n</details>")
COLOURED = ('<div class="alert alert-info">\n\n**', "**\n\n", "\n</div>")


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
        lines = text.splitlines(keepends=True)
        if not self.solution:
            return self._block(lines, 0, "")[0]
        solution, end = self._solution(lines, 0, "", ", in words")
        return solution + self._block(lines, end, "")[0]

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

    def _block(self, lines: list[str], at: int, until: str) -> tuple[str, int]:
        """The text up to the fence ``until`` (or the end, or the end of a solution), and where that stands."""
        result, running = "", ""
        while at < len(lines):
            line = lines[at].rstrip("\n")
            directive, code = OPEN.fullmatch(line), CODE.match(line)
            ends = directive and directive["name"] == "solution-end" and self.solution
            if ends or (until and line.strip() == until):
                break
            if not (directive or code or UNSEEN.fullmatch(line)):
                running += lines[at]
                at += 1
                continue
            result, running = result + self.inline(running), ""
            if directive:
                inner, at = self._directive(directive, lines, at)
                result += inner
            elif code:
                end = _closing(lines, at + 1, code["fence"]) + 1
                result, at = result + "".join(lines[at:end]), end
            else:
                at += 1
        return result + self.inline(running), at

    def _directive(self, head: re.Match[str], lines: list[str], at: int) -> tuple[str, int]:
        """What the directive that begins at ``at`` shows, and the line after it."""
        name, title = head["name"], head["title"]
        if name in BOXES:
            return self._box(head, lines, at)
        end = _closing(lines, at + 1, head["fence"]) + 1
        whole = "".join(lines[at:end])
        if name == "index":
            while end < len(lines) and not lines[end].strip():
                end += 1
            return "", end
        if name == "exercise-start":
            label = re.search(r"^:label: *(\S+)", whole, re.MULTILINE)
            return f"**{self._number(label[1] if label else '')} ({self.inline(title)})**\n\n", end
        if name == "exercise-end":
            return "", end
        if name == "solution-start":
            self.solution = title.strip()
            return self._solution(lines, end, "\n" if whole.endswith("\n") else "", "")
        if name in ("figure", "image"):
            alt = re.search(r"^:alt: *(.*)$", whole, re.MULTILINE)
            text = "\n".join(line for line in whole.splitlines()[1:-1] if line and not line.startswith(":"))
            return f"![{alt[1] if alt else ''}]({title.strip()})\n" + (f"\n*{text}*\n" if text else ""), end
        raise PageError(f"a chapter must be shown by any notebook; none can show the directive {{{name}}}. Use a box.")

    def _box(self, head: re.Match[str], lines: list[str], at: int) -> tuple[str, int]:
        named = head["name"] == "admonition"
        body = at + 1
        while body < len(lines) and re.match(r":[\w-]+:", lines[body]):
            body += 1
        folded = any(re.match(r":class:.*\bdropdown\b", line) for line in lines[at + 1 : body])
        while body < len(lines) and not lines[body].strip():
            body += 1
        opening, closing, last = FOLDED if folded else COLOURED
        title = self.inline(head["title"]) if named else head["name"].capitalize()
        inside, end = self._block(lines, body, head["fence"])
        before = "\n" if at and lines[at - 1].strip() else ""
        return f"{before}{opening}{title}{closing}{inside}{last}{_tail(lines, end)}", end + 1

    def _solution(self, lines: list[str], at: int, tail: str, what: str) -> tuple[str, int]:
        """A solution from ``at`` on, folded, up to its end or that of the cell; and the line after that.

        ``tail`` is a new line where its head stands in this cell; ``what`` is said of what goes on from another.
        """
        number = self._number(self.solution)
        inside, end = self._block(lines, at, "")
        ended = end < len(lines)
        if ended:
            fence = OPEN.fullmatch(lines[end].rstrip("\n"))
            end = _closing(lines, end + 1, fence["fence"] if fence else "```") + 1
            self.solution = ""
        if not inside.strip():
            head = f"**Solution to {number}**: in the folded cell below.{tail}" if not what else ""
            return head + inside, end
        last = f"\n</details>{_tail(lines, end - 1)}" if ended else "\n\n</details>"
        return f"<details><summary>Solution to {number}{what}</summary>\n\n{inside}{last}", end


def _tail(lines: list[str], at: int) -> str:
    """How the line at ``at`` ends, where there is one."""
    return "\n" if at < len(lines) and lines[at].endswith("\n") else ""


def _closing(lines: list[str], at: int, fence: str) -> int:
    """The line of the fence that closes one."""
    return next((number for number in range(at, len(lines)) if lines[number].strip() == fence), len(lines) - 1)

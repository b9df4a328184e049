"""What may be printed: words of users are shown, and never obeyed, by a terminal or the log of a build."""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import Any

HARMFUL = ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")  # control, format (that of direction too), surrogates, line ends
JOINERS = "\u200c\u200d"  # which Persian and emoji need
SIGNS = {"\u2192": "->", "\u2026": "...", "\u2013": "-", "\u00b1": "+-", "\u00d7": "x"}  # for an encoding without them
COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\w*\[)")  # "::error::" of GitHub at the start of a line, "##[error]" anywhere


def printable(text: str) -> str:
    r"""A line without what a terminal or a build would obey: escape sequences as text, ``::`` at its start apart.

    >>> printable("ok \x1b[2K"), printable("  ::error::no"), printable("##vso[task]")
    ('ok \\x1b[2K', '  : :error::no', '# #vso[task]')
    """
    return COMMAND.sub(lambda match: f"{match[0]} ", visible(text))


def visible(text: str) -> str:
    r"""A text whose control characters are spelled out, the ends of its lines too.

    >>> print(visible("red" + chr(27) + "[31m"))
    red\x1b[31m
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def spelled(text: str) -> str:
    """Lines, each :func:`visible`."""
    return "\n".join(map(visible, text.split("\n")))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in HARMFUL or character in JOINERS:
        return character
    return character.encode("unicode_escape").decode()


def screen(text: str) -> str:
    """Lines, each :func:`printable`."""
    return "\n".join(map(printable, text.split("\n")))


def _signs(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(SIGNS.get(letter, letter.encode("unicode_escape").decode()) for letter in letters), error.end


codecs.register_error("isonb.signs", _signs)


class Terminal:
    r"""A stream whose text is :func:`screen`, in the characters that its encoding has; the rest is the stream's.

    >>> import io
    >>> page = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    >>> _ = Terminal(page).write("0 " + chr(0x2192) + " 1"), page.seek(0)
    >>> print(page.read())
    0 -> 1
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text; an escape sequence, or a character that the encoding lacks, is spelled out."""
        shown, encoding = screen(text), getattr(self.stream, "encoding", None)
        if encoding:
            shown = shown.encode(encoding, "isonb.signs").decode(encoding)
        self.stream.write(shown)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

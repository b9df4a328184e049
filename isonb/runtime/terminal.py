"""What may be printed: words of users are shown, and never obeyed, by a terminal or the log of a build."""

from __future__ import annotations

import re
import unicodedata

HARMFUL = ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")  # control, format (that of direction too), surrogates, line ends
JOINERS = "\u200c\u200d"  # which Persian and emoji need
COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\w*\[)")  # "::error::" of GitHub at the start of a line, "##[error]" anywhere


def printable(text: str) -> str:
    r"""A line without what a terminal or a build would obey: escape sequences as text, ``::`` at its start apart.

    >>> printable("ok \x1b[2K"), printable("  ::error::no"), printable("##vso[task]")
    ('ok \\x1b[2K', '  : :error::no', '# #vso[task]')
    """
    plain = text if text.isascii() and text.isprintable() else "".join(map(_shown, text))
    return COMMAND.sub(lambda match: f"{match[0]} ", plain)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in HARMFUL or character in JOINERS:
        return character
    return character.encode("unicode_escape").decode()


def screen(text: str) -> str:
    """Lines, each :func:`printable`."""
    return "\n".join(map(printable, text.split("\n")))

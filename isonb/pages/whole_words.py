"""Words with a hyphen, and numbers with their interval, that are read as one and should stay on one line."""

from __future__ import annotations

import html
import re

__all__ = ["marked", "split"]

NUMBER = r"\d(?:[\d.]*\d)?(?:e[-+]\d+)?"
WORD = r"\b\w{1,8}-[A-Z\d]\w{0,4}\b"
KEPT = re.compile(rf"([-+]?{NUMBER} ± {NUMBER}|{WORD})")


def split(text: str) -> list[tuple[str, bool]]:
    """The text in parts, and which of them stay on one line.

    >>> split("On SST-2 it is 0.58 ± 0.01.")
    [('On ', False), ('SST-2', True), (' it is ', False), ('0.58 ± 0.01', True), ('.', False)]
    """
    return [(part, number % 2 == 1) for number, part in enumerate(KEPT.split(text)) if part]


def marked(text: str) -> str:
    """The text as HTML with its words marked; numbers may leave their interval to the next line, as in narrow cells.

    >>> marked("I-STAR & 4e-08 ± 0.1")
    '<span class="nobreak">I-STAR</span> &amp; <span class="nobreak">4e-08</span> ± 0.1'
    """
    return re.sub(WORD, lambda word: f'<span class="nobreak">{word[0]}</span>', html.escape(text))

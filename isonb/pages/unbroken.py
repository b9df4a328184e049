"""A sphinx extension: what is read as one word stays on one line, such as SST-2, 4e-08 and 0.58 ± 0.01.

A browser may break a line after a hyphen, and before a comma that follows a formula. Characters that forbid it would
get into what is searched and copied. So such words are marked with the class ``nobreak``, and the style does the rest.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.transforms.post_transforms import SphinxPostTransform

from isonb.pages.whole_words import split

__all__ = ["Unbroken", "setup"]

CLOSING = re.compile(r"[,.;:)\]]+")
AS_WRITTEN = (nodes.FixedTextElement, nodes.literal, nodes.math, nodes.raw)


class Unbroken(SphinxPostTransform):
    """Marks in the tree of a page, after all its references are resolved; what is indexed for the search is older."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Mark formulas with what closes them, then names and numbers."""
        for formula in list(self.document.findall(nodes.math)):
            self._join(formula)
        for text in list(self.document.findall(nodes.Text)):
            parts = split(str(text))
            if any(whole for _, whole in parts) and not isinstance(text.parent, AS_WRITTEN):
                _put(text, [_whole(part) if whole else nodes.Text(part) for part, whole in parts])

    @staticmethod
    def _join(formula: nodes.math) -> None:
        """A formula and the comma after it."""
        after = formula.next_node(descend=False, siblings=True)
        closing = CLOSING.match(str(after)) if isinstance(after, nodes.Text) else None
        if closing:
            _put(after, [nodes.Text(str(after)[closing.end() :])])
            formula.replace_self(_whole(closing[0], formula.deepcopy()))


def _put(text: nodes.Text, parts: list[nodes.Node]) -> None:
    """Parts in the place of this very text: docutils' ``replace`` takes the first one that reads the same."""
    place = next(number for number, child in enumerate(text.parent.children) if child is text)
    text.parent[place : place + 1] = parts


def _whole(text: str, before: nodes.Node | None = None) -> nodes.inline:
    return nodes.inline("", "", *([before] if before else []), nodes.Text(text), classes=["nobreak"])


def setup(app: Any) -> dict[str, bool]:
    """What sphinx calls."""
    app.add_post_transform(Unbroken)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

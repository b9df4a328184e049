"""Sentences of a page as outputs of its kernel: their numbers (``glue``), and whether what they claim holds.

The source writes ``{glue}`name``` where a number stands. The book takes the number from the outputs of the run; in a
notebook the paragraph is a cell that calls :func:`paragraph`, and changes when the number is computed anew.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from isonb_lab.pages.errors import PageError
from isonb_lab.pages.parameters import changed_parameters
from isonb_lab.pages.vega import in_book
from isonb_lab.runtime.glue import GLUE_PREFIX

GLUE = re.compile(r"\{glue(?::text)?\}`(?P<name>[^`:]+)(?::[^`]*)?`")
MARKDOWN = re.compile(r"([\\*`<$])")
NOT_YET = "…"  # stands for a number that hasn't been computed
NO_LONGER = " (not so here)"

_values: dict[str, str] = {}  # of this kernel, by name
_shown: dict[str, Any] = {}  # the displays of the paragraphs of this kernel, by their source


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its values; :data:`NOT_YET` stands for one that is missing.

    >>> filled("Of {glue}`n` runs {glue}`open` are open.", {"n": "46"})
    'Of 46 runs … are open.'
    """

    def value(match: re.Match[str]) -> str:
        return MARKDOWN.sub(r"\\\1", re.sub(r"\s+", " ", values.get(match["name"], NOT_YET)))

    return GLUE.sub(value, text)


def as_markdown(text: str) -> dict[str, str]:
    """Markdown as the data of an output."""
    return {"text/markdown": text, "text/plain": text}


def paragraph(text: str) -> None:
    """Show a paragraph with the values of this kernel, now and whenever ``glue`` keeps a new one.

    >>> paragraph("Of {glue}`n` runs none failed.")  # outside a notebook there is no page
    """
    if InteractiveShell.initialized():
        shown = as_markdown(filled(text.strip("\n"), _values))
        _shown[text] = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]


def glue(name: str, value: object, fmt: str | None = None) -> None:
    """Keep ``value``, formatted by ``fmt`` as in ``format(value, fmt)``, for the text: ``{glue}`name```.

    The paragraphs that have it change. A notebook of the source itself has none: there the value is printed.

    >>> glue("share", 0.5)  # outside a notebook there is no page, and nothing to show
    """
    text = format_value(value, fmt)
    if not name.strip():
        raise PageError("glue needs a name; got a blank one.")
    _set_value(name, text)
    if InteractiveShell.initialized() and not (in_book() or _shown):
        print(f"{name}: {text}")


def _set_value(name: str, text: str) -> None:
    """Put a value among the outputs, as papermill and MyST-NB know it, and into the paragraphs that have it."""
    if not InteractiveShell.initialized():
        return
    scrap = {"scrapbook": {"name": name, "mime_prefix": GLUE_PREFIX}}
    display({GLUE_PREFIX + "text/plain": text}, raw=True, metadata=scrap)  # type: ignore[no-untyped-call]
    _values[name] = text
    for source, place in _shown.items():
        if name in (match["name"] for match in GLUE.finditer(source)):
            place.update(as_markdown(filled(source.strip("\n"), _values)), raw=True)


def format_value(value: object, fmt: str | None) -> str:
    """A number as text; tensors and arrays of one element count as numbers, a missing value is a dash."""
    if not isinstance(value, str | int | float) and callable(item := getattr(value, "item", None)):
        value = item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if fmt is None and isinstance(value, float):
        fmt = ".4g"
    try:
        text = format(value, fmt or "")
    except (TypeError, ValueError) as error:
        raise PageError(f"format {fmt!r} doesn't fit {value!r}: {error}.") from None
    if isinstance(value, float) and math.isfinite(value) and not any(digit in text for digit in "123456789"):
        text = "0" if "e" in text else text.lstrip("-")  # no "0e+00", no "-0.00"
    return text


def assert_verdict(judged: Any, claim: int | str, outcome: str) -> None:
    """Raise :class:`~isonb_lab.pages.errors.PageError` unless the runs say of a claim what the page says.

    Args:
        judged: a study, or its verdicts.
        claim: the claim's number or name.
        outcome: the verdict in words: "inconclusive", "depends on the encoder".

    >>> from isonb_lab.claims.verdicts import Claim, judge
    >>> assert_verdict([judge(Claim("C9", "nothing", ()), [])], "C9", "not testable")
    """
    verdicts = judged.verdicts() if hasattr(judged, "verdicts") else judged
    verdict_text = {verdict.claim.number: verdict.label for verdict in verdicts}.get(claim, "no such claim")
    if verdict_text != outcome:
        contradict(f"the runs must say what this page says ({claim}: {outcome}); got {verdict_text}.")


def assert_facts(**facts: object) -> None:
    """Say where a sentence of the page no longer holds: each fact is what one relies on.

    A fact is a value of the text, too: ``{glue}`one-gain``` for ``one_gain`` is nothing while it is true, and else
    :data:`NO_LONGER`. The build of the book raises :class:`~isonb_lab.pages.errors.PageError`: there the sentence is to
    be rewritten.

    >>> assert_facts(only_one_gain=len(["IsoLayer on STS-B"]) == 1)
    """
    for name, fact in facts.items():
        _set_value(name.replace("_", "-"), "" if fact else NO_LONGER)
    wrong = [name.replace("_", " ") for name, fact in facts.items() if not fact]
    if wrong:
        contradict(f"what this page says must be true of the runs; got otherwise: {', '.join(wrong)}.")


def contradict(text: str) -> None:
    """Raise ``text``, which the book's own build must not pass; show it to a reader, whose runs may say otherwise."""
    changed = changed_parameters()
    if not InteractiveShell.initialized() or (in_book() and not changed):
        raise PageError(f"{text} Rewrite the sentence.")
    where = f" with {', '.join(f'{name} = {value!r}' for name, value in changed.items())}" if changed else ""
    note = f"**A sentence of this page doesn't hold here{where}:** {text}"
    display(as_markdown(note), raw=True)  # type: ignore[no-untyped-call]

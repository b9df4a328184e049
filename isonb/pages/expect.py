"""Sentences of a page that must hold: the build fails where the runs say otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from isonb.pages.errors import PageError

__all__ = ["expect", "holds"]


def expect(judged: Iterable[Any], **outcomes: str) -> None:
    """Raise :class:`~isonb.pages.errors.PageError` unless the runs' verdicts are those that the page's sentences say.

    ``judged``: verdicts of a study. ``outcomes``: the verdict in words by the claim's name, with an underscore for a
    space or before a number: ``C1_down="inconclusive"``, ``_8="inconclusive"``, ``C3="depends on the encoder"``.

    >>> from isonb.lab.studies.verdicts import Claim, judge
    >>> expect([judge(Claim("C9", "nothing", ()), [])], C9="not testable")
    """
    found = {str(one.claim.number).replace("_", " "): one.words for one in judged}
    said = {name.strip("_").replace("_", " "): outcome for name, outcome in outcomes.items()}
    wrong = {name: outcome for name, outcome in said.items() if found.get(name) != outcome}
    if wrong:
        got = "; ".join(f"{name}: {found.get(name, 'no such claim')}" for name in wrong)
        want = "; ".join(f"{name}: {outcome}" for name, outcome in wrong.items())
        raise PageError(f"the runs must say what this page says ({want}); got {got}. Rewrite the claim's sentences.")


def holds(**facts: object) -> None:
    """Raise :class:`~isonb.pages.errors.PageError` unless each fact that a sentence relies on is true.

    >>> holds(only_one_gain=len(["IsoLayer on STS-B"]) == 1)
    """
    wrong = [name for name, fact in facts.items() if not fact]
    if wrong:
        names = ", ".join(name.replace("_", " ") for name in wrong)
        raise PageError(f"what this page says must be true of the runs; got otherwise: {names}. Rewrite the sentence.")

"""Sentences of a page that must hold: the build fails where the runs say otherwise."""

from __future__ import annotations

from typing import Any

from isonb.pages.errors import PageError


def expect(judged: Any, claim: int | str, outcome: str) -> None:
    """Raise :class:`~isonb.pages.errors.PageError` unless the runs say of a claim what the page says.

    Args:
        judged: a study, or its verdicts.
        claim: the claim's number or name.
        outcome: the verdict in words: "inconclusive", "depends on the encoder".

    >>> from isonb.lab.studies.verdicts import Claim, judge
    >>> expect([judge(Claim("C9", "nothing", ()), [])], "C9", "not testable")
    """
    verdicts = judged.verdicts() if hasattr(judged, "verdicts") else judged
    words = {one.claim.number: one.words for one in verdicts}.get(claim, "no such claim")
    if words != outcome:
        says, fix = f"{claim}: {outcome}", "Rewrite the claim's sentences."
        raise PageError(f"the runs must say what this page says ({says}); got {words}. {fix}")


def holds(**facts: object) -> None:
    """Raise :class:`~isonb.pages.errors.PageError` unless each fact that a sentence relies on is true.

    >>> holds(only_one_gain=len(["IsoLayer on STS-B"]) == 1)
    """
    wrong = [name for name, fact in facts.items() if not fact]
    if wrong:
        names = ", ".join(name.replace("_", " ") for name in wrong)
        raise PageError(f"what this page says must be true of the runs; got otherwise: {names}. Rewrite the sentence.")

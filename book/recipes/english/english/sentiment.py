"""Short reviews whose verdict is known: praise and blame, turned by negation, and outweighed in contrasts.

:func:`opinion` has one clause and nothing turned, which a small encoder learns from a few hundred rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from english.draw import Draw
from english.grammar import SHARES, finish
from english.lexicon import WORDS

DOMAINS = {
    "film": ["acting", "plot", "soundtrack", "script", "ending", "dialogue", "lighting", "camera", "opening"],
    "restaurant": ["food", "service", "soup", "dessert", "menu", "wine", "coffee", "starter", "salad", "waiter"],
    "hotel": ["room", "bed", "view", "lobby", "staff", "pool", "balcony", "breakfast", "garden"],
    "book": ["prose", "chapter", "story", "style", "cover", "translation", "heroine", "hero", "preface"],
    "concert": ["music", "singing", "orchestra", "staging", "overture", "pianist", "conductor", "hall", "encore"],
    "laptop": ["screen", "keyboard", "battery", "display", "design", "speaker", "manual", "charger", "case"],
}
GOOD, BAD = WORDS["good"].split(), WORDS["bad"].split()
STRENGTH = ("", "", "really ", "quite ", "truly ", "simply ", "rather ")
TURNED = ("not", "never", "hardly", "far from", "anything but", "not at all")
# {b} is the verdict, {a} what it outweighs
JOINTS = {
    "before": ("{b}, although {a}", "{b}, even if {a}", "{b}, even though {a}", "although {a}, {b}", "while {a}, {b}"),
    "after": ("{a}, but {b}", "{a}, yet {b}", "{a}, but on balance {b}"),
}


def judgement(draw: Draw, good: bool, turned: bool, aspects: Sequence[str]) -> str:
    """What is said of one of the ``aspects``; ``turned``: by denying the opposite ("not dull").

    >>> judgement(Draw("j"), True, False, DOMAINS["film"]), judgement(Draw("j"), True, True, DOMAINS["film"])
    ('the camera was marvellous', 'the ending was anything but ghastly')
    """
    aspect, word = _owned(draw, aspects, GOOD if good != turned else BAD)
    if turned:
        return f"the {aspect} was {draw.pick(TURNED)} {word}"
    return f"the {aspect} {draw.pick(('was', 'seemed', 'proved'))} {draw.pick(STRENGTH)}{word}"


def _owned(draw: Draw, aspects: Sequence[str], adjectives: Sequence[str]) -> tuple[str, str]:
    """A thing and an adjective whose combination belongs to this split."""
    while True:
        pair = draw.pick(aspects), draw.pick(adjectives)
        if SHARES[zlib.crc32(" ".join(pair).encode()) % len(SHARES)] == draw.split:
            return pair


def opinion(draw: Draw, good: bool) -> str:
    """One clause that praises or complains.

    >>> opinion(Draw("a"), True), opinion(Draw("b"), False)
    ('The food seemed refreshing.', 'The music proved simply dismal.')
    """
    return finish([judgement(draw, good, False, DOMAINS[draw.pick(tuple(DOMAINS))])])


def review(draw: Draw, good: bool) -> str:
    """A sentence that ends up for (``good``) or against.

    >>> review(Draw("a"), True), review(Draw("b"), False)
    ('The starter seemed hopeless, but the dessert was never unpleasant.', 'The orchestra was simply admirable, but on
    balance the singing proved really dull.')
    """
    aspects = draw.shuffled(DOMAINS[draw.pick(tuple(DOMAINS))])
    shape = draw.pick(("one", "one", "both", "contrast", "contrast", "contrast", "hope"))
    if shape == "hope":  # an expectation that failed
        aspect, word = _owned(draw, aspects, BAD if good else GOOD)
        who = draw.pick(("I", "we", "my friends", "the critics"))
        return finish([who, draw.pick(("thought", "said")), f"the {aspect} would be {word}, but far from it"])
    last = judgement(draw, good, draw.chance(0.4), aspects[:4])
    if shape == "one":
        return finish([last])
    first = judgement(draw, good == (shape == "both"), draw.chance(0.4), aspects[4:])
    joint = "{a} and {b}" if shape == "both" else draw.pick(JOINTS[draw.pick(("before", "after"))])
    return finish([joint.format(a=first, b=last)])

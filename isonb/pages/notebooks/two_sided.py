"""A text that is written in one way and shown in another, and an edit of what is shown carried back.

The text is cut into pieces. Most read the same on both sides. A role or the head of a box is written in one way and
shown in another; it is kept as it is written as long as an edit leaves all of what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

TOKEN = re.compile(r"\w+|\W")


@dataclass(frozen=True)
class Piece:
    """``raw`` is written, ``plain`` is shown; pieces of one ``group``, as the ends of a box, stay or go together."""

    raw: str
    plain: str
    group: int = 0


def raw(pieces: Sequence[Piece]) -> str:
    return "".join(piece.raw for piece in pieces)


def shown(pieces: Sequence[Piece]) -> str:
    return "".join(piece.plain for piece in pieces)


def reworded(pieces: Sequence[Piece], edited: str) -> str:
    """What must be written so that ``edited`` is shown. Words that an edit leaves alone are written as they were.

    What isn't shown at all, as a label, stays where a word beside it does.

    Raises :class:`ValueError` where the edit leaves one end of a box and takes the other.

    >>> text = [Piece("It rose by ", "It rose by "), Piece("{glue}`rise`", "3 points"), Piece(".", ".")]
    >>> reworded(text, "It fell by 3 points!")
    'It fell by {glue}`rise`!'
    >>> reworded(text, "It rose by 4 points.")
    'It rose by 4 points.'
    """
    if edited == shown(pieces):
        return raw(pieces)
    pieces = _whole_words(pieces)
    before = [TOKEN.findall(piece.plain) for piece in pieces]
    now = TOKEN.findall(edited)
    place = _places([token for tokens in before for token in tokens], now)
    kept, start = [], 0
    for tokens in before:
        kept.append(_together(place[start : start + len(tokens)]))
        start += len(tokens)
    lost = {piece.group for piece, tokens, whole in zip(pieces, before, kept, strict=True) if tokens and not whole}
    held = {piece.group for piece, tokens, whole in zip(pieces, before, kept, strict=True) if tokens and whole}
    if broken := [p.raw for p in pieces if p.group and p.group in lost & held]:
        raise ValueError(f"an edit must leave both ends of a box or take both; it breaks {broken[0].strip()!r}.")
    written: list[str] = []
    done = start = 0
    for piece, tokens, whole in zip(pieces, before, kept, strict=True):
        own = place[start : start + len(tokens)]
        start += len(tokens)
        if not tokens:
            beside = place[max(start - 1, 0) : start + 1]
            stays = any(at >= 0 for at in beside) or not place
            written += [piece.raw] if stays and piece.group not in lost - {0} else []
        elif whole and piece.raw != piece.plain:
            written += [*now[done : own[0]], piece.raw]
            done = own[-1] + 1
        elif piece.raw == piece.plain:
            for at in own:
                if at >= 0:
                    written += now[done : at + 1]
                    done = at + 1
    return "".join([*written, *now[done:]])


def _whole_words(pieces: Sequence[Piece]) -> list[Piece]:
    """The same text in pieces that don't cut a word: "12" and "th of" become "12th" and " of"."""
    made: list[Piece] = []
    for piece in pieces:
        if made and re.match(r"\w\w", made[-1].plain[-1:] + piece.plain[:1]):
            (*head, left), (right, *tail) = _cut(made.pop(), r"\b(?=\w+\Z)"), _cut(piece, r"(?<=\w)\b")
            joined = Piece(left.raw + right.raw, left.plain + right.plain, left.group or right.group)
            made += [*head, joined, *tail]
        else:
            made.append(piece)
    return made


def _cut(piece: Piece, where: str) -> list[Piece]:
    """A piece that reads the same on both sides in two, cut where the pattern first matches."""
    match = re.search(where, piece.plain) if piece.raw == piece.plain else None
    parts = [piece.plain[: match.start()], piece.plain[match.start() :]] if match else []
    return [Piece(part, part) for part in parts if part] or [piece]


def _together(places: Sequence[int]) -> bool:
    """Whether all tokens are still there, one after the other."""
    return bool(places) and places[0] >= 0 and list(places) == list(range(places[0], places[0] + len(places)))


def _places(before: Sequence[str], now: Sequence[str]) -> list[int]:
    """Where each token of ``before`` is in ``now``, -1 where it is gone. Equal ends first: most edits are small."""
    short = min(len(before), len(now))
    head = next((i for i in range(short) if before[i] != now[i]), short)
    tail = next((i for i in range(short - head) if before[-1 - i] != now[-1 - i]), short - head)
    place = [*range(head), *[-1] * (len(before) - head - tail), *range(len(now) - tail, len(now))]
    middle = SequenceMatcher(None, before[head : len(before) - tail], now[head : len(now) - tail], autojunk=False)
    for block in middle.get_matching_blocks():
        for step in range(block.size):
            place[head + block.a + step] = head + block.b + step
    return place

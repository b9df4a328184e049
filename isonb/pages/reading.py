"""How long a chapter takes to read, counted from its source, so that what it states is right."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isonb.pages.chapters import Chapter

__all__ = ["FOLDED", "reading_minutes", "stated_minutes", "time_rule"]

WORDS = 200  # of prose a minute
LINES = 25  # of shown code a minute
LOOK = 1 / 3  # of a minute at a picture or a table
APART = 3  # minutes by which a stated time may be off
STATED = re.compile(r"\*\*Time\*\*:? (\d+) minutes? to read")
TABLE = re.compile(r"\b(?:table|\w+_table)\(")  # a call that shows one
PRINTED = re.compile(r"^\|[-:| ]+\|$", re.MULTILINE)  # the line under the head of a table in markdown
FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}


def reading_minutes(chapter: Chapter) -> float:
    """Minutes for prose, shown code, pictures and tables, without the exercises: words / 200 + lines / 25 + looks / 3.

    A look is a picture or a cell that shows tables.
    """
    total, exercises = 0.0, False
    for cell in chapter.cells.cells:
        text = cell.source
        if cell.cell_type == "markdown":
            for part in re.split(r"(?m)^(?=## )", text):
                exercises = part.startswith("## Exercises") or (exercises and not part.startswith("## "))
                prose = re.sub(r"^[`:]{3,}.*$", "", part, flags=re.MULTILINE)
                total += 0.0 if exercises else len(prose.split()) / WORDS + LOOK * len(PRINTED.findall(part))
        elif not exercises:
            tags = set(cell.metadata.get("tags", []))
            total += 0.0 if FOLDED & tags else len(text.splitlines()) / LINES
            seen = "mystnb" in cell.metadata or TABLE.search(text)
            total += LOOK if seen and "remove-cell" not in tags else 0.0
    return total


def stated_minutes(chapter: Chapter) -> int | None:
    """The minutes in the box under the question; None where it says none."""
    text = "\n".join(cell.source for cell in chapter.cells.cells if cell.cell_type == "markdown")
    found = STATED.search(text)
    return None if found is None else int(found[1])


def time_rule(chapter: Chapter) -> Iterator[str]:
    """The rule of the lint: a stated reading time is right to five minutes."""
    stated, counted = stated_minutes(chapter), reading_minutes(chapter)
    if stated is not None and abs(stated - counted) > APART:
        yield f"the stated reading time must be right to {APART} minutes; it says {stated}, and is about {counted:.0f}"

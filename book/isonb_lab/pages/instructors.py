"""The tables of *For instructors*: what each chapter takes, and paths of 45, 90 and 180 minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from isonb_lab.pages import status
from isonb_lab.pages.chapters import Chapter

EXERCISE = 10  # minutes planned for one exercise
WORDS = 160  # of prose read in a minute, with the pictures between them
THREAD = (
    "foundations/clouds_and_cones",
    "foundations/measuring_isotropy",
    "foundations/a_number_needs_its_n",
    "results/three_readers",
    "results/the_dial",
    "papers/four_recipes",
    "results/head_to_head",
    "results/dose",
    "practice/audit_your_model",
    "practice/use_it_in_training",
)
DONE = (2, 2, 1, 1, 0, 1, 1, 0, 1, 0)  # exercises of each in the longest path
PATHS: dict[int, dict[str, int]] = {
    45: {
        "foundations/clouds_and_cones": 1,
        "foundations/a_number_needs_its_n": 1,
        "practice/audit_your_model": 0,
    },
    90: dict.fromkeys(THREAD, 0) | {"foundations/clouds_and_cones": 1, "foundations/a_number_needs_its_n": 1},
    180: dict(zip(THREAD, DONE, strict=True)),
}
"""Minutes of a path: its chapters in order, and how many exercises of each are done."""

Records = Sequence[tuple[Chapter, Mapping[str, Any]]]


def _text(chapter: Chapter) -> str:
    return "\n".join(cell.source for cell in chapter.cells.cells if cell.cell_type == "markdown")


def exercises(chapter: Chapter) -> int:
    """How many exercises a chapter has."""
    return len(re.findall(r"^[`:]{3,}\{exercise(?:-start)?\}", _text(chapter), re.MULTILINE))


def minutes(chapter: Chapter) -> int:
    """The minutes to read its prose, at :data:`WORDS` a minute."""
    return max(1, round(len(_text(chapter).split()) / WORDS))


def teaching_page(records: Records) -> str:
    """Markdown: a table of each path, a table of the chapters, and on what they were measured."""
    by_name = {chapter.name.removeprefix("book/"): (chapter, run) for chapter, run in records}
    lines = []
    for length, plan in PATHS.items():
        if set(plan) <= set(by_name):
            lines += _path(length, [(*by_name[name], count) for name, count in plan.items()])
    lines += ["## What each chapter takes", ""]
    for part, of_part in groupby(records, lambda record: record[0].name.removeprefix("book/").partition("/")[0]):
        lines += [f"**{part.capitalize()}**", ""]
        lines += ["| chapter | minutes to read | exercises | seconds to run | memory, MiB |", "|---|--:|--:|--:|--:|"]
        for chapter, run in of_part:
            text = f"{minutes(chapter)} | {exercises(chapter) or '–'} | {run['seconds']:.0f}"
            lines.append(f"| {status.link(chapter)} | {text} | {run.get('peak_mib') or '–'} |")
        lines.append("")
    lines += [
        f"The minutes to read count {WORDS} words of prose a minute. The rest was measured in its last run, on "
        f"{status.machines(records)}. The seconds include the start of the kernel. By default as many chapters run "
        "side by side as there are cores.",
        "",
    ]
    return "\n".join(lines)


def _path(length: int, plan: Sequence[tuple[Chapter, Mapping[str, Any], int]]) -> list[str]:
    lines = [f"## {length} minutes", ""]
    lines += ["| chapter | minutes to read | exercises | seconds to run |", "|---|--:|--:|--:|"]
    for chapter, run, count in plan:
        done = f"{count} of {exercises(chapter)}" if count else "–"
        lines.append(f"| {status.link(chapter)} | {minutes(chapter)} | {done} | {run['seconds']:.0f} |")
    total = sum(minutes(chapter) + EXERCISE * count for chapter, _, count in plan)
    wait = sum(round(run["seconds"]) for _, run, _ in plan)
    text = f"Reading and exercises: {total} of {length} minutes, at {EXERCISE} an exercise; the rest is talk."
    return [*lines, "", f"{text} Running it all takes {wait} seconds.", ""]

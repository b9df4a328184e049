"""The tables of the page for instructors: what each chapter takes, and courses of one, three and eight hours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from isonb.pages.chapters import Chapter
from isonb.pages.reading import reading_minutes
from isonb.pages.status import title_of

__all__ = ["COURSES", "EXERCISE", "course_minutes", "exercises", "teaching_page"]

EXERCISE = 10  # minutes planned for one exercise
COURSES: dict[int, dict[str, int]] = {
    1: {"foundations/clouds_and_cones": 1, "foundations/microscope": 0, "results/who_is_right": 1},
    3: {
        "foundations/clouds_and_cones": 2,
        "foundations/measuring_isotropy": 2,
        "foundations/microscope": 0,
        "papers/istar": 1,
        "results/who_is_right": 1,
        "practice/audit_your_model": 1,
    },
    8: {
        "foundations/clouds_and_cones": 3,
        "foundations/measuring_isotropy": 3,
        "foundations/barcodes": 3,
        "foundations/microscope": 0,
        "papers/shrink_the_longest": 1,
        "papers/istar": 2,
        "papers/softdecay": 2,
        "papers/isolayer": 2,
        "results/head_to_head": 1,
        "results/who_is_right": 2,
        "practice/audit_your_model": 2,
        "practice/use_it_in_training": 2,
    },
}
"""Hours of a course: its chapters in order, and how many exercises of each are done."""


def exercises(chapter: Chapter) -> int:
    """How many exercises a chapter has."""
    text = "\n".join(cell.source for cell in chapter.cells.cells if cell.cell_type == "markdown")
    return len(re.findall(r"^[`:]{3,}\{exercise(?:-start)?\}", text, re.MULTILINE))


def course_minutes(hours: int, chapters: Mapping[str, Chapter]) -> float:
    """Minutes of reading and exercises of a course; ``chapters`` by their names after ``book/``."""
    plan = COURSES[hours].items()
    return sum(round(reading_minutes(chapters[name])) + EXERCISE * count for name, count in plan)


def teaching_page(records: Sequence[tuple[Chapter, Mapping[str, Any]]]) -> str:
    """Markdown: a table of the courses, a table of the chapters, and on what they were measured."""
    by_name = {chapter.name.removeprefix("book/"): (chapter, run) for chapter, run in records}
    lines = []
    for hours, plan in COURSES.items():
        if set(plan) <= set(by_name):
            lines += _course(hours, by_name)
    lines += ["## What each chapter takes", ""]
    for part, of_part in groupby(records, lambda record: record[0].name.removeprefix("book/").partition("/")[0]):
        lines += [f"**{part.capitalize()}**", ""]
        lines += ["| chapter | minutes to read | exercises | seconds to run | memory, MiB |", "|---|--:|--:|--:|--:|"]
        lines += [*(_row(chapter, run) for chapter, run in of_part), ""]
    machines = sorted({str(run["hardware"]) for _, run in records})
    lines += [
        f"Measured in the last run of each chapter, on {'; '.join(machines) or 'no machine'}. The seconds include the "
        "start of the kernel. By default as many chapters run side by side as there are cores.",
        "",
    ]
    return "\n".join(lines)


def _row(chapter: Chapter, run: Mapping[str, Any]) -> str:
    numbers = f"{reading_minutes(chapter):.0f} | {exercises(chapter) or '–'} | {run['seconds']:.0f}"
    return f"| {_link(chapter)} | {numbers} | {'–' if run.get('peak_mib') is None else run['peak_mib']} |"


def _link(chapter: Chapter) -> str:
    return f"[{title_of(chapter)}](/{chapter.name}.ipynb)"


def _course(hours: int, by_name: Mapping[str, tuple[Chapter, Mapping[str, Any]]]) -> list[str]:
    total = course_minutes(hours, {name: chapter for name, (chapter, _) in by_name.items()})
    plan = COURSES[hours].items()
    rows = []
    for name, count in plan:
        chapter, run = by_name[name]
        done = f"{count} of {exercises(chapter)}" if count else "–"
        rows.append(f"| {_link(chapter)} | {reading_minutes(chapter):.0f} | {done} | {run['seconds']:.0f} |")
    wait = sum(round(by_name[name][1]["seconds"]) for name, _ in plan)
    unit = "hour" if hours == 1 else "hours"
    head = ["| chapter | minutes to read | exercises | seconds to run |", "|---|--:|--:|--:|"]
    told = f"Reading and exercises: {total:.0f} of {60 * hours} minutes, at {EXERCISE} an exercise; the rest is talk."
    return [f"## {hours} {unit}", "", *head, *rows, "", f"{told} Running it all takes {wait:.0f} seconds.", ""]

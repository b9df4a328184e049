"""The tables of *Status of the chapters*, and of *For instructors*: what each takes; paths of 45, 90, 180 minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from isonb_lab.pages.chapters import Chapter
from isonb_lab.pages.notebooks.markdown import blocks

EXERCISE = 10  # minutes planned for one exercise
WORDS = 160  # of prose read in a minute, with the pictures between them


class Path(NamedTuple):
    """A class: its chapters in order, each with the labels of the exercises that are done, and its exit ticket."""

    pages: dict[str, list[str]]
    ticket: str


_CLASSES = files("isonb_lab.pages").joinpath("classes.yaml").read_text(encoding="utf-8")
PATHS = {minutes: Path(**about) for minutes, about in yaml.safe_load(_CLASSES).items()}
"""A class by its minutes."""

Records = Sequence[tuple[Chapter, Mapping[str, Any]]]


def status_page(records: Records) -> str:
    """Markdown: for each chapter when it ran, how long and with which parameters; the versions and the machines."""
    lines = ["| chapter | seconds | date | parameters | key |", "|---|--:|---|---|---|"]
    versions: dict[str, set[str]] = {}
    for chapter, run in records:
        settings = run["parameters"]
        text = ", ".join(f"`{p.name}={settings.get(p.name, p.default)!r}`" for p in chapter.parameters) or "none"
        lines.append(f"| {link(chapter)} | {run['seconds']:.1f} | {run['date']} | {text} | `{run['key']}` |")
        for name, version in run["versions"].items():
            versions.setdefault(name, set()).add(version)
    total = sum(run["seconds"] for _, run in records)
    lines += ["", f"All chapters together took {total:.0f} seconds of computing. Machine: {machines(records)}.", ""]
    lines += ["| package | version |", "|---|---|", *(f"| {k} | {', '.join(sorted(v))} |" for k, v in versions.items())]
    return "\n".join([*lines, ""])


def link(chapter: Chapter) -> str:
    """A link to a chapter by its title."""
    return f"[{chapter.title}](/{chapter.name}.ipynb)"


def machines(records: Records) -> str:
    """On what these runs ran."""
    return "; ".join(sorted({str(run["hardware"]) for _, run in records})) or "none"


def exercises(chapter: Chapter) -> dict[str, str]:
    """The exercises of a chapter, their titles by their labels."""
    heads = [block for block in blocks(chapter.prose) if block.name == "exercise-start"]
    return {head.options["label"]: head.title.partition(" · ")[0] for head in heads}


def minutes(chapter: Chapter) -> int:
    """The minutes to read its prose, at :data:`WORDS` a minute."""
    return max(1, round(len(chapter.prose.split()) / WORDS))


def teaching_page(records: Records) -> str:
    """Markdown: a table of each path, a table of the chapters, and on what they were measured."""
    by_name = {chapter.name.removeprefix("book/"): (chapter, run) for chapter, run in records}
    lines = []
    for length, path in PATHS.items():
        if set(path.pages) <= set(by_name):
            lines += _path(length, [(*by_name[name], labels) for name, labels in path.pages.items()], path.ticket)
    lines += ["## What each chapter takes", ""]
    for part, of_part in groupby(records, lambda record: record[0].name.removeprefix("book/").partition("/")[0]):
        lines += [f"**{part.capitalize()}**", ""]
        lines += ["| chapter | minutes to read | exercises | seconds to run | memory, MiB |", "|---|--:|--:|--:|--:|"]
        for chapter, run in of_part:
            text = f"{minutes(chapter)} | {len(exercises(chapter)) or '–'} | {run['seconds']:.0f}"
            lines.append(f"| {link(chapter)} | {text} | {run.get('peak_mib') or '–'} |")
        lines.append("")
    lines += [
        f"The minutes to read count {WORDS} words of prose a minute. The rest was measured in its last run, on "
        f"{machines(records)}. The seconds include the start of the kernel. By default as many chapters run "
        "side by side as there are cores.",
        "",
    ]
    return "\n".join(lines)


def _path(length: int, plan: Sequence[tuple[Chapter, Mapping[str, Any], Sequence[str]]], ticket: str) -> list[str]:
    lines = [f"## {length} minutes", ""]
    lines += ["| chapter | minutes to read | exercises | seconds to run |", "|---|--:|---|--:|"]
    for chapter, run, labels in plan:
        done = ", ".join(f"*{exercises(chapter)[label]}*" for label in labels) or "–"
        lines.append(f"| {link(chapter)} | {minutes(chapter)} | {done} | {run['seconds']:.0f} |")
    total = sum(minutes(chapter) + EXERCISE * len(labels) for chapter, _, labels in plan)
    wait = sum(round(run["seconds"]) for _, run, _ in plan)
    text = f"Reading and exercises: {total} of {length} minutes, at {EXERCISE} an exercise; the rest is talk."
    return [*lines, "", f"{text} Running it all takes {wait} seconds.", "", f"**Exit ticket.** {ticket}", ""]

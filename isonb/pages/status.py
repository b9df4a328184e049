"""The table of the status page: for each chapter when it ran, how long, on what, with which parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isonb.pages.chapters import Chapter

__all__ = ["status_page", "title_of"]


def title_of(chapter: Chapter) -> str:
    """The title of a chapter, or its name where it has none."""
    lines = (line for cell in chapter.cells.cells for line in cell.source.splitlines())
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), chapter.name)


def _parameters(chapter: Chapter, given: Mapping[str, Any]) -> str:
    return ", ".join(f"`{p.name}={given.get(p.name, p.default)!r}`" for p in chapter.parameters) or "none"


def status_page(records: Sequence[tuple[Chapter, Mapping[str, Any]]]) -> str:
    """Markdown: one table of the runs, one of the versions and machines."""
    rows = [
        f"| [{title_of(chapter)}](/{chapter.name}.ipynb) | {run['seconds']:.1f} | {run['date']} | "
        f"{_parameters(chapter, run['parameters'])} | `{run['key']}` |"
        for chapter, run in records
    ]
    table = ["| chapter | seconds | date | parameters | key |", "|---|--:|---|---|---|", *rows]
    machines = sorted({str(run["hardware"]) for _, run in records})
    versions: dict[str, set[str]] = {}
    for _, run in records:
        for name, version in run["versions"].items():
            versions.setdefault(name, set()).add(version)
    pins = ["| package | version |", "|---|---|", *(f"| {k} | {', '.join(sorted(v))} |" for k, v in versions.items())]
    total = sum(run["seconds"] for _, run in records)
    closing = f"All chapters together took {total:.0f} seconds of computing. Machine: {'; '.join(machines) or 'none'}."
    return "\n".join([*table, "", closing, "", *pins, ""])

"""The table of *Status of the chapters*: when each ran, how long, on what, with which parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isonb_lab.pages.chapters import Chapter

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

"""An audit as one page of HTML, with no script and nothing to load; every text of a user is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from isonb.auditing.parts import Check, Finding, Found
from isonb.auditing.words import (
    HEAD,
    MATCH_HEAD,
    REMEDY_HEAD,
    SHOWN,
    fine,
    layer_rows,
    match_cells,
    reading_cells,
    remedy_cells,
    title,
)

__all__ = ["audit_page", "findings_list", "table", "whole_page"]

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
div { overflow-x: auto; } table { border-collapse: collapse; } caption { text-align: left; padding: .4rem 0; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #8885; vertical-align: top; }
th:first-child, td:first-child { text-align: left; } td.text { text-align: left; }
.fault { border-left: .3rem solid #D55E00; } .warning { border-left: .3rem solid #E69F00; }
.note, .skipped { border-left: .3rem solid #7f7f7f; } .ok { border-left: .3rem solid #009E73; }
li { list-style: none; padding: .2rem .7rem; margin: .4rem 0; } li li { border: 0; margin: 0; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid #8885; }
"""


def whole_page(name: str, parts: Iterable[str]) -> str:
    """Parts of HTML as one document."""
    top = f"<title>{html.escape(name)}</title><h1>{html.escape(name)}</h1>"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style>{top}'
    return head + "\n".join(parts) + "</html>\n"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], words: int | None = None) -> str:
    """A table; the column ``words`` holds text."""
    heads = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(_cell(cell, i == words) for i, cell in enumerate(row)) + "</tr>" for row in rows)
    return f"<div><table><caption>{html.escape(caption)}</caption><tr>{heads}</tr>{body}</table></div>"


def _cell(text: str, words: bool) -> str:
    return f"<td{' class=text' if words else ''}>{html.escape(text)}</td>"


def findings_list(findings: Sequence[Finding]) -> str:
    """The findings with the texts they quote."""
    if not findings:
        return "<h2>Nothing stands out</h2>"
    return f"<h2>What stands out</h2><ul>{''.join(map(_finding, findings))}</ul>"


def _finding(one: Finding) -> str:
    quoted = "".join(f"<li>{html.escape(example)}</li>" for example in one.examples)
    more = f"<ul>{quoted}</ul>" if quoted else ""
    return f'<li class="{one.severity}"><b>{one.severity}</b> {html.escape(f"{one.text} {one.advice}")}{more}</li>\n'


def _check(one: Check) -> str:
    return f'<li class="{one.state}"><b>{one.state}</b> {html.escape(f"{one.name}: {one.text}")}</li>'


def _shape(found: Found) -> list[str]:
    parts = ["<h2>The shape</h2>", f"<p>{html.escape(found.withheld)}</p>" if found.withheld else ""]
    parts += [table("Each measure with its 95% interval", HEAD, map(reading_cells, found.readings))]
    if found.layers:
        caption = f"The shape by layer, of {found.layers[0].rows:,} texts, with 95% intervals"
        parts += [table(caption, ["", *SHOWN.values()], layer_rows(found.layers))]
    return parts


def _advice(found: Found) -> list[str]:
    parts = []
    if found.matches:
        caption = "Thresholds, chosen on one half and measured on the other, with 95% intervals"
        parts += ["<h2>A threshold</h2>", table(caption, MATCH_HEAD, map(match_cells, found.matches))]
    if found.remedies:
        rows = map(remedy_cells, found.remedies)
        parts += ["<h2>What would help</h2>", table("Before → after, on the half not fitted", REMEDY_HEAD, rows, 3)]
    parts += [f"<p>{html.escape(found.score)}</p>"] if found.score else []
    code = "\n".join(map(html.escape, found.next_steps))
    return [*parts, f"<h2>What to do next</h2><pre>{code}</pre>" if code else ""]


def audit_page(found: Found) -> str:
    """The report of an audit: is the model sound, what stands out, the floor, the shape, what would help."""
    shares = list(found.floor["random cosine"])
    floor = [[cloud, *map(fine, part.values())] for cloud, part in found.floor.items()]
    checks = f"<ul>{''.join(map(_check, found.checks))}</ul>"
    parts = [
        f"<p>{html.escape(title(found))}</p>",
        f"<h2>Is the instrument sound?</h2>{checks}" if found.checks else "",
        findings_list(found.findings),
        "<h2>How alike are two random rows?</h2>",
        table("Quantiles of the cosine", ["", *shares], floor),
        "<p>A score says something only above the last columns: so alike are rows that have nothing in common.</p>",
        *_shape(found),
        *_advice(found),
    ]
    return whole_page("Audit of a model" if found.checks else "Audit of vectors", parts)

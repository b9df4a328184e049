"""The picture of *What holds*: a row a claim, a mark a cell, coloured by outcome, each mark a link to its judgement."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.claims.design import Design
from isonb_lab.claims.summary import ASIDE, cell_row, with_setting
from isonb_lab.claims.verdicts import JudgedCell, Judgement, Reason
from isonb_lab.pages.charts import GREY

OUTCOME_COLORS = {
    "supported": "#009E73",
    "contradicted": "#D55E00",
    "depends": "#E69F00",
    "seen here": "#8fd0ba",
    "not seen here": "#f0b48a",
    "inconclusive": "#7f7f7f",
    "not tested at its setting": "#b0b0b0",
    "not testable": "#d9d9d9",
}
OUTCOME_SHAPES = dict.fromkeys(OUTCOME_COLORS, "square") | {"depends": "cross", "inconclusive": "diamond"}
OUTCOME_SHAPES |= dict.fromkeys(("supported", "seen here"), "circle")
OUTCOME_SHAPES |= dict.fromkeys(("contradicted", "not seen here"), "triangle-down")
TELLING = ("supported", "contradicted", "seen here", "not seen here", "inconclusive")
STEP = 13  # pixels from mark to mark
ACROSS = 12  # marks side by side: with the statements they fill a page's column, and a phone still shows them
LETTERS = 36  # of a statement in one line
STATEMENT = 262  # pixels that so many letters need in a wide font
GAP = 9  # pixels between claims
LINE = 14  # pixels from line to line of a statement

HEAD = ("study", "page", "claim", "statement", "kind", "verdict", "words", "remark")
COLUMNS = (*HEAD, *("what", "trained", "cell", "n", "mean", "low", "high", "mde", "outcome", "reason"))


def claims_anchor(page: str) -> str:
    """The label in front of the claims of a chapter; sphinx keeps it as the anchor, as it has no underscore.

    >>> claims_anchor("papers/shrink_the_longest")
    'claims-of-shrink-the-longest'
    """
    return "claims-of-" + page.split("/")[-1].removesuffix("_more").replace("_", "-")


def claims_href(page: str) -> str:
    """The address of that place, seen from a page in another folder of the book.

    >>> claims_href("papers/istar")
    '../papers/istar.html#claims-of-istar'
    """
    return f"../{page}.html#{claims_anchor(page)}"


def slots(parts: Sequence[str], across: int = ACROSS) -> list[tuple[float, int]]:
    """Place (column, line) of each mark of a claim; half a mark between parts, a new line where a part doesn't fit.

    A part that is longer than a line begins one and goes on below.

    >>> slots(["a", "a", "b"], across=5)
    [(0.0, 0), (1.0, 0), (2.5, 0)]
    >>> slots(["a", "a", "b", "b", "b"], across=3)
    [(0.0, 0), (1.0, 0), (0.0, 1), (1.0, 1), (2.0, 1)]
    """
    results: list[tuple[float, int]] = []
    x, line = 0.0, 0
    for k, part in enumerate(parts):
        if k and part != parts[k - 1]:
            length = next((n for n, item in enumerate(parts[k:]) if item != part), len(parts) - k)
            x, line = (x + 0.5, line) if x + 0.5 + length <= across else (0.0, line + 1)
        elif x + 1 > across:
            x, line = 0.0, line + 1
        results.append((x, line))
        x += 1
    return results


def claims_map(cells: pd.DataFrame, *, papers: Iterable[str]) -> Any:
    """The map: columns paper, page, claim, statement, kind, verdict, words, remark, what, cell and the numbers of it.

    The numbers: n, mean, low, high, visible, outcome and reason; None or NaN where there are none. A claim is judged on
    "runs"; marks of an "identity" or of "printed" numbers are hollow, since they are no evidence about a method. Left
    of the marks stands the verdict, larger.

    >>> row = {"paper": "A paper", "page": "papers/a_paper", "claim": 1, "statement": "It gains", "kind": "runs"}
    >>> row |= {"verdict": "supported", "words": "supported", "remark": "", "what": "score", "cell": "CoLA"}
    >>> row |= {"n": 5, "mean": 0.2, "low": 0.1, "high": 0.3, "mde": 0.15, "outcome": "supported", "reason": ""}
    >>> chart = claims_map(pd.DataFrame([row]), papers=["A paper"])
    >>> [layer["mark"]["type"] for layer in chart.to_dict()["layer"]]
    ['text', 'text', 'point', 'point', 'point', 'point']
    """
    heads, texts, verdicts, marks, height = _laid_out(cells, list(papers))
    width = STATEMENT + round((ACROSS + 2.5) * STEP)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False))
    outcomes = list(OUTCOME_COLORS)
    same: dict[str, Any] = {"title": None, "sort": outcomes, "legend": alt.Legend(orient="top", columns=4)}
    looks = (
        alt.Color("outcome:N", scale=alt.Scale(domain=outcomes, range=list(OUTCOME_COLORS.values())), **same),
        alt.Shape("outcome:N", scale=alt.Scale(domain=outcomes, range=list(OUTCOME_SHAPES.values())), **same),
    )

    def label(frame: pd.DataFrame, **mark: Any) -> Any:
        base = alt.Chart(frame, width=width, height=height)
        return base.mark_text(align="left", baseline="top", lineBreak="\n", **mark).encode(x, y, text="text:N")

    def dots(frame: pd.DataFrame, size: float, tips: Sequence[str], keep: str, filled: bool) -> Any:
        outline = {"stroke": GREY, "strokeWidth": 0.6} if filled else {"strokeWidth": 1.8}
        base = alt.Chart(frame).transform_filter(keep)
        mark = base.mark_point(filled=filled, size=size, opacity=1, cursor="pointer", aria=False, **outline)
        return mark.encode(x, y, *looks, href="href:N", tooltip=[alt.Tooltip(f"{tip}:N") for tip in tips])

    runs, aside = "datum.kind == 'runs'", "datum.kind != 'runs'"
    return alt.layer(
        label(heads, fontSize=13, fontWeight=600),
        label(texts, fontSize=12, lineHeight=LINE, cursor="pointer").encode(href="href:N"),  # larger than a mark to tap
        dots(verdicts, 1.1 * STEP**2, VERDICT_TIPS, runs, True),
        dots(verdicts, 1.0 * STEP**2, VERDICT_TIPS, aside, False),
        dots(marks, 0.55 * STEP**2, CELL_TIPS, runs, True),
        dots(marks, 0.5 * STEP**2, CELL_TIPS, aside, False),
        usermeta={"keepsWidth": True},  # on a phone it gets smaller, not narrower: words would meet marks
    )


VERDICT_TIPS = ("claim", "verdict", "cells", "remark")
CELL_TIPS = ("claim", "what", "cell", "outcome", "mean", "95% interval", "minimum detectable effect", "n", "reason")


def _lines(statement: str) -> list[str]:
    """A statement in lines; a comparison ("λ > 0") isn't torn apart.

    >>> _lines("13. The last layer stays less so with λ > 0")
    ['13. The last layer stays less so', 'with λ\xa0>\xa00']
    """
    whole = re.sub(r" ([<>=]) ", "\u00a0\\1\u00a0", statement)
    return textwrap.wrap(whole, LETTERS, break_on_hyphens=False)


def _laid_out(
    cells: pd.DataFrame, papers: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, float]:
    """What stands where, in pixels: names of papers, statements, verdicts, marks; and the height of it all."""
    heads, texts, verdicts, marks = [], [], [], []
    y = 0.0
    for paper in papers:
        y += GAP / 2
        heads.append({"text": paper, "x": 0, "y": y})
        y += LINE + GAP
        for _, part in cells[cells["paper"] == paper].groupby("claim", sort=True):
            first = part.iloc[0]
            name = f"{first['claim']}. {first['statement']}{ASIDE[first['kind']]}"
            lines = _lines(name)
            places = slots(list(part["what"]))
            same = {"claim": name, "kind": first["kind"], "href": claims_href(first["page"])}
            texts.append(same | {"text": "\n".join(lines), "x": 0, "y": y})
            middle = y + LINE / 2
            verdicts.append(same | _verdict(part) | {"x": STATEMENT + 0.5 * STEP, "y": middle})
            marks += [
                same | _cell(row) | {"x": STATEMENT + (2.5 + column) * STEP, "y": middle + line * STEP}
                for row, (column, line) in zip(part.to_dict("records"), places, strict=True)
            ]
            y += max(len(lines) * LINE, (places[-1][1] + 1) * STEP) + GAP
    return pd.DataFrame(heads), pd.DataFrame(texts), pd.DataFrame(verdicts), pd.DataFrame(marks), y


def _verdict(part: pd.DataFrame) -> dict[str, Any]:
    sides = [
        part["outcome"].isin(side).sum() for side in (("supported", "seen here"), ("contradicted", "not seen here"))
    ]
    telling = part[part["outcome"].isin(TELLING)]
    verdict, reading, remark = part.iloc[0][["verdict", "words", "remark"]]
    text = f"{sides[0]} for, {sides[1]} against, of {len(telling)}" if len(telling) else "none can tell"
    return {"outcome": verdict, "verdict": reading, "cells": text, "remark": remark or "–"}


def _cell(row: dict[str, Any]) -> dict[str, Any]:
    """What is read on pointing at a mark: the same words for numbers everywhere, a dash where there is none."""
    measured = not _missing(row["mean"])
    return {
        "what": row["what"] or "–",
        "cell": row["cell"] or "–",
        "outcome": row["outcome"] if row["outcome"] in OUTCOME_SHAPES else "not testable",  # no working setting
        "mean": f"{row['mean']:+.4g}" if measured else "–",
        "95% interval": f"{row['low']:+.4g} to {row['high']:+.4g}" if measured else "–",
        "minimum detectable effect": "–" if _missing(row["mde"]) else f"{row['mde']:.3g}",
        "n": str(int(row["n"])) if row["n"] else "–",
        "reason": row["reason"] or "–",
    }


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)


def claim_cells(design: Design, judged: Sequence[Judgement]) -> pd.DataFrame:
    """One row a claim, prediction and cell, with the chapter that judges it: :data:`COLUMNS`.

    ``verdict`` is the claim's, ``words`` says on what it depends, ``outcome`` is the cell's. A claim without
    predictions has one row, whose cell has no name and whose reason is the claim's remark: no table must lose it.
    """
    rows = []
    for item in judged:
        claim = item.claim
        lines = (claim.number, claim.statement, claim.kind, item.outcome, with_setting(item), claim.remark)
        head = dict(zip(HEAD, (design.name, design.page, *lines), strict=True))
        for tested in item.predictions:
            what = {"what": tested.prediction.what, "trained": tested.prediction.trained}
            for cell in tested.cells:
                rows.append(
                    head | what | cell_row(cell, tested.prediction) | {"outcome": item.outcome_of(tested, cell.outcome)}
                )
        if not item.cells:
            blank = cell_row(JudgedCell("", item.outcome, Reason.NO_RUNS)) | {"reason": claim.remark}
            rows.append(head | {"what": "", "trained": False} | blank)
    return pd.DataFrame(rows, columns=list(COLUMNS))

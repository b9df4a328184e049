"""Ours in a printed table, column by column: each with its own setting and seeds, and for every metric that is printed.

What :mod:`isonb_lab.papers.paper_tables` puts into the rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from isonb_lab.claims.printed import printed
from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import in_short

from .paper_tables import NO_SCORES, Cell, Lack, PairedScores, joined_rows, our_rows, revalued, score_rows

Columns = Mapping[str, Sequence[PairedScores]]


def with_settings(study: Study, columns: Columns, told: Sequence[str]) -> dict[str, list[PairedScores]]:
    """Each of ours with plain training at its own seeds, and with some settings of its method in words.

    So a column with few seeds shares no row with one that has more, and where two share a row it tells both.

    Args:
        study: whose runs they are.
        columns: ours by the column's name.
        told: the settings of the method, by column of the runs: "method.weight".
    """
    groups: dict[Hashable, list[tuple[str, PairedScores, str]]] = {}  # with what is told
    for name, items in columns.items():
        for item in items:
            settings = study.settings[next(iter(item.runs.values()))]
            words = [in_short(column, settings[column]) for column in told if column in settings]
            others = [text for text in item.settings.split(", ") if text and text not in words]
            plain = {seed: score for seed, score in item.plain.items() if seed in item.scores}
            plain_runs = {seed: item.plain_runs[seed] for seed in plain}
            alone = replace(item, plain=plain, plain_runs=plain_runs, settings=", ".join(others))
            beside = item.task, item.model, item.settings if not plain else "", frozenset(plain_runs.items())
            groups.setdefault(beside, []).append((name, alone, ", ".join(words)))
    result: dict[str, list[PairedScores]] = {name: [] for name in columns}
    for some in groups.values():
        share = len({name for name, *_ in some}) == len(some)
        one = len({text for *_, text in some}) == 1 < len(some)
        every = some[0][2] if one else "; ".join(f"{name}: {text}" for name, _, text in some)
        for name, item, text in some:
            result[name].append(item.labelled(every if share else f"{name}: {text}"))
    return result


def rows_by_metric(
    study: Study, paper: str, table: str, base: str, columns: Columns, cell: Cell, lack: Lack | None = None
) -> list[dict[str, str]]:
    """The rows of :func:`~isonb_lab.papers.paper_tables.score_rows`, ours with every metric that is printed of a task.

    The first is the score of ours, and the others are those of the same name: "0.610 / 0.497" of F1 and exact match. A
    dash stands where runs have none.
    """
    numbers = printed(paper, table, percent=False)
    metrics = numbers[~numbers["metric"].str.contains(NO_SCORES)].groupby("task", sort=False)["metric"].unique()
    rows = score_rows(paper, table, base, columns, cell, lack=lack)
    for task, (_, *others) in metrics.items():
        parts = [our_rows([task], base, columns, cell, lack)]
        for metric in others:
            value = partial(_numbers, study, metric)
            again = {name: revalued(items, value) for name, items in columns.items()}
            parts.append(our_rows([task], base, again, cell))
        ours = {row["encoder"]: row for row in joined_rows(parts)}
        rows = [ours.get(row["encoder"], row) if others and row["task"] == task else row for row in rows]
    return rows


def _numbers(study: Study, metric: str, runs: Sequence[str]) -> dict[str, float]:
    return dict(study.numbers(f"metric.{metric}", runs).dropna())

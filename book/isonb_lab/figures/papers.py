"""Pictures that the four papers' chapters share: what a paper reports, and what happened in the head to head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
from scipy.stats import t as student

from isonb_lab.claims import comparing
from isonb_lab.claims.design import PLAIN
from isonb_lab.claims.printed import printed
from isonb_lab.claims.study import Study
from isonb_lab.pages.charts.comparisons import LEARNED, SOLID, ZERO, nothing_run
from isonb_lab.papers import over_tasks
from isonb_lab.papers.arms import LAST


def reported(paper: str, table: str, *, method: str, base: str, metrics: Sequence[str], seeds: int = 0) -> pd.DataFrame:
    """The printed gains of a method over its baseline: model, task, gain in points.

    With the number of seeds behind printed standard deviations the 95% interval of a difference of two means is there
    too (``low``, ``high``).
    """
    rows = printed(paper, table, method=[method, base], metric=list(metrics))
    wide = rows.pivot_table(index=["model", "task", "metric"], columns="method", values=["value", "std"], dropna=False)
    gains = (wide["value"][method] - wide["value"][base]).dropna().rename("gain").reset_index()
    if seeds:
        errors = ((wide["std"][method] ** 2 + wide["std"][base] ** 2) / seeds) ** 0.5
        half = (student.ppf(0.975, 2 * seeds - 2) * errors).rename("half").reset_index()
        gains = gains.merge(half, on=["model", "task", "metric"])
        gains = gains.assign(low=gains.gain - gains.half, high=gains.gain + gains.half)
    return gains.round(4)


def joined_reported(
    paper: str, table: str, method: str, models: Mapping[str, str], metrics: Sequence[str]
) -> pd.DataFrame:
    """:func:`reported` where each model has a baseline of its own: ``models`` maps the baseline's name to the model."""
    gains = [reported(paper, table, method=method, base=base, metrics=metrics) for base in models]
    return pd.concat([item[item.model == model] for item, model in zip(gains, models.values(), strict=True)])


def reported_forest(gains: pd.DataFrame, *, title: str) -> Any:
    """The gains of :func:`reported`: a row a task, a colour and a shape a model, intervals where there are any."""
    return _forest(gains.rename(columns={"model": "arm", "task": "suite", "gain": "mean"}), title, ["metric"])


def happened(study: Study, *arms: str) -> pd.DataFrame:
    """The paired differences from plain fine-tuning in the head to head, in points: arm, task, mean, low, high, n.

    ``learned``: whether no plain run failed on the task, and the method has a setting that works there. Holm's
    method is over all methods of the study.

    Args:
        study: the head to head.
        arms: those that are shown, with all further settings of theirs: "I-STAR (lower), weight -5".
    """
    tested = comparing.against_plain(study, [arm for arm in study.arms if arm not in (PLAIN, LAST)])
    named = tested.arm.map(lambda arm: arm.startswith(arms))
    tested = tested[named.astype(bool) & tested["mean"].notna()]
    always = over_tasks.steady(study)
    learned = [r.suite in always and (r.arm, r.suite) not in study.no_setting for r in tested.itertuples()]
    points = tested[["mean", "low", "high", "mde"]] * 100
    outcomes = tested[["arm", "suite", "n", "outcome"]].assign(learned=learned)
    return pd.concat([outcomes, points.round(4)], axis=1)


def happened_forest(gains: pd.DataFrame) -> Any:
    """The differences of :func:`happened`: a row a task, an interval an arm."""
    return _forest(gains, "points over plain fine-tuning, 95% interval", ["n", "outcome"])


def _forest(gains: pd.DataFrame, title: str, tips: Sequence[str]) -> Any:
    """Columns ``suite`` (rows), ``arm`` (colour, shape), ``mean`` and, with intervals, ``low`` and ``high``.

    What isn't ``learned``, where there is such a column, is pale and dashed.
    """
    if gains.empty:
        return nothing_run()
    arms = list(dict.fromkeys(gains.arm))
    ends = [name for name in ("low", "high") if name in gains]
    gains = gains.astype(dict.fromkeys(["mean", *ends], float))  # of nothing at all they are objects, whose NaN stays
    kinds: dict[str, Any] = {"title": None, "scale": alt.Scale(domain=arms), "legend": alt.Legend(symbolOpacity=1)}
    base = alt.Chart(gains, width=430, height=alt.Step(26 if len(arms) < 4 else 11)).encode(
        alt.Y("suite:N", title=None, sort=list(dict.fromkeys(gains.suite))),
        alt.Color("arm:N", **kinds),
        tooltip=["arm", "suite", *(alt.Tooltip(name, format="+.2f") for name in ("mean", *ends)), *tips],
    )
    base = base.encode(alt.YOffset("arm:N", sort=arms)) if len(arms) > 1 else base
    if "learned" in gains:
        base = base.encode(opacity=LEARNED, strokeDash=SOLID)
    layers = [alt.Chart(gains).mark_rule(**ZERO).encode(x=alt.datum(0))]
    if ends:
        layers.append(base.mark_rule(strokeWidth=2, aria=False).encode(alt.X("low:Q"), alt.X2("high:Q")))
    marks = base.mark_point(filled=True, size=65).encode(alt.X("mean:Q", title=title), alt.Shape("arm:N", **kinds))
    return alt.layer(*layers, marks)

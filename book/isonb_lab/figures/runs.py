"""Runs: what one logged, as lines; score and isotropy by loss and learning rate; the recorded ones as rows of a table.

The templates of experiments take these pictures, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.claims.study import Study
from isonb_lab.pages.charts import dash, option_menu, show
from isonb_lab.pages.evidence import in_words, metric_name
from isonb_lab.runs.manifest import processor_kinds

SHOWN = {"score": "score", "isoscore": "IsoScore"}
LOSSES = {"joint": "joint loss", "task": "task loss alone", "isotropy": "penalty alone"}


def dose_rows(triples: Iterable[tuple[str, float, float]]) -> pd.DataFrame:
    """Series of a doses run, (name, update, value), as a table: loss, rate, what, update, value.

    >>> dose_rows([("step.dose.joint.1e-04.score", 0, 0.8), ("step.train.loss", 1, 2.0)]).to_dict("records")
    [{'loss': 'joint', 'rate': '1e-04', 'what': 'score', 'update': 0, 'value': 0.8}]
    """
    named = [(name.split("."), update, value) for name, update, value in triples]
    rows = [(*name[2:], update, value) for name, update, value in named if name[:2] == ["step", "dose"]]
    return pd.DataFrame(rows, columns=["loss", "rate", "what", "update", "value"])


def doses(frame: pd.DataFrame, *, stops: pd.DataFrame | None = None) -> Any:
    """A panel a measure (rows) and learning rate (columns): the mean over runs by update, one line a loss.

    ``frame`` as in :func:`dose_rows`; rows of several runs are averaged. ``stops``, with the same columns, are marked.
    A menu chooses among the values of the column ``panel``, where there is one.
    """
    x = alt.X("update:Q", title="updates", axis=alt.Axis(tickCount=4))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    order: dict[str, Any] = {"title": None, "sort": list(LOSSES.values())}
    color = alt.Color("loss:N", **order)
    texts = ["loss", "rate", "update", alt.Tooltip("value", format=".4f")]
    parts = [_means(frame).assign(kind="line")]
    parts += [] if stops is None else [_means(stops).assign(kind="stop")]
    both = pd.concat(parts, ignore_index=True)
    rows = []
    for what in dict.fromkeys(both["what"]):
        base = alt.Chart(width=190, height=130)
        base = base.transform_filter("datum.panel == panel") if "panel" in both else base
        lines = base.transform_filter("datum.kind == 'line'").mark_line()
        marks = base.transform_filter("datum.kind == 'stop'").mark_point(size=90, filled=True, shape="diamond")
        how = (x, y, color, dash("loss:N", sort=order["sort"], legend=None))
        drawn = [lines.encode(*how), marks.encode(*how, tooltip=texts)]
        column = alt.Column("rate:N", sort=sorted(set(both["rate"]), key=float), title=f"{what}, by learning rate")
        rows.append(alt.layer(*drawn, data=both[both["what"] == what]).facet(column=column))
    chart = alt.vconcat(*rows)
    if "panel" in both:  # not by add_params, which fails on facets without a name
        menu: Any = option_menu("panel", list(dict.fromkeys(both["panel"])), label="task and head")
        chart.params = [menu.param]
    return chart


def _means(frame: pd.DataFrame) -> pd.DataFrame:
    """The mean over runs, in words, of what is drawn."""
    shown = frame[frame["what"].isin(SHOWN)]
    panel = [name for name in ("panel",) if name in shown]
    means = shown.groupby([*panel, "what", "loss", "rate", "update"], as_index=False, sort=False)["value"].mean()
    means = means.sort_values("what", key=lambda names: names.map(list(SHOWN).index), kind="stable")
    return means.assign(loss=means["loss"].map(LOSSES), what=means["what"].map(SHOWN)).round(4)


Series = Mapping[str, Sequence[tuple[float, float]]]


def show_series(series: Series, names: Mapping[str, str], x: str, y: str, description: str) -> None:
    """Show one line for each of ``names`` (label to the name of a series) that the run has; say so if it has none.

    >>> show_series({}, {"training": "step.train.loss"}, "update", "loss", "The loss over the updates.")
    loss: not measured in this run.
    """
    rows = [
        {"series": label, x: step, y: value} for label, name in names.items() for step, value in series.get(name, [])
    ]
    if not rows:
        print(f"{y}: not measured in this run.")
        return
    chart = alt.Chart(pd.DataFrame(rows)).mark_line(point=True)
    chart = chart.encode(
        alt.X(f"{x}:Q"),
        alt.Y(f"{y}:Q", scale=alt.Scale(zero=False)),
        alt.Color("series:N", title=None),
        strokeDash=dash("series:N", title=None),
    )
    show(chart, description=description)


def run_rows(study: Study) -> list[dict[str, Any]]:
    """One row a recorded run, by task and arm in the order of the grid and by seed.

    task, arm, seed, metric, score and majority (the task's main metric of the run, and of the majority baseline;
    None where it has none), processor (its kind), run (its id).
    """
    runs = study.recorded
    places = {"suite": pd.Categorical(runs["suite"], study.suites), "arm": pd.Categorical(runs["arm"], study.arms)}
    runs = runs.loc[runs.assign(**places).sort_values(["suite", "arm", "seed", "run_id"]).index]
    return [
        {
            "task": run["suite"],
            "arm": in_words(run["arm"]),
            "seed": int(run["seed"]),
            "metric": metric_name(run["metric"] or "–"),
            "score": _main(run),
            "majority": None if pd.isna(run["majority"]) else float(run["majority"]),
            "processor": kind,
            "run": run["run_id"],
        }
        for (_, run), kind in zip(runs.iterrows(), processor_kinds(runs), strict=True)
    ]


def _main(run: pd.Series[Any]) -> float | None:
    """The main metric; of a similarity set with subsets the mean over these."""
    score = run["score"] if pd.notna(run["score"]) else run.get(f"metric.{run['metric']}.mean")
    return None if pd.isna(score) else float(score)

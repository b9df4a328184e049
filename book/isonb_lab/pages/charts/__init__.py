"""Pictures: one theme, one palette that survives colour blindness and dark mode, and a text alternative for each chart.

Order data by viridis or cividis (the theme's ramp); tell categories apart by the Okabe-Ito colours and by shape or
dash as well. Slider and dropdown parameters of Altair work in the page without a kernel.
"""

from __future__ import annotations

import functools
import gc
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import altair as alt
from altair.typing import ChartType, is_chart_type

from isonb_lab.pages.errors import PageError
from isonb_lab.pages.vega import in_book, render

Chart = TypeVar("Chart", bound=ChartType)

OKABE_ITO = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "yellow": "#F0E442",
}
GREY = "#7f7f7f"  # to de-emphasise: a light grey would shine in dark mode
DASHES: list[list[int]] = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 4]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
CLOUD: dict[str, Any] = {"aria": False, "filled": True, "size": 30, "opacity": 0.75}
"""Options of ``mark_point`` for a cloud: no label a point (the chart's description speaks for all of them)."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def _theme() -> alt.theme.ThemeConfig:
    text = {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": 500}
    config: dict[str, Any] = {
        "font": FONT,
        "background": "transparent" if in_book() else "white",
        "view": {"continuousWidth": 460, "continuousHeight": 280, "discreteWidth": 460, "stroke": None},
        # numbers stand at their ticks, also at the ends, and what would touch its neighbour is left out
        "axis": {**text, "gridOpacity": 0.35, "labelLimit": 220, "tickCount": 6},
        "axisQuantitative": {"labelFlush": False, "labelOverlap": "greedy", "labelSeparation": 5},
        "legend": {**text, "symbolSize": 90, "labelLimit": 240, "orient": "bottom", "columns": 4},
        "header": text,
        "facet": {"spacing": 28},  # the last number of a panel and the first of the next stay apart
        "title": {"fontSize": 14, "fontWeight": 600, "anchor": "start", "subtitleFontSize": 12},
        "mark": {"color": OKABE_ITO["blue"]},
        "line": {"strokeWidth": 2.2},
        "point": {"filled": True, "size": 45},
        "rule": {"strokeWidth": 1.5},
        "text": {"fontSize": 12},
        "range": {
            "category": [*OKABE_ITO.values(), GREY],
            "ordinal": {"scheme": "viridis"},
            "ramp": {"scheme": "viridis"},
            "heatmap": {"scheme": "cividis"},
            "diverging": {"scheme": "blueorange"},
            "symbol": SHAPES,
        },
    }
    return {"config": config}  # type: ignore[typeddict-item]


@functools.cache
def _leave_imports_out() -> None:
    """Keep collections of garbage from what is imported by now: each takes a third of a second. Once, as what has
    become garbage by then is kept, too.
    """
    gc.freeze()


def setup() -> None:
    """Call it once at the top of a chapter: isonb's theme, the offline renderer, no limit of 5000 rows."""
    _leave_imports_out()
    alt.theme.register("isonb", enable=True)(_theme)
    alt.renderers.register("isonb", render)
    alt.renderers.enable("isonb")
    alt.data_transformers.disable_max_rows()
    # one slider for several panels is what we mean when we add it to each
    warnings.filterwarnings("ignore", message="Automatically deduplicated selection parameter", category=UserWarning)


def show(chart: Chart, *, description: str) -> Chart:
    """Display ``chart`` with its text alternative, and return it (as a last line it isn't shown twice).

    The description says what a reader who can't see the picture needs: what is drawn, against what, and what it shows.
    Caption and number come from the cell's ``mystnb: figure``. Raises :class:`PageError` when it is blank.
    """
    if not is_chart_type(chart):
        raise PageError(f"show takes an Altair chart; got {type(chart).__name__}. Use pages.table for a table.")
    if not isinstance(description, str) or not description.strip():
        raise PageError(
            f"a chart needs a description of what it shows; got {description!r}. "
            "Say what is drawn, against what, and what to see: it is read aloud in place of the picture."
        )
    from IPython.display import display

    described: Any = chart.properties(description=" ".join(description.split()))
    display(described)  # type: ignore[no-untyped-call]
    object.__setattr__(described, "_ipython_display_", lambda: None)
    return cast(Chart, described)


def points(data: alt.ChartDataType, **mark: Any) -> alt.Chart:
    """A scatter of a point cloud: ``mark_point`` with :data:`CLOUD`, so that no point carries its own label."""
    chart: alt.Chart = alt.Chart(data).mark_point(**{**CLOUD, **mark})
    return chart


def dash(field: str, **options: Any) -> alt.StrokeDash:
    """Tell lines apart by dash as well as by colour; give it the field of ``color`` so that the legends merge."""
    return alt.StrokeDash(field, scale=alt.Scale(range=DASHES), **options)


def slider(
    name: str, start: float, stop: float, *, step: float, value: float | None = None, label: str | None = None
) -> alt.Parameter:
    """A labelled slider as an Altair parameter: it moves the picture in a static page, with no kernel.

    Use it in expressions (``alt.expr``, ``transform_filter``, ``transform_calculate``) and ``add_params`` it.
    """
    if not start < stop or step <= 0:
        raise PageError(f"a slider needs start < stop and step > 0; got {start}..{stop} step {step}.")
    bind = alt.binding_range(min=start, max=stop, step=step, name=f"{label or name} ")
    return alt.param(name=name, value=start if value is None else value, bind=bind)


def option_menu(name: str, options: Sequence[object], *, label: str | None = None) -> alt.Parameter:
    """A labelled dropdown as an Altair parameter; the first option is chosen at the start."""
    if not options:
        raise PageError("a menu needs at least one option; got none.")
    bind = alt.binding_select(options=list(options), name=f"{label or name} ")
    return alt.param(name=name, value=options[0], bind=bind)

"""Results into pages: charts, tables, numbers and controls for the chapters, and the engine that runs and builds them.

A chapter begins with ``from isonb import pages`` and ``pages.setup()``. The engine: ``python -m isonb.pages --help``.
"""

from isonb.errors import needs

with needs("isonb.pages", "lab"):
    from isonb.pages.charts import (
        CLOUD,
        DASHES,
        GREY,
        OKABE_ITO,
        dash,
        figures,
        option_menu,
        points,
        setup,
        show,
        slider,
    )
    from isonb.pages.charts.comparisons import courses, forest
    from isonb.pages.charts.live import live
    from isonb.pages.errors import PageError
    from isonb.pages.evidence import (
        SPREAD,
        cells_table,
        claims_table,
        estimate,
        half_width,
        intervals,
        joined,
        over_runs,
        spread,
    )
    from isonb.pages.parameters import check_parameters
    from isonb.pages.values import expect, glue, holds, table

__all__ = [
    "CLOUD",
    "DASHES",
    "GREY",
    "OKABE_ITO",
    "SPREAD",
    "PageError",
    "cells_table",
    "check_parameters",
    "claims_table",
    "courses",
    "dash",
    "estimate",
    "expect",
    "figures",
    "forest",
    "glue",
    "half_width",
    "holds",
    "intervals",
    "joined",
    "live",
    "option_menu",
    "over_runs",
    "points",
    "setup",
    "show",
    "slider",
    "spread",
    "table",
]

"""Results into pages: charts, tables, numbers and controls for the chapters, and the engine that runs and builds them.

A chapter begins with ``from isonb import pages`` and ``pages.setup()``. The engine: ``python -m isonb.pages --help``.
"""

from isonb.errors import needs

with needs("isonb.pages", "lab"):
    from isonb.pages.charts import CLOUD as CLOUD
    from isonb.pages.charts import DASHES as DASHES
    from isonb.pages.charts import GREY as GREY
    from isonb.pages.charts import OKABE_ITO as OKABE_ITO
    from isonb.pages.charts import dash as dash
    from isonb.pages.charts import figures as figures
    from isonb.pages.charts import option_menu as option_menu
    from isonb.pages.charts import points as points
    from isonb.pages.charts import setup as setup
    from isonb.pages.charts import show as show
    from isonb.pages.charts import slider as slider
    from isonb.pages.charts.comparisons import courses as courses
    from isonb.pages.charts.comparisons import forest as forest
    from isonb.pages.charts.live import live as live
    from isonb.pages.errors import PageError as PageError
    from isonb.pages.evidence import SPREAD as SPREAD
    from isonb.pages.evidence import cells_table as cells_table
    from isonb.pages.evidence import estimate as estimate
    from isonb.pages.evidence import half_width as half_width
    from isonb.pages.evidence import intervals as intervals
    from isonb.pages.evidence import joined as joined
    from isonb.pages.evidence import over_runs as over_runs
    from isonb.pages.evidence import spread as spread
    from isonb.pages.parameters import check_parameters as check_parameters
    from isonb.pages.values import expect as expect
    from isonb.pages.values import glue as glue
    from isonb.pages.values import holds as holds
    from isonb.pages.values import table as table

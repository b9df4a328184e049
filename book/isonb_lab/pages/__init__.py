"""Results into pages: charts, tables, numbers and controls for the chapters, and the engine that runs and builds them.

A chapter begins with ``from isonb_lab import pages`` and ``pages.setup()``. The engine: ``python -m isonb_lab.pages
--help``.
"""

from isonb.errors import needs

with needs("isonb_lab.pages", "lab"):
    from isonb_lab.pages.charts import CLOUD as CLOUD
    from isonb_lab.pages.charts import DASHES as DASHES
    from isonb_lab.pages.charts import GREY as GREY
    from isonb_lab.pages.charts import OKABE_ITO as OKABE_ITO
    from isonb_lab.pages.charts import dash as dash
    from isonb_lab.pages.charts import option_menu as option_menu
    from isonb_lab.pages.charts import points as points
    from isonb_lab.pages.charts import setup as setup
    from isonb_lab.pages.charts import show as show
    from isonb_lab.pages.charts import slider as slider
    from isonb_lab.pages.charts.comparisons import courses as courses
    from isonb_lab.pages.charts.comparisons import forest as forest
    from isonb_lab.pages.charts.live import live as live
    from isonb_lab.pages.errors import PageError as PageError
    from isonb_lab.pages.evidence import SPREAD as SPREAD
    from isonb_lab.pages.evidence import estimate as estimate
    from isonb_lab.pages.evidence import half_width as half_width
    from isonb_lab.pages.evidence import intervals as intervals
    from isonb_lab.pages.evidence import joined as joined
    from isonb_lab.pages.evidence import over_runs as over_runs
    from isonb_lab.pages.evidence import spread as spread
    from isonb_lab.pages.exercises import check as check
    from isonb_lab.pages.parameters import check_parameters as check_parameters
    from isonb_lab.pages.sentences import assert_facts as assert_facts
    from isonb_lab.pages.sentences import assert_verdict as assert_verdict
    from isonb_lab.pages.sentences import glue as glue
    from isonb_lab.pages.sentences import paragraph as paragraph
    from isonb_lab.pages.values import table as table

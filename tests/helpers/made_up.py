"""Made-up runs, and a study of them."""

from isonb_lab.claims.study import Study
from isonb_lab.claims.table import PlannedCell
from isonb_lab.runs.record import Record
from isonb_lab.runs.settings import resolve
from isonb_lab.runs.table import flat


def scored_run(inputs, score, metrics=(), series=()):
    """The record of a run with these settings and this accuracy, where the majority baseline scores 0.5."""
    return Record(resolve(inputs), {"accuracy": score, "baseline.accuracy": 0.5} | dict(metrics), dict(series))


def study_of(design, records, plan=None):
    """The study of records by suite; what is planned is what was run, unless told otherwise."""
    cells = [flat(record.config) for suite in records.values() for record in suite] if plan is None else plan
    return Study.load(design, cells=list(map(PlannedCell, cells)), live=records, folder="nowhere")

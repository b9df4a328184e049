"""A run that ends at once."""

import pytest

from isonb_lab.cli import commands
from isonb_lab.runs.record import Record, write_record
from isonb_lab.sweeps.outcomes import Outcome


@pytest.fixture
def executed(monkeypatch):
    """Calls of ``execute``, which writes a record instead of running."""
    calls = []

    def execute(job):
        calls.append((job.planned.config, str(job.out), {"data": job.data, "retry_failed": job.retry_failed}))
        metrics = {"accuracy": 0.75, "baseline.accuracy": 0.5, "end.cls.isoscore": None}
        write_record(job.record.parent, Record(job.planned.config, metrics=metrics))
        return Outcome(job.run_id, "finished")

    monkeypatch.setattr(commands, "execute", execute)
    return calls

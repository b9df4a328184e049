"""The way from a recorded score to a verdict on a page is short: which files run between the tables and the words."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import isonb
from isonb import pages
from isonb.lab.runs.recordings import recorded
from isonb.lab.studies import table
from isonb.lab.studies.study import Study

ROOT = Path(isonb.__file__).parents[1]
MOST = 7


@pytest.mark.parametrize(
    ("name", "claim", "words"),
    [
        ("head_to_head", "C1 down", "contradicted"),
        ("istar_doses", "harm", "supported"),
    ],
)
def test_a_recorded_score_becomes_a_verdict_on_a_page_in_at_most_seven_files(monkeypatch, name, claim, words):
    """Counted from the last table that is read on."""
    ran: set[str] = set()

    def call(frame, event, argument):
        ran.add(frame.f_code.co_filename)

    def read(*given):
        sys.settrace(None)
        found = recorded(*given)
        ran.clear()
        sys.settrace(call)
        return found

    before = sys.gettrace()
    monkeypatch.setattr(table, "recorded", read)
    try:
        study = Study.load(name)
        (one,) = (one for one in study.design.claims if one.number == claim)
        pages.expect(replace(study, design=replace(study.design, claims=(one,))), claim, words)
    finally:
        sys.settrace(before)
    ours = [Path(file).relative_to(ROOT).as_posix() for file in ran if Path(file).is_relative_to(ROOT)]
    files = sorted(file for file in ours if file.startswith(("isonb/", "book/")))
    through = ("isonb/lab/runs/recordings.py", "isonb/lab/studies/verdicts.py", "isonb/pages/values.py")
    assert {*through, f"book/studies/{name}.py"} <= set(files)
    assert len(files) <= MOST, files

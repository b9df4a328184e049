"""Runs made again from their printed command."""

from pathlib import Path

from isonb.lab.runs.recordings import recorded
from isonb.lab.studies.conclusions.repeats import REPEATED, TOLERANCE, repeats
from isonb.lab.studies.study import Study


def test_three_cells_came_back():
    study = Study.load("head_to_head")
    found = repeats(study)
    assert len(found) >= 3
    assert found["arm"].nunique() >= 3
    assert (found["again"] - found["score"]).abs().max() <= TOLERANCE


def test_they_are_other_runs_than_those_of_the_head_to_head():
    """Made at another time, so that equal numbers are no copies."""
    again = recorded(REPEATED).runs.set_index("run_id")
    first = Study.load("head_to_head").runs.set_index("run_id").loc[again.index]
    assert len(again) >= 3
    assert (again["manifest.started"] != first["manifest.started"]).all()


def test_no_recording_no_rows(tmp_path: Path):
    assert repeats(Study.load("head_to_head"), tmp_path).empty

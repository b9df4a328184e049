"""Recordings describe themselves: an option that is newer than a recording takes no recorded run away."""

import dataclasses
import shutil

import pytest
from isonb.lab.runs.recordings import FOLDER, identified, recorded

from isonb.lab import methods
from isonb.lab.methods.istar import IStar
from isonb.lab.options import option
from isonb.lab.studies.run_list import every_design, untaken
from isonb.lab.studies.study import Study
from isonb.lab.sweeps.grids import Planned, load_grid


@pytest.fixture
def newer(monkeypatch):
    """I-STAR with an option more, whose default changes nothing."""
    fields = [("brand_new", float, option(1.5, "nothing yet", low=0, high=9))]
    kind = dataclasses.make_dataclass("IStar", fields, bases=(IStar,), frozen=True)
    kind.__doc__ = IStar.__doc__
    monkeypatch.setitem(methods.methods(), "istar", kind)


def words(study):
    return [one.words for one in study.verdicts()]


def test_a_new_option_with_a_default_leaves_every_study_as_it_is(newer, request):
    with_it = Study.load("istar")
    assert (
        "brand_new" in next(run for run in with_it.planned if run.config["method"]["name"] == "istar").config["method"]
    )
    rows, absent, said = set(with_it.recorded["run_id"]), len(with_it.absent), words(with_it)
    request.getfixturevalue("monkeypatch").undo()
    before = Study.load("istar")
    assert rows == set(before.recorded["run_id"])
    assert (absent, said) == (len(before.absent), words(before))


def test_a_planned_run_with_another_value_of_a_new_option_is_no_recorded_one(newer):
    runs = recorded("istar").runs
    usual = next(run for run in load_grid("istar", "small") if run.config.get("method", {}).get("name") == "istar")
    other = usual.config | {"method": usual.config["method"] | {"brand_new": 2.0}}
    found = identified([Planned(usual.config, "new id"), Planned(other, "other id")], runs)
    assert found[0].run_id in set(runs["run_id"])
    assert found[1].run_id == "other id"


def test_a_recorded_row_that_goes_is_told_by_name(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "all")
    folder = tmp_path / "all"
    (design,) = (one for one in every_design() if one.name == "istar_doses")
    whole = Study.load(design, folder=folder)
    gone = whole.recorded["run_id"].iloc[0]
    one = recorded("istar_doses", folder)
    from isonb.lab.runs.recordings import _written

    _written(folder / "istar_doses", one.runs[one.runs["run_id"] != gone], one.series, one.manifest["series"])
    assert whole.absent == []
    assert [run.run_id for run in Study.load(design, folder=folder).absent] == [gone]


def test_recorded_rows_that_no_design_takes_are_known_by_name():
    """One run on all rows of CoLA, and what is left of an earlier head to head with other rows and rates.

    Its STS-B at rate 2e-4 is read by isonb.lab.studies.conclusions.failed_runs.
    """
    assert {name: len(runs) for name, runs in untaken().items()} == {"baselines_full": 1, "head_to_head_xeon": 97}

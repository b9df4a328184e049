"""A recording is read by what its columns say: neither a new option nor a new measure changes what a study finds."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import isonb
from isonb_lab.claims.comparing import against_plain
from isonb_lab.claims.summary import cell_rows, claim_rows
from isonb_lab.claims.table import PlannedCell, filled, plan_of
from isonb_lab.papers.studies import design_of, load_study, unused_runs
from isonb_lab.runs.publishing import publish, write_recording
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.recordings import FOLDER, recorded
from isonb_lab.runs.settings import plan, resolve
from isonb_lab.sweeps.grids import load_grid

ROOT = Path(isonb.__file__).parents[1]
OPTION = '''
import dataclasses


@dataclasses.dataclass(frozen=True)
class _WithOneMore(IStar):
    """I-STAR with an option that changes nothing."""

    brand_new: float = option(1.5, "nothing yet", low=0, high=9)


METHODS = tuple(_WithOneMore if kind is IStar else kind for kind in METHODS)
'''
MEASURE = """
MEASURES["brand_new"] = Measure("brand_new", "brand new", 0, 1, "nothing yet", lambda x: x.sum() * 0 + 0.5)
"""
NEW = """
import torch
from isonb_lab.measuring.cloud import cloud_measures
from isonb_lab.methods import method_from
assert method_from("istar").brand_new == 1.5
assert cloud_measures(torch.eye(4))["brand_new"] == 0.5
"""
TELL = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_plan import REPORTED, load_study, report
print(json.dumps({{name: report(load_study(name)) for name in REPORTED}}))
"""
REPORTED = ("istar", "layer_doses")  # with the option, and without it


def report(study):
    """The rows of a study, what is planned of them, its verdicts, and every word and number of its tables."""
    judged = study.verdicts()
    parts = {
        "rows": study.recorded[["run_id", "arm", "suite", "score"]].to_csv(index=False, float_format=ROUNDED),
        "absent": study.absent,
        "coverage": study.coverage().to_csv(index=False),
        "claims": claim_rows(judged),
        "cells": cell_rows(judged) + cell_rows(judged, tested=False),
        "against plain": against_plain(study, study.arms).to_csv(index=False, float_format=ROUNDED),
    }
    return json.loads(json.dumps(parts, default=str), parse_float=lambda number: ROUNDED % float(number))


ROUNDED = "%.9g"  # what has run in a process before may move a last digit


def test_a_new_option_and_a_new_measure_leave_every_study_as_it_is(tmp_path, studies):
    """In a copy whose I-STAR has one option more, and whose registry of measures has one measure more."""
    for package in ("isonb", "book/isonb_lab"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("experiments", "recorded"):
        (tmp_path / "book" / folder).symlink_to(ROOT / "book" / folder)
    for name, text in {"book/isonb_lab/methods/istar.py": OPTION, "isonb/measures/registry.py": MEASURE}.items():
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write(text)
    env = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{tmp_path / 'book'}"}
    env |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # as many threads as these tests: rounding is a cell, too
    run = [sys.executable, "-P", "-c", NEW + TELL]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: report(studies[name]) for name in REPORTED}


def copied(tmp_path, name, change):
    """A folder of the book's recordings, one of them with its rows changed."""
    for path in FOLDER.iterdir():
        if path.name != name:
            (tmp_path / path.name).symlink_to(path)
    first = recorded(name)
    write_recording(tmp_path / name, change(first.runs), first.series, first.manifest["series"], first.defaults)
    return tmp_path


def test_a_recorded_row_that_goes_is_told_by_name(tmp_path, studies):
    whole = studies["istar_doses"]
    assert whole.absent == []
    gone = whole.plan.iloc[7]
    folder = copied(tmp_path, "istar_doses", lambda runs: runs[runs["run_id"] != gone["run_id"]])
    reduced = load_study("istar_doses", folder=folder)
    assert reduced.absent == [gone["cell"]]
    assert {f"seed {gone['run_id'].split('-')[3].removeprefix('s')}", "model minilm"} <= set(gone["cell"].split(", "))
    before, after = (entry.coverage().set_index("arm").loc[gone["arm"], gone["suite"]] for entry in (whole, reduced))
    assert (before, after) == ("3 of 3", "2 of 3")


def test_a_recorded_row_that_no_design_takes_is_told_by_name(tmp_path, monkeypatch):
    """One run on all rows of CoLA, and what is left of an earlier head to head with other rows and rates.

    Its STS-B at rate 2e-4 is read where failed runs are counted, and what is read by a page of its own. Of the doses
    and of larger models the runs that chose a setting are left, with seed 0.
    """
    unused = unused_runs()
    again = set(unused.pop("made_again"))
    assert again == set(recorded("made_again").runs["run_id"]) & {run for runs in unused.values() for run in runs}
    assert {name: len(runs) for name, runs in unused.items()} == {
        "baselines_full": 1,
        "evidence_dose": 47,
        "evidence_head_to_head": 60,
        "head_to_head_xeon": 97,
        "read_where": len(recorded("read_where").runs),
        "real_models": 61,
    }
    for name in ("evidence_dose", "real_models"):
        assert set(recorded(name).runs.set_index("run_id").loc[unused[name], "seed"]) == {0}
    changed = recorded("istar_doses").runs["run_id"].iloc[3]
    folder = copied(
        tmp_path, "istar_doses", lambda runs: runs.assign(epochs=runs["epochs"].mask(runs["run_id"] == changed, 99))
    )
    monkeypatch.setattr("isonb_lab.papers.studies.every_design", lambda: [design_of("istar_doses")])
    assert unused_runs(folder)["istar_doses"] == [changed]


@pytest.mark.parametrize("name", ["istar", "figure_2", "softdecay", "layer_doses"])
def test_rows_that_fill_a_cell_are_the_runs_that_the_sweep_would_make(name):
    """By the ids, which a sweep takes of today's settings written out; every option that is set is a condition."""
    design = design_of(name)
    by_id = {run.run_id for run in load_grid(design.plan, design.size)}
    recordings = [recorded(item) for item in design.recordings]
    stored = {run for recording in recordings for run in recording.runs["run_id"]}
    result = filled(plan_of(design.plan, design.size), recordings)
    assert {run for run in result.values() if run} == by_id & stored != set()
    assert len(result) == len(by_id)


METHODS = ({"name": "istar", "weight": -1}, {"name": "istar", "weight": -1, "zeta": 0.6}, "none")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Two I-STAR rows and a plain one as a recording, and their ids."""
    folder = tmp_path_factory.mktemp("rows")
    configs = [resolve({"task": "cola", "model": "minilm", "seed": 1, "method": method}) for method in METHODS]
    for config in configs:
        write_record(folder / "records", Record(config))
    publish(folder / "records", folder, "some")
    return recorded("some", folder), [plan(config).run_id for config in configs]


@pytest.mark.parametrize(
    ("method", "row"),
    [
        ({"method.name": "istar", "method.weight": -1}, 0),
        ({"method.name": "istar", "method.weight": "-1.0", "method.zeta": 0.2}, 0),  # defaults may be named
        ({"method.name": "istar", "method.zeta": 0.6}, 1),  # and left out
        ({"method.name": "istar", "method.zeta": 0.7}, None),
        ({"method.name": "istar", "method.brand_new": 1.5}, None),  # newer than the recording
        ({}, 2),
        ({"method.name": "cosreg"}, None),
    ],
)
def test_a_cell_is_met_by_the_row_that_differs_from_the_defaults_in_what_it_names(rows, method, row):
    recording, ids = rows
    cells = plan_of("head_to_head", "small")
    (cola, *_) = (cell for cell in cells if (cell.settings["task"], cell.settings["seed"]) == ("cola", 1))
    shared = {name: value for name, value in cola.settings.items() if not name.startswith("method.")}
    assert list(filled([PlannedCell(shared | method)], [recording]).values()) == [None if row is None else ids[row]]


def test_no_recording_leaves_the_whole_plan_absent(tmp_path):
    study = load_study("head_to_head", folder=tmp_path)
    assert len(study.absent) == len(study.plan) == len(plan_of("head_to_head", "small"))
    assert study.coverage()["SST-2"].tolist()[0] == "0 of 5"
    assert study.runs.empty

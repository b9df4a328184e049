"""Runs that failed, and long gradients."""

import math

import pytest

from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve
from isonb.lab.studies.conclusions.symptoms import failures, long_gradients
from isonb.lab.studies.design import Design
from isonb.lab.studies.study import Study

DESIGN = Design("made_up", "papers/made_up", (), lambda settings: settings["method.name"])


def study_of(tmp_path, scores):
    records = []
    for seed, score in enumerate(scores):
        config = resolve({"task": "english_sentiment", "seed": seed, "method": "none"})
        metrics = {"accuracy": score, "baseline.accuracy": 0.5}
        series = {"step.train.grad_norm": [(1, 0.5), (2, 1.5), (3, 1.0), (4, 3.0)]}
        records.append(Record(config=config, metrics=metrics, series=series, manifest={}))
    return Study.of(DESIGN, [], tmp_path, {"live": records})


def test_recorded_runs_that_failed(tmp_path):
    study = study_of(tmp_path, [0.5, 0.4, 0.6])
    recorded = Study(study.design, study.runs.assign(source="recorded"), study.series, study.plan)
    assert failures(recorded, ["none"]) == (2, 3)
    assert failures(recorded, ["none"], ["elsewhere"]) == (0, 0)
    assert failures(study, ["none"]) == (0, 0), "live runs don't count"


def test_share_of_long_gradients(tmp_path):
    study = study_of(tmp_path, [0.6])
    assert long_gradients(study, "none", ["live"]) == pytest.approx(0.5)
    assert long_gradients(study, "none", ["live"], limit=2) == pytest.approx(0.25)
    assert math.isnan(long_gradients(study, "CosReg", ["live"]))

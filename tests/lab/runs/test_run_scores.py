"""What a run is judged by: its task's main metric, defined or not."""

import math

import pandas as pd
import pytest

from isonb_lab.cli.summary import summary
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import scored


@pytest.mark.parametrize(
    ("task", "metrics", "main"),
    [
        ("cola", {"matthews": None, "accuracy": 0.7}, ("matthews", None)),
        ("stsb", {"pearson": 0.7, "spearman": None}, ("pearson", 0.7)),
        ("gone.csv?metrics=f1,accuracy", {"f1": 0.2, "accuracy": 0.7, "baseline.accuracy": 0.5}, ("f1", 0.2)),
        ("gone.csv", {"f1": 0.2, "accuracy": 0.7, "baseline.accuracy": 0.5}, ("accuracy", 0.7)),
        ("gone.csv", {"loss": 0.2}, (None, None)),
    ],
)
def test_no_other_metric_stands_in_for_the_main_one(task, metrics, main):
    others = {"task": "mrpc", "metric.accuracy": 0.6, "metric.baseline.accuracy": 0.5}  # so that columns are there
    row = {"task": task, **{f"metric.{name}": value for name, value in metrics.items()}}
    report = scored(pd.DataFrame([row, others])).iloc[0]
    name, value = main
    assert (report["metric"] if isinstance(report["metric"], str) else None) == name
    assert math.isnan(report["score"]) if value is None else report["score"] == value


def test_means_say_how_many_runs_have_no_value():
    values = [0.5, None, 0.7]
    config = {"experiment": "finetune", "task": "cola", "model": "tiny", "method": {"name": "none"}}
    records = [
        Record({**config, "seed": seed}, {"matthews": value, "accuracy": 0.9}) for seed, value in enumerate(values)
    ]
    (row,) = summary(records).to_dict("records")
    assert (row["metric"], row["mean"], row["seeds"], row["undefined"]) == ("matthews", 0.6, 2, 1)

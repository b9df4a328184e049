"""A folder for a sweep of fake runs (fake_runs.py)."""

import os
from pathlib import Path

import pytest
from fake_runs import RUNS, config

import isonb
from isonb_lab.runs.record import Record, write_record

HERE = Path(__file__).parent


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(Path(isonb.__file__).parents[1])]))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for seed in range(RUNS):
        write_record(tmp_path / "out" / "prepared", Record(config(seed).config, {"accuracy": seed / 10}))
    return tmp_path / "out"

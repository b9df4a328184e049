"""Runs side by side give the records that they give one after the other."""

import pytest

from isonb.lab.options import OptionError
from isonb.lab.side_by_side import run_all

BASE = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "max_steps": 2, "cloud_examples": 20}


def test_records_come_in_the_order_asked_for_whatever_the_workers():
    configs = [BASE | {"seed": seed} for seed in (1, 0)]
    here, apart = run_all(configs, workers=1), run_all(configs, workers=2)
    assert [record.config["seed"] for record in apart] == [1, 0]
    assert dict(here[0].metrics) == dict(apart[0].metrics)
    assert here[0].series == apart[0].series


def test_nothing_starts_if_one_is_wrong(monkeypatch):
    monkeypatch.setattr("isonb.lab.side_by_side._run", lambda config: pytest.fail("a run was started"))
    with pytest.raises(OptionError, match="epochs"):
        run_all([BASE, BASE | {"epochs": 0}], workers=1)

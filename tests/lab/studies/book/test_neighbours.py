"""The study of today's neighbours: an arm a setting, gains and clouds from made-up runs, and a recording half done."""

import pytest
from support import columns_of

from isonb.lab.runs.publishing import publish
from isonb.lab.runs.record import Record, write_record
from isonb.lab.studies.comparing import against_plain
from isonb.lab.studies.design import study_file
from isonb.lab.studies.study import PLAIN, Study
from isonb.lab.sweeps.grids import load_grid

neighbours = study_file("neighbours")

PLAN = load_grid("neighbours", "small")
GAINS = {"GOR 0.03": 0.01, "mean direction R2": -0.05}


def made(run):
    """A record of a planned run: seeds differ, two arms gain or lose."""
    arm, seed = neighbours.DESIGN.arm(columns_of(run.config)), run.config["seed"]
    score = 0.8 + seed / 100 + GAINS.get(arm, 0.0) + (seed - 2) / 1000 * (arm != PLAIN)
    clouds = {"end.cls": 0.1, "end.second": 0.3}
    measured = {f"{place}.{name}": value for place, value in clouds.items() for name in neighbours.MEASURES}
    if arm.startswith("GOR"):
        measured["end.cls.isoscore"] = 0.1 + seed / 100
    metrics = {"accuracy": score, "baseline.accuracy": 0.5, **measured}
    return Record(config=run.config, metrics=metrics, series={}, manifest={"data": {}, "seconds": 1.0})


@pytest.fixture
def recorded(tmp_path):
    """A study on the first ``count`` runs of the plan, recorded."""

    def load(count):
        for run in PLAN[:count]:
            write_record(tmp_path / "runs", made(run))
        publish(tmp_path / "runs", tmp_path / "recorded", "neighbours")
        return Study.load("neighbours", folder=tmp_path / "recorded")

    return load


def test_every_run_has_its_arm_and_every_block_begins_with_the_plain_one():
    arms = [neighbours.DESIGN.arm(columns_of(run.config)) for run in PLAN]
    assert tuple(arms) == neighbours.ARMS * 6
    assert [run.config["task"] for run in PLAN[::33]] == ["sst2", "mrpc"]
    assert len(set(neighbours.ARMS)) == 11


def test_gains_and_clouds(recorded):
    study = recorded(33)
    found = against_plain(study, neighbours.ARMS[1:]).set_index("arm")
    assert set(found.index) == set(neighbours.ARMS[1:])
    assert found["mean"]["GOR 0.03"] == pytest.approx(0.01)
    assert found["outcome"]["mean direction R2"] == "below"
    assert found["outcome"]["SIGReg 0.002"] == "not significant"
    claims = {one.claim.number: one.outcome for one in study.verdicts()}
    assert claims["mean_direction"] == "contradicted"
    assert claims["sigreg"] == "inconclusive"
    moved = study.changed("GOR 0.03", "isoscore")
    assert moved == {("SST-2", seed): pytest.approx(seed / 100) for seed in (1, 2, 3)}
    behind = study.changed("mean direction R1", "isoscore_unbiased")
    assert list(behind.values()) == pytest.approx([0.2] * 3)


def test_before_the_runs_and_with_part_of_them(recorded, tmp_path):
    empty = Study.load("neighbours", folder=tmp_path)
    assert against_plain(empty, neighbours.ARMS[1:]).empty
    assert empty.changed("GOR 0.03", "isoscore") == {}
    part = recorded(13)  # the first seed, and two runs of the second
    assert against_plain(part, neighbours.ARMS[1:]).empty
    assert dict(part.coverage()[["arm", "SST-2"]].itertuples(index=False))["GOR 0.03"] == "2 of 3"
    assert len(part.changed("SIGReg 0.002", "isoscore")) == 1
    assert {one.outcome for one in part.verdicts()} == {"not testable"}

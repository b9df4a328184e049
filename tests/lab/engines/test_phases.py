"""Both phases one at a time, against the run that does them in one go."""

import pytest
import torch

from isonb.lab.engines.finetune import run
from isonb.lab.engines.phases import cloud_shape, fine_tune
from isonb.measures.spectrum import explained_variance

CONFIG = {
    "task": "english_sentiment",
    "model": "tiny",
    "protocol": "smoke",
    "precision": "float32",
    "head": "linear",
    "track_every": 0,
    "cloud_examples": 48,
}
LAYER = {"name": "isolayer", "epochs": 2, "batch_size": 32}


@pytest.fixture(scope="module")
def tuned():
    return fine_tune(CONFIG)


def test_two_phases_by_hand_give_what_a_run_gives(tuned):
    record = run(CONFIG | {"method": LAYER}, progress=False)
    found = tuned.layered(LAYER).measured()
    assert found["after.score"] == pytest.approx(record.metrics["accuracy"])
    assert found["before.score"] == pytest.approx(record.metrics["first_phase.accuracy"])
    for name in ("isoscore", "explained_variance_1"):
        assert found[f"after.{name}"] == pytest.approx(record.metrics[f"end.second.{name}"], rel=1e-3)


def test_a_module_that_needs_no_training_changes_nothing_but_itself(tuned):
    layer = tuned.layered(LAYER, trained=False, module=torch.nn.Identity())
    found = layer.measured()
    assert layer.series == {}
    assert found["changed"] == 0
    assert found["after.isoscore"] == found["before.isoscore"]


def test_shape_is_that_of_the_maths():
    cloud = torch.randn(50, 6, generator=torch.Generator().manual_seed(0)) + 3
    found = cloud_shape(cloud)
    for ending, center in (("", False), ("_centered", True)):
        expected = explained_variance(cloud.double(), 3, center=center).tolist()
        assert [found[f"explained_variance_{k}{ending}"] for k in (1, 2, 3)] == pytest.approx(expected)

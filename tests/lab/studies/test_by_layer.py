"""Halves of the layers, and the last of them, one number a run."""

from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve
from isonb.lab.studies.by_layer import half_mean, last_less_others
from isonb.lab.studies.design import Design
from isonb.lab.studies.study import Study

LAYERS = [(0, 9.0), (1, 1.0), (2, 2.0), (3, 3.0), (4, 8.0)]


def test_halves_of_the_layers_without_the_embedding(tmp_path):
    config = resolve({"task": "english_sentiment", "seed": 0, "method": "none"})
    record = Record(config=config, metrics={}, series={"layer.end.x": LAYERS}, manifest={})
    design = Design("made_up", "papers/made_up", (), lambda settings: settings["method.name"])
    study = Study.of(design, [], tmp_path, {"live": [record]})
    early, late = (half_mean(study, "layer.end.x", "none", ["live"], late=late) for late in (False, True))
    assert (early, late) == ({("live", 0): 1.5}, {("live", 0): 5.5})
    assert last_less_others(study, "layer.end.x", "none", ["live"]) == {("live", 0): 6.0}
    assert half_mean(study, "layer.end.x", "CosReg", ["live"], late=True) == {}

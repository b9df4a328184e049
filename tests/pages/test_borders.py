"""Layers in front of a frozen border: what they do to isotropy and answers."""

import pytest
import torch

import isonb
from isonb.pages.borders import LAYERS, border_chart, border_facts, border_frames, plane_layer, two_classes

CLOUD, LABELS = two_classes()


def test_the_classes_are_uncorrelated_and_centred():
    assert CLOUD.mean(0).abs().max() < 1e-12
    assert abs(float(CLOUD[:, 0] @ CLOUD[:, 1])) < 1e-9


@pytest.mark.parametrize("name", LAYERS)
def test_layers_begin_at_the_identity(name):
    torch.testing.assert_close(plane_layer(name, 0.0, CLOUD), torch.eye(2, dtype=torch.float64))


def test_what_the_classifier_does_not_read_can_be_stretched_for_nothing():
    start = border_facts(CLOUD, LABELS)
    ends = {name: border_facts(CLOUD @ plane_layer(name, 1.0, CLOUD).T, LABELS) for name in LAYERS}
    stretched, squeezed, turned = (ends[name] for name in LAYERS)
    assert stretched["IsoScore"] == pytest.approx(1) == squeezed["IsoScore"]
    assert turned["IsoScore"] == pytest.approx(start["IsoScore"]) == pytest.approx(float(isonb.isoscore(CLOUD)))
    assert (stretched["loss"], stretched["accuracy"]) == pytest.approx((start["loss"], start["accuracy"]))
    assert squeezed["loss"] > start["loss"]
    assert turned["accuracy"] < start["accuracy"]


def test_the_picture_holds_each_place_once():
    frames = border_frames(CLOUD, LABELS, LAYERS[:1], [0.0, 0.5])
    assert [len(frame) for frame in frames] == [2 * len(CLOUD), 2]
    assert border_chart(frames, "datum.t == t").to_json().count("datum.t == t") == 2

"""The dial's picture: what it holds is what was recorded."""

import json
import re

import pytest

from isonb_lab import pages
from isonb_lab.data.corpus import sentences
from isonb_lab.figures import the_dial


@pytest.fixture(scope="module")
def figures():
    pages.setup()
    return the_dial


@pytest.fixture(scope="module")
def tables(figures):
    return figures.tables()


def test_its_data_are_the_recorded_clouds_and_scores(figures, tables):
    packed = re.search(r'<script type="application/json">(.*?)</script>', figures.dial(tables), re.DOTALL)[1]
    data = json.loads(packed)
    assert data["texts"] == [sentence.text for sentence in sentences()]
    assert len(data["places"]) == 11
    scores = (
        tables["scores"]
        .query("pool == 'mean' and fit == 'own' and turn == 'whitening' and strength == 1.0 and set == 'all'")
        .set_index(["encoder", "layer", "reader"])["score"]
    )
    for encoder, (name, (layer, _)) in zip(data["encoders"], figures.SHOWN.items(), strict=True):
        for curve, reader in zip(encoder["curves"], figures.CURVES, strict=True):
            assert curve[7][0] == pytest.approx(scores[name, layer, reader], abs=1e-4)
            assert curve[2] == [curve[2][0]] * 3  # as it is: the place that gains are counted from
        for turn in encoder["turns"]:
            assert len(turn["x"]) == len(turn["y"]) == len(data["texts"])
            assert max(map(abs, turn["x"] + turn["y"] + turn["zero"])) <= 1001
            assert [len(near) for near in turn["near"]] == [5] * len(data["picks"])
            assert all(pick not in near for pick, near in zip(data["picks"], turn["near"], strict=True))


def test_each_picture_of_the_chapter_has_its_rows(figures, tables):
    assert figures.curves(tables, ["similarity", "linear head"]).to_dict()["facet"]["field"] == "reader"
    assert len(figures.parts(tables, "similarity").data) == 2 * 6 * 5
    assert len(figures.first_token(tables).to_dict()["vconcat"]) == 2

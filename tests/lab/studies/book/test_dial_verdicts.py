"""The dial's judgement of a sign: an interval decides, and no mean alone."""

import pandas as pd
import pytest

from isonb_lab.figures import the_dial as figures
from isonb_lab.papers import dial as DIAL


def head(gains):
    """Scores of a linear head on the middle layers: a gain with its interval at p = 0.75 and at p = 1."""
    rows = [
        {"layer": layer, "strength": strength, "gain": gain, "gain_low": gain - 0.01, "gain_high": gain + 0.01}
        for layer in DIAL.MIDDLE
        for strength, gain in zip((0.75, 1.0), gains, strict=True)
    ]
    same = {"encoder": "smollm2", "pool": "mean", "fit": "own", "reader": "linear head", "set": "all"}
    return {"scores": pd.DataFrame(rows).assign(**same, turn="whitening")}


@pytest.mark.parametrize(
    ("gains", "outcome"),
    [
        ((0.0, -0.02), (False, True)),  # loses on every layer
        ((0.0, -0.005), (False, False)),  # the mean below 0, the interval on both sides: open
        ((0.0, 0.02), (True, False)),  # an interval above 0 is no loss
        ((0.02, -0.02), (True, False)),  # a gain at p = 0.75
    ],
)
def test_the_linear_head_contradicts_by_an_interval_alone(gains, outcome):
    assert DIAL.HYPOTHESES["H6"][1](head(gains))[:2] == outcome


def test_the_recorded_linear_head_gains_beyond_chance_and_its_hypothesis_is_open():
    turned = DIAL.towards_round(DIAL.read("scores"), "linear head")
    assert set(turned["strength"]) == {0.5, 0.75, 1.0}
    assert (len(turned), set(turned["pool"])) == (20 * 2 * 3, set(DIAL.POOLS))
    won, lost = (turned["gain_low"] > 0).sum(), (turned["gain_high"] < 0).sum()
    assert won > 3 * 0.025 * len(turned) > lost
    parts = DIAL.judge({name: DIAL.read(name) for name in ("scores", "best", "parts")})
    outcomes = {part.name: part.outcome for part in parts}
    assert (outcomes["H4"], outcomes["H6"]) == ("as expected", "open")


def test_search_is_advised_on_no_encoder():
    scores = DIAL.read("scores")
    recorded = {encoder: layers for encoder, layers in DIAL.LAYERS.items() if encoder in set(scores["encoder"])}
    readers = {layer["reader"] for layer in figures.advice(scores, recorded)}
    assert set(recorded) == set(DIAL.LAYERS)
    assert readers == {"similarity", "threshold", "neighbours", "linear head"}


def test_a_turn_that_restores_what_the_token_cost_is_no_advice():
    """Against vectors of the same pooling the head gains three points there; against those as they are, none."""
    rows = figures.advice(DIAL.read("scores"), {"smollm2": [15]})
    (head,) = (row for row in rows if row["reader"] == "linear head")
    assert (head["what to do"], head["without the first token, p = 0.75"]) == ("no clear gain: leave it", "+0.000")

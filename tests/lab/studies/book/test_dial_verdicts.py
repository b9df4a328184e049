"""The dial's judgement of a sign: an interval decides, and no mean alone."""

import pandas as pd
import pytest

from isonb_lab.figures import the_dial as figures
from isonb_lab.papers import deployed, dial_sets, hypotheses
from isonb_lab.papers import dial as DIAL
from isonb_lab.runs.recordings import recorded, scored


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
    assert DIAL.HYPOTHESES["H6"](head(gains))[:2] == outcome


def test_the_recorded_linear_head_gains_beyond_chance_and_its_hypothesis_is_open():
    turned = DIAL.towards_round(DIAL.read("scores"), "linear head")
    assert set(turned["strength"]) == {0.5, 0.75, 1.0}
    assert (len(turned), set(turned["pool"])) == (20 * 2 * 3, set(DIAL.POOLS))
    won, lost = (turned["gain_low"] > 0).sum(), (turned["gain_high"] < 0).sum()
    assert won > 3 * 0.025 * len(turned) > lost
    parts = DIAL.judge({name: DIAL.read(name) for name in ("scores", "best", "parts")})
    outcomes = {part.name: part.outcome for part in parts}
    assert (outcomes["H4"], outcomes["H6"]) == ("as expected", "open")


def test_the_recorded_head_of_tiny_says_the_commonest_label_of_cola_and_that_set_is_left_out():
    scores = DIAL.read("scores")
    tiny = scores.query("encoder == 'tiny' and layer == 4 and reader == 'linear head' and fit == 'own'")
    right, rows = dial_sets.COMMONEST["cola"]
    assert set(tiny[tiny["set"] == "cola"]["score"].round(9)) == {round(right / rows, 9)}
    turn = {"turn": "whitening", "strength": 0.75, "pool": "mean"}
    (left,) = hypotheses.rows_with(dial_sets.over_learned(tiny), **turn).to_dict("records")
    cells = hypotheses.rows_with(tiny, **turn).set_index("set")
    assert left["sets"] == "SST-2, MRPC, QNLI"
    assert left["gain"] == pytest.approx(cells.loc[["sst2", "mrpc", "qnli"], "gain"].mean())
    assert cells.loc["cola", "gain"] == 0
    assert left["gain"] == pytest.approx(cells.loc["all", "gain"] * 4 / 3)


def test_ends_of_sets_joined_are_those_of_their_joint_draws():
    """Over all sets the record has both: the interval of the mean drawn at once, and those of the sets."""
    scores = DIAL.read("scores").query(
        "reader == 'linear head' and encoder == 'mpnet' and layer == 8 and turn != 'raw'"
    )
    joined = dial_sets.over_learned(scores).set_index(["pool", "fit", "turn", "strength"])
    drawn = scores[scores["set"] == "all"].set_index(["pool", "fit", "turn", "strength"])
    assert set(joined["sets"]) == {"SST-2, CoLA, MRPC, QNLI"}
    for end in ("gain_low", "gain_high"):
        ratio = (joined[end] - joined["gain"]) / (drawn[end] - drawn["gain"])
        assert ratio.mean() == pytest.approx(1, abs=0.03)
        assert ratio.between(0.75, 1.35).all()


def test_the_shares_of_the_commonest_labels_are_those_of_the_runs():
    runs = pd.concat([scored(recorded(name).runs) for name in ("head_to_head", "own_cells_minilm")])
    runs = runs[runs["metric"] == "accuracy"].groupby("task")[["majority", "rows"]].agg(set)
    joint = {"sst2_joint": "sst2", "qnli": "qnli"}
    shares = [(task, dial_sets.COMMONEST[task]) for task in ("sst2", "mrpc")]
    shares += [(task, dial_sets.DEPLOYED[name]) for task, name in joint.items()]
    for task, (right, rows) in shares:
        assert (runs.loc[task, "rows"], *map(round_nine, runs.loc[task, "majority"])) == (
            {rows},
            round_nine(right / rows),
        )


def round_nine(share):
    return round(float(share), 9)


def test_learned_sets_alone_turn_no_verdict_and_read_otherwise():
    over = {one.name: one.outcome for one in dial_sets.verdicts(DIAL.read("scores"))}
    assert over == {"H5": "contradicted", "H6": "contradicted"}  # the plan's verdicts: contradicted, open
    cells = {reader: DIAL.towards_round(dial_sets.over_learned(DIAL.read("scores")), reader) for reader in dial_sets.OF}
    counts = {name: ((x["gain_low"] > 0).sum(), (x["gain_high"] < 0).sum()) for name, x in cells.items()}
    assert counts == {"linear head": (21, 3), "neighbours": (23, 24)}
    assert dial_sets.unlearned(cells["neighbours"], dial_sets.OF["neighbours"]) == "CoLA in 120 of 120"


def test_a_choice_of_raw_isnt_printed_as_a_measured_zero():
    assert deployed.advice(deployed.read(), "linear head").gains["tiny, layer 4"] == "0, raw was chosen"
    (head,) = (one for one in deployed.answers(deployed.read()) if one.name == "E6")
    assert head.why.endswith("1 chose raw, a gain of 0 by construction")


def test_search_has_no_row_in_the_gains_by_layer():
    scores = DIAL.read("scores")
    layers_of = {encoder: layers for encoder, layers in DIAL.LAYERS.items() if encoder in set(scores["encoder"])}
    readers = {layer["reader"] for layer in figures.gains_by_layer(scores, layers_of)}
    assert set(layers_of) == set(DIAL.LAYERS)
    assert readers == {"similarity", "threshold", "neighbours", "linear head"}


def test_a_turn_that_restores_what_the_token_cost_is_no_gain():
    """Against vectors of the same pooling the head gains three points there; against those as they are, none."""
    rows = figures.gains_by_layer(DIAL.read("scores"), {"smollm2": [15]})
    (head,) = (row for row in rows if row["reader"] == "linear head")
    assert head["without the first token, p = 0.75"] == "+0.000"
    assert head["over learned sets"].endswith("SST-2, MRPC, QNLI")

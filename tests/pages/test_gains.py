"""Gains over plain training: intervals grow from the first seeds to all; the menu and the slider filter."""

import pandas as pd
import pytest

from isonb.lab.statistics.seeds import student
from isonb.pages.charts import OKABE_ITO, slider
from isonb.pages.gains import change_against_gain, gains, growing

VALUES = {"a": [0.01, 0.03, -0.02], "b": [0.2, 0.1]}


def frame():
    rows = [("SST-2", arm, seed, value) for arm, values in VALUES.items() for seed, value in enumerate(values, start=3)]
    return pd.DataFrame(rows, columns=["suite", "arm", "seed", "gain"]).sample(frac=1, random_state=0)


@pytest.mark.parametrize("seeds", [2, 3])
def test_the_interval_of_the_first_seeds_is_students(seeds):
    found = growing(frame()).query("kind == 'mean' and seeds == @seeds and arm == 'a'").iloc[0]
    known = student(VALUES["a"][:seeds])
    assert [found["mean"], found["low"], found["high"]] == pytest.approx(
        [known.estimate, known.low, known.high], abs=1e-4
    )


def test_an_arm_with_fewer_seeds_keeps_its_last_interval():
    means = growing(frame()).query("kind == 'mean' and arm == 'b'")
    assert means.n.tolist() == [2, 2]


def test_a_slider_takes_the_seeds_in():
    chart = gains(frame(), arms=["a", "b"], suites=["SST-2"], title="gain")
    made = chart.add_params(slider("seeds", 2, 3, step=1)).to_dict()
    (param,) = made["params"]
    assert param["bind"] == {"input": "range", "min": 2, "max": 3, "step": 1, "name": "seeds "}
    filters = [layer.get("transform") for layer in made["spec"]["layer"]]
    assert filters[1] == [{"filter": "datum.kind == 'seed' && datum.seeds <= seeds"}]
    assert filters[2] == filters[3] == [{"filter": "datum.kind == 'mean' && datum.seeds == seeds"}]


def test_a_menu_chooses_the_measure():
    long = pd.concat([frame().assign(measure=name, change=0.1) for name in ("IsoScore", "A1 raw")])
    made = change_against_gain(long, arms=["a", "b"], suites=["SST-2"], measures=["IsoScore", "A1 raw"]).to_dict()
    (param,) = made["params"]
    assert param["bind"]["options"] == ["IsoScore", "A1 raw"]
    assert {"filter": "datum.measure == measure"} in made["spec"]["transform"]
    colors = made["spec"]["layer"][2]["encoding"]["color"]["scale"]["range"]
    assert len(set(colors)) == len(colors) == 8
    assert OKABE_ITO["yellow"] not in colors, "small marks in yellow look like those in orange"

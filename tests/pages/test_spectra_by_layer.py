"""Pictures of singular values: what stands in them is what numpy gives."""

import numpy as np
import pandas as pd
import pytest
import torch

from isonb.lab.measuring.token_spectra import NUMBERS, layer_spectra, token_spectrum
from isonb.pages.evidence import half_width
from isonb.pages.spectra_by_layer import by_depth, depth_rows, distribution_functions, distributions, layer_histogram

VALUES = {0: torch.tensor([4.0, 2.0, 1.0]), 1: torch.tensor([8.0, 1.0])}


def test_a_distribution_function_is_that_of_the_values_over_the_largest():
    found = distributions(VALUES, "one")
    assert set(found.panel) == {"one"}
    assert found.groupby("layer").x.max().tolist() == [1.0, 1.0]
    middle = found[(found.layer == 0) & np.isclose(found.share, 0.5)]
    assert middle.x.tolist() == [0.5]
    assert distribution_functions(found).to_dict()["columns"] == 2


def test_the_histogram_has_a_place_for_each_layer():
    chart = layer_histogram(VALUES, {0: "a", 1: "b"}).to_dict()
    (bars,) = [rows for rows in chart["datasets"].values() if "density" in rows[0]]
    assert {row["layer"] for row in bars} == {0, 1}
    assert sum(row["density"] * 0.025 for row in bars if row["layer"] == 1) == pytest.approx(1, abs=1e-3)
    assert chart["params"][0]["value"] == 1


def test_the_source_that_is_printed_is_grey():
    rows = pd.DataFrame(
        [(s, "m", 0.5, 1, 1, 1) for s in "ab"], columns=["source", "measure", "depth", "value", "low", "high"]
    )
    scale = by_depth(rows, measures=["m"], grey="a").to_dict()["spec"]["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["b", "a"]
    assert scale["range"][-1] == "#7f7f7f"


def test_layers_over_batches():
    states = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(3, 5, dtype=torch.bool)
    rows, pooled = layer_spectra([(states, mask), (states[:, :2], mask[:2])])
    assert rows[["batch", "layer"]].to_numpy().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    want = token_spectrum(states[1], mask)
    assert [rows.loc[1, name] for name in NUMBERS] == [getattr(want, name) for name in NUMBERS]
    assert len(pooled[0]) == (3 + 2) * 4


def test_depth_is_the_share_of_the_last_layer_and_intervals_are_over_batches():
    rows = pd.DataFrame({"layer": [0, 2, 0, 2], "n": [1.0, 3.0, 2.0, 5.0]})
    found = depth_rows("here", rows, {"n": "number"}).set_index("depth")
    assert found["value"].to_dict() == {0.0: 1.5, 1.0: 4.0}
    assert found.loc[0.0, "high"] - found.loc[0.0, "value"] == pytest.approx(half_width([1.0, 2.0]), abs=1e-4)
    assert depth_rows("here", rows[:2], {"n": "number"})[["value", "low", "high"]].nunique(axis=1).tolist() == [1, 1]

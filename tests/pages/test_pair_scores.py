"""Pictures of similarity scores: every row stands in them once, under the menu that shows it."""

import pandas as pd
import pytest
import torch

from isonb import pages
from isonb.pages.decay_curves import decay_curves
from isonb.pages.pair_scores import gain_panels, gains_by_alpha, trade_offs
from isonb.pages.span_bounds import farthest, span_bound


def test_menus_offer_what_is_there():
    gains = pd.DataFrame(
        [("tiny", "STS-B", "whitening", "mean", 1.0, 0.5, 1.5), ("minilm", "STS-B", "whitening", "all", -1, -2, 0)],
        columns=["model", "set", "arm", "protocol", "mean", "low", "high"],
    )
    chart = gain_panels(gains, arms=["whitening"], sets=["STS-B"]).to_dict()
    assert [param["bind"]["options"] for param in chart["params"]] == [["tiny", "minilm"], ["mean", "all"]]


def test_alphas_and_trade_offs_have_their_lines():
    tried = pd.DataFrame(
        [("live", "dev", "joint", -0.6, 1, 0, 2)], columns=["runs", "set", "sides", "alpha", "gain", "low", "high"]
    )
    assert gains_by_alpha(tried, sets=["dev"]).to_dict()["params"][0]["value"] == "live"
    trade = pd.DataFrame(
        [("tiny", "SoftDecay -1", "SoftDecay", "paper", 0.1, 60.0, 0.4)],
        columns=["model", "vectors", "family", "reading", "TokenUni", "score", "LSDS"],
    )
    text = trade_offs(trade, families=["SoftDecay"], joined="SoftDecay").to_json()
    assert text.count("datum.family == 'SoftDecay'") == 2


def test_points_are_within_the_next_singular_value_of_the_span():
    cloud = torch.randn(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    s = torch.linalg.svdvals(cloud)
    far = farthest(cloud)
    assert far[0] == pytest.approx(float(cloud.norm(dim=1).max()))
    assert far[0] <= s[0]
    assert far[1] <= s[1]
    assert far[2] == pytest.approx(0, abs=1e-12)
    chart = span_bound(cloud, pages.slider("C", 0, 6, step=0.05, value=1, label="C")).to_dict()
    assert chart["params"][0]["name"] == "C"


def test_the_curve_is_of_the_spectrum_given():
    chart = decay_curves([3.0, 1.0, 1e-9]).to_dict()
    ranked = next(rows for rows in chart["datasets"].values() if "rank" in rows[0])
    assert [row["s"] for row in ranked] == [3.0, 1.0]  # what is rounding alone is left out

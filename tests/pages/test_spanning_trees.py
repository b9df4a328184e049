"""A cloud, its tree and its bars along a step, against gudhi's barcode."""

import gudhi
import pytest
import torch

from isonb.pages.spanning_trees import ranked_bars, ranked_frames, tree_chart, tree_frames

CLOUD = torch.randn(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
VARIANTS = {"selected bars": True, "all bars": False}


def outward(select):
    return CLOUD / CLOUD.norm(dim=1).max()


def gudhi_bars(cloud):
    tree = gudhi.RipsComplex(points=cloud.numpy()).create_simplex_tree(max_dimension=1)
    tree.compute_persistence()
    return sorted((death for _, death in tree.persistence_intervals_in_dimension(0)[:-1]), reverse=True)


def test_frames_hold_the_bars_of_every_place():
    dots, rungs, facts = tree_frames(CLOUD, outward, VARIANTS, [0.0, 0.5])
    assert (len(dots), len(rungs), len(facts)) == (2 * 2 * 9, 2 * 2 * 8, 4)
    for t in (0.0, 0.5):
        found = rungs[(rungs.bars == "all bars") & (rungs.t == t)]
        assert found.length.tolist() == pytest.approx(gudhi_bars(CLOUD + t * outward(False)), abs=1e-3)
        assert set(found.role) == {"counts"}
    selected = rungs[(rungs.bars == "selected bars") & (rungs.t == 0.0)]
    assert set(selected.role) == {"counts", "left out"}


def test_ranks_scale_with_the_median_bar():
    rows, facts = ranked_frames(CLOUD, outward, VARIANTS, [0.0, 1.0], lambda at: f"{len(at)} points")
    bars = gudhi_bars(CLOUD)
    at = CLOUD + sorted(bars)[(len(bars) - 1) // 2] * outward(False)  # torch's median: the lower one
    found = rows[(rows.bars == "all bars") & (rows.t == 1.0)]
    assert found.length.tolist() == pytest.approx(gudhi_bars(at), abs=1e-3)
    assert facts.told.iloc[0].endswith("9 points")


def test_pictures_are_filtered_by_the_expression():
    frames = tree_frames(CLOUD, outward, VARIANTS, [0.0])
    text = tree_chart(frames, "datum.t == t").to_json()
    assert text.count("datum.t == t") == 5
    assert "filter" not in tree_chart(frames).to_json()
    ranked = ranked_frames(CLOUD, outward, VARIANTS, [0.0], lambda at: "")
    assert ranked_bars(ranked, "datum.t == u").to_json().count("datum.t == u") == 2

"""Pictures of clouds: what they compute of a cloud by hand, and that controls filter every part."""

import math

import altair as alt
import pandas as pd
import pytest
import torch

from isonb.pages.dimensions import dimensions
from isonb.pages.growing_discs import bar_frame, edge_frame, growing_discs
from isonb.pages.two_planes import plane_coordinates, two_planes

SQUARE = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)


@pytest.fixture(autouse=True)
def no_limit():
    with alt.data_transformers.enable("default", max_rows=None):
        yield


def test_the_bars_of_a_square():
    bars = bar_frame(SQUARE, longest=2.0).set_index(["dimension", "bar"])
    assert bars.loc["H0", "death"].tolist() == [2.0, 1.0, 1.0, 1.0], "the infinite bar is cut, three sides merge"
    assert bars.loc[("H1", 0)].tolist() == [1.0, round(math.sqrt(2), 3)], "the loop is filled by a diagonal"


def test_the_edges_of_a_square_and_its_tree():
    edges = edge_frame(SQUARE, longest=1.2)
    assert len(edges) == 4, "diagonals are longer"
    assert edges["tree"].sum() == 3
    assert len(edge_frame(SQUARE, longest=2.0)) == 6


@pytest.mark.parametrize("r", ["scale", 0.7])
def test_discs_edges_and_bars_follow_the_scale(r):
    dots = pd.DataFrame(SQUARE.tolist(), columns=["x", "y"])
    frame = {"top": 2.0, "box": ((-1, 2), (-1, 3))}
    chart = growing_discs(dots, edge_frame(SQUARE, 2.0), bar_frame(SQUARE, 2.0), r, **frame)
    text = chart.to_json()
    assert text.count(f"datum.length <= {r}") == 2
    assert text.count(f"datum.birth < {r}") == 2
    assert f"PI * pow({r} / 2 * 57, 2)" in text
    assert '"width": 171' in text, "three units"
    assert all(f"'{name}: '" in text for name in ("pieces", "loops"))


def test_dimensions_name_those_that_make_the_cone():
    generator = torch.Generator().manual_seed(0)
    cloud = torch.randn(40, 6, generator=generator) + torch.tensor([0.0, 9.0, 0.0, -5.0, 0.0, 2.0])
    chart = dimensions(cloud, torch.randn(40, 6, generator=generator), name="ours", reference_name="isotropic")
    spec = chart.to_dict()
    tables = [pd.DataFrame(rows) for rows in spec["datasets"].values()]
    (named,) = (table for table in tables if "dim" in table)
    assert named["dim"].tolist() == [1, 3, 5]
    assert named["mean"].tolist() == pytest.approx(cloud.mean(0)[[1, 3, 5]].tolist(), abs=1e-4)
    assert named["spread"].tolist() == pytest.approx(cloud.std(0)[[1, 3, 5]].tolist(), abs=1e-4)
    (both,) = (table for table in tables if len(table) == 12)
    assert both["cloud"].tolist() == ["ours"] * 6 + ["isotropic"] * 6


def test_planes_by_hand():
    generator = torch.Generator().manual_seed(1)
    cloud = torch.randn(50, 4, generator=generator, dtype=torch.float64) * torch.tensor([5.0, 3.0, 1.0, 0.1])
    cloud = cloud + torch.tensor([0.0, 0.0, 20.0, 0.0])
    view = plane_coordinates(cloud)
    unit = cloud.norm(dim=1).mean()
    mean = cloud.mean(0)
    torch.testing.assert_close(view[:, 0] * unit, cloud @ mean / mean.norm())
    spread = torch.linalg.svdvals(cloud - mean)[:2]
    torch.testing.assert_close((view[:, 2:] * unit).norm(dim=0), spread)
    torch.testing.assert_close(view[:, 1], view[:, 2])


def test_a_view_is_turned_onto_the_one_before():
    cloud = torch.randn(30, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 1
    before = plane_coordinates(cloud)[:, 2:]
    turned = plane_coordinates(cloud, -before.flip(1))[:, 2:]
    torch.testing.assert_close(turned, -before.flip(1))


def test_both_planes_are_filtered_alike():
    frame = pd.DataFrame([[0.5, 0.0, 0.1, 0.2, "law"]], columns=["a", "b", "x", "y", "group"])
    assert two_planes(frame, "datum.layer == k").to_json().count('"filter": "datum.layer == k"') == 2

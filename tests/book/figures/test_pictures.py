"""Pictures of single chapters: the numbers that they compute, worked out another way. The build draws the pictures."""

import math

import gudhi
import pytest
import torch

import isonb
from isonb_lab.figures import (
    barcodes,
    clouds_and_cones,
    isolayer,
    recipes,
    shrink_the_longest,
    softdecay,
    the_dial,
    three_clouds,
)

SQUARE = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
POINTS = torch.randn(20, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_bars_and_the_edges_of_a_square():
    bars = barcodes.bar_frame(SQUARE, longest=2.0).set_index(["dimension", "bar"])
    assert bars.loc["H0", "death"].tolist() == [2.0, 1.0, 1.0, 1.0], "the infinite bar is cut, three sides merge"
    assert bars.loc[("H1", 0)].tolist() == [1.0, round(math.sqrt(2), 3)], "the loop is filled by a diagonal"
    edges = barcodes.edge_frame(SQUARE, longest=1.2)
    assert (len(edges), edges["tree"].sum()) == (4, 3), "diagonals are longer"


def test_planes_by_hand():
    cloud = torch.randn(50, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    cloud = cloud * torch.tensor([5.0, 3.0, 1.0, 0.1]) + torch.tensor([0.0, 0.0, 20.0, 0.0])
    view, unit, mean = clouds_and_cones.plane_coordinates(cloud), cloud.norm(dim=1).mean(), cloud.mean(0)
    torch.testing.assert_close(view[:, 0] * unit, cloud @ mean / mean.norm())
    torch.testing.assert_close((view[:, 2:] * unit).norm(dim=0), torch.linalg.svdvals(cloud - mean)[:2])
    turned = clouds_and_cones.plane_coordinates(cloud, -view[:, 2:].flip(1))[:, 2:]
    torch.testing.assert_close(turned, -view[:, 2:].flip(1))


@pytest.mark.parametrize("loss", [None, lambda x: x.square().sum(), lambda x: 1e6 * x.square().sum()])
def test_one_step_of_a_walk_goes_as_far_as_asked(loss):
    moved = shrink_the_longest.walk(POINTS, loss, steps=1, length=0.25) - POINTS
    assert float(moved.norm()) == pytest.approx(0.25 * float((POINTS - POINTS.mean(0)).norm()))


def test_bars_along_a_step_are_those_of_gudhi():
    cloud, variants = POINTS[:9, :2], {"selected bars": True, "all bars": False}
    _, rungs, _ = shrink_the_longest.tree_frames(cloud, lambda select: cloud, variants, [0.0, 0.5])
    for t in (0.0, 0.5):
        tree = gudhi.RipsComplex(points=((1 + t) * cloud).numpy()).create_simplex_tree(max_dimension=1)
        tree.compute_persistence()
        want = sorted((death for _, death in tree.persistence_intervals_in_dimension(0)[:-1]), reverse=True)
        values = rungs[(rungs.bars == "all bars") & (rungs.t == t)]
        assert values.length.tolist() == pytest.approx(want, abs=1e-3)
    assert set(rungs[rungs.bars == "selected bars"].role) == {"counts", "left out"}


def test_what_the_classifier_does_not_read_can_be_stretched_for_nothing():
    cloud, labels = isolayer.two_classes()
    start = isolayer.border_facts(cloud, labels)
    ends = [isolayer.border_facts(cloud @ isolayer.plane_layer(n, 1.0, cloud).T, labels) for n in isolayer.LAYERS]
    stretched, squeezed, turned = ends
    assert stretched["IsoScore"] == pytest.approx(1) == squeezed["IsoScore"]
    assert turned["IsoScore"] == pytest.approx(start["IsoScore"]) == pytest.approx(float(isonb.isoscore(cloud)))
    assert (stretched["loss"], stretched["accuracy"]) == pytest.approx((start["loss"], start["accuracy"]))
    assert squeezed["loss"] > start["loss"]
    assert turned["accuracy"] < start["accuracy"]


def test_points_are_within_the_next_singular_value_of_the_span():
    cloud = POINTS[:9, :2]
    far = softdecay.farthest(cloud)
    assert far[0] == pytest.approx(float(cloud.norm(dim=1).max()))
    assert all(distance <= value for distance, value in zip(far, torch.linalg.svdvals(cloud), strict=False))
    assert far[2] == pytest.approx(0, abs=1e-12)


def test_three_clouds_show_their_scores():
    drawn = three_clouds.TARGET.read_text(encoding="utf-8")
    for name, cloud in three_clouds.clouds().items():
        assert f">{name}<" in drawn
        assert all(f">{score}<" in drawn for score in three_clouds.scores(cloud))


def test_four_recipes_are_four_panels_beside_the_plain_bars():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(40, 8, generator=draw, dtype=torch.float64) * torch.linspace(3, 0.3, 8)
    clouds = recipes.after(x, ["a", "b"] * 20, steps=5)
    rows = recipes.bars(clouds).data
    assert rows.groupby("recipe").size().tolist() == [8] * 4
    reference = torch.linalg.eigvalsh(torch.cov(x.T)).flip(0)
    assert rows["before"].head(8).tolist() == pytest.approx((reference / reference.mean()).tolist(), abs=1e-5)
    y = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(20)
    head = torch.linalg.lstsq(x - x.mean(0), y[:, None]).solution.flatten()
    across = torch.eye(8, dtype=torch.float64) - head.outer(head) / (head @ head)  # what the head can't read
    level = float(((x - x.mean(0)) @ head).var() / (head @ head))
    unread = torch.linalg.eigvalsh(torch.cov((clouds["IsoLayer, in closed form"] @ across).T))
    assert unread[1:].tolist() == pytest.approx([level] * 7)
    assert (
        isonb.isoscore(clouds["I-STAR, less isotropy"])
        < isonb.isoscore(x)
        < isonb.isoscore(clouds["IsoLayer, in closed form"])
    )


def test_a_layer_in_closed_form_keeps_the_answers_of_points_that_it_was_not_fitted_on():
    labels = torch.arange(40) % 2
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(60, 30, generator=draw, dtype=torch.float64) * torch.linspace(3, 0.3, 30)
    fitted, others = x[:40], x[40:]
    head = torch.linalg.lstsq(fitted - fitted.mean(0), torch.nn.functional.one_hot(labels).to(x)).solution
    behind = recipes.levelled(fitted, labels, others)
    torch.testing.assert_close(behind @ head, others @ head)
    inside = isonb.isoscore(recipes.levelled(fitted, labels, fitted))
    assert isonb.isoscore(behind) < inside / 2, "the narrow directions of a sample are its noise"


def test_each_picture_of_the_dial_has_its_rows():
    tables = the_dial.tables()
    assert the_dial.curves(tables, ["similarity", "linear head"]).to_dict()["facet"]["field"] == "reader"
    assert len(the_dial.parts(tables, "similarity").data) == 2 * 6 * 5
    assert len(the_dial.first_token(tables).to_dict()["vconcat"]) == 2

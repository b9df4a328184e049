"""Barcodes in the arrays of gudhi and ripser, against what the installed ones give and take."""

import gudhi
import numpy as np
import persim.persistent_entropy
import pytest
import ripser
import torch
from gudhi.representations import Entropy
from support import assert_same, check_rejects, normal

from isonb.barcodes.diagrams import from_diagrams, to_diagrams
from isonb.barcodes.entropy import persistent_entropy
from isonb.barcodes.rips import rips_barcode
from isonb.errors import DegenerateError, InputError, ShapeError

CLOUDS = [normal(n, 3, seed=n) for n in (12, 30, 5)]


def gudhi_pairs(x):
    tree = gudhi.RipsComplex(points=x.numpy()).create_simplex_tree(max_dimension=3)
    return tree.persistence()


@pytest.mark.parametrize("x", CLOUDS, ids=len)
@pytest.mark.parametrize("generators", [False, True])
def test_the_arrays_are_those_of_ripser_and_of_gudhi(x, generators):
    ours = rips_barcode(x, 2, keep_infinite=True, return_generators=generators)
    theirs = ripser.ripser(x.numpy(), maxdim=2)["dgms"]
    result = to_diagrams(ours)
    for item, other in zip(result, theirs, strict=True):
        assert item.dtype == np.float64
        order = np.argsort(other[:, 1] - other[:, 0], kind="stable")
        np.testing.assert_allclose(item, other[order], rtol=1e-6)
    pairs, want = to_diagrams(ours, "gudhi"), gudhi_pairs(x)
    assert [k for k, _ in pairs] == [k for k, _ in want]
    np.testing.assert_allclose([bar for _, bar in pairs], [bar for _, bar in want], rtol=1e-12)


@pytest.mark.parametrize("x", CLOUDS, ids=len)
@pytest.mark.parametrize("infinite", [False, True])
def test_what_ripser_and_gudhi_give_is_a_barcode(x, infinite):
    ours = rips_barcode(x, 2, keep_infinite=infinite)
    theirs = from_diagrams(ripser.ripser(x.numpy(), maxdim=2)["dgms"], keep_infinite=infinite)
    assert_same(theirs, ours, rtol=1e-6)
    theirs = from_diagrams(gudhi_pairs(x), keep_infinite=infinite)  # which names no dimension without a bar
    assert_same(theirs, ours[: len(theirs)])
    assert not any(len(death) for _, death in ours[len(theirs) :])
    for layout in ("ripser", "gudhi"):
        again = from_diagrams(to_diagrams(ours, layout), keep_infinite=infinite)
        assert_same(again, ours[: len(again)])


def test_functions_of_gudhi_and_persim_take_them():
    barcode = rips_barcode(CLOUDS[1])
    loops = to_diagrams(barcode)[1]
    entropy = float(persistent_entropy(barcode[1][1] - barcode[1][0]))
    assert float(Entropy(mode="scalar")(loops).item()) == pytest.approx(entropy)
    assert persim.persistent_entropy.persistent_entropy(loops) == pytest.approx(entropy)


def test_tensors_keep_their_type_and_gradient():
    x = normal(20, 2, dtype=torch.float32).requires_grad_()
    barcode = rips_barcode(x)
    again = from_diagrams([torch.stack(bars, -1) for bars in barcode])
    assert_same(again, barcode)
    assert again[1][1].requires_grad
    assert to_diagrams(barcode)[1].dtype == np.float32


def test_errors():
    barcode = rips_barcode(CLOUDS[0])
    check_rejects(to_diagrams, InputError, "layout must be one of ripser, gudhi; got 'gtda'", barcode, "gtda")
    check_rejects(to_diagrams, InputError, "for each dimension", barcode[0])
    check_rejects(from_diagrams, ShapeError, "a list by dimension", torch.ones(4, 2))
    check_rejects(from_diagrams, ShapeError, r"\(bars, 2\)", [torch.ones(4, 3)])
    check_rejects(from_diagrams, DegenerateError, "before its birth", [[[2.0, 1.0]]])
    check_rejects(from_diagrams, InputError, "in a layout of to_diagrams", 3)

"""Transforms by degrees against plain numpy: what each promises, its strength set anew, lengths kept, files."""

import pickle

import numpy as np
import pytest
import torch
from support import assert_same, uneven

import isonb
from isonb import Moments, ZeroMean
from isonb.errors import DegenerateError, FitWarning, InputError
from isonb.transforms import turns
from isonb.transforms.base import RENAMED
from isonb.transforms.graded import DimensionScale, PartialWhitening, Standardize
from tests.transforms.test_transforms import GRADED, TRANSFORMS

pytestmark = pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")  # small clouds on purpose


def points():
    return uneven(60, 8) + 3.0


def by_numpy(name, x):
    x = x.numpy()
    mean, centred = x.mean(0), x - x.mean(0)
    left, s, right = np.linalg.svd(centred, full_matrices=False)
    if name in ("needle", "rounder", "beyond"):
        p = {"needle": -1.0, "rounder": 0.75, "beyond": 1.5}[name]
        return left * s ** (1 - p) * np.mean(s**2) ** (p / 2) @ right
    if name == "mean added":
        return x + 2 * mean
    if name == "loudest":
        scale = np.ones(x.shape[1])
        scale[np.argsort((x**2).mean(0))[-2:]] = 0.25
        return x * scale
    if name == "standardised":
        return centred / x.std(0, ddof=1)
    left, s, right = np.linalg.svd(x, full_matrices=False)
    f = np.log(1 + 0.6 * (s - 0.6) + 1e-7) / 0.6
    return left * (s[0] / f.max() * f) @ right


@pytest.mark.parametrize("name", GRADED)
def test_a_transform_is_what_plain_numpy_gives(name):
    x = points()
    assert_same(TRANSFORMS[name]().fit_transform(x), torch.from_numpy(by_numpy(name, x)), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", GRADED)
def test_lengths_are_kept_where_asked(name):
    x = points()
    free, remaining = TRANSFORMS[name]().fit(x), TRANSFORMS[name]().fit(x)
    remaining.keep_norms = True
    assert_same(remaining.transform(x).norm(dim=1), x.norm(dim=1))
    assert_same(torch.cosine_similarity(remaining.transform(x), free.transform(x)), torch.ones(len(x)).double())
    with pytest.raises(InputError, match="keep_norms=False"):
        remaining.to_dense()


def test_the_dial_runs_from_needle_to_round_without_a_new_fit():
    x = points()
    dial = PartialWhitening().fit(x)
    reached = []
    for p in (-1.0, 0.0, 0.5, 1.0, 1.5):
        dial.p = p
        assert_same(dial.transform(x), PartialWhitening(p=p).fit(x).transform(x))
        reached.append(dial.measure_after(x)["isoscore"])
    assert reached[:4] == sorted(reached[:4])
    assert reached[3] == pytest.approx(1.0)
    assert reached[4] < 1


def test_the_loudest_dimension_has_the_largest_mean_square():
    x = torch.tensor([[-1.0, 1.2], [1.0, 1.2]])  # mean squares 1 and 1.44; variances with n - 1 are 2 and 0
    assert DimensionScale(factor=0.0).fit(x).transform(x).tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_directions_without_variance_come_out_zero():
    few = PartialWhitening(p=1.0).fit(uneven(5, 12))
    assert int((few.factors() > 0).sum()) == 4
    wide = torch.randn(20, 50, generator=torch.Generator().manual_seed(0))
    assert int((PartialWhitening().fit_moments(Moments().update(wide)).factors() > 0).sum()) == 19
    other = uneven(7, 12)
    few.p = 0.0
    assert_same(few.transform(other), ZeroMean().fit(uneven(5, 12)).transform(other))
    with pytest.warns(FitWarning, match="8 of 12 directions have no variance in 5 points, and come out 0"):
        PartialWhitening().fit(uneven(5, 12))
    still = points()
    still[:, 2] = 0.25
    assert_same(Standardize().fit_transform(still)[:, 2], torch.zeros(60).double())
    with pytest.raises(DegenerateError, match="not all be equal"):
        Standardize().fit(torch.ones(4, 3))


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_the_names_of_the_last_release_still_work(old, new, tmp_path):
    kind = getattr(isonb, new)
    for package in (isonb, isonb.transforms, turns):
        with pytest.warns(DeprecationWarning, match=f"isonb.{old} is now isonb.{new}") as error:
            assert getattr(package, old) is kind
        assert {warning.filename for warning in error} == {__file__}
    fitted, x = kind().fit(points()), points()
    fitted.save(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace(new, old))
    assert_same(isonb.load_transform(tmp_path).transform(x), fitted.transform(x))
    saved = (
        pickle.dumps(fitted, protocol=0)
        .replace(b"transforms.graded", b"transforms.turns")
        .replace(new.encode(), old.encode())
    )
    with pytest.warns(DeprecationWarning, match=old):
        assert_same(pickle.loads(saved).transform(x), fitted.transform(x))
    with pytest.warns(DeprecationWarning, match="measure_after"):
        assert fitted.reached(x, ["isoscore"]) == fitted.measure_after(x, ["isoscore"])
    with pytest.raises(AttributeError, match="no attribute 'Turned'"):
        _ = isonb.transforms.Turned

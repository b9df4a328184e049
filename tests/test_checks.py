"""The border: what passes, what is refused, and what the refusal says."""

import pytest
import torch
from torchmetrics import MetricCollection

import isonb
from isonb import metrics
from isonb.checks import check_points, check_values, strict, validated
from isonb.errors import DegenerateError, DtypeError, ShapeError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("x", "keywords", "kind", "match"),
    [
        (torch.ones(1, 2), {"name": "y"}, ShapeError, "y must hold at least 2 points"),
        (torch.ones(1, 2, device="meta"), {}, ShapeError, "at least 2 points"),
        (torch.ones(3, 1), {"dims": 2}, ShapeError, "points as rows"),
        (torch.tensor([[INF, -INF], [1.0, 1.0]]), {}, DegenerateError, r"inf at index \(0, 0\)"),  # don't cancel
        (torch.tensor([[3e38, 3e38], [3e38, 1.0], [1.0, NAN]]), {}, DegenerateError, r"nan at index \(2, 1\)"),
        (torch.ones(2, 3, 2), {"mask": torch.tensor([[1, 1, 1], [0, 0, 1]])}, ShapeError, "got 1"),
        (torch.ones(3, 2), {"mask": torch.tensor([0, 1, 2])}, DtypeError, "0 and 1; got integers from 0 to 2"),
        (torch.ones(3, 2), {"mask": torch.tensor([1, 0, -100])}, DtypeError, "integers from -100 to 1.*Labels"),
    ],
)
def test_cloud_refuses(x, keywords, kind, match):
    with pytest.raises(kind, match=match):
        check_points(x, **keywords)


def test_border_names_the_innermost_function_once_and_lets_other_errors_through():
    @validated
    def inner(x):
        return check_points(x)[0]

    @validated
    def outer(x):
        """Say what it does."""
        return {"no": 1}[x] if isinstance(x, str) else inner(x)

    with pytest.raises(ShapeError, match=r"^inner: x must have shape"):
        outer(torch.ones(3))
    with pytest.raises(DtypeError, match=r"^inner: x must be a torch.Tensor; got int\."):
        inner(3)
    with pytest.raises(KeyError):
        outer("yes")
    assert outer.__doc__ == "Say what it does."


POSITIONAL = {  # what takes a mask where scikit-learn and torchmetrics put the labels
    **{name: getattr(isonb, name)() for name in ("CosRegLoss", "GORLoss", "GaoCosineLoss", "IsoScoreLoss")},
    **{name: getattr(isonb, name)() for name in ("SIGRegLoss", "SpectrumControlLoss", "SoftDecay")},
    **{name: getattr(isonb, name)().fit for name in ("ZeroMean", "Standardize", "SoftZCA", "MeanDirection")},
    "ClusterRemoval": isonb.ClusterRemoval(2, 1).fit,
    "fit_transform": isonb.ZeroMean().fit_transform,
    "transform": isonb.ZeroMean().fit(torch.eye(4)).transform,
    "Moments": isonb.Moments().update,
    **{name: getattr(metrics, name)().update for name in ("IsoScore", "MeanCosine", "TokenUniformity", "AlphaReQ")},
    "IsoScore, unbiased": metrics.IsoScore(unbiased=True).update,
    "SpectralSkewness": metrics.SpectralSkewness().update,
    "Sampled": metrics.Sampled(isonb.isoscore).update,
}


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize("name", POSITIONAL)
def test_labels_are_no_mask(name):
    """Of 0 and 1 they look like one, so that a mask of integers has to be named; one of bool needs no name."""
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(16) % 2
    for classes in (labels, labels.numpy(), 3 * labels):
        with pytest.raises(DtypeError, match=r"must be named.*Labels aren't a mask"):
            POSITIONAL[name](x, classes)
    with strict(False), pytest.raises(DtypeError, match="must be named"):  # nor where no value is looked at
        POSITIONAL[name](x, labels)
    with pytest.raises(DtypeError, match="0 and 1; got integers from 0 to 3"):
        POSITIONAL[name](x, mask=3 * labels)
    POSITIONAL[name](x, mask=labels)
    POSITIONAL[name](x, labels.bool())


def test_a_collection_hands_labels_to_no_mask():
    x, labels = torch.randn(16, 4, generator=torch.Generator().manual_seed(0)), torch.arange(16) % 2
    collection = MetricCollection(
        {"cosine": metrics.MeanCosine(), "isoscore": metrics.IsoScore(), "nc1": metrics.NC1(2)}
    )
    with pytest.raises(DtypeError, match="must be named"):
        collection.update(x, labels)
    collection.update(x=x, labels=labels)
    values = {name: value.item() for name, value in collection.compute().items()}
    want = {"cosine": isonb.mean_cosine(x).item(), "isoscore": isonb.isoscore(x).item()}
    assert values == pytest.approx(want | {"nc1": isonb.nc1(x, labels).item()}, rel=1e-5)


def test_values_are_looked_at_on_the_cpu_and_in_strict():
    assert check_values(torch.ones(1))
    elsewhere = torch.ones(1, device="meta")
    assert not check_values(elsewhere)
    with strict():
        assert check_values(elsewhere)
        with strict(False):
            assert not check_values(elsewhere)
        assert check_values(elsewhere)
    assert not check_values(elsewhere)
    far = torch.full((3, 2), 3e38)  # a sum beyond the dtype is not a bad value
    assert torch.equal(check_points(far)[0], far)


def test_the_advice_for_complex_points_keeps_both_parts():
    x = torch.randn(50, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    with pytest.raises(DtypeError, match=r"got torch\.complex64") as error:
        isonb.isoscore(x)
    line = str(error.value).partition("Call ")[2].rstrip(".")
    points = eval(line, {"torch": torch, "x": x})
    assert points.shape == (50, 8)
    assert torch.equal(points.square().sum(-1), torch.view_as_real(x).square().sum((-1, -2)))
    isonb.isoscore(points)

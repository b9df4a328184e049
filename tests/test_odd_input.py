"""Whatever is put in the place of points: the right value or the one typed error, with and without compiled loops."""

import functools
import math
import sys

import pytest
import torch
from support import normal
from test_bad_input import CLOUDS, NUMBERS, SEQUENCES, UNMASKED, leaves

import isonb
from isonb import InputError, metrics

N, D = 14, 6
X, Y = normal(N, D), normal(N, D, seed=1)
MASK = torch.arange(N) != 3
LABELS = torch.arange(N) % 3
STATES = normal(5, 2, 7, D)
FITS = (isonb.AllButTheTop, isonb.ClusterRemoval, isonb.DimensionScale, isonb.MeanDirection, isonb.MeanShift,
        isonb.PartialWhitening, isonb.SingularDecay, isonb.SoftZCA, isonb.Standardise, isonb.Whitening,
        isonb.ZeroMean)  # fmt: skip
LOSSES = (isonb.CosRegLoss, isonb.GORLoss, isonb.GaoCosineLoss, isonb.IStarLoss, isonb.IsoScoreLoss,
          isonb.PersistentEntropyLoss, functools.partial(isonb.SIGRegLoss, slices=4, seed=0),
          isonb.SpectrumControlLoss)  # fmt: skip
METRICS = (metrics.Anisotropy, metrics.CosinePenalty, metrics.Covariance, metrics.EffectiveRank, metrics.IsoScore,
           metrics.SpectralSkewness, metrics.TokenUniformity,
           functools.partial(metrics.Sampled, isonb.two_nn))  # fmt: skip


def named(kind):
    return (kind.func if isinstance(kind, functools.partial) else kind).__name__


def small(kind):
    return kind(2, 1) if kind is isonb.ClusterRemoval else kind()


def fed(kind, *given):
    metric = kind()
    metric.update(*given)
    return metric.compute()


PLACES = {  # name of the place -> what is computed of what stands there
    **{name: call for name, call in (CLOUDS | UNMASKED).items() if name not in (*SEQUENCES, "knn_queries", "nc1")},
    **NUMBERS,
    "lsds, x": lambda x: isonb.lsds(x, Y, 3),
    "lsds, y": lambda y: isonb.lsds(X, y, 3),
    "alignment, x": lambda x: isonb.alignment(x, Y),
    "alignment, y": lambda y: isonb.alignment(X, y),
    "cka, x": lambda x: isonb.cka(x, Y),
    "cka, y": lambda y: isonb.cka(X, y),
    "knn_queries, queries": lambda x: isonb.knn_queries(x, X, 2),
    "knn_queries, corpus": lambda x: isonb.knn_queries(X, x, 2),
    "lidar": isonb.lidar,
    "nc1": lambda x: isonb.nc1(x, LABELS),
    "label_groups": lambda x: [group for _, group in isonb.label_groups(x, LABELS)],
    "isoscore_star, shrinkage_cov": lambda x: isonb.isoscore_star(X, 0.2, x),
    "IStarLoss, shrinkage_cov": lambda x: isonb.IStarLoss()(X, x),
    "layer_average": lambda x: isonb.layer_average([x, x], layers=(0,)),
    "points_from_hidden_states": lambda x: isonb.points_from_hidden_states([x, x])[0],
    "sbert_wk": lambda x: isonb.sbert_wk([x, x, x, x], layer_start=0),
    "Moments": lambda x: isonb.Moments().update(x).cov,
    "IsoBN": lambda x: isonb.IsoBN(D)(x),
    "SoftDecay": lambda x: isonb.SoftDecay()(x),
    "JointLoss, first": lambda x: isonb.JointLoss()(x, torch.tensor(1.0)),
    "JointLoss, second": lambda x: isonb.JointLoss()(torch.tensor(1.0), x),
    "fit_flow": lambda x: isonb.fit_flow(x).transform(X),
    "GlowFlow": lambda x: isonb.fit_flow(X).transform(x),
    **{f"{kind.__name__}, fit": lambda x, kind=kind: small(kind).fit(x).transform(X) for kind in FITS},
    **{f"{kind.__name__}, transform": lambda x, kind=kind: small(kind).fit(X).transform(x) for kind in FITS},
    **{named(kind): lambda x, kind=kind: kind()(x) for kind in LOSSES},
    **{f"metrics.{named(kind)}": lambda x, kind=kind: fed(kind, x) for kind in METRICS},
    "metrics.Alignment": lambda x: fed(metrics.Alignment, X, x),
    "metrics.CKA": lambda x: fed(metrics.CKA, X, x),
    "metrics.LiDAR": lambda x: fed(functools.partial(metrics.LiDAR, N), x),
    "metrics.NC1": lambda x: fed(functools.partial(metrics.NC1, 3), x, LABELS),
    **{f"{name}, mask": lambda m, call=call: call(X, mask=m) for name, call in CLOUDS.items()},
    "nc1, labels": lambda y: isonb.nc1(X, y),
    "label_groups, labels": lambda y: [group for _, group in isonb.label_groups(X, y)],
    "PersistentEntropyLoss, labels": lambda y: isonb.PersistentEntropyLoss()(X, y),
}


def inference(x):
    with torch.inference_mode():
        return x * 1


ODD = {
    **{
        f"points of {kind}": (3 * X).to(getattr(torch, kind))
        for kind in ("float32", "float16", "bfloat16", "int64", "uint8", "bool", "complex64", "float8_e4m3fn")
    },
    **{f"points of {kind} and float": (3 * X).float().to(getattr(torch, kind)) for kind in ("int32", "complex128")},
    **{f"points and {value}": torch.where(torch.arange(N)[:, None] == 5, value, X) for value in (math.nan, math.inf)},
    **{f"points at {size:g}": X.float() * size for size in (1e-38, 1e-30, 1e30, 1e38)},
    **{f"points at {size:g}": X * size for size in (1e-300, 1e300)},
    **{f"{n} points": X[:n] for n in (0, 1, 2, 3)},
    "no dimensions": X[:, :0],
    "nothing": X[:0, :0],
    "a scalar": torch.tensor(1.0),
    "a row": X[0],
    "a batch": X.view(2, 7, D),
    "no batch": X.view(2, 7, D)[:0],
    "a batch of one": X.view(1, 1, N, D),
    "another width": X[:, :5],
    "a transposed cloud": normal(D, N).mT,
    "every other row": normal(2 * N, 2 * D)[::2, ::2],
    "one point repeated": X[:1].expand(N, D),
    "a cloud repeated": X.expand(2, N, D),
    "in need of a gradient": X.clone().requires_grad_(),
    "a parameter": torch.nn.Parameter(X.clone()),
    "of inference": inference(X),
    "sparse": X.to_sparse(),
    "a list": X.tolist(),
    "nothing at all": None,
    "a word": "points",
    "a number": 1.0,
    **{f"a mask of {kind}": MASK.to(getattr(torch, kind)) for kind in ("bool", "int64", "uint8", "float32")},
    "a mask of nothing": ~MASK & False,
    "a mask of two rows": torch.arange(N) < 2,
    "a short mask": MASK[:-1],
    "a mask with an axis more": MASK[None],
    "a mask as a list": MASK.tolist(),
    "numbers for a mask": 2 * MASK.long(),
    "labels": LABELS,
}
BARS = ("h0_barcode", "rips_barcode")  # a bar may be longer than its type can say: inf, as infinite bars are
ROUGH = {  # what has no digits left at such sizes: the cosine of 1e30 radians, and a training that starts there
    ("SIGRegLoss", "points at 1e+30"),
    ("fit_flow", "points at 1e-30"),
    *((name, "points at 1e+38") for name in BARS),
}


def plain(odd):
    """The same in float64 and in one piece of memory, as far as it is a tensor of floats."""
    if not isinstance(odd, torch.Tensor) or not odd.is_floating_point() or odd.is_sparse:
        return odd
    return odd.detach().clone(memory_format=torch.contiguous_format).double()


def outcome(call, odd):
    """Its tensors, or its error."""
    try:
        return [leaf.detach() for leaf in leaves(call(odd))]
    except InputError as error:
        return error


def complaint(call, odd, size=False):
    """What is wrong with what comes out, or None."""
    try:
        found = outcome(call, odd)
        if isinstance(found, InputError):
            told = str(found)
            return None if "; got " in told and told.endswith(".") else f"not in three parts: {told}"
        if not all(bool(torch.isfinite(leaf).all()) for leaf in found if leaf.is_floating_point()):
            return "not finite"
        want = outcome(call, plain(odd))
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    if isinstance(want, InputError):  # on the edge of what a type holds
        return None if size else f"a value where float64 has none: {want}"
    for mine, theirs in zip(found, want, strict=True):
        scale = float(theirs.double().abs().max()) if theirs.numel() else 0.0
        near = max(1e-3, 2 * torch.finfo(mine.dtype).eps) if mine.is_floating_point() else 0
        if mine.shape != theirs.shape or not torch.allclose(mine.double(), theirs.double(), near, near * scale + 1e-6):
            return f"another value: {mine.flatten()[:3].tolist()} for {theirs.flatten()[:3].tolist()}"
    return None


@pytest.fixture(params=["compiled", "plain"])
def loops(request, monkeypatch):
    """Both ways: numba as it is installed, and as if it weren't."""
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "numba", None)

    def forget():
        for module in [module for name, module in sys.modules.items() if name.startswith("isonb.")]:
            for one in [one for one in vars(module).values() if hasattr(one, "cache_clear")]:
                one.cache_clear()

    forget()
    yield request.param
    forget()


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning", "ignore::isonb.errors.CloudWarning")
def test_the_right_value_or_the_one_typed_error(loops):
    torch.manual_seed(0)
    found = []
    for place, call in PLACES.items():
        for what, odd in ODD.items():
            if (place, what) not in ROUGH and (bad := complaint(call, odd, " at " in what)):
                found.append(f"{place} <- {what}: {bad}")
    assert not found, "\n".join([f"{len(found)} of {len(PLACES) * len(ODD)}", *found])


def test_every_public_name_has_a_place():
    of_no_points = {name for name in isonb.__all__ if name.endswith(("Error", "Warning"))} | {
        *("Audit", "audit", "compare", "load_transform", "Transform"),  # read files, with tests of their own
        *("IsotropyLayer", "ShrinkageCovariance"),  # torch's own Linear; a model and its loader
        *("Persistence", "from_diagrams", "to_diagrams"),  # what barcodes give, as other libraries keep it
        *("checks", "strict"),
    }
    assert set(isonb.__all__) - of_no_points <= {place.partition(",")[0] for place in PLACES}


def test_a_judge_that_can_convict():
    odd = ODD["every other row"]
    assert complaint(lambda x: x.view(-1), odd).startswith("RuntimeError")
    assert complaint(lambda x: x / 0, odd) == "not finite"
    assert complaint(lambda x: x + float(not x.is_contiguous()), odd).startswith("another value")
    assert complaint(lambda x: isonb.errors.fail(InputError, "it", "that", "Do"), odd).startswith("not in three parts")
    assert complaint(isonb.isoscore, odd) is None

"""Whatever is put in the place of points, to every public function: a right value with a gradient, or one typed error.

One table of what may be called, one of odd inputs, and a thousand clouds, or as many as the environment
variable ISONB_FUZZ says. Each is drawn from its own number, which a failure prints: ``ISONB_FUZZ_ONLY=17`` draws that
one again, with every function.
"""

import functools
import math
import os
import sys

import numpy as np
import pytest
import torch
from laws import LAWS
from support import as_on_an_accelerator, assert_same, normal

import isonb
from isonb import DegenerateError, DtypeError, InputError, ShapeError, metrics

N, D = 14, 6
X, Y = normal(N, D), normal(N, D, seed=1)
MASK = torch.arange(N) != 3
LABELS = torch.arange(N) % 3

CLOUDS = {  # by the name that an error begins with
    **{name: law for name, law in LAWS.items() if law.masked and " " not in name},
    "SoftDecay": lambda x, **mask: isonb.SoftDecay()(x, **mask),
    "token_cloud": isonb.token_cloud,
}
UNMASKED = {
    "cls_pool": isonb.cls_pool,
    "rips_barcode": isonb.rips_barcode,
    "isoscore_from_cov": isonb.isoscore_from_cov,
    "nc1": lambda x: isonb.nc1(x, LABELS),
    "IsoBN": lambda x: isonb.IsoBN(D)(x),
    "PersistentEntropyLoss": isonb.PersistentEntropyLoss(min_points=2),
    "lidar": isonb.lidar,
}
NUMBERS = {name: getattr(isonb, name.split()[0]) for name in LAWS if name.endswith(" of numbers")}
NUMBERS = {name.split()[0]: function for name, function in NUMBERS.items()}  # of numbers on the last axis
FITS = {
    kind.__name__: functools.partial(kind, *options)
    for kind, *options in (
        *((isonb.AllButTheTop, 1), (isonb.ClusterRemoval, 2, 1), (isonb.DimensionScale,), (isonb.MeanDirection,)),
        *((isonb.MeanTranslation,), (isonb.PartialWhitening,), (isonb.SingularDecay,), (isonb.SoftZCA,)),
        *((isonb.Standardize,), (isonb.Whitening,), (isonb.ZeroMean,)),
    )
}
METRICS = {
    **{kind.__name__: kind for kind in (metrics.Anisotropy, metrics.CosinePenalty, metrics.Covariance, metrics.VarEx,
                                        metrics.EffectiveRank, metrics.IsoScore, metrics.IsoScoreStar,
                                        metrics.MeanCosine, metrics.SpectralSkewness, metrics.TokenUniformity)},
    "Sampled": functools.partial(metrics.Sampled, isonb.two_nn),
}  # fmt: skip


def fed(make, *options, **extra):
    metric = make()
    metric.update(*(item.detach() if isinstance(item, torch.Tensor) else item for item in options), **extra)
    return metric.compute()


def refit(make, x, mask=None):
    return make().fit(x.detach() if isinstance(x, torch.Tensor) else x, mask).transform(x, mask)


def small_flow(x):
    """A flow with its dtype, so that one step of a cloud is quick."""
    return isonb.GlowFlow(x.shape[-1], levels=1, depth=1, width=4).to(torch.promote_types(x.dtype, torch.float32))


OPTIONS = {  # the same with other options, and classes that learn from the cloud and are applied to it
    **{name: law for name, law in LAWS.items() if law.masked and " " in name},
    **{
        f"h0_barcode {metric}": functools.partial(isonb.h0_barcode, metric=metric)
        for metric in ("cosine", "correlation", "sqeuclidean", "cityblock", "chebyshev")
    },
    "isoscore_star identity": lambda x, mask=None: isonb.isoscore_star(x, 0.2, torch.eye(x.shape[-1]), mask=mask),
    "alpha_req of all": lambda x, mask=None: isonb.alpha_req(x, 1, mask=mask),
    "Moments": lambda x, mask=None: isonb.Moments().update(x, mask).update(x, mask).cov,
    **{f"{name}, fit and transform": functools.partial(refit, make) for name, make in FITS.items()},
    **{f"metrics.{name}": functools.partial(fed, make) for name, make in METRICS.items()},
}
ALONE = {  # of points alone, as they come
    **{name: law for name, law in LAWS.items() if not law.masked and " " in name},
    "layer_average": lambda x: isonb.layer_average([x, x], layers=(0,)),
    "points_from_hidden_states": lambda x: isonb.points_from_hidden_states([x, x])[0],
    "sbert_wk of layers": lambda x: isonb.sbert_wk(
        torch.stack([x, x.flip(-1), x.roll(1, -1), x])[..., None, :, :].flatten(1, -3), layer_start=0
    ),
    "knn_queries": lambda x: isonb.knn_queries(x[::2], x, 2),
    "lidar of two": lambda x: isonb.lidar(torch.stack([x, x.flip(-1)], 1)),
    "nc1 of two": lambda x: isonb.nc1(x, torch.arange(len(x)) % 2),
    "Persistence": lambda x: [bars.diagram for bars in isonb.rips_barcode(x, 1, threshold=1.0, return_generators=True)],
    "mean_cosine sampled": lambda x, mask=None: isonb.mean_cosine(
        x, mask=mask, n_pairs=3, generator=torch.Generator().manual_seed(0)
    ),
    "from_diagrams to_diagrams": lambda x: isonb.from_diagrams(
        isonb.to_diagrams(isonb.rips_barcode(x, metric="cityblock"))
    ),
    "label_groups of two": lambda x: [group for _, group in isonb.label_groups(x, torch.arange(len(x)) % 2)],
    "IsoBN of any width": lambda x: isonb.IsoBN(x.shape[-1])(x),
    "entropy with noise": isonb.PersistentEntropyLoss(in_cluster=0.5, min_points=2),
    "entropy by label": lambda x: isonb.PersistentEntropyLoss(select=False)(x, torch.arange(len(x)) % 2),
    "JointLoss of sums": lambda x: isonb.JointLoss()(finite(x).sum(), finite(x).abs().sum()),
    "covariance of any cloud": lambda x: isonb.isoscore_from_cov(x.mT @ x),
    "flow of any width": lambda x: isonb.fit_flow(x, epochs=1, flow=small_flow(x))(x),
}


def finite(x):
    """For what takes losses: these are finite."""
    return x.float().nan_to_num(0, 0, 0)


OF_TWO = {"lsds": functools.partial(isonb.lsds, k=3), "alignment": isonb.alignment, "cka": isonb.cka}
PLACES = {  # name of the place -> what is computed of what stands there, beside good values in the others
    **{name: call for name, call in (CLOUDS | UNMASKED | NUMBERS).items() if name != "nc1"},
    **{f"{name}, x": lambda x, call=call: call(x, Y) for name, call in OF_TWO.items()},
    **{f"{name}, y": lambda y, call=call: call(X, y) for name, call in OF_TWO.items()},
    "knn_queries, queries": lambda x: isonb.knn_queries(x, X, 2),
    "knn_queries, corpus": lambda x: isonb.knn_queries(X, x, 2),
    "nc1": lambda x: isonb.nc1(x, LABELS),
    "label_groups": lambda x: [group for _, group in isonb.label_groups(x, LABELS)],
    "isoscore_star, shrinkage_cov": lambda x: isonb.isoscore_star(X, 0.2, x),
    "IStarLoss, shrinkage_cov": lambda x: isonb.IStarLoss()(X, x),
    **{name: ALONE[name] for name in ("layer_average", "points_from_hidden_states")},
    "sbert_wk": lambda x: isonb.sbert_wk([x, x, x, x], layer_start=0),
    "Moments": lambda x: isonb.Moments().update(x).cov,
    "JointLoss, first": lambda x: isonb.JointLoss()(x, torch.tensor(1.0)),
    "JointLoss, second": lambda x: isonb.JointLoss()(torch.tensor(1.0), x),
    "fit_flow": lambda x: isonb.fit_flow(x).transform(X),
    "GlowFlow": lambda x: isonb.fit_flow(X).transform(x),
    **{f"{name}, fit": lambda x, make=make: make().fit(x).transform(X) for name, make in FITS.items()},
    **{f"{name}, transform": lambda x, make=make: make().fit(X).transform(x) for name, make in FITS.items()},
    **{f"metrics.{name}": functools.partial(fed, make) for name, make in METRICS.items()},
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


def frozen(array):
    array.flags.writeable = False
    return array


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
    "an array": X.numpy(),
    "an array of float16": X.numpy().astype(np.float16),
    "an array read backwards": X.numpy()[::-1],
    "an array by columns": np.asfortranarray(X.numpy()),
    "an array of the other byte order": X.numpy().astype(">f8"),
    "a frozen array": frozen(X.numpy().copy()),
    "an array of words": np.full((N, D), "a"),
    "an array of objects": np.full((N, D), None),
    "an array of times": np.ones((N, D), dtype="datetime64[s]"),
    **{f"a mask of {kind}": MASK.to(getattr(torch, kind)) for kind in ("bool", "int64", "uint8", "float32")},
    "a mask as an array": MASK.numpy(),
    "a mask of nothing": ~MASK & False,
    "a mask of two rows": torch.arange(N) < 2,
    "a short mask": MASK[:-1],
    "a mask with an axis more": MASK[None],
    "a mask as a list": MASK.tolist(),
    "numbers for a mask": 2 * MASK.long(),
    "labels": LABELS,
    "labels as an array": LABELS.numpy(),
}
BARS = ("h0_barcode", "rips_barcode")  # a bar may be longer than its type can say: inf, as infinite bars are
ROUGH = {  # what has no digits left at such sizes: a training that starts there
    ("fit_flow", "points at 1e-30"),
    *((name, "points at 1e+38") for name in BARS),
}


WITH_LOOPS = ("barcode", "Entropy", "knn", "lsds", "dimension", "two_nn", "id_score", "uniformity", "Sampled")


def plain(odd):
    """The same in float64 and in one piece of memory, as far as it is a tensor of floats, or an array."""
    if isinstance(odd, np.ndarray):
        odd = torch.from_numpy(odd.astype(odd.dtype.newbyteorder("=")).copy()) if odd.dtype.kind in "fib" else odd
    if not isinstance(odd, torch.Tensor) or not odd.is_floating_point() or odd.is_sparse:
        return odd
    return odd.detach().clone(memory_format=torch.contiguous_format).double()


def outcome(call, odd):
    """Its tensors, or its error."""
    try:
        return [leaf.detach() for leaf in leaves(call(odd))]
    except InputError as error:
        return error


def leaves(out):
    """Every tensor of a result, without the numbers that may stand beside."""
    if isinstance(out, torch.Tensor):
        return [out]
    return [leaf for part in out if not isinstance(part, int) for leaf in leaves(part)]


def complaint(call, odd, size=False):
    """What is wrong with what comes out, or None."""
    try:
        result = outcome(call, odd)
        if isinstance(result, InputError):
            report = str(result)
            return None if "; got " in report and report.endswith(".") else f"not in three parts: {report}"
        if not all(bool(torch.isfinite(leaf).all()) for leaf in result if leaf.is_floating_point()):
            return "not finite"
        want = outcome(call, plain(odd))
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    if isinstance(want, InputError):  # on the edge of what a type holds
        return None if size else f"a value where float64 has none: {want}"
    for mine, theirs in zip(result, want, strict=True):
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
            for value in [item for item in vars(module).values() if hasattr(item, "cache_clear")]:
                value.cache_clear()

    forget()
    yield request.param
    forget()


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning", "ignore::isonb.errors.CloudWarning")
def test_the_right_value_or_the_one_typed_error(loops):
    torch.manual_seed(0)
    places = [place for place in PLACES if loops == "compiled" or any(part in place for part in WITH_LOOPS)]
    results = [
        f"{place} <- {what}: {bad}"
        for place in places
        for what, odd in ODD.items()
        if (place, what) not in ROUGH and (bad := complaint(PLACES[place], odd, " at " in what))
    ]
    assert not results, "\n".join([f"{len(results)} of {len(places) * len(ODD)}", *results])


ONE_IS_ENOUGH = {*("centered", "mean_pool", "negative_count", "singular_values", "soft_decay", "SoftDecay"),
                 *("token_cloud", "cls_pool", "anisotropy", "effective_rank")}  # fmt: skip
LOSSES = {name for name in CLOUDS | UNMASKED if name.endswith("Loss")} | {"IsoBN"}  # they take the batch that comes
WITHIN = {"GaoCosineLoss": "CosRegLoss", "SIGRegLoss": "sigreg_penalty", "SoftDecay": "soft_decay",
          "IsoBN": "isobn_statistics"}  # fmt: skip  # what names itself in their errors
KINDS_OF_INPUT = {  # of which kind the error is, whatever the function
    "points and nan": DegenerateError,
    "points and inf": DegenerateError,
    "a row": ShapeError,
    "0 points": ShapeError,
    "1 points": ShapeError,
    "no dimensions": ShapeError,
    "points of int64": DtypeError,
    "points of bool": DtypeError,
    "points of complex64": DtypeError,
    "a list": DtypeError,
}


@pytest.mark.parametrize("name", CLOUDS | UNMASKED)
def test_an_error_names_the_function_and_is_of_its_kind(name):
    call = (CLOUDS | UNMASKED)[name]
    for what, kind in KINDS_OF_INPUT.items():
        odd = ODD[what]
        if name == "lidar" and isinstance(odd, torch.Tensor):
            odd = odd.unsqueeze(-2).expand(*odd.shape[:-1], 2, odd.shape[-1])
        taken = (name in LOSSES and what.endswith("points")) or (name in ONE_IS_ENOUGH and what == "1 points")
        if taken:
            assert all(torch.isfinite(leaf).all() for leaf in leaves(call(odd)))
            continue
        with pytest.raises(InputError, match=rf"^({name}|{WITHIN.get(name)}): .*; got .*\.") as caught:
            call(odd)
        assert isinstance(caught.value, kind), (what, caught.value)
    for bad, kind in ((MASK[:-1], ShapeError), (MASK[None], ShapeError), (MASK.float(), DtypeError)):
        if name in CLOUDS:
            with pytest.raises(kind, match=f"^({name}|{WITHIN.get(name)}): mask must "):
                call(X, mask=bad)


FLAT = {  # what fourteen points of ones give where that is not an error
    **dict.fromkeys(("anisotropy", "effective_rank", "cls_uniformity", "mean_cosine", "token_uniformity"), 1.0),
    **dict.fromkeys(("mean_pool", "token_cloud", "cls_pool"), 1.0),
    **dict.fromkeys(("centered", "h0_barcode", "negative_count", "rbf_uniformity", "PersistentEntropyLoss"), 0.0),
    **dict.fromkeys(("cosine_penalty", "CosRegLoss", "GaoCosineLoss"), 1 - 1 / N),
    "cosine_contributions": 1 / D,
    "GORLoss": 2 - 1 / D,
    **dict.fromkeys(("knn", "singular_values", "soft_decay", "SoftDecay", "partition_score", "SIGRegLoss", "IsoBN")),
    **dict.fromkeys(("SpectrumControlLoss", "rips_barcode")),
}


@pytest.mark.parametrize("name", [name for name in CLOUDS | UNMASKED if name != "lidar"])
def test_all_points_equal(name):
    call, x = (CLOUDS | UNMASKED)[name], torch.ones(N, D, dtype=torch.float64)
    if name not in FLAT:
        with pytest.raises(ShapeError if name == "isoscore_from_cov" else DegenerateError, match=f"^{name}: "):
            call(x)
        return
    out = leaves(call(x))
    assert all(torch.isfinite(leaf).all() for leaf in out)
    if (want := FLAT[name]) is not None:
        torch.testing.assert_close(out[0].double(), torch.tensor(want, dtype=torch.float64).expand_as(out[0]))


DRAWN = int(os.environ.get("ISONB_FUZZ", 1000))
ONLY = os.environ.get("ISONB_FUZZ_ONLY")
PARTS = 4  # tests that the clouds are spread over
CALLS = 3  # functions a cloud goes through, in turn
BROKE = (2605, 15621, 23196, 40065, 42720, 49437)  # have shown faults, now mended
TABLE = {
    **{name: lambda x, mask, call=call: call(x, mask=mask) for name, call in (CLOUDS | OPTIONS).items()},
    **{name: lambda x, mask, call=call: call(x) for name, call in (UNMASKED | ALONE).items()},
}
NAMES = sorted(TABLE)
KINDS = ("plain", "plain", "duplicates", "zero rows", "equal", "one line", "offset", "a far row", "dead columns",
         "rows of any length", "lattice", "zeros")  # fmt: skip
DTYPES = (torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16)


def drawn(number):
    """A cloud, its mask or None, and words for it; the same for a number on every machine."""
    draw = torch.Generator().manual_seed(number)

    def pick(*among):
        return among[int(torch.randint(len(among), (1,), generator=draw))]

    n, d, batch = pick(0, 1, 2, 3, 4, 5, 6, 8, 12), pick(1, 2, 3, 4, 7, 10), pick((), (), (), (2,), (0,), (2, 1))
    dtype, kind, power = pick(*DTYPES), pick(*KINDS), pick(-1, -0.65, -0.5, -0.3, 0, 0.3, 0.5, 0.65, 1)
    reach = 3 if dtype == torch.float16 else 30  # sizes from 1e-30 to 1e30
    x = torch.randn(*batch, n, d, generator=draw, dtype=torch.float64)
    if kind == "duplicates":
        x = x[..., torch.randint(max(1, n // 2), (n,), generator=draw), :] if n else x
    elif kind == "zero rows":
        x[..., ::2, :] = 0
    elif kind == "equal":
        x[:] = 1.1
    elif kind == "one line":
        x = x[..., :1] * torch.arange(1, d + 1)
    elif kind == "offset":
        x = x + 100
    elif kind == "a far row":
        reach *= 0.8
        x[..., :1, :] *= 10 ** (reach / 4)
    elif kind == "dead columns":
        x[..., d // 2 :] = 0.5
    elif kind == "rows of any length":
        reach *= 0.5
        x = x * 10.0 ** ((torch.rand(n, 1, generator=draw) * 2 - 1) * reach)
    elif kind == "lattice":
        x = x.round()
    elif kind == "zeros":
        x = x * 0
    x = (x * 10.0 ** (power * reach)).to(dtype)
    mask = pick(None, None, torch.rand(*batch, n, generator=draw) < 0.7, torch.zeros(*batch, n, dtype=torch.bool))
    text = f"cloud {number}: {kind} {tuple(x.shape)} {dtype} at 1e{power * reach:g}"
    return x, mask, text if mask is None else f"{text}, {int(mask.sum())} rows under a mask"


def slip(name, x, mask, infinite=False):
    """What is wrong with this function on this cloud, or None. A gradient in float16 ends at 65,504: not judged."""
    x = x.clone().requires_grad_()
    try:
        out = [leaf for leaf in leaves(TABLE[name](x, mask)) if leaf.is_floating_point()]
        if any(bool(part.isnan().any() if infinite else ~part.isfinite().all()) for part in out):
            return "not finite"
        live = [part.double().sum() for part in out if part.requires_grad]
        if live and x.dtype != torch.float16:
            (slope,) = torch.autograd.grad(torch.stack(live).sum(), x, allow_unused=True)
            if slope is not None and not bool(torch.isfinite(slope).all()):
                return "gradient not finite"
    except InputError as error:
        return None if str(error).endswith(".") else f"no sentence: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_nan_no_inf_no_untyped_error(part):
    results = []
    for number in range(part, DRAWN, PARTS) if ONLY is None else [int(ONLY)]:
        x, mask, text = drawn(number)
        first = number * CALLS % len(NAMES)
        calls = (NAMES * 2)[first : first + CALLS] if ONLY is None else NAMES
        results += [f"{text}: {name} {bad}" for name in calls if (bad := slip(name, x, mask))]
    assert not results, "\n".join([f"{len(results)} of {DRAWN} clouds", *results[:40]])


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize("number", BROKE)
def test_what_broke_once(number):
    x, mask, text = drawn(number)
    result = {name: bad for name in NAMES if (bad := slip(name, x, mask))}
    assert not result, text


@pytest.mark.parametrize("name", sorted(CLOUDS | UNMASKED) + [name for name in OPTIONS if "fit" not in name])
@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
def test_never_nan_where_values_are_not_looked_at(name, monkeypatch):
    """What an accelerator computes: the same code with the value checks off."""
    as_on_an_accelerator(monkeypatch)
    far = {"metrics.Sampled", "two_nn", "two_nn keep", "mle_dimension", "local_dimension", "id_score"}
    few = {"knn", "lsds of two", "lsds code", "partition_score", "partition_score canonical"}  # inf: none is farther
    masks = (None, torch.zeros(N, dtype=torch.bool), torch.arange(N) == 2)[: 1 if name in far | few else 3]
    for x in (torch.zeros(N, D), torch.ones(N, D), normal(N, 1) @ normal(1, D, seed=1).double(), torch.eye(N, D)):
        for mask in masks:
            assert slip(name, x.double(), mask, name in far) is None, (x, mask)


LIMITS = {  # of equal points where values are not looked at
    **dict.fromkeys(("isoscore", "isoscore unbiased", "varex_score", "explained_variance"), 0.0),
    **dict.fromkeys(("two_nn", "two_nn keep", "mle_dimension"), math.inf),
    "spectral_skewness of numbers": 0.0,
    "participation_ratio": 1.0,
}
NOTHING = {  # of zeros
    **{name: 0.0 for name in CLOUDS if "cosine" in name or "uniformity" in name},
    **dict.fromkeys(("anisotropy", "spectral_median of numbers", "persistent_entropy of numbers"), 0.0),
}


@pytest.mark.parametrize(("size", "limits"), [(0.1, LIMITS), (0.0, NOTHING)])
def test_the_documented_limits_where_values_are_not_looked_at(size, limits, monkeypatch):
    as_on_an_accelerator(monkeypatch)
    x = torch.full((9, 3), size) + 1e3 * (size > 0)
    for name, limit in limits.items():
        for out in leaves(TABLE[name](x, None)):
            assert_same(out, torch.full_like(out, limit), atol=1e-6)


def test_every_public_name_has_a_place():
    of_no_points = {name for name in isonb.__all__ if name.endswith(("Error", "Warning"))} | {
        *("Audit", "audit", "compare", "load_transform", "Transform"),  # read files, with tests of their own
        *("IsotropyLayer", "ShrinkageCovariance"),  # torch's own Linear; a model and its loader
        *("Persistence", "from_diagrams", "to_diagrams"),  # what barcodes give, as other libraries keep it
        *("checks", "strict"),
    }
    assert set(isonb.__all__) - of_no_points <= {place.partition(",")[0] for place in PLACES}
    assert {"Persistence", "from_diagrams", "to_diagrams"} <= {word for name in TABLE for word in name.split()}


def test_judges_that_can_convict(monkeypatch):
    odd = ODD["every other row"]
    assert complaint(lambda x: x.view(-1), odd).startswith("RuntimeError")
    assert complaint(lambda x: x / 0, odd) == "not finite"
    assert complaint(lambda x: x + float(not x.is_contiguous()), odd).startswith("another value")
    assert complaint(lambda x: isonb.errors.fail(InputError, "it", "that", "Do"), odd).startswith("not in three parts")
    monkeypatch.setitem(TABLE, "nan", lambda x, mask: x * math.nan)
    monkeypatch.setitem(TABLE, "steep", lambda x, mask: x.abs().sqrt())
    assert [slip(name, torch.zeros(3, 2), None) for name in ("nan", "steep")] == ["not finite", "gradient not finite"]

"""Odd clouds by the thousand: every public function gives finite numbers and gradients, or a typed error that names it.

2,000 clouds, or as many as the environment variable ISONB_FUZZ says. Each is drawn from its own number, which a failure
prints: ``ISONB_FUZZ_ONLY=17`` draws that one again, with every function.
"""

import math
import os
from functools import partial

import pytest
import torch
from support import as_on_an_accelerator
from test_bad_input import CLOUDS as MEASURES
from test_bad_input import NUMBERS

import isonb
from isonb import InputError, metrics
from isonb.streaming.traces import squared_traces

CLOUDS = int(os.environ.get("ISONB_FUZZ", 2000))
ONLY = os.environ.get("ISONB_FUZZ_ONLY")
PARTS = 8  # tests that the clouds are spread over
CALLS = 3  # functions a cloud goes through, in turn
BROKE = (2605, 15621, 23196, 40065, 42720, 49437)  # found by long runs, and mended

METRICS = (metrics.CosinePenalty, metrics.EffectiveRank, metrics.IsoScore, metrics.IsoScoreStar,
           metrics.SpectralSkewness, metrics.TokenUniformity, metrics.VarEx)  # fmt: skip


def computed(kind, x, mask):
    metric = kind()
    metric.update(x.detach(), mask)
    return metric.compute()


def finite(x):
    """For what takes losses: these are finite, and rows off the mask needn't be."""
    return x.float().nan_to_num(0, 0, 0)


def turned(kind, x, mask):
    return kind().fit(x.detach(), mask).transform(x, mask)


ANY = {  # of points and a mask, any leading axes
    **{name: lambda x, mask, call=call: call(x, mask=mask) for name, call in MEASURES.items()},
    **{
        f"h0_barcode {metric}": lambda x, mask, metric=metric: isonb.h0_barcode(x, mask=mask, metric=metric)
        for metric in ("cosine", "correlation", "sqeuclidean", "cityblock", "chebyshev")
    },
    "isoscore unbiased": lambda x, mask: isonb.isoscore(x, unbiased=True, mask=mask),
    "isoscore_star auto": lambda x, mask: isonb.isoscore_star(x, "auto", mask=mask),
    "isoscore_star matrix": lambda x, mask: isonb.isoscore_star(x, 0.2, torch.eye(x.shape[-1]), mask=mask),
    "lsds code": lambda x, mask: isonb.lsds(x, x.flip(-1), 2, mode="code", mask=mask),
    "mean_cosine sampled": lambda x, mask: isonb.mean_cosine(x, mask=mask, n_pairs=3),
    "rbf_uniformity raw": lambda x, mask: isonb.rbf_uniformity(x, normalize=False, mask=mask, chunk=7),
    "soft_decay safe": lambda x, mask: isonb.soft_decay(x, mode="safe", mask=mask),
    "SpectrumControlLoss": isonb.SpectrumControlLoss(),
    "squared_traces": lambda x, mask: squared_traces(x, mask=mask),
    "two_nn kept": lambda x, mask: isonb.two_nn(x, keep=0.5, mask=mask),
    # classes: learned from the cloud and applied to it
    "AllButTheTop": lambda x, mask: isonb.AllButTheTop(1).fit(x.detach(), mask).transform(x, mask),
    "ClusterRemoval": lambda x, mask: isonb.ClusterRemoval(2, 1).fit(x.detach(), mask).transform(x, mask),
    "MeanDirection": lambda x, mask: isonb.MeanDirection().fit(x.detach(), mask).transform(x, mask),
    "SoftDecay": lambda x, mask: isonb.SoftDecay()(x, mask),
    "alignment": lambda x, mask: isonb.alignment(x, x.flip(-1), mask=mask),
    "alignment as it is": lambda x, mask: isonb.alignment(x, x.flip(-1), 1.0, False, mask=mask),
    "alpha_req": lambda x, mask: isonb.alpha_req(x, 1, mask=mask),
    "cka": lambda x, mask: isonb.cka(x, x.flip(-1), mask=mask),
    "cka debiased": lambda x, mask: isonb.cka(x, x.flip(-1), debiased=True, mask=mask),
    "effective_rank": lambda x, mask: isonb.effective_rank(x, mask=mask),
    "effective_rank low": lambda x, mask: isonb.effective_rank(x, 0.2, center=True, mask=mask),
    "effective_rank infinite": lambda x, mask: isonb.effective_rank(x, math.inf, squared=True, mask=mask),
    "local_dimension": lambda x, mask: isonb.local_dimension(x, 2, mask=mask),
    "SoftZCA": lambda x, mask: isonb.SoftZCA().fit(x.detach(), mask).transform(x, mask),
    **{
        kind.__name__: partial(turned, kind)
        for kind in (
            isonb.PartialWhitening,
            isonb.MeanShift,
            isonb.DimensionScale,
            isonb.Standardise,
            isonb.SingularDecay,
        )
    },
    "Whitening": lambda x, mask: isonb.Whitening().fit(x.detach(), mask).transform(x, mask),
    "ZeroMean": lambda x, mask: isonb.ZeroMean().fit(x.detach(), mask).transform(x, mask),
    "Moments": lambda x, mask: isonb.Moments().update(x, mask).update(x, mask).cov,
    **{f"metric {kind.__name__}": partial(computed, kind) for kind in METRICS},
}
ALONE = {  # of points alone
    **{name: lambda x, call=call: call(x[..., 0].abs()) for name, call in NUMBERS.items()},
    "cls_pool": isonb.cls_pool,
    "layer_average": lambda x: isonb.layer_average(x.unsqueeze(0), layers=(0,)),
    "points_from_hidden_states": lambda x: isonb.points_from_hidden_states([x, x])[0],
    "sbert_wk": lambda x: isonb.sbert_wk(
        torch.stack([x, x.flip(-1), x.roll(1, -1), x])[..., None, :, :].flatten(1, -3)
    ),
    "knn_queries": lambda x: isonb.knn_queries(x[::2], x, 2),
    "lidar": lambda x: isonb.lidar(torch.stack([x, x.flip(-1)], 1)),
    "nc1": lambda x: isonb.nc1(x, torch.arange(len(x)) % 2),
    "rips_barcode": lambda x: isonb.rips_barcode(x, 1),
    "Persistence": lambda x: [bars.diagram for bars in isonb.rips_barcode(x, 1, threshold=1.0, return_generators=True)],
    "from_diagrams to_diagrams": lambda x: isonb.from_diagrams(isonb.to_diagrams(isonb.rips_barcode(x, metric="l1"))),
    "label_groups": lambda x: [group for _, group in isonb.label_groups(x, torch.arange(len(x)) % 2)],
    "CosRegLoss": isonb.CosRegLoss(),
    "GaoCosineLoss": isonb.GaoCosineLoss(),
    "GORLoss": isonb.GORLoss(),
    "SIGRegLoss": isonb.SIGRegLoss(slices=8),
    "SIGReg of directions": isonb.SIGRegLoss(slices=8, normalize=True),
    "IsoBN": lambda x: isonb.IsoBN(x.shape[-1])(x),
    "IsoScoreLoss": isonb.IsoScoreLoss(),
    "IStarLoss": isonb.IStarLoss(),
    "PersistentEntropyLoss": isonb.PersistentEntropyLoss(in_cluster=0.5, min_points=2),
    "entropy by label": lambda x: isonb.PersistentEntropyLoss(select=False)(x, torch.arange(len(x)) % 2),
    "JointLoss": lambda x: isonb.JointLoss()(finite(x).sum(), finite(x).abs().sum()),
    "isoscore_from_cov": lambda x: isonb.isoscore_from_cov(x.mT @ x),
    "fit_flow": lambda x: isonb.fit_flow(x, epochs=1, flow=small_flow(x))(x),
}
TABLE = {**ANY, **{name: (lambda x, mask, call=call: call(x)) for name, call in ALONE.items()}}
NAMES = sorted(TABLE)
KINDS = ("plain", "plain", "duplicates", "zero rows", "equal", "one line", "offset", "a far row", "dead columns",
         "rows of any length", "lattice", "zeros")  # fmt: skip
DTYPES = (torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16)


def small_flow(x):
    return isonb.GlowFlow(x.shape[-1], levels=1, depth=1, width=4).to(torch.promote_types(x.dtype, torch.float32))


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
    words = f"cloud {number}: {kind} {tuple(x.shape)} {dtype} at 1e{power * reach:g}"
    return x, mask, words if mask is None else f"{words}, {int(mask.sum())} rows under a mask"


def flat(out):
    if isinstance(out, torch.Tensor):
        return [out] if out.is_floating_point() else []
    return [part for item in out for part in flat(item)]


def complaint(name, x, mask):
    """What is wrong with this function on this cloud, or None. A gradient in float16 ends at 65,504: not judged."""
    x = x.clone().requires_grad_()
    try:
        out = flat(TABLE[name](x, mask))
        if not all(bool(torch.isfinite(part).all()) for part in out):
            return "not finite"
        live = [part.sum() for part in out if part.requires_grad]
        if live and x.dtype != torch.float16:
            (slope,) = torch.autograd.grad(torch.stack([part.double() for part in live]).sum(), x, allow_unused=True)
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
    found = []
    for number in range(part, CLOUDS, PARTS) if ONLY is None else [int(ONLY)]:
        x, mask, words = drawn(number)
        first = number * CALLS % len(NAMES)
        calls = (NAMES * 2)[first : first + CALLS] if ONLY is None else NAMES
        found += [f"{words}: {name} {bad}" for name in calls if (bad := complaint(name, x, mask))]
    assert not found, "\n".join([f"{len(found)} of {CLOUDS} clouds", *found[:40]])


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize("number", BROKE)
def test_what_broke_once(number):
    x, mask, words = drawn(number)
    found = {name: bad for name in NAMES if (bad := complaint(name, x, mask))}
    assert not found, words


def test_every_public_name_is_drawn():
    mentioned = {word for name in TABLE for word in name.split()} | {"fit_flow"}
    not_of_clouds = {name for name in isonb.__all__ if name.endswith(("Error", "Warning"))} | {
        *("checks", "strict", "load_transform", "Transform"),  # no arithmetic
        *("audit", "Audit", "compare"),  # of many rows, with files of their own
        *("GlowFlow", "IsotropyLayer", "ShrinkageCovariance"),  # fit_flow, torch's own Linear, Moments
    }
    assert set(isonb.__all__) - not_of_clouds <= mentioned


def test_a_fuzz_that_can_fail(monkeypatch):
    """The judge sees a NaN, an infinite gradient and an untyped error."""
    monkeypatch.setitem(TABLE, "nan", lambda x, mask: x * math.nan)
    monkeypatch.setitem(TABLE, "steep", lambda x, mask: x.abs().sqrt())
    monkeypatch.setitem(TABLE, "broken", lambda x, mask: x.view(7, 7))
    x = torch.zeros(3, 2)
    assert complaint("nan", x, None) == "not finite"
    assert complaint("steep", x, None) == "gradient not finite"
    assert complaint("broken", x, None).startswith("RuntimeError")
    assert complaint("isoscore", x, None) is None  # a typed error
    as_on_an_accelerator(monkeypatch)
    assert complaint("isoscore", x, None) is None  # a limit

"""Every public function against every kind of bad input: a typed error that names it, or the documented limit.

The table is checked to be complete: a public name that is in no table fails here.
"""

import inspect
import math

import pytest
import torch

import isonb
from isonb import DegenerateError, DtypeError, InputError, ShapeError
from tests.support import normal

N, D = 24, 5


def points(*shape: int) -> torch.Tensor:
    """A well-behaved float64 cloud."""
    return normal(*(shape or (N, D)), seed=3) + 0.3


# name -> the function of one cloud, its other arguments filled in
CLOUDS = {
    "alignment": lambda x, **kw: isonb.alignment(x, x.flip(-1) if x.ndim > 1 else x, **kw),
    "alpha_req": lambda x, **kw: isonb.alpha_req(x, first=2, **kw),
    "cka": lambda x, **kw: isonb.cka(x, x.flip(-1) if x.ndim > 1 else x, **kw),
    "effective_rank": isonb.effective_rank,
    "local_dimension": lambda x, **kw: isonb.local_dimension(x, k=3, **kw),
    "anisotropy": lambda x, **kw: isonb.anisotropy(x, k=2, **kw),
    "centered": isonb.centered,
    "cls_uniformity": isonb.cls_uniformity,
    "cosine_contributions": isonb.cosine_contributions,
    "cosine_penalty": isonb.cosine_penalty,
    "explained_variance": lambda x, **kw: isonb.explained_variance(x, k=2, center=True, **kw),
    "h0_barcode": isonb.h0_barcode,
    "id_score": lambda x, **kw: isonb.id_score(x, k=3, **kw),
    "isoscore": isonb.isoscore,
    "isoscore_star": isonb.isoscore_star,
    "knn": lambda x, **kw: isonb.knn(x, 3, **kw),
    "lsds": lambda x, **kw: isonb.lsds(x, x.flip(-1) if x.ndim > 1 else x, k=3, **kw),
    "mean_cosine": isonb.mean_cosine,
    "mean_pool": isonb.mean_pool,
    "mle_dimension": lambda x, **kw: isonb.mle_dimension(x, k=3, **kw),
    "negative_count": isonb.negative_count,
    "participation_ratio": isonb.participation_ratio,
    "partition_score": isonb.partition_score,
    "rbf_uniformity": isonb.rbf_uniformity,
    "shrinkage_intensity": isonb.shrinkage_intensity,
    "singular_values": isonb.singular_values,
    "soft_decay": isonb.soft_decay,
    "token_cloud": isonb.token_cloud,
    "token_uniformity": isonb.token_uniformity,
    "two_nn": isonb.two_nn,
    "varex_score": lambda x, **kw: isonb.varex_score(x, p=0.5, **kw),
}
UNMASKED = {
    "cls_pool": isonb.cls_pool,
    "layer_average": lambda x: isonb.layer_average(x, layers=(0, -1)),
    "rips_barcode": isonb.rips_barcode,
    "isoscore_from_cov": isonb.isoscore_from_cov,
    "knn_queries": lambda x: isonb.knn_queries(x, x, 2),
    "lidar": lambda x: isonb.lidar(x.unsqueeze(-2).expand(-1, 2, -1) if x.ndim == 2 else x),
    "nc1": lambda x: isonb.nc1(x, torch.arange(len(x)) % 3),
    "label_groups": lambda x: list(isonb.label_groups(x, torch.zeros(x.shape[:1], dtype=torch.long))),
}
NUMBERS = {  # functions of numbers on the last axis
    "persistent_entropy": isonb.persistent_entropy,
    "prominent_bars": isonb.prominent_bars,
    "spectral_cdf": isonb.spectral_cdf,
    "spectral_median": isonb.spectral_median,
    "spectral_skewness": isonb.spectral_skewness,
}
ELSEWHERE = {  # classes and the vocabulary of errors: tested with their own files
    *(
        name
        for name in isonb.__all__
        if inspect.isclass(getattr(isonb, name)) or inspect.ismodule(getattr(isonb, name))
    ),
    "strict",
    "audit",
    "compare",
    "fit_flow",
    "from_diagrams",
    "load_transform",
    "points_from_hidden_states",
    "sbert_wk",
    "to_diagrams",
}
ALL = CLOUDS | UNMASKED
# one point is a cloud for these
ONE_IS_ENOUGH = {"centered", "mean_pool", "negative_count", "singular_values", "soft_decay", "token_cloud", "cls_pool",
                 "layer_average", "label_groups", "anisotropy", "isoscore_from_cov", "alignment",
                 "effective_rank"}  # fmt: skip
# what all points equal to (1, ..., 1) give where that is not an error
FLAT = {
    "alignment": 0.0,
    "anisotropy": [1.0, 0.0],
    "effective_rank": 1.0,
    "knn_queries": None,
    "centered": 0.0,
    "cls_uniformity": 1.0,
    "cosine_penalty": 1 - 1 / N,
    "h0_barcode": 0.0,
    "mean_cosine": 1.0,
    "negative_count": 0,
    "partition_score": None,
    "rbf_uniformity": 0.0,
    "token_uniformity": 1.0,
    **dict.fromkeys(("cosine_contributions", "knn", "lsds", "mean_pool", "singular_values", "soft_decay")),
    **dict.fromkeys(("token_cloud", "cls_pool", "label_groups", "layer_average", "rips_barcode", "isoscore_from_cov")),
}
SEQUENCES = (
    "layer_average",
    "label_groups",
    "lsds",
    "alignment",
    "cka",
    "lidar",
)  # they take one, or the table looks at the shape of x
INFINITE = {
    "local_dimension",
    "mle_dimension",
    "two_nn",
}  # no neighbour is farther than another: the documented limit is inf


def leaves(out):
    """Every tensor of a result."""
    if isinstance(out, torch.Tensor):
        return [out]
    return [leaf for part in out if not isinstance(part, int) for leaf in leaves(part)]


def expect(kinds, name, call, *args, **kwargs):
    """``call`` raises one of ``kinds``, says its own name, and what to do."""
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, kinds), f"{name}: {type(caught.value).__name__}"
    text = str(caught.value)
    assert text.startswith(f"{name}: "), text
    assert "; got " in text, text
    assert text.endswith("."), text


def test_the_table_is_complete():
    assert set(CLOUDS) | set(UNMASKED) | set(NUMBERS) | ELSEWHERE == set(isonb.__all__)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite(name, bad):
    x = points(D, D) if name == "isoscore_from_cov" else points()
    x[3, 1] = bad
    expect(DegenerateError, name, ALL[name], x)


@pytest.mark.parametrize("name", ALL)
def test_wrong_rank(name):
    expect(ShapeError, name, ALL[name], points(N))


@pytest.mark.parametrize(
    ("name", "n"), [(name, n) for name in ALL for n in (0, 1) if not (n and name in ONE_IS_ENOUGH)]
)
def test_too_few_points(name, n):
    expect(ShapeError, name, ALL[name], points(N)[: n * D].reshape(n, D))


@pytest.mark.parametrize("name", sorted(ONE_IS_ENOUGH))
def test_one_point_is_enough(name):
    x = torch.eye(2, dtype=torch.float64) if name == "isoscore_from_cov" else points(1, D)
    call = (lambda x: isonb.anisotropy(x, k=1)) if name == "anisotropy" else ALL[name]
    assert all(torch.isfinite(leaf).all() for leaf in leaves(call(x)))


@pytest.mark.parametrize("name", ALL)
def test_no_dimensions(name):
    expect(ShapeError, name, ALL[name], torch.zeros(N, 0, dtype=torch.float64))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.complex64])
def test_wrong_dtype(name, kind):
    expect(DtypeError, name, ALL[name], points().to(kind))


@pytest.mark.parametrize("name", [name for name in ALL if name not in SEQUENCES])
def test_not_a_tensor(name):
    expect(DtypeError, name, ALL[name], points().tolist())


@pytest.mark.parametrize("name", CLOUDS)
def test_mask_of_another_shape_or_kind(name):
    expect(ShapeError, name, CLOUDS[name], points(), mask=torch.ones(N - 1, dtype=torch.bool))
    expect(ShapeError, name, CLOUDS[name], points(), mask=torch.ones(1, N, dtype=torch.bool))
    expect(DtypeError, name, CLOUDS[name], points(), mask=torch.ones(N))
    expect(InputError, name, CLOUDS[name], points(), mask=torch.zeros(N, dtype=torch.bool))


@pytest.mark.parametrize("name", [name for name in CLOUDS if name not in SEQUENCES])  # a partner is made from x
def test_bad_values_behind_the_mask_do_not_matter(name):
    x, mask = points(), torch.ones(N, dtype=torch.bool)
    mask[[4, 9]] = False
    want = CLOUDS[name](x, mask=mask)
    x[4], x[9] = math.nan, math.inf
    for a, b in zip(leaves(CLOUDS[name](x, mask=mask)), leaves(want), strict=True):
        torch.testing.assert_close(a, b, equal_nan=False)


@pytest.mark.parametrize("name", ALL)
def test_all_points_equal(name):
    x = torch.ones((D, D) if name == "isoscore_from_cov" else (N, D), dtype=torch.float64)
    if name not in FLAT:
        expect(DegenerateError, name, ALL[name], x)
        return
    out = leaves(ALL[name](x))
    assert all(torch.isfinite(leaf).all() for leaf in out)
    if FLAT[name] is not None:
        torch.testing.assert_close(out[0].double(), torch.tensor(FLAT[name], dtype=torch.float64).expand_as(out[0]))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_never_nan_where_values_are_not_looked_at(name, value, monkeypatch):
    """What an accelerator computes: the same code with the value checks off gives finite numbers and gradients."""
    import sys

    for module in [m for key, m in sys.modules.items() if key.startswith("isonb") and hasattr(m, "check_values")]:
        monkeypatch.setattr(module, "check_values", lambda x: False)
    x = torch.full((D, D) if name == "isoscore_from_cov" else (N, D), value, dtype=torch.float64, requires_grad=True)
    out = leaves(ALL[name](x))
    assert not any(torch.isnan(leaf).any() for leaf in out)
    assert name in INFINITE or all(torch.isfinite(leaf).all() for leaf in out)
    smooth = [leaf.sum() for leaf in out if leaf.requires_grad]
    if smooth:
        (gradient,) = torch.autograd.grad(sum(smooth), x, allow_unused=True)
        assert gradient is None or torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_numbers_not_finite_or_negative(name, bad):
    expect(DegenerateError, name, NUMBERS[name], torch.tensor([3.0, bad, 1.0, 0.5, 0.2]))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_the_wrong_kind(name):
    expect(ShapeError, name, NUMBERS[name], torch.tensor(1.0))
    expect(ShapeError, name, NUMBERS[name], torch.zeros(3, 0))
    expect(DtypeError, name, NUMBERS[name], torch.tensor([3, 2, 1]))
    expect(DtypeError, name, NUMBERS[name], [3.0, 2.0])


def test_numbers_without_spread_or_sum():
    expect(DegenerateError, "spectral_skewness", isonb.spectral_skewness, torch.ones(4))
    expect(DegenerateError, "spectral_median", isonb.spectral_median, torch.zeros(4))
    expect(DegenerateError, "spectral_cdf", isonb.spectral_cdf, torch.zeros(4))
    expect(DegenerateError, "persistent_entropy", isonb.persistent_entropy, torch.zeros(4))
    assert not isonb.prominent_bars(torch.zeros(4)).any()


def test_moments():
    with pytest.raises(InputError):
        _ = isonb.Moments().cov
    moments = isonb.Moments()
    moments.update(points())
    for bad in (points(N, D + 1), points() * math.nan, points().long()):
        with pytest.raises(InputError):
            moments.update(bad)
    assert int(moments.n) == N  # a refused batch leaves no trace


def test_strict_checks_are_for_accelerators_and_end_with_the_block():
    with isonb.strict(), pytest.raises(DegenerateError):
        isonb.isoscore(torch.ones(4, 3))

"""The torchmetrics classes: what the function gives on all points, however they come, on one process or two."""

import copy
import functools
import io
import itertools
import math
import pickle

import pytest
import torch
import torch.distributed as dist
from gloo import run
from support import assert_same, some_mask, uneven
from torchmetrics import MetricCollection

import isonb
from isonb import metrics
from isonb.errors import DegenerateError, DtypeError, InputError, ShapeError
from isonb.measures.cosine import cls_uniformity, cosine_contributions, cosine_penalty, mean_cosine, token_uniformity
from isonb.measures.isoscore import isoscore, isoscore_star, participation_ratio
from isonb.measures.neighbors import two_nn
from isonb.measures.spectrum import anisotropy, explained_variance, singular_values, spectral_skewness, varex_score

# compute() on a process without data: torchmetrics warns, we answer with the value of the others
pytestmark = pytest.mark.filterwarnings("ignore:The ``compute`` method of metric:UserWarning")

X = uneven(40, 6)
BASE = torch.diag(torch.arange(1.0, 7.0, dtype=torch.float64))
CUTS = [0, 3, 4, 17, 40]
POINTS = {  # metric, and the function of all points at once
    "mean": (metrics.MeanVector, lambda x: x.mean(-2)),
    "covariance": (metrics.Covariance, lambda x: torch.cov(x.mT)),
    "PR": (metrics.ParticipationRatio, participation_ratio),
    "PR-U": (lambda: metrics.ParticipationRatio(unbiased=True), lambda x: participation_ratio(x, unbiased=True)),
    "IsoScore": (metrics.IsoScore, isoscore),
    "IsoScore-U": (lambda: metrics.IsoScore(unbiased=True), lambda x: isoscore(x, unbiased=True)),
    "IsoScore*": (lambda: metrics.IsoScoreStar(0.3), lambda x: isoscore_star(x, 0.3)),
    "IsoScore* of a sample": (lambda: metrics.IsoScoreStar(0.3, BASE), lambda x: isoscore_star(x, 0.3, BASE)),
    "A": (metrics.Anisotropy, anisotropy),
    "A centred": (lambda: metrics.Anisotropy(2, center=True), lambda x: anisotropy(x, 2, center=True)),
    "EV": (metrics.ExplainedVariance, explained_variance),
    "VarEx": (lambda: metrics.VarEx(0.5), lambda x: varex_score(x, 0.5)),
    "effective rank": (metrics.EffectiveRank, isonb.effective_rank),
    "NESum": (
        lambda: metrics.EffectiveRank(math.inf, squared=True, center=True),
        lambda x: isonb.effective_rank(x, math.inf, squared=True, center=True),
    ),
    "alpha-ReQ": (lambda: metrics.AlphaReQ(2), lambda x: isonb.alpha_req(x, first=2)),
    "mean cosine": (metrics.MeanCosine, mean_cosine),
    "cosine penalty": (metrics.CosinePenalty, cosine_penalty),
    "contributions": (metrics.CosineContributions, cosine_contributions),
    "sampled TwoNN": (lambda: metrics.Sampled(two_nn), two_nn),
}
TOKENS, MASK = uneven(8, 7, 4), some_mask(8, 7)
LABELS = torch.arange(8) % 3
BESIDE = {  # of points and something beside them, in eights: the metric, the function of all, and what is fed
    "alignment": (metrics.Alignment, isonb.alignment, (TOKENS[:, 0], TOKENS[:, 1])),
    "alignment as it is": (
        lambda: metrics.Alignment(1.0, False),
        lambda x, y: isonb.alignment(x, y, power=1.0, normalize=False),
        (TOKENS[:, 0], TOKENS[:, 1]),
    ),
    "CKA": (metrics.CKA, isonb.cka, (TOKENS[:, 0], TOKENS[:, 1])),
    "CKA of two widths": (lambda: metrics.CKA(4), isonb.cka, (TOKENS[:, 0], TOKENS[:, 1, :3])),
    "LiDAR": (lambda: metrics.LiDAR(7, dims=4), isonb.lidar, (TOKENS,)),
    "NC1": (lambda: metrics.NC1(4, dims=4), isonb.nc1, (TOKENS[:, 0], LABELS)),
    "TokenUni": (metrics.TokenUniformity, lambda x, m: token_uniformity(x, m).mean(), (TOKENS, MASK)),
    "TokenUni with self, padding too": (
        lambda: metrics.TokenUniformity(include_self=True),
        lambda x: token_uniformity(x, include_self=True).mean(),
        (TOKENS,),
    ),
    "CLS": (metrics.ClsUniformity, lambda x, m: cls_uniformity(x, m).mean(), (TOKENS, MASK)),
    "skewness": (
        lambda: metrics.SpectralSkewness(sentences=True),
        lambda x, m: spectral_skewness(torch.cat([singular_values(a[b]) for a, b in zip(x, m, strict=True)])),
        (TOKENS, MASK),
    ),
    "skewness with padding": (
        lambda: metrics.SpectralSkewness(sentences=True),
        lambda x: spectral_skewness(singular_values(x).flatten()),
        (TOKENS,),
    ),
}


def fed(make, data=X, cuts=CUTS):
    metric = make()
    for a, b in itertools.pairwise(cuts):
        metric.update(data[a:b])
    return metric


@pytest.mark.parametrize("name", POINTS)
def test_batches_give_the_function_of_all_points(name):
    make, function = POINTS[name]
    metric = fed(make)
    assert_same(metric.compute(), function(X))
    metric.reset()
    metric.update(X.view(4, 10, 6))  # every leading axis is points
    assert_same(metric.compute(), function(X))
    metric.reset()
    mask = some_mask(40, keep=10)
    metric.update(torch.where(mask[:, None], X, float("nan")), mask)
    assert_same(metric.compute(), function(X[mask]))


def test_skewness_of_a_cloud_in_pieces_is_that_of_the_whole():
    """Tokens of sentences are another thing, and are asked for by name."""
    for x in (X, X[:5]):  # and fewer points than dimensions
        assert_same(fed(metrics.SpectralSkewness, x, [0, 2, len(x)]).compute(), spectral_skewness(singular_values(x)))
    with pytest.raises(ShapeError, match=r"must have shape \(n, d\).*sentences=True"):
        metrics.SpectralSkewness().update(TOKENS)


@pytest.mark.parametrize("rows", [64, 2000])
def test_small_directions_are_told_from_rounding(rows):
    """Fewer points than dimensions, and small directions of many: single precision leaves something of each."""
    x = torch.randn(rows, 384, generator=torch.Generator().manual_seed(0)) * torch.linspace(1, 1e-3, 384)
    cases = {metrics.AlphaReQ: isonb.alpha_req, metrics.EffectiveRank: isonb.effective_rank}
    for kind, function in cases.items():
        metric = fed(kind, x, [0, rows // 3, rows])
        assert metric.compute().item() == pytest.approx(function(x.double()).item(), rel=1e-6), kind.__name__


@pytest.mark.parametrize("name", POINTS)
def test_forward_gives_the_batch_and_keeps_the_whole_and_metrics_merge(name):
    make, function = POINTS[name]
    first, other, empty = make(), make(), make()
    for metric, part in zip((first, other), X.split(20), strict=True):
        value = metric(part.clone().requires_grad_())
        assert_same(value, function(part))
        assert not value.requires_grad
    first.merge_state(other)
    assert_same(first.compute(), function(X))
    empty.merge_state(other)
    assert_same(empty.compute(), function(X[20:]))


@pytest.mark.parametrize("name", BESIDE)
def test_what_stands_beside_the_points_comes_in_batches_and_merges(name):
    make, function, inputs = BESIDE[name]
    metric, other = make(), make()
    metric.update(*(part[:2] for part in inputs))
    other.update(*(part[2:] for part in inputs))
    metric.merge_state(other)
    assert_same(metric.compute(), function(*inputs))
    assert_same(make()(*inputs), function(*inputs))
    if name in ("alignment", "CKA"):  # pairs off the mask and pairs without a direction don't count
        x, y, mask = TOKENS[0].clone(), TOKENS[1], some_mask(7)
        x[2] = 0
        metric.reset()
        metric.update(x, y, mask)
        assert_same(metric.compute(), function(x, y, mask=mask))


@pytest.mark.parametrize("name", ["IsoScore", "IsoScore-U", "mean cosine", "effective rank", "sampled TwoNN"])
def test_a_batch_without_a_value_takes_nothing_from_the_others(name):
    make, function = POINTS[name]
    metric = fed(make, cuts=[0, 20])
    for batch in (torch.zeros(1, 6).double(), X[:1] / 0):
        with pytest.raises(InputError):
            metric(batch)
    assert_same(metric.compute(), function(X[:20]))
    metric(X[20:])
    assert_same(metric.compute(), function(X))


def test_a_value_that_fails_on_all_processes_leaves_each_its_own_points():
    """Where what gathers the states is the user's own."""
    metric = metrics.IsoScore(dist_sync_fn=lambda state, group: [state, state], distributed_available_fn=lambda: True)
    metric.update(torch.ones(3, 6).double())
    with pytest.raises(DegenerateError, match="must not be zero"):
        metric.compute()
    assert metric.count == 3
    metric.update(X)
    assert_same(metric.compute(), isoscore(torch.cat([X, X, torch.ones(6, 6)])))


SAVED = ["IsoScore", "IsoScore-U", "mean cosine", "effective rank", "alignment", "sampled TwoNN"]


@pytest.mark.parametrize("name", SAVED)
def test_states_are_saved_copied_and_pickled(name):
    make, function, *inputs = (POINTS | BESIDE)[name]
    inputs = inputs[0] if inputs else (X,)
    metric = make()
    metric.update(*(part[:5] for part in inputs))
    metric.persistent(True)
    buffer = io.BytesIO()
    torch.save(metric.state_dict(), buffer)
    buffer.seek(0)
    restored = make()
    restored.load_state_dict(torch.load(buffer, weights_only=True))
    for again in (restored, copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), metric.clone()):
        again.update(*(part[5:] for part in inputs))
        assert_same(again.compute(), function(*inputs))
    assert make().state_dict() == {}


def test_a_sample_goes_on_from_a_checkpoint_with_another_seed_and_capacity():
    metric = fed(functools.partial(metrics.Sampled, remaining, capacity=30), cuts=[0, 20])
    metric.persistent(True)
    later = metrics.Sampled(remaining, capacity=10, seed=1)
    later.load_state_dict(metric.state_dict())
    later.update(X[20:])
    assert (later.seen, len(later.compute())) == (40, 10)


def test_states_keep_float64_under_casts():
    metric = fed(metrics.IsoScore, cuts=[0, 20])
    for cast in (metric.half, metric.float, lambda: metric.to(torch.bfloat16), lambda: metric.set_dtype(torch.half)):
        cast()
        assert metric.scatter.dtype == torch.float64
    torch.nn.ModuleList([metric]).to("cpu", torch.float16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        metric.update(X[20:])
    assert_same(metric.compute(), isoscore(X))


def test_a_collection_keeps_one_state_for_metrics_of_the_same_kind():
    together = MetricCollection([metrics.IsoScore(), metrics.ExplainedVariance(), metrics.MeanCosine()])
    for part in X.split(9):
        together.update(part)
    assert sorted(len(group) for group in together.compute_groups.values()) == [1, 2]
    values = together.compute()
    assert_same(values["IsoScore"], isoscore(X))
    assert_same(values["ExplainedVariance"], explained_variance(X))
    assert_same(values["MeanCosine"], mean_cosine(X))


def grouped_and_alone(made, batches):
    """The values of a collection that may share states, and of one that may not, after some batches."""
    values = []
    for groups in (True, False):
        together = MetricCollection(made(), compute_groups=groups)
        for batch in batches:
            together.update(batch)
        values.append(together.compute())
    return values


def test_a_metric_in_float64_shares_no_state_with_one_in_float32():
    x = (uneven(40, 2) @ uneven(2, 6)).float()

    def made():
        return {"iso": metrics.IsoScore(), "rank": metrics.EffectiveRank(), "skew": metrics.SpectralSkewness()}

    together, alone = grouped_and_alone(made, x.split(20))
    assert together == alone
    assert together["rank"].item() == pytest.approx(isonb.effective_rank(x.double()).item(), rel=1e-6)


def test_samples_of_another_size_or_seed_are_drawn_apart_and_alike_ones_once():
    def made():
        kinds = {"few": (50, 0), "many": (1000, 0), "as many": (1000, 0), "others": (50, 1)}
        return {name: metrics.Sampled(remaining, capacity=size, seed=seed) for name, (size, seed) in kinds.items()}

    together, alone = grouped_and_alone(made, uneven(200, 3).split(20))
    assert [len(together[name]) for name in made()] == [50, 200, 200, 50]
    assert all(torch.equal(rows, alone[name]) for name, rows in together.items())
    collection = MetricCollection(made())
    collection.update(uneven(20, 3))
    assert sorted(len(group) for group in collection.compute_groups.values()) == [1, 1, 2]


def test_averages_of_other_numbers_are_kept_apart_though_the_first_batch_gives_the_same():
    """Tokens all equal; pairs without any distance."""

    def made():
        kinds = {"CLS": metrics.ClsUniformity, "tokens": metrics.TokenUniformity}
        return {f"{name} {own}": kind(include_self=own) for name, kind in kinds.items() for own in (True, False)}

    together, alone = grouped_and_alone(made, [torch.ones(2, 7, 4), TOKENS])
    assert together == alone
    assert len({value.item() for value in together.values()}) == 4
    pairs = MetricCollection({"a": metrics.Alignment(), "b": metrics.Alignment(1.0), "c": metrics.Alignment(2)})
    x, y = TOKENS[:, 0], TOKENS[:, 1]
    pairs.update(x, x)
    pairs.update(x, y)
    for name, power in {"a": 2.0, "b": 1.0, "c": 2.0}.items():
        assert_same(pairs.compute()[name], isonb.alignment(torch.cat([x, x]), torch.cat([x, y]), power=power))
    assert sorted(len(group) for group in pairs.compute_groups.values()) == [1, 2]


@pytest.mark.parametrize("name", POINTS | BESIDE)
def test_no_data_is_a_typed_error(name):
    make = (POINTS | BESIDE)[name][0]
    with pytest.raises(ShapeError, match=r"\.compute needs .*points; got 0\. Call update with data first\."):
        make().compute()


def test_typed_errors():
    metric = metrics.IsoScore()
    metric.update(X)
    with pytest.raises(ShapeError, match="points must have 6 dimensions as before; got 5"):
        metric.update(X[:, :5])
    with pytest.raises(DegenerateError, match="must be finite"):
        metric.update(X / 0)
    with pytest.raises(DtypeError, match="floating-point"):
        metric.update(X.long())
    assert_same(metric.compute(), isoscore(X))  # a refused batch leaves no trace
    with pytest.raises(DegenerateError, match="must not be zero"):
        fed(metrics.IsoScore, torch.ones(5, 3)).compute()
    with pytest.raises(ShapeError, match="at least 2 dimensions; got 1"):
        fed(functools.partial(metrics.IsoScore, unbiased=True), X[:, :1]).compute()
    with pytest.raises(InputError, match="zeta must be a number"):
        metrics.IsoScoreStar(1.5)
    with pytest.raises(InputError, match=r"zeta of a metric must be a number.*got 'auto'\. Call isonb\.isoscore_star"):
        metrics.IsoScoreStar("auto")
    with pytest.raises(InputError, match="capacity must be at least 2"):
        metrics.Sampled(two_nn, capacity=1)
    with pytest.raises(ShapeError, match="as before; got 5"):
        fed(POINTS["sampled TwoNN"][0]).update(X[:, :5])


def remaining(x):
    return x


def test_a_sample_is_uniform_whatever_the_batches():
    hits = torch.zeros(60)
    for seed in range(200):
        metric = metrics.Sampled(remaining, capacity=12, seed=seed)
        for part in torch.arange(60.0).unsqueeze(-1).split([1, 29, 25, 5]):
            metric(part) if len(part) > 1 else metric.update(part)
        result = metric.compute().flatten().long()
        assert len(result) == len(result.unique()) == 12
        hits[result] += 1
    expected = 200 * 12 / 60
    chi2 = ((hits - expected) ** 2 / (expected * (1 - 12 / 60))).sum().item()
    assert chi2 < 100  # 59 degrees of freedom: beyond 100 with probability 0.0007


def test_a_sample_is_reproducible_merges_and_says_so():
    def draw(seed):
        metric = fed(functools.partial(metrics.Sampled, remaining, capacity=10, seed=seed))
        assert not metric.exact
        return metric.compute()

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    first, other = (fed(functools.partial(metrics.Sampled, remaining, capacity=10, seed=s)) for s in (1, 2))
    smallest = torch.cat([first.keys, other.keys]).sort().values[:10]
    first.merge_state(other)
    assert_same(first.keys.sort().values, smallest)
    assert first.seen == 80


def test_cka_keeps_a_small_cloud_beside_an_ordinary_one():
    """Whose squares float32 has no number for."""
    x, y = X.float(), (1e-24 * uneven(40, 6, seed=1)).float()
    metric = metrics.CKA()
    metric.update(x, y)
    assert metric.compute().item() == pytest.approx(isonb.cka(x.double(), y.double()).item(), rel=1e-9)


SHARDS = {"unequal": [[0, 3, 29], [29, 40]], "one empty": [[0, 11, 40], []], "one point": [[0, 1], [1, 25, 40]]}


def count_collectives(counts):
    """Count every collective that is called from here on."""
    for name in ("all_reduce", "all_gather", "all_gather_into_tensor", "broadcast", "barrier", "all_gather_object"):
        original = getattr(dist, name)

        def counting(*args, original=original, name=name, **kwargs):
            counts.append(name)
            return original(*args, **kwargs)

        setattr(dist, name, counting)


def on_this_rank():
    """Every metric on this rank's shard: value, collectives, and the value of all data after one more batch."""
    results, counts = {}, []
    count_collectives(counts)
    for case, shards in SHARDS.items():
        cuts = shards[dist.get_rank()]
        for name, (make, _) in POINTS.items():
            metric = fed(make, cuts=cuts)
            counts.clear()
            value = metric.compute()
            sent = len(counts)
            metric.update(X[:5])  # states are local again
            results[case, name] = value, sent, metric.compute()
    for name, (make, _, inputs) in BESIDE.items():
        metric = make()
        metric.update(*(part[:2] if dist.get_rank() == 0 else part[2:] for part in inputs))
        counts.clear()
        results["beside", name] = metric.compute(), len(counts), None
    return {"values": results} | others_on_this_rank()


def others_on_this_rank():
    results = {}
    failing = {name: fed(POINTS[name][0], X[:, : 4 + dist.get_rank()]) for name in ("IsoScore", "sampled TwoNN")}
    for name, metric in {**failing, "no data": metrics.IsoScore()}.items():
        with pytest.raises(ShapeError) as error:
            metric.compute()
        results["error", name] = str(error.value)
    reference = metrics.IsoScore(dims=6)
    reference.update(X[10 * dist.get_rank() :][: 10 + 20 * dist.get_rank()])
    results["dims"] = reference.compute()
    sample = fed(functools.partial(metrics.Sampled, remaining, capacity=10), X + 100 * dist.get_rank())
    results["sample"] = sample.compute()
    return results


@pytest.mark.slow
def test_two_processes_give_the_value_of_the_union_in_a_few_collectives():
    first, second = run(on_this_rank)
    for result in (first, second):
        for (case, name), (value, sent, later) in result["values"].items():
            report = f"{name}, {case}"
            if case == "beside":
                want, more = BESIDE[name][1](*BESIDE[name][2]), None
            else:
                want, more = (POINTS[name][1](x) for x in (X, torch.cat([X, X[:5], X[:5]])))
            torch.testing.assert_close(value, want, rtol=1e-9, atol=1e-12, msg=report)
            assert sent <= (4 if "sampled" in name else 3), report
            assert more is None or torch.allclose(later, more, rtol=1e-9, atol=1e-12), report
        for name in ("IsoScore", "sampled TwoNN"):
            assert "all processes must have points of one dimension" in result["error", name]
        assert "needs at least 2 points; got 0" in result["error", "no data"]
        assert_same(result["dims"], isoscore(X))
        assert torch.equal(result["sample"], first["sample"])
    assert len(first["sample"]) == 10
    assert 0 < int((first["sample"].mean(-1) > 50).sum()) < 10  # from both


def test_a_metric_draws_a_course_of_values():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    metric = fed(metrics.IsoScore)
    value = metric.compute()
    _, axes = metric.plot([value, value + 1])
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([value.item(), value.item() + 1], rel=1e-5)
    assert metric.plot(ax=axes)[0] is None
    matplotlib.pyplot.close("all")

"""Methods: their options, and what each hook returns to the engines. Every method of the registry goes through all."""

import json
import math
from dataclasses import dataclass, fields, replace

import pytest
import torch

from isonb import losses, transforms
from isonb.errors import InputError, OptionError, ShapeError
from isonb.integrations.hidden_states import Pooling
from isonb.integrations.union import asked
from isonb.layers.soft_decay import soft_decay
from isonb.losses import IStarLoss
from isonb.losses.common import Loss
from isonb.options import build, describe, domains, option, rules
from isonb.points import layer_average, mean_pool
from isonb.transforms.flow import GlowFlow, fit_flow
from isonb.transforms.sbert_wk import sbert_wk
from isonb_lab.engines import finetune
from isonb_lab.engines.contrast import OBJECTIVES
from isonb_lab.methods import Method, MethodError, catalogue, method_from, methods, resolved
from isonb_lab.methods.laplacian import LaplacianLoss
from isonb_lab.methods.shared import WithLoss, options_from
from tests.support import assert_same, gpu, normal, uneven

pytestmark = pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")  # small clouds on purpose
every = pytest.mark.parametrize("name", methods())


def local(hook):
    """Names of the methods with a hook of their own."""
    return [name for name, kind in methods().items() if getattr(kind, hook) is not getattr(Method, hook)]


def another(name, part):
    """Another allowed value of an option."""
    if (name, part.name) == ("tension", "negatives"):
        return 3  # the batch of 16 must hold whole groups
    kinds, named, low, high = domains(methods()[name])[part.name]
    if {int, float}.isdisjoint(kinds) and named:
        return next(choice for choice in named if choice != part.default)
    if isinstance(part.default, bool):
        return not part.default
    if part.default is None or isinstance(part.default, str):
        return "rte" if part.name == "pairs" else 1
    low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
    values = (part.default * 2, part.default / 2, part.default + 1, part.default - 1)
    return next(value for value in values if value != part.default and low <= value <= high)


def needed(name, part):
    """Values of the options beside which it would do nothing at their defaults."""
    defaults = describe(methods()[name]())
    others = {entry.name: entry for entry in fields(methods()[name])}
    idle = {other for other, value in part.metadata["idle"].items() if defaults[other] == value}
    return {other: another(name, others[other]) for other in idle}


@every
def test_every_option_is_taken_and_survives_being_written(name):
    for part in fields(methods()[name]):
        value = another(name, part)
        method = method_from({"name": name, part.name: value, **needed(name, part)})
        assert getattr(method, part.name) == value != part.default
        assert method != methods()[name]()
        again = method_from(json.loads(json.dumps(resolved(method))))
        assert (again, resolved(again)) == (method, resolved(method))


@pytest.mark.parametrize("name", [name for name, kind in methods().items() if kind.subject])
def test_options_reach_what_the_method_is_about(name):
    objectives = {objective: (objective,) for objective in OBJECTIVES}
    first = {"isobn": (6,), "flow": (128,), **objectives}.get(name, ())
    for part in fields(kind := methods()[name]):
        if part.name in kind.taken:
            value = another(name, part)
            built = method_from({"name": name, part.name: value, **needed(name, part)}).build(*first)
            reached = getattr(built, part.name)
            assert (reached.item() if isinstance(reached, torch.Tensor) else reached) == pytest.approx(value), part.name


@dataclass(eq=False, repr=False, kw_only=True)
class LouderLoss(Loss):
    """A loss with an option that no other has."""

    weight: float = option(1.0, "of the loss")
    strength: float = option(0.5, "how loud", low=0, high=2)


def test_a_new_option_of_a_loss_is_written_in_one_place():
    @options_from(LouderLoss, weight=3.0)
    class Louder(WithLoss):
        name = "louder"

    assert rules(Louder) == {"weight": "float: of the loss", "strength": "float from 0 to 2: how loud"}
    loss = build(Louder, {"strength": "2"}, "method louder").penalty()
    assert (loss.weight, loss.strength) == (3.0, 2.0)
    with pytest.raises(OptionError, match=r"strength of method louder must be float from 0 to 2"):
        build(Louder, {"strength": 3}, "method louder")


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ("soft_decay", MethodError, "Did you mean 'softdecay'"),
        ("None", MethodError, "'none'"),
        ({"weight": 1.0}, MethodError, "Methods: none"),
        ({"name": "softdecay", "mode": "safe", "sts_alpha": -1}, OptionError, "sts_alpha of method softdecay"),
        ({"name": "istar", "weights": 1}, OptionError, "an option of method istar must exist; .* mean 'weight'"),
        ({"name": "tension", "batch_size": 20}, OptionError, "Give 16"),
        ({"name": "tension", "batch_size": 4}, OptionError, "Give 8"),
    ],
)
def test_unknown_names_and_options_that_do_not_go_together_are_refused(inputs, error, message):
    with pytest.raises(error, match=message):
        method_from(inputs)


def test_the_catalogue_has_every_method_with_source_stages_and_options():
    entries = catalogue()
    assert json.loads(json.dumps(entries)) == entries
    assert [entry["name"] for entry in entries] == list(methods())
    for entry in entries:
        assert entry["about"]
        assert bool(entry["source"]) is bool(entry["stages"]) is (entry["name"] != "none")
        defaults = {name: option["default"] for name, option in entry["options"].items()}
        assert {"name": entry["name"], **defaults} == resolved(method_from(entry["name"]))
        assert all(": " in option["rule"] for option in entry["options"].values())
    stages = {entry["name"]: " ".join(entry["stages"]) for entry in entries}
    some = {"softdecay": "training similarity", "cluster_removal": "second similarity", "simcse": "contrast"}
    assert stages | some == stages


@every
def test_flags_agree_with_hooks(name):
    """And with where it acts: the second stage, the points of its penalty, what a layer hands on, or [CLS].

    And with what the head reads behind it: the second stage or the features.
    """
    kind = methods()[name]
    place = "features" if name in local("layer") else kind().points().mode if name in local("penalty") else "cls"
    assert kind.acts_on == ("second" if kind.two_phases else place)
    assert kind.read_by == ("second" if kind.two_phases else "features")
    assert kind.keeps_head is (kind.two_phases and kind().second(uneven(300, 64), 0).head != "new")
    assert kind.two_phases is (name in local("second"))
    assert kind.token_fit is (name in local("fit_tokens"))
    changes_vectors = {name} & {*local("pool"), *local("fit_tokens"), *local("transform")}
    assert kind.post_hoc is bool(changes_vectors)


@pytest.mark.parametrize("name", local("penalty"))
def test_a_penalty_is_the_loss_with_the_options_of_the_method(name):
    points, labels = uneven(46, 6), (torch.arange(46) > 16).long()
    offers = {"labels": labels, "shrinkage_cov": torch.cov(uneven(99, 6, seed=3).T)}
    method, values = method_from(name), []
    for loss in (method.penalty(), method.build()):
        torch.manual_seed(3)
        values.append(loss(points, **asked(loss, **offers)))
    assert_same(*values)
    if name == "entropy":  # one cloud, or one a label
        whole = method_from({"name": name, "per_label": False}).penalty()
        assert_same(whole(points), method.build()(points))
        assert not asked(whole, labels=labels)


@pytest.mark.parametrize(
    ("inputs", "pooling", "measured"),
    [
        ({"name": "entropy"}, Pooling("cls", -1), False),
        ({"name": "istar"}, Pooling("tokens", "all"), True),
        ({"name": "istar", "layers": 3, "include_pads": True}, Pooling("tokens", 3, True), True),
        ({"name": "istar", "zeta": "auto"}, Pooling("tokens", "all"), False),
        ({"name": "istar", "zeta": 0}, Pooling("tokens", "all"), False),
        ({"name": "istar", "unbiased": True, "direction": "random"}, Pooling("tokens", "all"), False),
        ({"name": "cosreg"}, Pooling("tokens", -1), False),
    ],
    ids=str,
)
def test_the_points_a_penalty_sees_and_whether_it_needs_a_shrinkage_matrix(inputs, pooling, measured):
    method = method_from(inputs)
    assert method.points() == pooling
    assert ("shrinkage_cov" in asked(method.penalty(), shrinkage_cov=None)) is measured


def test_padding_may_count_in_softdecay():
    x, mask = normal(2, 4, 6), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    layer = method_from({"name": "softdecay", "alpha": -0.4}).layer(6)
    assert_same(layer(x, mask), soft_decay(x, torch.tensor(-0.4), mask=mask))
    padded = method_from({"name": "softdecay", "alpha": -0.4, "include_pads": True}).layer(6)
    assert_same(padded(x, mask), soft_decay(x, torch.tensor(-0.4)))


@pytest.mark.parametrize("name", local("second"))
def test_second_phases_repeat_and_leave_random_numbers_alone(name):
    method, features = method_from(name), uneven(64, 16).float()
    if any(part.name == "init" for part in fields(method)):
        method = replace(method, init="default")
    before = torch.random.get_rng_state()
    first, again = (method.second(features, 5).module(features) for _ in range(2))
    assert_same(first, again)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_isotropy_layer_starts_where_the_model_stands_and_takes_its_options():
    features = uneven(32, 6)
    phase = method_from("isolayer").second(features, 0)
    assert_same(phase.module(features), features)
    assert phase.joint.s == 0.15
    assert_same(phase.penalty(features), losses.IsoScoreLoss()(features))
    inputs = {"isotropy": "isoscore_star", "zeta": "auto", "depth": 2, "activation": "tanh", "head": "tuned"}
    phase = method_from({"name": "isolayer", "batch_size": 64, "patience": None, **inputs}).second(features, 0)
    assert (phase.head, phase.batch_size, phase.patience) == ("tuned", 64, None)
    assert_same(phase.module(features), features.tanh().tanh())
    assert_same(phase.penalty(features), losses.IStarLoss(zeta="auto")(features))
    unbiased = method_from({"name": "isolayer", "unbiased": True}).second(features, 0).penalty
    assert_same(unbiased(features), losses.IsoScoreLoss(unbiased=True)(features))
    other = method_from({"name": "isolayer", "init": "default"})
    assert not torch.equal(*(other.second(features, seed).module[0].linear.weight for seed in (0, 1)))


def sides():
    return uneven(120, 16, mean=3.0).float().split(60)


@pytest.mark.parametrize("name", [name for name in local("transform") if name not in ("flow", "softdecay")])
def test_a_transform_is_fitted_on_both_sides(name):
    first, second = sides()
    method, both = method_from(name), torch.cat([first, second])
    want = method.build().fit(both).transform(both)
    assert_same(torch.cat(method.transform(first, second, 7)), want, rtol=1e-5, atol=1e-5)


def test_the_flow_is_trained_with_its_options():
    first, second = sides()
    both = torch.cat([first, second])
    flow = GlowFlow(both.shape[1], depth=2, seed=7)
    want = fit_flow(both, seed=7, flow=flow, epochs=2, batch_size=16).transform(both)
    inputs = {"name": "flow", "depth": 2, "epochs": 2, "batch_size": 16}
    with torch.inference_mode():  # it learns there, too
        result = method_from(inputs).transform(first.clone(), second.clone(), 7)
    assert_same(torch.cat(result), want, rtol=1e-5, atol=1e-5)


def test_softdecay_takes_each_side_by_itself():
    first, second = sides()
    result = method_from({"name": "softdecay", "sts_alpha": -0.4}).transform(first, second, 0)
    assert_same(result, (soft_decay(first, -0.4), soft_decay(second, -0.4)))
    joint = method_from({"name": "softdecay", "joint": True}).transform(first, second, 0)
    assert_same(torch.cat(joint), soft_decay(torch.cat([first, second]), -0.6))


def test_more_directions_than_there_are():
    features = uneven(64, 16).float()
    for inputs, message in (
        ({"name": "whitening", "k": 256}, "k must be at most the 16 dimensions"),
        ({"name": "cluster_removal", "D": 16}, "D must be less than the 16 dimensions"),
        ({"name": "flow", "levels": 5}, "Use fewer levels"),
    ):
        with pytest.raises(ShapeError, match=message):
            method_from(inputs).second(features, 0)
    few = method_from("whitening").second(uneven(10, 16).float(), 0).module
    assert few(features).shape == (64, 9)  # ten points vary in nine directions


@pytest.mark.parametrize(("rows", "clusters", "removed"), [(1000, 27, 12), (64, 2, 12), (20, 1, 10), (2, 1, 1)])
def test_clusters_are_fewer_where_there_are_few_points(rows, clusters, removed):
    tokens = uneven(rows, 16).float()
    result = method_from("cluster_removal").fit_tokens(tokens, 3)
    assert (result.n_clusters, result.D, result.seed) == (clusters, removed, 3)
    assert_same(result.transform(tokens), transforms.ClusterRemoval(clusters, removed, 3).fit_transform(tokens))
    assert rows < 4 or float(result.transform(tokens).abs().max()) > 1e-3


def test_methods_with_layers_of_their_own():
    states, mask = normal(13, 3, 6, 8), torch.ones(3, 6, dtype=torch.long)
    average = {layers: mean_pool(layer_average(states, layers), mask) for layers in ((1, -1), (-2, -1), (0, -1))}
    assert_same(method_from("whitebert").pool(states, mask, (0, -1)), average[1, -1])
    assert_same(method_from("whitebert").features(states, mask), average[1, -1])
    assert_same(method_from("flow").pool(states, mask, (0, -1)), average[-2, -1])
    assert_same(method_from({"name": "flow", "last_two": False}).pool(states, mask, (0, -1)), average[0, -1])
    assert_same(method_from("none").pool(states, mask, (0, -1)), average[0, -1])


def test_sbert_wk_starts_earlier_in_shallow_encoders():
    states, mask = normal(13, 3, 6, 8), torch.ones(3, 6, dtype=torch.long)
    method = method_from("sbert_wk")
    for depth, start in ((12, 4), (4, 2), (2, 0)):
        assert_same(method.pool(states[: depth + 1], mask, ()), sbert_wk(states[: depth + 1], mask, start))
    wide = method_from({"name": "sbert_wk", "window": 4, "layer_start": 9})
    assert_same(wide.features(states, mask), sbert_wk(states, mask, 8, 4))
    with pytest.raises(InputError, match=r"must leave at least 3 of the 2 hidden states.*layer_start 0"):
        method.pool(states[:2], mask, ())


@gpu
@every
def test_methods_stay_on_the_device(name):
    method, rows = method_from(name), normal(64, 16, dtype=torch.float32).cuda()
    states, mask = normal(5, 3, 6, 8, dtype=torch.float32).cuda(), torch.ones(3, 6, dtype=torch.long).cuda()
    results = [*method.transform(rows[:32], rows[32:], 0), method.pool(states, mask, (0, -1))]
    if method.two_phases:
        results.append(method.second(rows, 0).module(rows))
    if method.token_fit:
        results.append(method.fit_tokens(rows, 0).transform(rows))
    assert {result.device for result in results} == {rows.device}


SMOKE = {"protocol": "smoke", "task": "english_sentiment", "model": "tiny", "cloud_examples": 0, "precision": "float32"}


def test_a_random_direction_keeps_value_and_length():
    points = torch.randn(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    loss = IStarLoss(-1.0, 0.2)
    cov = torch.eye(6, dtype=torch.float64)
    (true,) = torch.autograd.grad(loss(points, cov), points)
    turned = method_from({"name": "istar", "direction": "random"}).penalty()(points, cov)
    assert turned.item() == pytest.approx(loss(points, cov).item())
    torch.manual_seed(1)
    (other,) = torch.autograd.grad(turned, points)
    assert float(other.norm()) == pytest.approx(float(true.norm()))
    assert abs(float(torch.cosine_similarity(other.flatten(), true.flatten(), 0))) < 0.3


def test_a_late_penalty_leaves_the_first_epoch_as_it_is():
    late = {"name": "istar", "weight": -1, "after": 1}
    settings = SMOKE | {"epochs": 2, "track_every": 1}
    runs = [finetune.run(settings | {"method": method}, progress=False) for method in ("none", late)]
    plain, waited = ([loss for _, loss in sorted(run.series["step.train.loss"])] for run in runs)
    half = len(plain) // 2 - 1
    assert waited[:half] == pytest.approx(plain[:half])
    assert waited[-1] != pytest.approx(plain[-1])


def over_pairs(points, labels):
    unit, labels = torch.nn.functional.normalize(points, dim=-1), torch.tensor(labels)
    same = (labels[:, None] == labels).fill_diagonal_(False)
    return (unit @ unit.mT * same).sum() / len(points) ** 2


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 1, 0, 0, 1], None, list(range(8))])
def test_only_pairs_of_one_label_count_and_all_without_labels(labels):
    points = normal(8, 5).requires_grad_()
    loss = LaplacianLoss(weight=-2.0)(points, *([] if labels is None else [torch.tensor(labels)]))
    reference = -2 * over_pairs(points, labels or [0] * 8)
    assert_same(loss, reference)
    assert_same(*(torch.autograd.grad(value, points) for value in (loss, reference)))

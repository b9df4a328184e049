"""One name gives one number: the lab, the audit, the monitor and the metrics say what the registry says."""

import dataclasses
import math

import pytest
import torch

import isonb
from isonb import metrics
from isonb.integrations.monitor import WATCHED, IsotropyMonitor
from isonb.measures import registry
from isonb.measures.registry import MEASURES, TOKEN_MEASURES, Measure, attempt, measure_all
from isonb_lab.measuring.cloud import cloud_measures
from isonb_lab.measuring.profile import profile
from isonb_lab.measuring.tracker import Tracker

X = torch.randn(120, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
X = X * torch.linspace(0.3, 2, 16, dtype=torch.float64) + 0.5
OWN = {name: float(measure(X)) for name, measure in MEASURES.items()}
# Consumers of every measure; the others give some.
WHOLE = ("measure_all", "records of the lab", "tracker of a training", "profile of a model", "monitor", "metrics")


def by_audit(x):
    audit = isonb.audit(x)
    assert audit.values()["isoscore_unbiased"] == audit.values()["IsoScore-U"]
    return {item.measure: item.value for item in audit.readings}


def by_profile(x):
    """The [CLS] vectors of a model whose sentences are one token long."""
    states = (x.unsqueeze(1),)
    metrics_ = profile(lambda batch: (states, torch.ones(len(x), 1), None), [0], layers=0, limit=len(x)).metrics
    tokens = {name.removeprefix("tokens."): value for name, value in metrics_.items() if name.startswith("tokens.")}
    assert {name: tokens[name] for name in OWN} == pytest.approx(OWN, rel=1e-5)
    return {name.removeprefix("cls."): value for name, value in metrics_.items() if name.startswith("cls.")}


def by_metrics(x):
    values = {}
    for name in MEASURES:
        metric = metrics.metric_of(name)
        for piece in x.split(50):
            metric.update(piece)
        assert isinstance(metric, metrics.Sampled) == (name not in metrics.STREAMED)
        values[name] = float(metric.compute())
    return values


CONSUMERS = {
    "measure_all": measure_all,
    "records of the lab": cloud_measures,
    "tracker of a training": lambda x: Tracker().validation(x),
    "profile of a model": by_profile,
    "audit": by_audit,
    "comparison": lambda x: {item.measure: item.first for item in isonb.compare(x, 2 * x).differences},
    "monitor": lambda x: IsotropyMonitor(tuple(MEASURES)).observe(x, 0).values,
    "monitor by default": lambda x: IsotropyMonitor().observe(x, 0).values,
    "metrics": by_metrics,
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_consumer_gives_the_number_of_the_registry(consumer):
    values = CONSUMERS[consumer](X)
    assert set(values) == set(OWN) if consumer in WHOLE else len(values) >= len(WATCHED)
    assert values == pytest.approx({name: OWN[name] for name in values}, rel=1e-9)


def test_names_titles_and_ranges():
    every = {**MEASURES, **TOKEN_MEASURES}
    assert len({item.title for item in every.values()}) == len(every) == len(MEASURES) + len(TOKEN_MEASURES)
    assert all(name == entry.name and entry.sees for name, entry in every.items())
    small = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for value in every.values():
        for x in (X, small):
            assert value.low - 1e-12 <= float(value(x)) <= value.high + 1e-12, value.name


def test_of_points_that_have_no_such_number_there_is_none():
    values = measure_all(torch.ones(6, 4, dtype=torch.float64))
    assert values["mean_cosine"] == pytest.approx(1)
    assert values["isoscore"] is values["two_nn"] is values["persistent_entropy"] is None
    assert set(measure_all(torch.full((6, 4), math.nan)).values()) == {None}
    with pytest.raises(isonb.errors.ShapeError, match="2 bars"):
        MEASURES["persistent_entropy_normalized"](X[:2])


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize("shape", [(500, 8), (9, 40), (40, 12), (2, 5)], ids=str)
def test_a_small_cloud_has_one_number_or_none_under_a_name(shape):
    """Of function, registry and metric; of two points there is no third direction."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    functions = {"alpha_req": isonb.alpha_req}
    functions |= {"anisotropy_3": lambda x: isonb.anisotropy(x)[2]}
    functions |= {"explained_variance_3": lambda x: isonb.explained_variance(x)[2]}
    for name, function in functions.items():
        metric = metrics.metric_of(name)
        metric.update(x)
        values = [attempt(function, x), attempt(metric.compute), attempt(MEASURES[name], x)]
        if shape == (2, 5):
            assert values == [None] * 3, name
        else:
            assert [float(value) for value in values] == pytest.approx([float(values[0])] * 3, rel=1e-6), name


def test_an_array_has_the_measures_of_its_tensor():
    assert measure_all(X.numpy()) == measure_all(X)


def test_an_unknown_measure_has_no_metric():
    with pytest.raises(isonb.errors.InputError, match="must be of a measure of the registry; got 'isotropy'"):
        metrics.metric_of("isotropy")


def test_a_new_measure_is_taken_by_all_and_changes_no_other_number(monkeypatch):
    before = isonb.audit(X)
    widest = Measure("widest", "widest", 0, math.inf, "the longest point", lambda x: x.norm(dim=-1).max())
    monkeypatch.setitem(registry.MEASURES, "widest", widest)
    value = pytest.approx(float(X.norm(dim=-1).max()))
    assert cloud_measures(X)["widest"] == value
    assert IsotropyMonitor(["widest"]).observe(X, 0).values == {"widest": value}
    assert float(metrics.metric_of("widest")(X)) == value
    assert dataclasses.asdict(isonb.audit(X)) == dataclasses.asdict(before)

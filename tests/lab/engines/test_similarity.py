"""The similarity engine: every method, the record's fields against independent computation, what is refused."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow
import pytest
import torch
from scipy.stats import spearmanr

from isonb.errors import DegenerateError
from isonb.models.loading import encode, load
from isonb.points import mean_pool
from isonb_lab.data import tasks
from isonb_lab.data.rows import load_task
from isonb_lab.engines import similarity
from isonb_lab.engines.contrast import OBJECTIVES
from isonb_lab.methods import Method, methods
from isonb_lab.runs.record import read_record, write_record
from isonb_lab.runs.settings import LAYERS, resolve

SMOKE = {"protocol": "smoke", "task": "english_sts", "model": "tiny"}
SHORT = {name: {"steps": 2, "batch_size": 8} for name in OBJECTIVES} | {"isolayer": {"epochs": 3}}


def run(**config):
    return similarity.run(SMOKE | config, progress=False)


@pytest.fixture
def stub(monkeypatch):
    """Puts a method into the registry for one test."""

    def add(kind):
        monkeypatch.setitem(methods(), kind.name, kind)
        return kind.name

    return add


def cosines_by_hand(rows, layers):
    """Cosines of plain vectors without the engine: the encoder's states, averaged over layers and tokens, in NumPy."""
    encoder, sides = load("tiny"), []
    for column in ("sentence1", "sentence2"):
        states = encode(encoder, list(rows[column]), progress=False)
        chosen = torch.stack([states.hidden_states[i] for i in LAYERS[layers]]).mean(0)
        sides.append((chosen[:, 0] if layers == "cls" else mean_pool(chosen, states.mask)).double().numpy())
    first, two = sides
    return (first * two).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(two, axis=1)


@pytest.fixture(scope="module")
def plain_score():
    rows = load_task("english_sts", limit=60, seed=0)
    return 100 * spearmanr(cosines_by_hand(rows, "first_last"), rows["score"]).statistic


@pytest.mark.parametrize("name", list(methods()))
def test_every_method_leaves_a_whole_record(name, plain_score, tmp_path):
    record = run(method={"name": name} | SHORT.get(name, {}))
    assert record.config == resolve(record.config)
    result = read_record(write_record(tmp_path, record))
    assert (result.run_id, result.metrics) == (record.run_id, record.metrics)
    for protocol in ("mean", "weighted", "all"):
        assert -100 <= record.metrics[f"spearman.{protocol}"] <= 100
        assert record.metrics[f"plain.spearman.{protocol}"] == pytest.approx(plain_score, abs=0.01)
    values = [value for pairs in record.series.values() for _, value in pairs] + list(record.metrics.values())
    assert all(math.isfinite(value) for value in values if value is not None)
    method = methods()[name]()
    tuned = not method.post_hoc and (method.contrast() or method.penalty() or method.layer(128))
    assert ("step.train.loss" in record.series) == bool(tuned)
    assert ("step.train.penalty" in record.series) == (method.penalty() is not None)
    assert ("step.second.loss" in record.series) == (method.two_phases and not method.post_hoc)
    assert set(record.manifest["data"]) == {"rows", "model"} | ({"pairs"} if method.pairs_task else set())
    if name in ("whitening", "whitebert", "all_but_the_top"):
        assert "120 points are few for 128 dimensions" in " ".join(record.manifest["warnings"])


def test_plain_vectors_score_as_they_do_by_hand():
    rows = load_task("english_sts", limit=60, seed=0)
    for layers in ("one_last", "cls"):  # and "first_last" in the test of every method
        record = run(method="none", layers=layers)
        cosines = cosines_by_hand(rows, layers)
        assert [row for row, _ in record.series["pair.cosine"]] == list(range(60))
        np.testing.assert_allclose([value for _, value in record.series["pair.cosine"]], cosines, atol=2e-5)
        expected = 100 * spearmanr(cosines, rows["score"]).statistic
        assert record.metrics["spearman.mean"] == pytest.approx(expected, abs=0.01)
        assert record.metrics["difference.spearman.mean"] == 0.0
        assert record.metrics["difference.spearman.mean.p"] == 1.0
        assert record.metrics["pairs"] == 60
        assert record.metrics["sentences"] == len({*rows["sentence1"], *rows["sentence2"]})


@pytest.mark.parametrize("method", ["istar", "isolayer", "cluster_removal", "flow", "tension"])
def test_the_same_configuration_gives_the_same_record(method, bert):
    config = {"model": bert, "method": {"name": method} | SHORT.get(method, {})}
    torch.manual_seed(1)
    first = run(**config)
    torch.manual_seed(2)
    again, other = run(**config), run(**config, seed=1)
    assert (first.metrics, first.series) == (again.metrics, again.series)
    assert first.manifest["data"] == again.manifest["data"]
    assert first.series["pair.cosine"] != other.series["pair.cosine"]


def test_what_a_method_builds_is_drawn_by_the_seed(stub):
    @dataclass(frozen=True)
    class Drawn(Method):
        name: ClassVar[str] = "drawn"

        def layer(self, dim):
            return torch.nn.Linear(dim, dim)

    records = []
    for noise, seed in ((1, 0), (2, 0), (1, 1)):
        torch.manual_seed(noise)
        records.append(run(method=stub(Drawn), tuning_steps=1, seed=seed).series["pair.cosine"])
    assert records[0] == records[1] != records[2]


def test_a_transform_sees_both_sides_and_its_result_is_scored(stub):
    calls = []

    @dataclass(frozen=True)
    class Swapped(Method):
        name: ClassVar[str] = "swapped"
        post_hoc: ClassVar[bool] = True

        def transform(self, first, second, seed):
            calls.append((first.shape, second.shape, seed))
            return first, -second

        def penalty(self):
            raise AssertionError("a post-hoc method is never asked")

        layer = penalty

    plain, record = run(method="none", seed=7), run(method=stub(Swapped), seed=7)
    assert calls == [((60, 128), (60, 128), 7)]
    assert record.series["pair.cosine"] == [(row, -cosine) for row, cosine in plain.series["pair.cosine"]]
    assert record.metrics["spearman.mean"] == pytest.approx(-plain.metrics["spearman.mean"])
    assert record.metrics["difference.spearman.mean.high"] < -100
    assert record.metrics["difference.spearman.mean.p"] < 0.001


def test_a_method_pools_on_its_own_and_learns_from_words(stub, bert):
    calls = []

    class Moved:
        def transform(self, x):
            return x + 5

    @dataclass(frozen=True)
    class Words(Method):
        name: ClassVar[str] = "words"
        post_hoc: ClassVar[bool] = True
        token_fit: ClassVar[bool] = True

        def fit_tokens(self, tokens, seed):
            calls.append(tokens)
            return Moved()

    record = run(method=stub(Words), model=bert)
    encoder, rows = load(bert), load_task("english_sts", limit=60, seed=0)
    texts = list(dict.fromkeys([*rows["sentence1"], *rows["sentence2"]]))
    states = encode(encoder, texts, progress=False)
    inner = states.mask.clone()
    inner[:, 0] = False
    inner[torch.arange(len(texts)), states.mask.sum(1) - 1] = False
    (tokens,) = calls
    assert len(tokens) == int(inner.sum())
    torch.testing.assert_close(tokens.sum(0), states.hidden_states[-1][inner].sum(0), rtol=1e-3, atol=1e-3)
    vectors = dict(zip(texts, mean_pool(states.hidden_states[-1] + 5, inner), strict=True))
    first, two = (torch.stack([vectors[text] for text in rows[column]]) for column in ("sentence1", "sentence2"))
    expected = torch.cosine_similarity(first, two)
    result = torch.tensor([value for _, value in record.series["pair.cosine"]])
    torch.testing.assert_close(result, expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("place", ["pool", "transform"])
def test_vectors_that_arent_finite_are_refused_by_stage(place, stub):
    @dataclass(frozen=True)
    class Broken(Method):
        name: ClassVar[str] = "broken"
        post_hoc: ClassVar[bool] = True

        def pool(self, states, mask, layers):
            return states[-1].mean(1) * (torch.nan if place == "pool" else 1)

        def transform(self, first, second, seed):
            return first, second * torch.inf

    stage = {"pool": "encoding", "transform": "transforming"}[place]
    with pytest.raises(DegenerateError, match=f"finite after {stage}; got .* numbers"):
        run(method=stub(Broken))


def test_a_task_with_subsets(monkeypatch):
    rows = [dict(row) | {"subset": "even" if i % 3 else "odd"} for i, row in enumerate(load_task("english_sts"))]
    kind = dataclasses.replace(tasks.TASKS["english_sts"], name="subsets_sts", subsets=("even", "odd"))
    for registry in (tasks.TASKS, tasks.GENERATED):
        monkeypatch.setitem(registry, kind.name, kind)
    monkeypatch.setattr("isonb_lab.data.sources.generated_rows", lambda *_: pyarrow.Table.from_pylist(rows))
    outcome = run(task="subsets_sts", method="zero_mean").metrics
    parts = [outcome["subset.even.spearman"], outcome["subset.odd.spearman"]]
    assert outcome["spearman.mean"] == pytest.approx(sum(parts) / 2)
    assert outcome["subset.even.pairs"] + outcome["subset.odd.pairs"] == outcome["pairs"] == 60
    for protocol in ("mean", "weighted", "all"):
        gap = outcome[f"spearman.{protocol}"] - outcome[f"plain.spearman.{protocol}"]
        assert outcome[f"difference.spearman.{protocol}"] == pytest.approx(gap, abs=1e-9)
        assert outcome[f"difference.spearman.{protocol}.low"] <= gap <= outcome[f"difference.spearman.{protocol}.high"]


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("ISONB_DATA"), reason="needs the data folder that ISONB_DATA names")
def test_minilm_on_the_sts_benchmark():
    record = similarity.run({"task": "stsb_test", "model": "minilm", "layers": "last"}, progress=False)
    assert record.metrics["spearman.mean"] == pytest.approx(82.03, abs=0.01)
    assert record.metrics["pairs"] == 1379

"""Measures of clouds and profiles of models: against the functions themselves, on the tensors in one piece."""

import math

import pytest
import torch

from isonb.barcodes.entropy import persistent_entropy
from isonb.barcodes.rips import h0_barcode
from isonb.errors import ShapeError
from isonb.measures.cosine import cls_uniformity, mean_cosine, token_uniformity
from isonb.measures.isoscore import isoscore, isoscore_star, participation_ratio
from isonb.measures.neighbors import two_nn
from isonb.measures.rank import alpha_req, effective_rank
from isonb.measures.spectrum import anisotropy, explained_variance, singular_values, spectral_median, spectral_skewness
from isonb.measures.uniformity import rbf_uniformity
from isonb.points import pool
from isonb_lab.measuring.cloud import cloud_measures
from isonb_lab.measuring.layers import Sample
from isonb_lab.measuring.profile import profile
from tests.integrations import tiny

L = 2


def cloud(n, d):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0)) * torch.linspace(0.2, 3, d) + 2


def by_function(x, shrinkage_cov=None):
    """Every measure of a cloud by the function that defines it."""
    middle, square = x.mean(0), x.square().sum() / len(x)
    result = {
        "participation_ratio": participation_ratio(x),
        "participation_ratio_unbiased": participation_ratio(x, unbiased=True),
        "rbf_uniformity": rbf_uniformity(x),
        "common_mean": middle @ middle / square,
        "relative_spread": (1 - middle @ middle / square).sqrt(),
        "largest_share": x.var(0).max() / x.var(0).sum(),
        "isoscore": isoscore(x),
        "isoscore_unbiased": isoscore(x, unbiased=True),
        "isoscore_star": isoscore_star(x, 0.2, shrinkage_cov),
        "mean_cosine": mean_cosine(x),
        "mean_cosine_centered": mean_cosine(x - x.mean(0)),
        "mean_norm": x.mean(0).norm() / x.norm(dim=1).mean(),
        "two_nn": two_nn(x),
        "persistent_entropy": persistent_entropy(h0_barcode(x)),
        "persistent_entropy_normalized": persistent_entropy(h0_barcode(x)) / math.log(len(x) - 1),
    }
    result["effective_rank"] = effective_rank(x)
    result["nesum"] = effective_rank(x, math.inf, squared=True, center=True)
    result["alpha_req"] = alpha_req(x, 11 if min(x.shape) > 11 else 1)
    for name, function in (("anisotropy", anisotropy), ("explained_variance", explained_variance)):
        for ending, center in (("", False), ("_centered", True)):
            for j, value in enumerate(function(x, 3, center=center), 1):
                result[f"{name}_{j}{ending}"] = value
    return {name: float(value) for name, value in result.items()}


@pytest.mark.parametrize("shape", [(32, 384), (60, 10), (200, 64)], ids=str)
def test_measures_are_those_of_the_functions(shape):
    x = cloud(*shape)
    result = cloud_measures(x.double())
    assert cloud_measures(x) == result
    assert result == pytest.approx(by_function(x.double()), rel=1e-9, abs=1e-12)


def test_classes_are_moved_to_their_own_means():
    x, labels = cloud(40, 6), torch.arange(40) % 3
    x[labels == 1] += 100
    result = cloud_measures(x, labels)
    moved = torch.cat([x[labels == c].double() - x[labels == c].double().mean(0) for c in range(3)])
    shares = torch.linalg.eigvalsh(torch.cov(moved.T)).flip(0)
    for j in (1, 2, 3):
        assert result[f"anisotropy_{j}_class_centered"] == pytest.approx((shares[j - 1] / shares.sum()).item())
    assert result["isoscore_class_centered"] == pytest.approx(isoscore(moved).item())
    assert result["anisotropy_1_class_centered"] < result["anisotropy_1_centered"]
    assert cloud_measures(x, torch.rand(40))["isoscore_class_centered"] is None  # no classes


@pytest.fixture(scope="module")
def encoder():
    return tiny.model("bert").float().eval()


def batches():
    rows = tiny.sentences(23, longest=9)
    results = [tiny.batch(rows[start : start + 5]) for start in range(0, 23, 5)]
    for batch in results:  # padded to the longest of its own batch
        width = int(batch["attention_mask"].sum(-1).max())
        batch |= {key: batch[key][:, :width] for key in ("input_ids", "attention_mask")}
    return results


def forward_of(model):
    @torch.no_grad()
    def forward(batch):
        mask = batch["attention_mask"]
        states = model(input_ids=batch["input_ids"], attention_mask=mask, output_hidden_states=True).hidden_states
        # what stands at padding must not count
        states = tuple(torch.where(mask.bool().unsqueeze(-1), state, 1e4) for state in states)
        return states, mask, torch.tanh(states[-1][:, 0])

    return forward


def in_one_piece(forward, result):
    """The token matrices of the sentences, by layer; and what the head sees."""
    sentences, features = [[] for _ in range(L + 1)], []
    for batch in result:
        states, mask, values = forward(batch)
        features.append(values)
        for layer, state in enumerate(states):
            sentences[layer] += [x[real].double() for x, real in zip(state, mask.bool(), strict=True)]
    return sentences, torch.cat(features).double()


def test_streamed_values_are_those_of_all_points_together(encoder):
    forward, result = forward_of(encoder), batches()
    cov = torch.diag(torch.linspace(0.5, 2, 8))
    observed = profile(forward, iter(result), layers=L, shrinkage_cov=cov)
    sentences, features = in_one_piece(forward, result)
    tokens, cls = ([torch.cat([x[:most] for x in layer]) for layer in sentences] for most in (None, 1))
    for name, x in (("cls", cls[-1]), ("features", features)):
        found = {k.removeprefix(f"{name}."): v for k, v in observed.metrics.items() if k.startswith(f"{name}.")}
        assert found == pytest.approx(by_function(x), rel=1e-6, abs=1e-9)
        for ending, center in (("", False), ("_centered", True)):
            curve = explained_variance(x, 8, center=center)
            places, values = zip(*observed.series[f"k.{name}.explained_variance{ending}"], strict=True)
            assert places == (1, 2, 3, 4, 5, 6, 7, 8)
            assert values == pytest.approx(curve.tolist(), rel=1e-6)
    want = by_function(tokens[-1], cov)
    assert {name: observed.metrics[f"tokens.{name}"] for name in want} == pytest.approx(want, rel=1e-4, abs=1e-6)
    assert observed.metrics["tokens.isoscore_star_all_layers"] == pytest.approx(
        isoscore_star(torch.cat(tokens[1:]), 0.2, cov).item(), rel=1e-5
    )
    places, values = zip(*observed.series["dimension.tokens.mean"], strict=True)
    assert places == (0, 1, 2, 3, 4, 5, 6, 7)
    assert values == pytest.approx(tokens[-1].mean(0).tolist(), abs=1e-5)
    for layer in range(L + 1):
        layers = {name: dict(pairs).get(layer) for name, pairs in observed.series.items() if name.startswith("layer.")}
        pooled = torch.cat([singular_values(x) for x in sentences[layer]])
        want = {
            "token_uniformity": torch.stack([token_uniformity(x) for x in sentences[layer]]).mean(),
            "cls_uniformity": torch.stack([cls_uniformity(x) for x in sentences[layer]]).mean(),
            "spectral_skewness": spectral_skewness(pooled),
            "spectral_median": spectral_median(pooled),
        }
        by_name = by_function(tokens[layer], cov)
        want |= {name: by_name[name] for name in ("isoscore", "isoscore_star", "mean_cosine", "mean_norm")}
        for name, value in want.items():
            assert layers[f"layer.tokens.{name}"] == pytest.approx(float(value), rel=1e-4, abs=1e-6), name
        quantiles = observed.series[f"quantile.layer{layer}.singular_values"]
        assert [q for q, _ in quantiles] == [i / 50 for i in range(51)]
        assert quantiles[-1][1] == 1
        for q, value in quantiles[::10]:
            assert value == pytest.approx(spectral_median(pooled, q).item(), abs=1e-5)
        for name, value in by_function(cls[layer]).items():
            assert layers[f"layer.cls.{name}"] == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_a_layer_of_equal_points_has_no_measures_of_spread():
    same = torch.ones(6, 4, 8)  # as the first token of layer 0 is the same in every sentence
    varied = torch.randn(6, 4, 8, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(6, 4, dtype=torch.long)
    values = profile(lambda batch: ((same, varied, varied), mask, None), [0], layers=L)
    assert [layer for layer, _ in values.series["layer.cls.isoscore"]] == [1, 2]
    assert [layer for layer, _ in values.series["layer.cls.anisotropy_1"]] == [0, 1, 2]
    assert not any(name.startswith(("features.", "k.features")) for name in {**values.metrics, **values.series})


def test_a_diverged_model_and_no_sentences_give_what_they_can(encoder):
    with pytest.raises(ShapeError, match="4 hidden states; got 3"):
        profile(forward_of(encoder), batches(), layers=3)
    states = torch.randn(3, 6, 4, 8, generator=torch.Generator().manual_seed(0))
    states[2, 1, 1, 0] = torch.nan
    mask = torch.ones(6, 4, dtype=torch.long)
    values = profile(lambda batch: (tuple(states), mask, states[2, :, 0]), [0, 1], layers=L)
    assert "tokens.isoscore" not in values.metrics
    assert "cls.isoscore" in values.metrics
    assert [layer for layer, _ in values.series["layer.tokens.isoscore"]] == [0, 1]
    empty = profile(lambda batch: None, [], layers=L)
    assert empty.metrics == {}
    assert empty.series == {}


def test_the_last_token_stands_for_a_decoders_sentence():
    states = torch.randn(L + 1, 9, 5, 8, generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(5) < torch.tensor([2, 3, 4, 5, 5, 2, 3, 4, 5]).unsqueeze(-1)).long()
    values = profile(lambda batch: (tuple(states), mask, None), [0], layers=L, points="last")
    last = pool([states[-1]], mask, "last")
    assert values.metrics["cls.isoscore"] == pytest.approx(isoscore(last).item(), rel=1e-5)
    turned = [states[-1, i, : int(mask[i].sum())].flip(0) for i in range(9)]
    value = torch.stack([cls_uniformity(x) for x in turned]).mean()
    assert dict(values.series["layer.tokens.cls_uniformity"])[L] == pytest.approx(value.item(), rel=1e-5)


def test_large_clouds_are_sampled_without_a_part_for_batches():
    x = cloud(400, 3)
    samples = []
    for size in (400, 150, 7):
        samples.append(Sample(50))
        for part in x.split(size):
            samples[-1].add(part)
    assert all(torch.equal(sample.points, samples[0].points) for sample in samples)
    place = [(x == row).all(-1).nonzero().item() for row in samples[0].points]
    assert len(place) == 50
    assert place == sorted(set(place))
    assert 150 < sum(place) / 50 < 250

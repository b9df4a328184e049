"""The model that ships: small, whole, and as good as its card says."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("transformers")

from isonb.lab.encoders import catalogue, loading


@pytest.fixture(scope="module")
def tiny() -> loading.Encoder:
    return loading.load("tiny")


def test_tiny_is_small_checked_and_complete(tiny: loading.Encoder) -> None:
    folder, digest = catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])
    assert digest == catalogue.weights_digest(folder)
    assert tiny.revision == catalogue.fingerprint(folder)
    assert (tiny.layers, tiny.dim, tiny.max_length, len(tiny.tokenizer)) == (4, 128, 128, 8192)
    assert {p.dtype for p in tiny.model.parameters()} == {torch.float32}
    assert (folder / "model.safetensors").stat().st_size <= 8_000_000
    card = (folder / "README.md").read_text()
    assert digest in card
    assert "CC BY-SA 3.0" in card


def test_tiny_is_loaded_in_float32_whoever_loads_it() -> None:
    """In float16, AdamW's eps of 1e-8 is 0, and a training throws the weights."""
    from transformers import AutoModelForSequenceClassification

    folder, _ = catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    numbers = load_file(folder / "model.safetensors").values()
    assert all(torch.equal(value.half().float(), value) for value in numbers), "the numbers that recorded runs had"


def test_tiny_splits_common_words_not_at_all_and_keeps_every_word(tiny: loading.Encoder) -> None:
    sentence = "the film was shown in the united states in 2010, but it was not a success."
    pieces = tiny.tokenizer.tokenize(sentence.title())
    assert "film" in pieces
    assert "states" in pieces
    assert tiny.tokenizer.unk_token not in pieces
    decoded = tiny.tokenizer.decode(tiny.tokenizer(sentence).input_ids, skip_special_tokens=True)
    assert decoded.replace(" ", "") == sentence.replace(" ", "")


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("He was born in London and died in New [MASK] .", "york"),
        ("She [MASK] born on 3 May 1950 in Paris, France.", "was"),
        ("The album was released [MASK] 5 June 2015.", "on"),
        ("It is a species of beetle in the [MASK] Cerambycidae.", "family"),
    ],
)
def test_tiny_guesses_hidden_words(sentence: str, word: str) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    folder, _ = catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    coded = tokenizer(sentence, return_tensors="pt")
    with torch.no_grad():
        scores = model(**coded).logits[0, coded.input_ids[0] == tokenizer.mask_token_id][0]
    assert word in tokenizer.convert_ids_to_tokens(scores.topk(5).indices.tolist())


def test_tiny_curve_reaches_what_the_card_says() -> None:
    folder, _ = catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])
    lines = (folder / "curve.csv").read_text().splitlines()[1:]
    curve = [[float(value) for value in line.split(",")] for line in lines]
    card = (folder / "README.md").read_text()
    reached = float(card.split("float16 weights): loss ")[1].split()[0])
    frequency = float(card.split("by frequency alone has loss ")[1].split(". ")[0].split(".\n")[0])
    assert curve[-1][3] == 0.0  # the learning rate at the end
    assert curve[-1][5] == min(point[5] for point in curve) == pytest.approx(reached, abs=0.1)
    assert reached < 0.6 * frequency

"""The finished model is the trained one, loads as any other, and its card tells what was done and reached."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

transformers = pytest.importorskip("transformers")

from isonb.lab.encoders import loading  # noqa: E402
from isonb.lab.encoders.catalogue import weights_digest  # noqa: E402
from isonb.lab.pretraining.text import NOT_ASKED, Hiding, Rows, read_folder  # noqa: E402


def words(model: Path) -> str:
    return " ".join((model / "README.md").read_text().split())


def number(model: Path, after: str) -> float:
    found = re.search(re.escape(after) + r" ([0-9.]*[0-9])", words(model))
    assert found
    return float(found[1])


def test_it_loads_as_an_encoder_with_the_trained_weights(finished: Path) -> None:
    encoder = loading.load(finished)
    assert (encoder.layers, encoder.dim, encoder.max_length) == (1, 16, 32)
    states = loading.encode(encoder, ["The old cat.", "A gull follows the lantern."], progress=False)
    assert torch.isfinite(states.hidden_states).all()
    saved, trained = (load_file(at / "model.safetensors") for at in (finished, finished.parent / "checkpoint-12"))
    assert {value.dtype for value in saved.values()} == {torch.float32}
    assert saved.keys() == trained.keys()
    assert all(torch.equal(value, trained[name].half().float()) for name, value in saved.items())
    config = json.loads((finished / "config.json").read_text())
    assert (config["architectures"], config["hidden_dropout_prob"]) == (["BertForPreTraining"], 0.1)
    assert {file.stat().st_mode & 0o777 for file in finished.iterdir()} == {0o644}


def test_the_card_says_what_was_done(finished: Path) -> None:
    card = words(finished)
    assert "{" not in card
    for part in ("A made-up text, public domain.", "--steps 12 --batch 8", "12 steps", "not good for"):
        assert part in card
    for part in ("next sentence prediction", "| follow loss | follow accuracy |", "from random weights"):
        assert part in card
    assert weights_digest(finished) in card
    assert str(finished.parent.parent) not in card
    assert (finished / "curve.csv").read_bytes() == (finished.parent / "curve.csv").read_bytes()
    assert number(finished, "perplexity") == pytest.approx(math.exp(number(finished, "weights): loss")), rel=2e-3)


def test_the_card_says_what_the_exported_weights_reach(finished: Path, text: Path) -> None:
    """Measured again on all held-out rows with transformers' own model and losses, batch by batch."""
    model = transformers.BertForPreTraining.from_pretrained(finished, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(finished)
    rows = Rows(tokenizer, read_folder(text).validation, 16, follow=True)
    loss, hidden, right, asked = 0.0, 0, 0, 0
    for which in torch.arange(len(rows)).split(128):
        batch = Hiding(tokenizer)(rows.__getitems__(which.tolist()))
        with torch.no_grad():
            out = model(batch["input_ids"], token_type_ids=batch["token_type_ids"])
        logits = out.prediction_logits.transpose(1, 2)
        loss += torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="sum").item()
        hidden += int((batch["labels"] != NOT_ASKED).sum())
        right += int((out.seq_relationship_logits.argmax(-1) == batch["next_sentence_label"]).sum())
        asked += int((batch["next_sentence_label"] != NOT_ASKED).sum())
    assert number(finished, "weights): loss") == pytest.approx(loss / hidden, abs=1e-3)
    assert number(finished, "(a guess: 0.693),") == pytest.approx(100 * right / asked, abs=0.06)


def test_the_card_tells_what_came_before(finished: Path, continued: Path) -> None:
    card = (continued / "README.md").read_text()
    now, before = card.split("## What came before")
    assert loading.load(finished).revision in now
    assert "from random weights" not in " ".join(now.split())
    assert f"--start {finished.name}" in now
    for part in ("### Training", "--steps 12", "### What it reached", "random weights"):
        assert part in before.split("\n## ")[0]
    assert str(finished.parent) not in card

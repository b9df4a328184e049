"""A pretraining run that goes on from a finished model: same loss at its first step, its past on the new card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from isonb.checks import InputError
from isonb.lab.encoders.catalogue import ModelError, weights_digest
from isonb.lab.pretraining import warm_start
from isonb.lab.pretraining.checkpoints import CheckpointError, load_state
from isonb.lab.pretraining.pretrain import pretrain
from isonb.lab.pretraining.training import PretrainConfig

pytest.importorskip("transformers")

SMALL = {"layers": 1, "width": 16, "heads": 2, "batch": 8, "length": 16, "vocabulary": 200, "progress": False}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    lines = [" ".join(f"The {a} {b} follows the {b}." for b in ("cat", "gull", "fox")) for a in ("old", "red", "shy")]
    (folder / "train.txt").write_text("\n".join(lines * 20))
    (folder / "validation.txt").write_text("\n".join(lines * 4))
    return folder


def run(text: Path, out: Path, **changes: Any) -> Path:
    return pretrain(PretrainConfig(text, out, **({"steps": 10} | SMALL | changes)))


@pytest.fixture(scope="module", params=[True, False], ids=["pairs", "words alone"])
def first(text: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return run(text, tmp_path_factory.mktemp("first"), follow=request.param)


def test_it_begins_where_the_first_ended(text: Path, tmp_path: Path, first: Path) -> None:
    kept = load_state(first.parent / "checkpoint.safetensors")[1]
    again = run(text, tmp_path, start=str(first), seed=1, steps=4, follow=kept["settings"]["follow"])
    ended, began = kept["curve"], load_state(again.parent / "checkpoint.safetensors")[1]["curve"]
    assert began[0][0] == 0
    assert began[0][5] == pytest.approx(ended[-1][5], abs=2e-3)  # the weights were rounded to float16
    assert (again / "tokenizer.json").read_bytes() == (first / "tokenizer.json").read_bytes()
    old, new = (load_file(folder / "model.safetensors") for folder in (first, again))
    assert not old["bert.embeddings.word_embeddings.weight"].equal(new["bert.embeddings.word_embeddings.weight"])


def test_the_card_tells_both(text: Path, tmp_path: Path, first: Path) -> None:
    card = (run(text, tmp_path, start=str(first), steps=2) / "README.md").read_text()
    before = card.split("## What came before")[1].split("\n## ")[0]
    assert weights_digest(first) in card.split("## What came before")[0]
    assert "from random weights" not in card.split("## What came before")[0]
    for part in ("### Training", "--steps 10", "### What it reached", "from random weights"):
        assert part in before
    assert f"--start {first.name}" in card
    assert str(first.parent) not in card


def test_a_model_without_a_card_has_no_history(tmp_path: Path, first: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((first / name).read_bytes())
    assert warm_start.history(str(tmp_path)) == ""
    assert "What came before" not in warm_start.history(str(first)).split("##", 2)[-1]


def test_what_cannot_be_gone_on_from(text: Path, tmp_path: Path, first: Path) -> None:
    with pytest.raises(ModelError, match=r"must have shape \(.*, 32\), and has \(.*, 16\)"):
        run(text, tmp_path / "wide", start=str(first), width=32)
    with pytest.raises(ModelError, match="must be an embedded name"):
        run(text, tmp_path / "unknown", start="no/such/model/here")
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "model" / name).write_bytes((first / name).read_bytes())
    settings = (tmp_path / "model" / "config.json").read_text()
    (tmp_path / "model" / "config.json").write_text(settings.replace('"bert"', '"distilbert"'))
    with pytest.raises(InputError, match="start must be a BERT encoder"):
        run(text, tmp_path / "kind", start=str(tmp_path / "model"))


def test_a_resumed_run_keeps_its_beginning(text: Path, tmp_path: Path, first: Path) -> None:
    run(text, tmp_path, start=str(first), steps=2)
    with pytest.raises(CheckpointError, match=r"start '[0-9a-f]{64}' -> ''"):
        run(text, tmp_path, steps=2)

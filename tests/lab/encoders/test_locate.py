"""What can be told of a model before its weights are read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from isonb.lab.encoders import catalogue, loading, locate, text_models
from isonb.lab.encoders.catalogue import ModelError
from tests.lab import random_models


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return random_models.save("bert", tmp_path / "bert")


def changed(folder: Path, **values: Any) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    return folder


def test_no_weights_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "model.safetensors").write_bytes(b"no weights at all")
    monkeypatch.setattr(catalogue, "_file_digest", lambda *_: pytest.fail("weights were read"))
    source = locate.find(folder)
    assert (source.name, source.commit, source.max_length) == (str(folder), None, random_models.LENGTH)
    assert locate.find("minilm").config.num_hidden_layers == 6


def test_broken_weights_are_one_clear_error(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(ModelError, match="the model must be"):
        loading.load(folder)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_file(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    word = {"model.safetensors": "safetensors weights", "tokenizer.json": "tokenizer"}.get(missing, missing)
    with pytest.raises(ModelError, match=f"bert has no {word}"):
        locate.find(folder)


def test_a_shard_is_missing(folder: Path) -> None:
    with text_models.quiet():
        loading.load(folder).model.save_pretrained(folder, max_shard_size="20KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    assert loading.load(folder).layers == 2
    next(folder.glob("model-*.safetensors")).unlink()
    with pytest.raises(ModelError, match=r"no safetensors weights .*all its shards"):
        locate.find(folder)


def test_needs_code_of_its_own(folder: Path) -> None:
    changed(folder, model_type="custom", auto_map={"AutoConfig": "custom.Config", "AutoModel": "custom.Model"})
    (folder / "custom.py").write_text("raise SystemExit\n")
    with pytest.raises(ModelError, match="'custom' needs code from the model's repository, which is never run"):
        locate.find(folder)


def test_code_beside_a_known_architecture_is_passed_over(folder: Path) -> None:
    (folder / "custom.py").write_text("raise SystemExit\n")
    changed(folder, auto_map={"AutoConfig": "custom.Config", "AutoModel": "custom.Model"})
    assert type(loading.load(folder).model).__name__ == "BertModel"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model_type": "nothing"}, "model type `nothing` but Transformers does not recognize"),
        ({"model_type": "t5", "is_encoder_decoder": True, "classifier_dropout": 0.0}, "t5 is an encoder-decoder"),
        ({"model_type": "vit"}, "vit is no encoder or decoder of text"),
        ({"hidden_size": "wide"}, "hidden_size"),
    ],
)
def test_unfit_configuration(folder: Path, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ModelError, match=why):
        locate.find(changed(folder, **changes))


def test_names_tell_of_an_architecture_what_its_model_does() -> None:
    from transformers import CONFIG_MAPPING, MODEL_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSIFIERS

    told, seen = {}, {}
    for kind in CLASSIFIERS:
        model = MODEL_MAPPING[CONFIG_MAPPING[kind]]
        takes = {one.main_input_name for one in (model if isinstance(model, tuple) else [model])}
        told[kind] = text_models.reads_text(CONFIG_MAPPING[kind]())
        seen[kind] = takes == {"input_ids"}
    assert told == seen
    assert not told["perceiver"]


def test_a_model_is_found_without_importing_its_class() -> None:
    code = "import sys\nfrom isonb.lab.encoders.locate import find\nfind('tiny')\n"
    code += "print(any(name.startswith('transformers.models.bert.modeling') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_weights_of_another_model(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"lack \d+ of the model's parameters, such as transformer"):
        loading.load(changed(folder, model_type="distilbert"))


def test_positions_of_roberta(tmp_path: Path) -> None:
    encoder = loading.load(random_models.save("roberta", tmp_path))
    assert encoder.max_length == locate.find(tmp_path).max_length == random_models.LENGTH
    ids = torch.full((1, random_models.LENGTH), 5)
    assert loading.hidden_states(encoder, ids, torch.ones_like(ids)).isfinite().all()
    longer = torch.full((1, random_models.LENGTH + 1), 5)
    with pytest.raises((IndexError, RuntimeError)):
        loading.hidden_states(encoder, longer, torch.ones_like(longer))


def test_the_shorter_limit_counts(folder: Path) -> None:
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_max_length": 512}))
    assert locate.find(folder).max_length == random_models.LENGTH
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_max_length": 40}))
    assert locate.find(folder).max_length == loading.load(folder).max_length == 40

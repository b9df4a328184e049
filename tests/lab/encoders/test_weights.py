"""Weights are read from safetensors files of the model's own folder alone, and their digest is of what is loaded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from isonb.lab.encoders import loading, locate, text_models
from isonb.lab.encoders.catalogue import INDEX, ModelError, fingerprint, weights_digest
from isonb.lab.encoders.locate import fingerprint_now, spelled
from tests.lab import random_models
from tests.lab.hub_server import HubServer


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = random_models.save("bert", tmp_path_factory.mktemp("models") / "bert")
    with text_models.quiet():
        loading.load(folder).model.save_pretrained(folder, max_shard_size="20KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    return folder


@pytest.fixture
def model(sharded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sharded, tmp_path / "model"))


def point_to(model: Path, place: object) -> None:
    """Let the index name another file for its first entry."""
    index = json.loads((model / INDEX).read_text())
    index["weight_map"][next(iter(index["weight_map"]))] = place
    (model / INDEX).write_text(json.dumps(index))


@pytest.mark.parametrize("place", ["pytorch_model.bin", "../other.safetensors", "/other.safetensors", 3, None])
def test_every_entry_of_an_index_is_a_safetensors_file_beside_it(model: Path, place: object) -> None:
    torch.save({}, model / "pytorch_model.bin")
    save_file({}, model.parent / "other.safetensors")
    point_to(model, place)
    with pytest.raises(ModelError, match="safetensors files beside it alone"):
        locate.find(model)
    with pytest.raises(ModelError, match="safetensors files beside it alone"):
        weights_digest(model)


@pytest.mark.slow
def test_the_copy_of_a_hub_is_checked_too(model: Path, tmp_path: Path) -> None:
    point_to(model, "pytorch_model.bin")
    torch.save({}, model / "pytorch_model.bin")
    code = "from isonb.lab.encoders import locate\ntry:\n    locate.find('org/odd')\nexcept ValueError as error:\n    "
    with HubServer(models={"org/odd": model}) as hub:
        command = [sys.executable, "-c", code + "print(error)"]
        environment = hub.environment(tmp_path / "home")
        said = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert "safetensors files beside it alone" in said
    assert not [request for request in hub.requests if request.endswith(".bin")]


@pytest.mark.parametrize("content", ["", "[]", '{"weight_map": [1]}', "[" * 5000])
def test_an_index_that_is_none(model: Path, content: str) -> None:
    (model / INDEX).write_text(content)
    with pytest.raises(ModelError, match="must map weights to shards"):
        locate.find(model)


def test_the_digest_is_of_every_shard(model: Path) -> None:
    seen = {weights_digest(model)}
    (model / "left-over.safetensors").write_bytes(b"not loaded")
    assert weights_digest(model) in seen
    shards = sorted(model.glob("model-*.safetensors"))
    assert len(shards) > 2
    for shard in shards:
        save_file({name: value + 1 for name, value in load_file(shard).items()}, shard)
        seen.add(weights_digest(model))
    assert len(seen) == len(shards) + 1
    assert fingerprint_now(str(model)) == fingerprint(model)


def test_a_configuration_names_no_other_weights(model: Path) -> None:
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | {"transformers_weights": "sub/other.safetensors"}))
    with pytest.raises(ModelError, match="names other weights"):
        locate.find(model)


def test_an_adapter_is_not_taken_in(model: Path) -> None:
    (model / "adapter_config.json").write_text('{"base_model_name_or_path": "elsewhere"}')
    with pytest.raises(ModelError, match="has an adapter"):
        locate.find(model)


@pytest.mark.parametrize("name", ["-rf", "~nouser/x", "./nosuch", "a\0b", "x" * 5000, "org/-x", "a--b/c", "\udc80", ""])
def test_names_that_lead_nowhere(name: str) -> None:
    with pytest.raises(ModelError, match="it is no folder and can't be a hub id"):
        locate.find(name)


def test_a_folder_has_one_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mybert", "tiny"):
        (tmp_path / name).mkdir()
    assert {spelled(name) for name in ("mybert", "./mybert", "mybert/", ".//mybert")} == {"mybert"}
    assert {spelled(name) for name in ("./tiny", "tiny/")} == {"./tiny"}  # "tiny" is the embedded model
    assert [spelled(name) for name in ("tiny", "org/name", "./none")] == ["tiny", "org/name", "./none"]

"""What can be told of a model before its weights are read, and which files of weights may be read at all."""

import json
import os
from pathlib import Path

import pytest
import torch
from processes import python
from safetensors.torch import load_file, save_file

from isonb.errors import DependencyError
from isonb.models import catalogue, loading, locate, text_models
from isonb.models.catalogue import INDEX, ModelError, fingerprint, weights_digest
from isonb.models.sentence_models import load_sentences
from tests.lab import random_models
from tests.lab.hostile_folders import changed


@pytest.fixture
def folder(tmp_path):
    return random_models.save("bert", tmp_path / "bert")


def test_weights_that_are_none_and_those_of_another_model(folder):
    changed(folder / "config.json", model_type="distilbert")
    with pytest.raises(ModelError, match=r"lack \d+ of the model's parameters, such as transformer"):
        loading.load(folder)
    (folder / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(ModelError, match="the model must be"):
        loading.load(folder)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_file(folder, missing):
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="has an adapter"):
        locate.find(folder)
    (folder / "adapter_config.json").unlink()
    (folder / missing).unlink()
    word = {"model.safetensors": "safetensors weights", "tokenizer.json": "tokenizer"}.get(missing, missing)
    with pytest.raises(ModelError, match=f"bert has no {word}"):
        locate.find(folder)


AUTO = {"AutoConfig": "custom.Config", "AutoModel": "custom.Model"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model_type": "t5", "is_encoder_decoder": True, "classifier_dropout": 0.0}, "t5 is an encoder-decoder"),
        ({"model_type": "custom", "auto_map": AUTO}, "'custom' needs code from .*, which is never run"),
        ({"model_type": "vit"}, "vit is no encoder or decoder of text"),
        ({"hidden_size": "wide"}, "hidden_size"),
        ({"transformers_weights": "sub/other.safetensors"}, "names other weights"),
        ({"hidden_size": 2**26}, "GiB, and the machine has"),
        ({"num_hidden_layers": 10**9}, "1000000000 layers, where 1000 are the most"),
        ({"vocab_size": 10**12}, "GiB, and the machine has"),
    ],
)
def test_a_configuration_that_is_unfit_or_beyond_the_machine(folder, changes, why):
    changed(folder / "config.json", **changes)
    with pytest.raises(ModelError, match=why):
        locate.find(folder)


def test_names_tell_of_an_architecture_what_its_model_does():
    from transformers import CONFIG_MAPPING, MODEL_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES as IMAGES
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSIFIERS

    few = {"bert", "gpt2", "roberta", "distilbert", *sorted(CLASSIFIERS)[::12]}  # each class takes a second to import
    for kind in few | (CLASSIFIERS.keys() & IMAGES.keys()):
        model = MODEL_MAPPING[CONFIG_MAPPING[kind]]
        names = {item.main_input_name for item in (model if isinstance(model, tuple) else [model])}
        assert text_models.reads_text(CONFIG_MAPPING[kind]()) == (names == {"input_ids"}), kind


def test_a_model_is_found_without_importing_its_class():
    code = "import sys\nfrom isonb.models.locate import find\nfind('tiny')\n"
    code += "print('transformers.models.bert.modeling_bert' in sys.modules)"
    assert python("-c", code).strip() == "False"


def test_positions_of_roberta_are_used_to_the_last(tmp_path):
    encoder = loading.load(random_models.save("roberta", tmp_path))
    ids = torch.full((1, encoder.max_length), 5)
    assert loading.hidden_states(encoder, ids, torch.ones_like(ids)).isfinite().all()
    with pytest.raises((IndexError, RuntimeError)):
        loading.hidden_states(encoder, ids.repeat(1, 2), torch.ones_like(ids).repeat(1, 2))


def test_the_shorter_limit_counts(folder):
    changed(folder / "tokenizer_config.json", model_max_length=512)
    assert locate.find(folder).max_length == random_models.LENGTH
    changed(folder / "tokenizer_config.json", model_max_length=40)
    assert locate.find(folder).max_length == loading.load(folder).max_length == 40


@pytest.fixture
def model(folder):
    """The same model in shards."""
    with text_models.quiet():
        loading.load(folder).model.save_pretrained(folder, max_shard_size="20KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    return folder


@pytest.mark.parametrize("place", ["pytorch_model.bin", "../other.safetensors", 3])
def test_every_entry_of_an_index_is_a_safetensors_file_beside_it(folder, place):
    (folder / "model.safetensors").rename(folder.parent / "other.safetensors")
    torch.save({}, folder / "pytorch_model.bin")
    (folder / INDEX).write_text(json.dumps({"weight_map": {"weight": place}}))
    for read in (locate.find, weights_digest):
        with pytest.raises(ModelError, match="safetensors files beside it alone"):
            read(folder)


def test_an_index_that_is_none_and_a_shard_that_is_missing(model):
    assert loading.load(model).layers == 2
    next(model.glob("model-*.safetensors")).unlink()
    with pytest.raises(ModelError, match=r"no safetensors weights .*all its shards"):
        locate.find(model)
    for content in ("", "[]", '{"weight_map": [1]}'):
        (model / INDEX).write_text(content)
        with pytest.raises(ModelError, match="must map weights to shards"):
            locate.find(model)


def test_the_digest_is_of_every_shard(model):
    names = {weights_digest(model)}
    (model / "left-over.safetensors").write_bytes(b"not loaded")
    assert weights_digest(model) in names
    shards = sorted(model.glob("model-*.safetensors"))
    for shard in shards:
        save_file({name: value + 1 for name, value in load_file(shard).items()}, shard)
        names.add(weights_digest(model))
    assert len(names) == len(shards) + 1 > 3
    assert locate.fingerprint_now(str(model)) == fingerprint(model)


@pytest.mark.parametrize("name", ["-rf", "~nouser/x", "./nosuch", "x" * 5000, ""])
def test_names_that_lead_nowhere(name):
    with pytest.raises(ModelError, match="it is no folder and can't be a hub id"):
        locate.find(name)


def test_a_folder_has_one_spelling(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mybert", "tiny"):
        (tmp_path / name).mkdir()
    assert {locate.spelled(name) for name in ("mybert", "./mybert", "mybert/", ".//mybert")} == {"mybert"}
    assert {locate.spelled(name) for name in ("./tiny", "tiny/")} == {"./tiny"}  # "tiny" is the embedded model
    assert [locate.spelled(name) for name in ("tiny", "org/name", "./none")] == ["tiny", "org/name", "./none"]


def test_a_path_is_a_folder_also_where_it_is_called_as_an_embedded_model(folder, monkeypatch):
    folder = folder.rename(folder.parent / "tiny")
    monkeypatch.chdir(folder.parent)
    assert locate.find(Path("tiny")).folder == folder.resolve()
    assert locate.find(Path("tiny")).weights() == fingerprint(folder) != locate.find("tiny").weights()
    monkeypatch.chdir(folder)
    assert locate.find(Path("tiny")).weights() == locate.find("tiny").weights()


def test_the_folder_of_models_is_read_alike_for_every_model(tmp_path, monkeypatch):
    entry = catalogue.EMBEDDED["mpnet"]
    (tmp_path / entry.hub).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ISONB_CACHE", str(tmp_path / "none"))
    monkeypatch.setenv("ISONB_MODELS", "~")
    assert catalogue.embedded_place(entry) == locate.place_of(entry.hub)[0] == (tmp_path / entry.hub).resolve()
    monkeypatch.setenv("ISONB_MODELS", "")
    with pytest.raises(DependencyError, match="must have been fetched"):
        catalogue.embedded_place(entry)


@pytest.mark.parametrize(("name", "kind"), [("tokenizer.json", "device"), ("modules.json", "pipe")])
def test_a_link_to_a_device_and_a_pipe_are_never_opened(folder, name, kind):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("/dev/zero") if kind == "device" else os.mkfifo(folder / name)
    for look in (locate.find, locate.fingerprint_now, loading.load, load_sentences):
        with pytest.raises(ModelError, match=f"has {name}, which is a device or a pipe, and no file"):
            look(str(folder))


@pytest.mark.parametrize(("name", "most"), [("vocab.txt", "1 are"), ("model.safetensors", "are the most")])
def test_files_beyond_all_measure_are_never_read(folder, name, most):
    with (folder / name).open("ab") as file:
        file.truncate(2**42)  # without taking any room
    with pytest.raises(ModelError, match=f"has {name} of 4,096 GiB, where .*{most}"):
        locate.find(folder)


def test_a_tokenizer_that_never_ends(folder, monkeypatch):
    file = folder / "tokenizer.json"
    before = file.read_text()
    longer = {"type": "Replace", "pattern": {"String": "o"}, "content": "o" * 1000}
    changed(file, normalizer={"type": "Sequence", "normalizers": [longer] * 4})
    monkeypatch.setattr(catalogue, "PATIENCE", 3)
    with pytest.raises(ModelError, match=r"has a tokenizer \(tokenizer.json\) that does not end"):
        locate.find(folder)
    monkeypatch.setattr(catalogue, "PATIENCE", 0.001)
    file.write_text(before)
    with pytest.raises(ModelError, match="that does not end"):
        locate.find(folder)


def test_every_file_that_makes_the_vectors_is_in_the_fingerprint(folder):
    names = {fingerprint(folder)}
    (folder / "README.md").write_text("Words about it.")
    assert fingerprint(folder) in names
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text((folder / name).read_text() + " ")
        names.add(fingerprint(folder))
    for name in ("vocab.txt", "merges.txt", "bpe.codes", "spiece.model", "tokenizer.tiktoken", "chat_template.jinja"):
        (folder / name).write_text("a word")
        names.add(fingerprint(folder))
    modules = [{"name": str(i), "path": path, "type": "T"} for i, path in enumerate(("", "1_Pooling"))]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    for place, mode in (("1_Pooling/config.json", "mean"), ("1_Pooling/config.json", "cls"), ("1_Pooling/w.bin", "w")):
        (folder / place).write_text(mode)
        names.add(fingerprint(folder))
    assert len(names) == 13

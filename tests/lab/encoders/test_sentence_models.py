"""Models of sentence-transformers: a closed table of modules, and the vectors that the library itself gives."""

import importlib
import json
import pkgutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Dense, Module, Transformer
from sentence_transformers.base.modules.router import Router
from sentence_transformers.sentence_transformer import modules
from sentence_transformers.sparse_encoder.modules import SpladePooling

import isonb.integrations
from isonb.models import locate
from isonb.models.catalogue import ModelError, fingerprint
from isonb.models.module_list import CLASSES, LIBRARY, OURS, read_modules
from isonb.models.sentence_models import load_sentences
from tests.lab import hub_server
from tests.lab.hostile_folders import changed
from tests.lab.hub_server import COMMIT, HubServer

TEXTS = ["A narrow cone.", "A ball of yarn and a cone.", "Rain."]


def mean_pooled(bert):
    return [Transformer(bert), modules.Pooling(16)]


def saved(model, folder):
    model.save(str(folder))
    return folder


def relist(folder, **changes):
    """Other values in the list of modules."""
    listed = json.loads((folder / "modules.json").read_text())
    for entry in listed:
        entry |= {key: change(entry[key]) for key, change in changes.items()}
    (folder / "modules.json").write_text(json.dumps(listed))


@pytest.fixture
def folder(bert, tmp_path):
    return saved(SentenceTransformer(modules=[*mean_pooled(bert), Dense(16, 8)], device="cpu"), tmp_path / "model")


def test_the_table_is_what_the_library_and_we_have():
    abstract = {"Module", "InputModule"}
    assert set(LIBRARY) == set(modules.__all__) - abstract
    for name, place in LIBRARY.items():
        kind = getattr(importlib.import_module(f"sentence_transformers.{place}"), name)
        assert CLASSES[f"{kind.__module__}.{name}"] == CLASSES[f"sentence_transformers.models.{name}"] == name
    ours = {}
    for file in pkgutil.iter_modules(isonb.integrations.__path__):
        if file.name not in ("accelerate", "mteb"):
            place = importlib.import_module(f"isonb.integrations.{file.name}")
            ours |= {
                name: place.__name__
                for name, kind in vars(place).items()
                if isinstance(kind, type) and issubclass(kind, Module) and kind.__module__ == place.__name__
            }
    assert ours == OURS


@pytest.mark.parametrize("how", ["query and document", "narrow, half and with prompts", "earlier names"])
def test_what_the_folder_says_is_what_the_library_gives(how, bert, folder, tmp_path):
    torch.manual_seed(0)
    model, place = SentenceTransformer(str(folder), device="cpu"), tmp_path / "again"
    if how == "query and document":
        both = Router({"query": mean_pooled(bert), "document": [*mean_pooled(bert), Dense(16, 16)]}, "query")
        model = SentenceTransformer(modules=[both, modules.Normalize()], device="cpu")
    if how == "narrow, half and with prompts":
        model, model.truncate_dim = model.half(), 5
        model.prompts, model.default_prompt_name = {"query": "find: ", "document": "read: "}, "query"
    saved(model, place)
    if how == "earlier names":
        relist(place, type=lambda kind: f"sentence_transformers.models.{kind.rpartition('.')[2]}")
    library = SentenceTransformer(str(place), device="cpu")
    ours, digest = load_sentences(place)
    assert digest == fingerprint(place)
    assert (ours.prompts, ours.default_prompt_name) == (library.prompts, library.default_prompt_name)
    for encode in ("encode", "encode_query", "encode_document"):
        np.testing.assert_array_equal(getattr(ours, encode)(TEXTS), getattr(library, encode)(TEXTS))
    config = next(place.rglob("*_Pooling/config.json"))  # the files of a Router's modules make the vectors, too
    config.write_text(config.read_text().replace('"mean"', '"cls"'))
    assert fingerprint(place) != digest


def test_models_of_other_kinds_are_refused_by_name(bert, tmp_path):
    sparse = saved(SparseEncoder(modules=[Transformer(bert), SpladePooling()], device="cpu"), tmp_path / "sparse")
    with pytest.raises(ModelError, match=r"its module .*\.sparse_encoder\..*SpladePooling is neither"):
        load_sentences(sparse)
    folder = saved(SentenceTransformer(modules=mean_pooled(bert), device="cpu"), tmp_path / "cross")
    changed(folder / "config_sentence_transformers.json", model_type="CrossEncoder")
    with pytest.raises(ModelError, match="it is saved as a CrossEncoder, which gives no sentence vectors"):
        load_sentences(folder)


@pytest.mark.parametrize(
    ("file", "values", "says"),
    [
        ("config_sentence_transformers.json", {"prompts": ["a"]}, "must give prompts as texts by name"),
        ("config_sentence_transformers.json", {"default_prompt_name": "q"}, "names as the default, 'q'"),
        ("config_sentence_transformers.json", {"truncate_dim": "8"}, "must give truncate_dim as a number from 1"),
        ("config_sentence_transformers.json", {"requirements": {"torch": ">=99"}}, "can't load .*torch"),
        ("sentence_bert_config.json", {"tokenizer_name_or_path": "org/x"}, "sets tokenizer_name_or_path, which isn't"),
        ("sentence_bert_config.json", {"model_args": {"gguf_file": "x"}}, "sets model_args.gguf_file, which isn't"),
        ("config.json", {"transformers_weights": "other.safetensors"}, "names other weights"),
        ("modules.json", {}, "must list modules with their types"),
    ],
)
def test_a_wrong_value_is_one_typed_error(file, values, says, folder):
    place = folder / file
    stored = json.loads(place.read_text())
    place.write_text(json.dumps(stored | values if isinstance(stored, dict) else values))
    with pytest.raises(ModelError, match=says):
        load_sentences(folder)


def test_a_module_has_one_name(folder):
    relist(folder, name=lambda name: "same")
    with pytest.raises(ValueError, match="must give each module a name of its own"):
        read_modules(folder)


ANSWER = """
from isonb.models.sentence_models import load_sentences
def answer(name):
    model, commit = load_sentences(name)
    return commit, model.encode(["Rain."], show_progress_bar=False).tolist()[0]
"""


@pytest.mark.slow
def test_of_the_hub_only_files_of_data_are_downloaded(folder, tmp_path):
    for name in ("modeling.py", "2_Dense/pytorch_model.bin", "onnx/model.safetensors"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"not needed")
    model = SentenceTransformer(str(folder), device="cpu")
    routed = [Router({"query": list(model)[:2]}, "query"), list(model)[2]]
    below = saved(SentenceTransformer(modules=routed, device="cpu"), tmp_path / "below")
    with HubServer(models={"org/whole": folder, "org/below": below}) as hub:
        environment = hub.environment(tmp_path / "home")
        online = hub_server.ask(ANSWER, environment, "org/whole", "org/below")
    want = [COMMIT, pytest.approx(model.encode(["Rain."]).tolist()[0], abs=1e-6)]
    assert online == [want, want]
    assert not [request for request in hub.requests if request.endswith((".py", ".bin", ".md")) or "/onnx/" in request]
    offline = hub_server.ask(ANSWER, environment | {"HF_HUB_OFFLINE": "1"}, "org/whole", "org/below")
    assert offline == [want, want]
    assert locate.find(str(folder)).commit is None


FINDINGS = """
from isonb.auditing.choosing import Encoding, embedder_of
def answer(name):
    embedder, assumed = embedder_of(name, Encoding())
    return embedder.description, [[item.severity, item.text] for item in assumed]
"""
FILLED = """
from transformers import AutoModel, AutoTokenizer
def answer(name):
    AutoTokenizer.from_pretrained(name)
    return type(AutoModel.from_pretrained(name)).__name__
"""


@pytest.mark.slow
def test_a_cache_that_another_library_has_filled_says_nothing_of_pooling(folder, bert, tmp_path):
    with HubServer(models={"org/modules": folder, "org/bare": Path(bert)}) as hub:
        environment = hub.environment(tmp_path / "home", HF_HUB_DISABLE_PROGRESS_BARS="1")
        filled = hub_server.ask(FILLED, environment, "org/modules", "org/bare")
        offline = hub_server.ask(FINDINGS, environment | {"HF_HUB_OFFLINE": "1"}, "org/modules", "org/bare")
        before = len(hub.requests)
        online = hub_server.ask(FINDINGS, environment, "org/modules", "org/bare")
        asked = [request for request in hub.requests[before:] if request.startswith("GET api/models/org/bare")]
    assert filled == ["BertModel", "BertModel"]
    text = "The local copy has no modules.json, and the hub doesn't say whether it has: mean is assumed."
    assert offline == [["mean pooling", [["warning", text]]]] * 2
    none = ["mean pooling", [["note", "No pooling is saved with the model: mean is assumed."]]]
    assert online == [["as sentence-transformers encodes", []], none]
    assert len(asked) == 1
    assert hub_server.ask(FINDINGS, environment | {"HF_HUB_OFFLINE": "1"}, "org/modules", "org/bare") == online

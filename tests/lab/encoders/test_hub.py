"""A model by hub id: downloaded from a hub on the loopback, read again offline from the cache, refused without one."""

import functools
import time

import pytest

from isonb.models import catalogue, loading, locate
from tests.lab import hub_server, random_models
from tests.lab.hub_server import COMMIT, HubServer

ANSWER = """
from isonb.models.loading import encode, load
from isonb.models.locate import find
def answer(name):
    limit, encoder = find(name).max_length, load(name)
    states = encode(encoder, ["A narrow cone."], progress=False).hidden_states
    return encoder.name, encoder.revision, limit, float(states.abs().sum())
"""
ask = functools.partial(hub_server.ask, ANSWER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return random_models.save("roberta", tmp_path_factory.mktemp("model"))


@pytest.mark.slow
def test_hub_model_then_cache_then_nothing(folder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.json").write_bytes((folder / "config.json").read_bytes())
    (folder / "bpe.codes").write_text("a tokenizer's, as of other architectures")
    with HubServer(models={"org/tiny": folder, "org/bare": bare}) as hub:
        environment = hub.environment(tmp_path / "home")
        online = ask(environment, "org/tiny", "org/other", "org/bare")
    weights = [request for request in hub.requests if request.endswith("model.safetensors")]
    assert weights.count(f"GET org/tiny/resolve/{COMMIT}/model.safetensors") == 1
    assert f"GET org/tiny/resolve/{COMMIT}/bpe.codes" in hub.requests
    states = loading.encode(loading.load(folder), ["A narrow cone."], progress=False).hidden_states
    want = ["org/tiny", COMMIT, random_models.LENGTH, pytest.approx(float(states.abs().sum()), rel=1e-5)]
    assert online[0] == want
    assert "'org/other': the hub says: " in online[1][1]
    assert online[2][1].endswith(
        "its repository has no safetensors weights (model.safetensors, or all its shards); convert the model first"
    )
    begun = time.monotonic()
    gone = ask(environment, "org/tiny", "org/other")
    assert time.monotonic() - begun < 40  # the clients of the hub would try again for 50 s
    assert gone[0] == want
    assert "no answer from http://127.0.0.1" in gone[1][1]
    assert "put the model into $ISONB_MODELS/org/other" in gone[1][1]
    assert ask(environment | {"HF_HUB_OFFLINE": "1"}, "org/tiny")[0] == want


def test_folder_stands_for_a_hub_id(folder, tmp_path, monkeypatch):
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "tiny").symlink_to(folder)
    monkeypatch.setenv("ISONB_MODELS", str(tmp_path))
    encoder = loading.load("org/tiny")
    assert encoder.name == "org/tiny"
    assert encoder.revision == loading.load(folder).revision
    assert locate.find("org/tiny").commit is None
    monkeypatch.setenv("ISONB_MODELS", str(tmp_path / "nowhere"))
    with pytest.raises(catalogue.ModelError, match=r"folder of models \(ISONB_MODELS\) must be an existing folder"):
        loading.load("org/tiny")
    assert loading.load("tiny").name == "tiny"

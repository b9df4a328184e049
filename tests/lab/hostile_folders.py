"""Folders of models whose author means harm: each brings code that leaves a mark where it is run.

:data:`HOSTILE` names what is done to a sound folder of sentence-transformers. :data:`SOUND` does as much beside files
that the folder's vectors don't need, so that the model must load, and the code must still not run.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
CODE = """
open({mark!r}, "w").write("ran")
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast
class Evil(torch.nn.Module):
    @classmethod
    def load(cls, *given, **more):
        return cls()
    def forward(self, features, *given, **more):
        return features
class EvilConfig(BertConfig):
    model_type = "evil"
class EvilModel(BertModel):
    config_class = EvilConfig
class EvilTokenizer(BertTokenizerFast):
    pass
def generate(*given, **more):
    pass
"""
Deed = Callable[[Path, str], None]


class Mine:
    """What a pickle runs when it is loaded."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> Any:
        return exec, (self.code,)


def changed(file: Path, **values: Any) -> None:
    """A JSON mapping with other values, or a new one."""
    stored = json.loads(file.read_text()) if file.is_file() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(stored | values))


def written(folder: Path, code: str, *names: str) -> None:
    """The code, under each name."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code)


def module(kind: Any, *names: str, path: str = "") -> Deed:
    """A last module of the type ``kind`` in the list, and the code in files ``names``."""

    def plant(folder: Path, code: str) -> None:
        listed = json.loads((folder / "modules.json").read_text())
        entry = {"idx": len(listed), "name": str(len(listed)), "path": path, "type": kind}
        (folder / "modules.json").write_text(json.dumps([*listed, entry]))
        written(folder, code, *names)

    return plant


def edited(changes: dict[str, dict[str, Any]], *names: str) -> Deed:
    """JSON files with other values, and the code in files ``names``."""

    def plant(folder: Path, code: str) -> None:
        for file, values in changes.items():
            changed(folder / file, **values)
        written(folder, code, *names)

    return plant


def router(kind: str, config: str = "router_config.json") -> Deed:
    """A Router that holds a module of the type ``kind``, in place of all modules."""

    def plant(folder: Path, code: str) -> None:
        inner = folder / "inner"
        inner.mkdir()
        for file in [path for path in folder.iterdir() if path.is_file()]:
            shutil.move(file, inner / file.name)
        routes = {"types": {"q_0_T": kind, "d_0_T": kind}, "structure": {"query": ["q_0_T"], "document": ["d_0_T"]}}
        changed(folder / config, **routes, parameters={"default_route": "query"})
        entry = {"idx": 0, "name": "0", "path": "", "type": f"{Router.__module__}.Router"}
        (folder / "modules.json").write_text(json.dumps([entry]))
        written(folder, code, "isonb.py", "evil.py", "custom_st.py", "q_0_T/evil.py")

    return plant


def dense(folder: Path, activation: str | None = None) -> Path:
    """A Dense behind the pooling, perhaps with another activation; its folder."""
    (folder / "2_Dense").mkdir()
    Dense(16, 16).save(str(folder / "2_Dense"))
    module(f"{Dense.__module__}.Dense", path="2_Dense")(folder, "")
    if activation is not None:
        changed(folder / "2_Dense" / "config.json", activation_function=activation)
    return folder / "2_Dense"


def activation(name: str) -> Deed:
    def plant(folder: Path, code: str) -> None:
        dense(folder, name)
        written(folder, code, "isonb.py", "evil.py", "torch.py", "2_Dense/evil.py")

    return plant


def pickled_module(folder: Path, code: str) -> None:
    pickled_weights(dense(folder), code)


def pickled_weights(folder: Path, code: str, name: str = "pytorch_model.bin") -> None:
    (folder / "model.safetensors").unlink()
    torch.save(Mine(code), folder / name)


def pickled_shard(folder: Path, code: str) -> None:
    pickled_weights(folder, code, "evil.bin")
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "evil.bin"}}
    changed(folder / "model.safetensors.index.json", **index)
    changed(folder / "sentence_bert_config.json", model_args={"weights_only": False})


def pickles_beside(folder: Path, code: str) -> None:
    for name in ("pytorch_model.bin", "model.pt", "tokenizer.pkl", "1_Pooling/pytorch_model.bin"):
        torch.save(Mine(code), folder / name)
    (folder / "vocab.pkl").write_bytes(pickle.dumps(Mine(code)))


def text(folder: Path, code: str) -> None:
    (folder / "words").mkdir()
    changed(folder / "words" / "wordembedding_config.json", tokenizer_class="evil.Evil", max_seq_length=9)
    kind = "sentence_transformers.models.WordEmbeddings"
    entry = {"idx": 0, "name": "0", "path": "words", "type": kind}
    (folder / "modules.json").write_text(json.dumps([entry]))
    written(folder, code, "evil.py", "words/evil.py")


def elsewhere(folder: Path, code: str) -> None:
    outside = folder.parent / f"{folder.name}-outside"
    written(outside, code, "isonb.py", "evil.py")
    shutil.copy(folder / "1_Pooling" / "config.json", outside / "config.json")
    (folder / "3_Link").symlink_to(outside)
    module(f"{Pooling.__module__}.Pooling", path="3_Link")(folder, code)


def extra(folder: Path, code: str) -> None:
    names = ("torch", "numpy", "tokenizers", "safetensors", "transformers", "scipy", "yaml", "sentence_transformers")
    early = ("isonb", "json", "random", "pathlib", "fnmatch", "ipykernel_launcher", "sitecustomize", "conftest")
    written(folder, code, *(f"{name}.py" for name in (*names, *early)))
    written(folder, code, "__init__.py", "setup.py", "modeling.py", "custom_st.py", "1_Pooling/pooling.py", "code/a.py")


LIBRARY, SENTENCE_BERT = "sentence_transformers", "sentence_bert_config.json"
AUTO = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}
ARCHITECTURE = {"config.json": {"model_type": "evil", "architectures": ["EvilModel"], "auto_map": AUTO}}
TRUST = {key: {"trust_remote_code": True} for key in ("model_args", "config_args")}
TOKENIZER = {"tokenizer_class": "EvilTokenizer", "auto_map": {"AutoTokenizer": ["evil.EvilTokenizer"] * 2}}
PROCESSORS = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")
PROCESSOR = {"processor_class": "EvilTokenizer", "auto_map": {"AutoProcessor": "evil.EvilTokenizer"}}
BASE = {"base_model_class": "EvilModel", "parent_library": "evil"}
ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": ".", "auto_mapping": BASE}
KERNEL, KERNELS = {"attn_implementation": "evil/kernel"}, ("evil/kernel/__init__.py", "kernel.py")
METHOD = {"text": {"method": "push_to_hub", "method_output_name": None}}
GENERATION = {
    SENTENCE_BERT: {"transformer_task": "text-generation"},
    "generation_config.json": {"custom_generate": "custom_generate"},
}
HOSTILE: dict[str, Deed] = {
    "isonb.Evil": module("isonb.Evil", "isonb.py"),
    "isonb..Evil": module("isonb..Evil", "isonb.py"),
    "isonb.x--evil.Evil": module("isonb.x--evil.Evil", "evil.py"),
    "evil.Evil": module("evil.Evil", "evil.py"),
    "isonb.integrations.Evil": module("isonb.integrations.Evil", "isonb/integrations.py", "isonb/__init__.py"),
    "TokenSoftDecay.Evil": module(
        "isonb.integrations.sentence_transformers.TokenSoftDecay.Evil", "isonb/integrations/sentence_transformers.py"
    ),
    "isonb.evil/../Evil": module("isonb.evil/../Evil", "evil.py", "isonb.py"),
    f"{LIBRARY}.Evil": module(f"{LIBRARY}.Evil", f"{LIBRARY}.py"),
    f"{LIBRARY}.models.Evil": module(f"{LIBRARY}.models.Evil", f"{LIBRARY}/models.py", f"{LIBRARY}/__init__.py"),
    "sentence_transformers_evil.Evil": module("sentence_transformers_evil.Evil", "sentence_transformers_evil.py"),
    "transformers.Evil": module("transformers.Evil", "transformers.py"),
    "torch.nn.Evil": module("torch.nn.Evil", "torch.py", "torch/nn.py"),
    "custom_st.Transformer": module("custom_st.Evil", "custom_st.py"),
    "a type that is no text": module(["isonb.Evil"], "isonb.py"),
    "a path above": module(f"{Pooling.__module__}.Pooling", "evil.py", path="../.."),
    "an absolute path": module(f"{Pooling.__module__}.Pooling", "evil.py", path="/"),
    "a folder elsewhere": elsewhere,
    "an architecture": edited(ARCHITECTURE, "evil.py"),
    "an architecture that asks for trust": edited(ARCHITECTURE | {SENTENCE_BERT: TRUST}, "evil.py"),
    "a tokenizer": edited({"tokenizer_config.json": TOKENIZER}, "evil.py"),
    "a router of isonb.Evil": router("isonb.Evil"),
    "a router of evil.Evil": router("evil.Evil"),
    "a router of custom_st": router("custom_st.Evil", "config.json"),
    "an activation": activation("evil.Evil"),
    "an activation of isonb": activation("isonb.Evil"),
    "an activation of torch": activation("torch.evil.Evil"),
    "a tokenizer of words": text,
    "a pickled module": pickled_module,
    "pickled weights": pickled_weights,
    "a pickled shard": pickled_shard,
    "an adapter": edited({"adapter_config.json": ADAPTER}, "evil.py"),
    "a kernel": edited({"config.json": KERNEL}, *KERNELS),
    "a kernel of a module": edited({SENTENCE_BERT: {"model_args": KERNEL}}, *KERNELS),
    "another method": edited(
        {SENTENCE_BERT: {"modality_config": METHOD, "module_output_name": "token_embeddings"}}, "evil.py"
    ),
    "a processor": edited(dict.fromkeys(PROCESSORS, PROCESSOR), "evil.py"),
    "generation": edited(GENERATION, "custom_generate/generate.py", "custom_generate/__init__.py"),
}
SOUND: dict[str, Deed] = {
    "files beside": extra,
    "pickles beside": pickles_beside,
    "a known architecture": edited({"config.json": {"auto_map": AUTO}}, "evil.py"),
}
# What the library runs where it is told to trust a folder: the code is alive.
ALIVE = (
    *("isonb.Evil", "evil.Evil", "custom_st.Transformer", "transformers.Evil", "an architecture", "a tokenizer"),
    *("a router of evil.Evil", "pickled weights", "a pickled shard", "pickles beside"),
)


def sound_folder(bert: str, folder: Path) -> Path:
    """A small SentenceTransformer with mean pooling."""
    SentenceTransformer(modules=[Transformer(bert), Pooling(16)], device="cpu").save(str(folder))
    return folder


def plant(name: str, sound: Path, root: Path, mark: Path) -> Path:
    """The folder of the hostile model called ``name``, as a snapshot in the layout of the hub's cache."""
    home = root / f"models--org--{list(HOSTILE | SOUND).index(name)}"
    folder = home / "snapshots" / COMMIT
    shutil.copytree(sound, folder)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    (HOSTILE | SOUND)[name](folder, CODE.format(mark=str(mark)))
    return folder

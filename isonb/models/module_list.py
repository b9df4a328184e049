"""The modules that a folder of sentence-transformers lists in ``modules.json``, read as data.

A type there is a word of the folder's author and no proof of where a class comes from: ``isonb.Evil`` beside a file
``isonb.py`` is code of the folder. So each type is looked up in a closed table by its exact spelling, what is not in
the table is refused, and nothing is ever imported by a name that a file holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

LIST = "modules.json"
ROUTES = ("router_config.json", "config.json")  # of a Router; earlier releases wrote the second

# The classes of sentence-transformers, and where they stand in it.
LIBRARY = {
    "Transformer": "base.modules.transformer",
    "Dense": "base.modules.dense",
    "Normalize": "base.modules.normalize",
    "Router": "base.modules.router",
    "Asym": "base.modules.router",
    "BoW": "sentence_transformer.modules.bow",
    "CLIPModel": "sentence_transformer.modules.clip_model",
    "CNN": "sentence_transformer.modules.cnn",
    "Dropout": "sentence_transformer.modules.dropout",
    "LayerNorm": "sentence_transformer.modules.layer_norm",
    "LSTM": "sentence_transformer.modules.lstm",
    "Pooling": "sentence_transformer.modules.pooling",
    "StaticEmbedding": "sentence_transformer.modules.static_embedding",
    "WeightedLayerPooling": "sentence_transformer.modules.weighted_layer_pooling",
    "WordEmbeddings": "sentence_transformer.modules.word_embeddings",
    "WordWeights": "sentence_transformer.modules.word_weights",
}
ROUTERS = ("Router", "Asym")
OURS = {"TokenSoftDecay": "isonb.integrations.sentence_transformers"}


def _spellings() -> Iterator[tuple[str, str]]:
    """Each type as this and earlier releases write it, with the name of its class."""
    for name, place in LIBRARY.items():
        earlier = ("base.modules", "sentence_transformer.modules", "models", f"models.{name}")
        for where in (place, *earlier):
            yield f"sentence_transformers.{where}.{name}", name
    for name, place in OURS.items():
        yield f"{place}.{name}", name


CLASSES = dict(_spellings())


@dataclass(frozen=True)
class Module:
    """An entry of the list: name, folder (relative; "": the model's own), type, and what of ``encode`` it takes."""

    name: str
    path: str
    kind: str
    kwargs: tuple[str, ...] = ()

    @property
    def class_name(self) -> str:
        """The name of its class. ValueError for a type that is not in the table."""
        if self.kind not in CLASSES:
            raise ValueError(
                f"its module {self.kind} is neither of sentence-transformers nor of isonb, and its code isn't run; "
                "load it yourself and pass it: isonb.audit(model, texts)"
            )
        return CLASSES[self.kind]


def read_json(file: Path) -> dict[str, Any]:
    """The mapping that a JSON file holds; {} without the file. ValueError for anything else."""
    if not file.is_file():
        return {}
    content = _parsed(file)
    if not isinstance(content, dict):
        raise ValueError(f"its {file.name} must hold a mapping; it holds a {type(content).__name__}")
    return content


def read_modules(folder: Path) -> list[Module]:
    """The entries of a folder's ``modules.json``, in their order; ValueError says what is wrong with one."""
    listed = _parsed(folder / LIST)
    if not isinstance(listed, list) or not listed:
        raise ValueError(f"its {LIST} must list modules with their types")
    modules = [_module(entry) for entry in listed]
    _check_inside(folder, LIST, modules)
    if len({module.name for module in modules}) < len(modules):
        raise ValueError(f"its {LIST} must give each module a name of its own")
    return modules


def routes_of(folder: Path) -> tuple[str, list[Module]]:
    """The file that describes a Router, and the modules that it holds. ValueError for a Router in a Router."""
    name = next((name for name in ROUTES if (folder / name).is_file()), ROUTES[0])
    types = read_json(folder / name).get("types")
    if not isinstance(types, dict) or not types:
        raise ValueError(f"its {name} must name the types of its modules")
    modules = [_module({"name": key, "path": key, "type": kind}) for key, kind in types.items()]
    _check_inside(folder, name, modules)
    if any(CLASSES.get(module.kind) in ROUTERS for module in modules):
        raise ValueError(f"its {name} has a Router in a Router, which isn't read")
    return name, modules


def module_paths(folder: Path) -> list[str]:
    """Where the modules of a folder lie, relative to it, those of a Router too; "": in the folder itself."""
    paths = []
    for module in read_modules(folder):
        inside = (folder / module.path).is_dir() and CLASSES.get(module.kind) in ROUTERS
        routed = routes_of(folder / module.path)[1] if inside else [Module("", "", "")]
        paths += [(PurePosixPath(module.path) / inner.path).as_posix() for inner in routed]
    return ["" if path == "." else path for path in paths]


def module_folders(folder: Path) -> list[Path]:
    """The folders below ``folder`` that modules lie in, whatever their types; none where the list can't be read."""
    try:
        return [folder / path for path in module_paths(folder) if path and (folder / path).is_dir()]
    except (OSError, ValueError):
        return []


def _check_inside(folder: Path, file: str, modules: list[Module]) -> None:
    """ValueError for a module whose folder, links followed, lies elsewhere: it would be read, and never hashed."""
    for module in modules:
        if not (folder / module.path).resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"its {file} names the folder {module.path!r}, which isn't inside the model's own")


def _module(entry: Any) -> Module:
    """An entry, its fields checked."""
    name, path, kind = map(entry.get, ("name", "path", "type")) if isinstance(entry, dict) else (None, None, None)
    if not isinstance(name, str) or not isinstance(path, str) or not isinstance(kind, str):
        raise ValueError(f"its {LIST} must list modules with their types")
    kwargs = entry.get("kwargs") or []
    if not isinstance(kwargs, list) or not all(isinstance(key, str) for key in kwargs):
        raise ValueError(f"its {LIST} must list the kwargs of {name!r} by name")
    return Module(name, path, kind, tuple(kwargs))


def _parsed(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"its {file.name} can't be read as JSON ({type(error).__name__})") from error

"""Folders of sentence-transformers: what ``encode`` gives is the model, and that library alone loads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from isonb.errors import in_one_line, needs
from isonb.lab.encoders.catalogue import EMBEDDED, embedded_folder, fingerprint
from isonb.lab.encoders.locate import find, place_of, reject
from isonb.lab.encoders.text_models import check_size, quiet


def load_sentences(name: str | Path, *, device: str | torch.device = "cpu") -> tuple[Any, str] | None:
    """The ``SentenceTransformer`` called ``name`` and its fingerprint; None where that has no ``modules.json``.

    ``name`` is looked for as by :func:`~isonb.lab.encoders.loading.load`. Weights are safetensors, in the numbers that
    they were saved in, and no code of the folder is run. Raises :class:`~isonb.lab.encoders.catalogue.ModelError` for
    modules that are neither the library's nor ours, and for a folder that the library can't load.
    """
    place = place_of(name)
    folder, commit = place or _from_hub(name)
    if not (folder / "modules.json").is_file():
        return None
    if str(name) in EMBEDDED:
        embedded_folder(EMBEDDED[str(name)])
    ours = _has_ours(name, folder)
    with needs("isonb.audit of a folder of sentence-transformers", "lab"):
        from sentence_transformers import SentenceTransformer
    try:
        with quiet():
            _check_sizes(folder)
            model = SentenceTransformer(
                str(name) if place is None else str(folder),
                device=str(device),
                revision=commit if place is None else None,
                local_files_only=place is not None,
                trust_remote_code=ours,  # the library's word for modules that are installed beside it
                model_kwargs={"use_safetensors": True},
            )
    except Exception as error:  # a wrong value in any file of the folder comes as an error of another kind
        reject(name, f"sentence-transformers can't load {folder}: {in_one_line(error)}", error)
    return model, commit or fingerprint(folder)


def _from_hub(name: str | Path) -> tuple[Path, str | None]:
    source = find(name)
    return source.folder, source.commit


def _check_sizes(folder: Path) -> None:
    """ValueError for a transformer of the folder that the machine can't hold."""
    from transformers import AutoConfig

    for file in (folder / "config.json", *folder.glob("*/config.json")):
        if file.is_file() and '"model_type"' in file.read_text(encoding="utf-8"):
            check_size(AutoConfig.from_pretrained(file.parent, local_files_only=True, trust_remote_code=False))


def _has_ours(name: str | Path, folder: Path) -> bool:
    """Whether modules of isonb are among those of the folder; :class:`ModelError` for any of others."""
    try:
        kinds = [str(module["type"]) for module in json.loads((folder / "modules.json").read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        reject(name, f"{folder / 'modules.json'} must list modules with their types", error)
    for kind in kinds:
        if not kind.startswith(("sentence_transformers.", "isonb.")):
            told = f"its module {kind} is neither of sentence-transformers nor of isonb, and its code isn't run"
            reject(name, f"{told}; load it yourself and pass it: isonb.audit(model, texts)")
    ours = any(kind.startswith("isonb.") for kind in kinds)
    if ours and any('"auto_map"' in path.read_text(encoding="utf-8") for path in folder.rglob("*.json")):
        reject(name, "its architecture needs code from the model's repository, which is never run")
    return ours

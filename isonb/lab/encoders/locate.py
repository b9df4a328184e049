"""Where a model's files lie and whether it is one the lab can use, found out before any weights are read.

A name is looked for among the embedded models, as a folder, below the folder that the environment variable
ISONB_MODELS names (where ``google-bert/bert-base-uncased`` stands for the hub id), in the local Hugging Face cache, and
at last on the hub, which is asked once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from isonb.checks import fail
from isonb.lab.encoders.catalogue import EMBEDDED, ModelError, embedded_folder, embedded_place, weights_digest
from isonb.lab.encoders.hub import Silence, ask, first_line
from isonb.lab.encoders.text_models import input_limit, quiet, read_config, read_tokenizer

__all__ = ["MODELS_VARIABLE", "Source", "find", "reject"]

MODELS_VARIABLE = "ISONB_MODELS"
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")
INDEX = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


@dataclass(frozen=True)
class Source:
    """A model that can be loaded. ``folder`` holds configuration and tokenizer; :meth:`weights` makes sure of the rest.

    ``commit`` is that of a hub model, None for a folder.
    """

    name: str
    folder: Path
    commit: str | None
    config: Any
    tokenizer: Any
    missing: tuple[str, ...] = ()  # files of weights still on the hub

    @property
    def max_length(self) -> int:
        """The longest input in tokens."""
        return input_limit(self.config, self.tokenizer)

    def weights(self) -> str:
        """Fetch weights that are still on the hub and check embedded ones; the commit or the weights' sha256."""
        if self.name in EMBEDDED:
            return embedded_folder(EMBEDDED[self.name])[1]
        if self.commit is None:
            return weights_digest(self.folder)
        if self.missing:
            _download(self.name, self.commit, self.missing)
        return self.commit


def find(name: str | Path, *, revision: str | None = None) -> Source:
    """The model called ``name``, checked as far as that goes without weights: a second's work, or a small download.

    The name must lead somewhere; there must be safetensors weights, a tokenizer and the configuration of a text encoder
    or decoder that transformers knows itself. ``revision`` pins a commit of a hub id, which is then looked for in the
    cache and on the hub alone. Raises :class:`ModelError`, and :class:`~isonb.checks.DependencyError` when the package
    that carries an embedded model is missing.

    >>> source = find("minilm")
    >>> source.config.model_type, source.max_length, source.commit
    ('bert', 512, None)
    """
    text = str(name)
    if text in EMBEDDED:
        return _in_folder(text, embedded_place(EMBEDDED[text]))
    if text and Path(text).expanduser().is_dir():
        return _in_folder(text, Path(text).expanduser().resolve())
    if isinstance(name, Path) or not HUB_ID.fullmatch(text):
        reject(name, "it is no folder and can't be a hub id")
    folder = None if revision else _stand_in(text)
    if folder is not None:
        return _in_folder(text, folder)
    folder = _cached(text, revision)
    return _in_folder(text, folder, folder.name) if folder is not None else _on_hub(text, revision)


def reject(name: object, why: str, cause: BaseException | None = None) -> NoReturn:
    """Raise the :class:`ModelError` of a name that can't be used."""
    accepted = f"an embedded name ({', '.join(sorted(EMBEDDED))}), a folder with safetensors weights, or a hub id"
    raise ModelError(f"the model must be {accepted}; got {str(name)!r}: {why}") from cause


def _stand_in(hub_id: str) -> Path | None:
    """The folder below ISONB_MODELS that stands for a hub id, if there is one."""
    named = os.environ.get(MODELS_VARIABLE)
    if not named:
        return None
    root = Path(named).expanduser()
    if not root.is_dir():
        invariant = f"the folder of models ({MODELS_VARIABLE}) must be an existing folder"
        fail(ModelError, invariant, repr(named), "Correct the path, or unset the variable.")
    return (root / hub_id).resolve() if (root / hub_id).is_dir() else None


def _in_folder(name: str, folder: Path, commit: str | None = None) -> Source:
    why = _lacks(path.name for path in folder.iterdir())
    if why:
        reject(name, f"{folder} {why}")
    return _checked(name, folder, commit)


def _checked(name: str, folder: Path, commit: str | None, missing: tuple[str, ...] = ()) -> Source:
    try:
        config = read_config(folder)
        return Source(name, folder, commit, config, read_tokenizer(folder), missing)
    except Exception as error:  # a wrong value in any file of the folder comes as an error of another kind
        reject(name, first_line(error), error)


def _lacks(names: Iterable[str]) -> str:
    """What files of a model are not among ``names``, in words; empty: none."""
    files = set(names)
    if "config.json" not in files:
        return "has no config.json"
    shards = [name for name in files if WEIGHTS.fullmatch(name) and "-of-" in name]
    whole = INDEX in files and bool(shards) and len(shards) == int(shards[0][-17:-12])
    if "model.safetensors" not in files and not whole:
        return "has no safetensors weights (model.safetensors, or all its shards); convert the model first"
    return "" if files.intersection(TOKENIZERS) else f"has no tokenizer ({', '.join(TOKENIZERS)})"


def _cached(hub_id: str, revision: str | None) -> Path | None:
    """The snapshot of a hub model in the local cache, if it is whole; its name is the commit."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, "config.json", revision=revision)
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    return None if _lacks(path.name for path in folder.iterdir() if path.exists()) else folder


def _on_hub(hub_id: str, revision: str | None) -> Source:
    """Configuration and tokenizer downloaded, the weights seen to be there."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    if "/" not in hub_id:
        reject(hub_id, "not in the local cache; to download a model, write organisation/model")
    try:
        info = ask(lambda: HfApi().model_info(hub_id, revision=revision, timeout=10))
    except Silence as error:
        why = f"no answer from {constants.ENDPOINT} and no whole copy in the cache"
        fix = f"Connect once, name a folder, or put the model into ${MODELS_VARIABLE}/{hub_id}"
        reject(hub_id, f"{why}. {fix}.", error)
    except RepositoryNotFoundError as error:
        reject(hub_id, "the hub has no such model, or shows it only to some who log in", error)
    except HfHubHTTPError as error:
        reject(hub_id, f"the hub says {first_line(error)}", error)
    files = [part.rfilename for part in info.siblings or () if "/" not in part.rfilename]
    why = _lacks(files)
    if why:
        reject(hub_id, f"its repository {why}")
    folder = _download(hub_id, revision, ("config.json",))  # by the name asked for, which the cache then knows
    small = [name for name in files if name.endswith((".json", ".txt", ".model"))]
    _download(hub_id, folder.name, small)
    return _checked(hub_id, folder, folder.name, tuple(name for name in files if WEIGHTS.fullmatch(name)))


def _download(hub_id: str, revision: str | None, files: Iterable[str]) -> Path:
    """Files of one commit, into the cache; the snapshot's folder, whose name is the commit."""
    from huggingface_hub import hf_hub_download

    try:
        with quiet():
            return {Path(hf_hub_download(hub_id, name, revision=revision)).parent for name in files}.pop()
    except Exception as error:  # the client raises errors of several libraries; each means that a file is missing
        reject(hub_id, first_line(error), error)

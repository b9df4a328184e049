"""The study files: Python files, one a paper, each with the ``DESIGN`` of a study. Those of the book lie beside it."""

from __future__ import annotations

import importlib
import sys
import zlib
from pathlib import Path
from types import ModuleType

from isonb.errors import fail
from isonb.lab.studies.design import Design, StudyError
from isonb.runtime.places import RECORDINGS_FOLDER

FOLDER = RECORDINGS_FOLDER.parent / "studies"
STUDIES = tuple(sorted(path.stem for path in FOLDER.glob("*.py") if "\nDESIGN" in path.read_text(encoding="utf-8")))


def study_file(name: str | Path) -> ModuleType:
    """A file of ``book/studies`` by its name, or a file of one's own by its path, as a module.

    The files of a folder may import each other (``from .arms import gain``). Raises
    :class:`~isonb.lab.studies.design.StudyError` for a file that isn't there.
    """
    path = Path(name) if str(name).endswith(".py") else FOLDER / f"{name}.py"
    if not path.is_file():
        known = ", ".join(STUDIES) or "none, outside a checkout"
        fail(
            StudyError,
            "a study must be a file",
            f"none for {str(name)!r}",
            f"Pass a path, or one of the book: {known}.",
        )
    folder = path.resolve().parent
    package = f"studies_of_{zlib.crc32(str(folder).encode())}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package, f"The study files of {folder}.")
        sys.modules[package].__path__ = [str(folder)]
    importlib.invalidate_caches()
    return importlib.import_module(f"{package}.{path.stem}")


def design_of(name: str | Path) -> Design:
    """The design of a study, by the name or the path of its file."""
    design = getattr(study_file(name), "DESIGN", None)
    if not isinstance(design, Design):
        fail(
            StudyError, "a study file must have a DESIGN", f"{design!r} in {name}", "Give it one, of isonb.lab.studies."
        )
    return design


def every_design() -> list[Design]:
    """The designs of the book's studies, with those of the runs before and beside them (a file's ``VARIANTS``)."""
    files = [study_file(name) for name in STUDIES]
    return [design for file in files for design in (file.DESIGN, *getattr(file, "VARIANTS", ()))]

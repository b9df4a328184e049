"""What a study compares, said once: grid, recordings, arms, tasks and claims; and the files that say it.

A study file is a Python file, one a paper, with the ``DESIGN`` of a study. Those of the book lie beside it.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from isonb.errors import InputError, fail
from isonb.lab.studies.verdicts import Claim
from isonb.runtime.places import RECORDINGS_FOLDER

Settings: TypeAlias = Mapping[str, Any]  # by column: {"task": "cola", "method.name": "istar", "method.weight": -1}
FOLDER = RECORDINGS_FOLDER.parent / "studies"
STUDIES = tuple(sorted(path.stem for path in FOLDER.glob("*.py") if "\nDESIGN" in path.read_text(encoding="utf-8")))

PLAIN = "none"  # the arm without a method, in every study
TASK_NAMES = {
    "cola": "CoLA",
    "mrpc": "MRPC",
    "rte": "RTE",
    "stsb": "STS-B",
    "sst2": "SST-2",
    "sst2_joint": "SST-2, joint",
    "sst5": "SST-5",
    "qnli": "QNLI",
    "qqp": "QQP",
    "squad": "SQuAD",
}
SIMILARITY_NAMES = {"stsb_test": "STS-B"} | {f"sts{y}": f"STS-{y}" for y in range(12, 17)} | {"sickr": "SICK-R"}


class StudyError(InputError):
    """A study, arm, column or suite that isn't there."""


@dataclass(frozen=True)
class Design:
    """What a study compares.

    Args:
        name: of the study, and of the grid (``book/experiments/<name>.yaml``) unless ``grid`` names another.
        page: the chapter.
        recordings: where its runs are; of a run that is in several, the first counts.
        arm: the name of the arm in print by a run's settings, as the columns of a recording name them, or None for a
            run that isn't compared. Settings that a grid leaves out and no recording knows are missing.
        claims: what is judged.
        suite: the place of a run in the tables by its settings, by default the name of its task in print.
        size: of the grid; it is the plan.
        grid: its name, or the path of a file.
        more: further grids with their size, whose runs count, too; one that isn't there plans nothing.
        no_setting: gives the (arm, suite) where every setting that was tried failed.
        acts_on: by arm the vectors that its method changes, as a record names them: "tokens", "features" or "second";
            "cls" for all others.
    """

    name: str
    page: str
    recordings: tuple[str, ...]
    arm: Callable[[Settings], str | None]
    claims: tuple[Claim, ...] = ()
    suite: Callable[[Settings], str] | None = None
    size: str = "small"
    grid: str = ""
    more: tuple[tuple[str, str], ...] = ()
    no_setting: Callable[[], Collection[tuple[str, str]]] = frozenset
    acts_on: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def plan(self) -> str:
        """The grid that holds what is planned."""
        return self.grid or self.name


def study_file(name: str | Path) -> ModuleType:
    """A file of ``book/studies`` by its name, or a file of one's own by its path, as a module.

    The files of a folder may import each other (``from .arms import gain``). Raises
    :class:`StudyError` for a file that isn't there.
    """
    path = Path(name) if str(name).endswith(".py") else FOLDER / f"{name}.py"
    if not path.is_file():
        known = ", ".join(STUDIES) or "none, outside a checkout"
        fix = f"Pass a path, or one of the book: {known}."
        fail(StudyError, "a study must be a file", f"none for {str(name)!r}", fix)
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
        fix = "Give it one, of isonb.lab.studies."
        fail(StudyError, "a study file must have a DESIGN", f"{design!r} in {name}", fix)
    return design


def every_design() -> list[Design]:
    """The designs of the book's studies, with those of the runs before and beside them (a file's ``VARIANTS``)."""
    files = [study_file(name) for name in STUDIES]
    return [design for file in files for design in (file.DESIGN, *getattr(file, "VARIANTS", ()))]

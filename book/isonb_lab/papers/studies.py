"""The studies of the book by name, and a study with its recorded runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path

from isonb.errors import fail
from isonb_lab.claims.design import Design, StudyError
from isonb_lab.claims.study import Study
from isonb_lab.papers import (
    arms,
    evidence_claims,
    evidence_methods,
    figure_2,
    head_to_head,
    isolayer,
    istar,
    istar_doses,
    layer_doses,
    neighbours,
    plain_encoders,
    shrink_the_longest,
    softdecay,
    trained_runs,
)
from isonb_lab.papers.own_runs import study_of_runs
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import FOLDER, recorded

FILES = (
    evidence_claims,
    evidence_methods,
    figure_2,
    head_to_head,
    isolayer,
    istar,
    istar_doses,
    layer_doses,
    neighbours,
    plain_encoders,
    shrink_the_longest,
    softdecay,
    trained_runs,
)
DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (*(file.DESIGN for file in FILES), istar.PAPER_WEIGHTS, trained_runs.PRINTED_TABLES)
}
STUDIES = tuple(name for name in DESIGNS if name != arms.TABLES)  # whose runs the others have, or which no claim is of


def every_design() -> list[Design]:
    """The designs of all studies, with those of the runs before and beside the head to head."""
    return [*DESIGNS.values(), *head_to_head.VARIANTS]


def design_of(name: str) -> Design:
    """The design of a study of the book; raises :class:`~isonb_lab.claims.design.StudyError` for another name."""
    if name not in DESIGNS:
        fix = f"Name one of {', '.join(STUDIES)}, or pass a design."
        fail(StudyError, "a study must be one of the book's", repr(name), fix)
    return DESIGNS[name]


def load_study(
    study: str | Design,
    *,
    live: Mapping[str, Iterable[Record]] | None = None,
    folder: str | Path | None = None,
    runs: str | Path = "",
) -> Study:
    """A study with its recorded runs, with ``live`` records by their suite, and with the studies that it refers to.

    With ``runs`` these, and those of the studies that it refers to, take the place of the recorded ones:
    :func:`~isonb_lab.papers.own_runs.study_of_runs`.

    Args:
        study: a name of :data:`STUDIES`, or a design.
        live: records of runs that were just made.
        folder: holds the recordings, by default those of the book.
        runs: the folder of a sweep, of records, or of a recording; none by default.

    Raises
        StudyError: for a name that isn't there, or a folder without complete runs.
        RecordedError: for a recording that can't be read.
    """
    design = design_of(study) if isinstance(study, str) else study
    if not live and folder is None and not str(runs) and DESIGNS.get(design.name) is design:
        return _study_of_the_book(design.name)
    others = {name: load_study(name, folder=folder, runs=runs) for name in sorted(design.others)}
    if str(runs):
        return study_of_runs(design, runs, live=live, others=others)
    return Study.load(design, live=live, folder=folder, others=others)


@functools.cache
def _study_of_the_book(name: str) -> Study:
    """A study on the book's own recordings: each is read once, however many others refer to it."""
    design = DESIGNS[name]
    return Study.load(design, others={other: load_study(other) for other in sorted(design.others)})


def unused_runs(folder: Path | None = None) -> dict[str, list[str]]:
    """The recorded rows that no design takes: run ids by recording, only of recordings that have some."""
    studies = (Study.load(one, folder=folder) if folder else load_study(one) for one in every_design())
    used = {run for study in studies for run in study.recorded["run_id"]}
    names = sorted(path.parent.name for path in (folder or FOLDER).glob("*/runs.parquet"))
    unused = {name: sorted(set(recorded(name, folder).runs["run_id"]) - used) for name in names}
    return {name: runs for name, runs in unused.items() if runs}

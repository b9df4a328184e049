"""Where the files of the book lie that the lab reads: beside the package in a checkout, inside it when installed.

An installed package has the templates of runs and the grids of the papers. The recordings of the book, which no command
needs, stay in the checkout.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["EXPERIMENTS_FOLDER", "RECORDINGS_FOLDER", "shipped_grids"]

PACKAGE = Path(__file__).resolve().parents[1]
BOOK = PACKAGE.parent / "book"
INSIDE = PACKAGE / "experiments"  # the wheel puts book/experiments there
EXPERIMENTS_FOLDER = INSIDE if INSIDE.is_dir() else BOOK / "experiments"
RECORDINGS_FOLDER = BOOK / "recorded"


def shipped_grids() -> dict[str, Path]:
    """The grids that come with isonb, by name.

    >>> "istar" in shipped_grids()
    True
    """
    return {path.stem: path for path in sorted(EXPERIMENTS_FOLDER.glob("*.yaml"))}

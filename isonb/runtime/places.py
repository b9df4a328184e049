"""Where the files of the book lie that isonb reads: beside the package in a checkout, inside it when installed.

An installed package has the templates of runs, the grids of the papers and the pictures of the chapters. The recordings
of the book, which no command needs, stay in the checkout.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
BOOK = PACKAGE.parent / "book"
# the wheel puts both inside the package
EXPERIMENTS_FOLDER, FIGURES_FOLDER = (
    PACKAGE / name if (PACKAGE / name).is_dir() else BOOK / name for name in ("experiments", "figures")
)
RECORDINGS_FOLDER = BOOK / "recorded"


def shipped_grids() -> dict[str, Path]:
    """The grids that come with isonb, by name.

    >>> "istar" in shipped_grids()
    True
    """
    return {path.stem: path for path in sorted(EXPERIMENTS_FOLDER.glob("*.yaml"))}


def grid_file(grid: str | Path) -> Path:
    """The file itself, or the grid of that name that comes with isonb.

    >>> grid_file("istar").name
    'istar.yaml'
    """
    return Path(grid) if Path(grid).is_file() else shipped_grids().get(str(grid), Path(grid))

"""Where the files of the book lie: beside the package in a checkout, inside it when installed.

An installed package has the templates of runs, the grids of the papers and the recordings that chapters read.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
BOOK = PACKAGE.parent
HOME = PACKAGE if (PACKAGE / "experiments").is_dir() else BOOK  # the wheel puts them inside the package
EXPERIMENTS_FOLDER = HOME / "experiments"
RECORDINGS_FOLDER = HOME / "recorded"


def shipped_grids() -> dict[str, Path]:
    """The grids that come with the lab, by name.

    >>> "istar" in shipped_grids()
    True
    """
    return {path.stem: path for path in sorted(EXPERIMENTS_FOLDER.glob("*.yaml"))}


def grid_file(grid: str | Path) -> Path:
    """The file itself, or the grid of that name that comes with the lab.

    >>> grid_file("istar").name
    'istar.yaml'
    """
    return Path(grid) if Path(grid).is_file() else shipped_grids().get(str(grid), Path(grid))

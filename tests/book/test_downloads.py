"""The archive of the pages: its notebooks run alone, with isonb and isonb-lab from its wheels and from nowhere else."""

import zipfile
from pathlib import Path

import nbformat
import pytest
from processes import python

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.downloads import archive, lines, notebooks, wheels

ROOT = Path(__file__).resolve().parents[2]
ALONE = "notebooks/results/three_readers"


@pytest.mark.slow
def test_a_notebook_with_solutions_runs_in_an_empty_folder(tmp_path):
    """Those without are run by .ci/lone_notebooks.py."""
    packages = wheels(ROOT, tmp_path)
    archive(tmp_path / "archive.zip", packages, notebooks(Book(ROOT), solutions=True))
    with zipfile.ZipFile(tmp_path / "archive.zip") as result:
        names = result.namelist()
        first = nbformat.reads(result.read(f"isonb-notebooks/{ALONE}.ipynb").decode(), 4)
        assert all(line.strip() in result.read("isonb-notebooks/README.txt").decode() for line in lines().splitlines())
    assert all(f"isonb-notebooks/{wheel.name}" in names for wheel in packages)
    assert sum(name.startswith("isonb-notebooks/student/") for name in names) >= 25
    assert f'"../../{packages[0].name}"' in next(cell.source for cell in first.cells if cell.id == "install")
    report = python(ROOT / ".ci" / "lone_notebooks.py", tmp_path / "archive.zip", ALONE, cwd=tmp_path)
    assert "1 notebooks ran alone, 0 failed." in report


def test_a_handout_has_no_solutions(book):
    assert {place.partition("/")[0] for place in notebooks(book, solutions=False)} == {"student"}
    assert {place.partition("/")[0] for place in notebooks(book, solutions=True)} == {"student", "notebooks"}

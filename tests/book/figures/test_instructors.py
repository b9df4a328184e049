"""The tables for instructors: paths that fit their minutes, and a row a chapter with what was measured."""

import re
from pathlib import Path

import pytest

from isonb_lab.pages import instructors as figures
from isonb_lab.pages.chapters import Book

BOOK = Book(Path(__file__).resolve().parents[3])
CHAPTERS = {chapter.name.removeprefix("book/"): chapter for chapter in BOOK.chapters}
TEXT = figures.teaching_page(
    [(chapter, {"seconds": 12.4, "hardware": "a small one", "peak_mib": 321}) for chapter in BOOK.chapters]
)


@pytest.mark.parametrize("length", figures.PATHS)
def test_a_path_fits_its_minutes_and_leaves_time_to_talk(length):
    path = figures.PATHS[length]
    minutes = int(re.search(rf"exercises: (\d+) of {length} minutes", TEXT)[1])
    assert 0.7 * length < minutes < 0.95 * length
    places = [list(CHAPTERS).index(name) for name in path]
    assert places == sorted(places), "in the order of the book"
    assert all(count <= figures.exercises(CHAPTERS[name]) for name, count in path.items())
    assert {f"book/{name}" for name in path} <= set(BOOK.numbered)


def test_the_page_has_paths_chapters_and_the_machine():
    assert re.findall(r"^## (.*)$", TEXT, re.MULTILINE) == [
        "45 minutes",
        "90 minutes",
        "180 minutes",
        "What each chapter takes",
    ]
    assert TEXT.count("| 12 | 321 |") == len(BOOK.chapters)
    assert re.search(r"Barcodes\]\(/book/foundations/barcodes\.ipynb\) \| \d+ \| 7 \| 12 \| 321 \|", TEXT)
    assert "on a small one. The seconds include the start of the kernel." in TEXT
    assert f"takes {12 * len(figures.PATHS[45])} seconds" in TEXT, "the sum of what the rows print"

"""The tables for instructors: courses that fit their hours, and a row a chapter with what was measured."""

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


@pytest.mark.parametrize("hours", figures.COURSES)
def test_a_course_fits_its_hours_and_leaves_time_to_talk(hours):
    minutes = int(re.search(rf"exercises: (\d+) of {60 * hours} minutes", TEXT)[1])
    assert 0.7 * 60 * hours < minutes < 0.95 * 60 * hours
    places = [list(CHAPTERS).index(name) for name in figures.COURSES[hours]]
    assert places == sorted(places), "in the order of the book"
    assert all(count <= figures.exercises(CHAPTERS[name]) for name, count in figures.COURSES[hours].items())


def test_the_page_has_courses_chapters_and_the_machine():
    assert re.findall(r"^## (.*)$", TEXT, re.MULTILINE) == ["1 hour", "3 hours", "8 hours", "What each chapter takes"]
    assert TEXT.count("| 12 | 321 |") == len(BOOK.chapters)
    assert re.search(r"Barcodes\]\(/book/foundations/barcodes\.ipynb\) \| \d+ \| 7 \| 12 \| 321 \|", TEXT)
    assert "on a small one. The seconds include the start of the kernel." in TEXT
    assert f"takes {12 * len(figures.COURSES[1])} seconds" in TEXT, "the sum of what the rows print"

"""The tables for instructors: paths that fit their minutes, and a row a chapter with what was measured."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from isonb_lab.pages import tables as figures
from isonb_lab.pages.chapters import Book

BOOK = Book(Path(__file__).resolve().parents[3])
CHAPTERS = {chapter.name.removeprefix("book/"): chapter for chapter in BOOK.chapters}
TEXT = figures.teaching_page(
    [(chapter, {"seconds": 12.4, "hardware": "a small one", "peak_mib": 321}) for chapter in BOOK.chapters]
)
PARTS = {
    int(minutes): part
    for minutes, part in re.findall(r"^## (\d+) minutes\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
}


@pytest.mark.parametrize("length", figures.PATHS)
def test_a_path_fits_its_minutes_and_leaves_time_to_talk(length):
    path = figures.PATHS[length].pages
    minutes = int(re.search(rf"exercises: (\d+) of {length} minutes", TEXT)[1])
    assert 0.7 * length < minutes < 0.95 * length
    places = [list(CHAPTERS).index(name) for name in path]
    assert places == sorted(places), "in the order of the book"
    titles = [figures.exercises(CHAPTERS[name])[label] for name, labels in path.items() for label in labels]
    assert all(f"*{title}*" in PARTS[length] for title in titles)
    assert {f"book/{name}" for name in path} <= set(BOOK.numbered)
    assert PARTS[length].count("**Exit ticket.** ") == 1


def test_the_page_has_paths_chapters_and_the_machine():
    assert list(PARTS) == list(figures.PATHS)
    assert TEXT.count("| 12 | 321 |") == len(BOOK.chapters)
    assert re.search(r"Barcodes\]\(/book/foundations/barcodes\.ipynb\) \| \d+ \| 7 \| 12 \| 321 \|", TEXT)
    assert "on a small one. The seconds include the start of the kernel." in TEXT
    assert f"takes {12 * len(figures.PATHS[45].pages)} seconds" in TEXT, "the sum of what the rows print"


@pytest.mark.parametrize(("label", "minutes"), [("one-hour", 60), ("ninety-minutes", 90), ("three-hours", 180)])
def test_the_blocks_of_a_lesson_follow_each_other_to_its_end(label, minutes):
    lesson = (BOOK.root / "book/teaching/instructors.md").read_text("utf-8").split(f"(lesson-of-{label})=")[1]
    lesson = lesson.split("\n(lesson-of-")[0]
    blocks = [(int(a), int(b)) for a, b in re.findall(r"^\| (\d+)–(\d+) \|", lesson, re.MULTILINE)]
    assert [blocks[0][0], blocks[-1][1]] == [0, minutes]
    assert all(end == start for (_, end), (start, _) in pairwise(blocks))
    assert "**Exit ticket.**" in lesson

"""The tables for instructors: courses that fit their hours, and a row a chapter with what was measured."""

import re
from pathlib import Path

import pytest

from isonb.pages.chapters import Book
from isonb.pages.teaching import COURSES, course_minutes, exercises, teaching_page
from isonb.runtime.leash import _peak_of_children

BOOK = Book(Path(__file__).resolve().parents[2])
CHAPTERS = {chapter.name.removeprefix("book/"): chapter for chapter in BOOK.chapters}


@pytest.mark.parametrize("hours", COURSES)
def test_a_course_fits_its_hours_and_leaves_time_to_talk(hours):
    assert 0.7 * 60 * hours < course_minutes(hours, CHAPTERS) < 0.95 * 60 * hours
    places = [list(CHAPTERS).index(name) for name in COURSES[hours]]
    assert places == sorted(places), "in the order of the book"
    assert all(count <= exercises(CHAPTERS[name]) for name, count in COURSES[hours].items())


def test_exercises_are_counted():
    assert exercises(CHAPTERS["foundations/barcodes"]) == 3
    assert exercises(CHAPTERS["reference/errata"]) == 0


def test_the_page_has_courses_chapters_and_the_machine():
    run = {"seconds": 12.4, "hardware": "a small one", "peak_mib": 321}
    records = [(chapter, dict(run)) for chapter in BOOK.chapters]
    del records[0][1]["peak_mib"]  # of an older run
    text = teaching_page(records)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["1 hour", "3 hours", "8 hours", "What each chapter takes"]
    table = text.partition("## What each chapter takes")[2]
    assert table.count("| 12 | 321 |") == len(BOOK.chapters) - 1
    assert table.count("| 12 | – |") == 1
    assert "on a small one. The seconds include the start of the kernel." in table
    assert f"takes {12 * len(COURSES[1])} seconds" in text, "the sum of what the rows print"


def test_a_part_of_the_book_has_no_course():
    text = teaching_page([(CHAPTERS["reference/errata"], {"seconds": 1.0, "hardware": "x"})])
    assert "hour" not in text.partition("## What each")[0]
    assert "| 0 |" not in text


def test_memory_of_processes_that_have_ended():
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", "x = bytearray(300 * 2**20)"], check=True)
    assert _peak_of_children() > 300

"""Recorded runs keep their ids, and the comparison of two states of the book sees what differs."""

import json
import sys

import pytest
from compare_book import BOOK, differences, glued, main, recorded_ids


def test_every_recorded_run_has_the_id_its_configuration_gives():
    found = recorded_ids(BOOK / "recorded")
    assert sum(map(len, found.values())) > 400
    assert not [(recorded, now) for ids in found.values() for recorded, now in ids.items() if recorded != now]


@pytest.fixture
def book(tmp_path):
    """An executed chapter that keeps two values, beside a cell that keeps none."""

    def scrap(name, text):
        return {
            "output_type": "display_data",
            "data": {"application/papermill.record/text/plain": text},
            "metadata": {"scrapbook": {"name": name, "mime_prefix": "application/papermill.record/"}},
        }

    cells = [
        {"cell_type": "markdown", "source": "# A chapter"},
        {"cell_type": "code", "outputs": [{"output_type": "stream", "text": "3"}, scrap("share", "0.5")]},
        {"cell_type": "code", "outputs": [scrap("runs", ["2 ", "runs"])]},
    ]
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "one.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return tmp_path


def test_glued_values_by_chapter(book):
    assert glued(book) == {"papers/one": {"share": "0.5", "runs": "2 runs"}}


def test_a_changed_a_new_and_a_lost_value_are_told():
    before = {"runs": {"istar": {"a": "a"}}, "glued": {"one": {"x": "1", "y": "2"}}}
    after = {"runs": {"istar": {"a": "b"}}, "glued": {"one": {"x": "1", "z": "3"}, "two": {"v": "4"}}}
    assert differences(before, before) == []
    assert differences(before, after) == [
        "glued / one / y: '2' -> nothing",
        "glued / one / z: nothing -> '3'",
        "glued / two: nothing -> 1 values",
        "runs / istar / a: 'a' -> 'b'",
    ]


def test_exit_codes(book, tmp_path, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["compare_book.py", *map(str, words)])
        return main()

    assert run("dump", tmp_path / "a.json", "--book", book) == 0
    changed = json.loads((tmp_path / "a.json").read_text()) | {"glued": {}}
    (tmp_path / "b.json").write_text(json.dumps(changed))
    assert run("compare", tmp_path / "a.json", tmp_path / "a.json") == 0
    assert "2 glued" in capsys.readouterr().out
    assert run("compare", tmp_path / "a.json", tmp_path / "b.json") == 1

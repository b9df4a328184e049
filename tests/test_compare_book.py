"""The comparison of two states of the book sees what differs."""

import json
import sys

from compare_book import glued, main

from isonb_lab.runtime.glue import GLUE_PREFIX


def scrap(name, text):
    return {
        "output_type": "display_data",
        "data": {f"{GLUE_PREFIX}text/plain": text},
        "metadata": {"scrapbook": {"name": name, "mime_prefix": GLUE_PREFIX}},
    }


def test_a_value_on_another_page_is_the_same_and_a_changed_a_new_and_a_lost_one_are_told(tmp_path, monkeypatch, capsys):
    outputs = [{"output_type": "stream", "text": "3"}, scrap("share", "0.5"), scrap("runs", ["2 ", "runs"])]
    cells = [{"cell_type": "markdown", "source": "# A chapter"}, {"cell_type": "code", "outputs": outputs}]
    for page in ("one", "papers/two"):
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / f"{page}.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert glued(tmp_path) == {"share": ["0.5"], "runs": ["2 runs"]}

    def compared(before, after):
        for name, values in (("a", before), ("b", after)):
            (tmp_path / name).write_text(json.dumps({"verdicts": {}, "glued": values}))
        monkeypatch.setattr(sys, "argv", ["compare_book.py", "compare", str(tmp_path / "a"), str(tmp_path / "b")])
        return main(), capsys.readouterr().out.splitlines()[1:]

    assert compared(glued(tmp_path), glued(tmp_path)) == (0, ["glued: 2 equal, 0 not"])
    assert compared({"x": ["1"], "y": ["2"]}, {"x": ["1", "4"], "z": ["3"]}) == (
        1,
        ["glued: 0 equal, 3 not", "x: 1 -> 1 and 4", "y: 2 -> nothing", "z: nothing -> 3"],
    )

"""A batch of chapters, executed by papermill over a parameter, ends in one table."""

import json
from functools import partial

import nbformat
import pandas as pd
import papermill
import pytest
from notebooks import python_notebook

from isonb.cli import main

CHAPTER = """
from isonb_lab.pages.sentences import glue

glue("square", n**2)
glue("word", "odd" if n % 2 else "even")
assert n < 5
"""


def test_a_papermill_batch_ends_in_one_table(tmp_path, capsys, monkeypatch):
    source, out = tmp_path / "chapter.ipynb", tmp_path / "out"
    out.mkdir()
    nbformat.write(python_notebook("n: int = 2  # points", CHAPTER), source)
    execute = partial(papermill.execute_notebook, source, kernel_name="python3", progress_bar=False)
    execute(out / "usual.ipynb")
    for name, n in (("n7", 7), ("wrong", "x")):  # the second fails before it glues anything
        with pytest.raises(papermill.PapermillExecutionError):
            execute(out / f"{name}.ipynb", {"n": n})
    (out / "empty.ipynb").write_text(json.dumps({"metadata": {}, "cells": []}))
    assert main(["collect", str(out), "--csv", str(tmp_path / "t.csv"), "--json"]) == 1
    report = pd.DataFrame(json.loads(capsys.readouterr().out)).set_index("notebook")
    for table in (report, pd.read_csv(tmp_path / "t.csv", index_col="notebook")):
        assert table["square"].dropna().to_dict() == {"usual": 4, "n7": 49}
        assert table["word"].dropna().to_dict() == {"usual": "even", "n7": "odd"}
        assert table["status"].to_dict() == {"usual": "complete", "n7": "failed", "wrong": "failed"}
    assert report["parameter.n"].to_dict() == {"usual": 2, "n7": 7, "wrong": "x"}  # usual: the notebook's own value
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["collect", str(out)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith("usual") for line in lines) > 1  # a row is named in each part of the table
    (out / "torn.ipynb").write_text("{")
    assert main(["collect", str(out)]) == 2
    assert "an executed notebook must be readable" in capsys.readouterr().err

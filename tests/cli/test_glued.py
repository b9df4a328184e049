"""A batch of chapters, executed by papermill over a parameter, ends in one table."""

import json

import nbformat
import pandas as pd
import papermill
import pytest
from nbformat import v4

from isonb.cli import main

PARAMETERS = "n: int = 2  # points"
CHAPTER = """
from isonb_lab.pages.sentences import glue

glue("square", n**2)
glue("word", "odd" if n % 2 else "even")
assert n < 5
"""


def test_a_papermill_batch_ends_in_one_table(tmp_path, capsys, monkeypatch):
    source, out = tmp_path / "chapter.ipynb", tmp_path / "out"
    out.mkdir()
    cells = [v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}), v4.new_code_cell(CHAPTER)]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    source.write_text(nbformat.writes(v4.new_notebook(cells=cells, metadata=about)))
    papermill.execute_notebook(source, out / "n2.ipynb", {"n": 2}, kernel_name="python3", progress_bar=False)
    with pytest.raises(papermill.PapermillExecutionError):
        papermill.execute_notebook(source, out / "n7.ipynb", {"n": 7}, kernel_name="python3", progress_bar=False)
    (out / "empty.ipynb").write_text(json.dumps({"metadata": {}, "cells": []}))
    assert main(["collect", str(out), "--csv", str(tmp_path / "t.csv"), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    report = pd.DataFrame(rows).set_index("notebook")
    assert report["square"].to_dict() == {"n2": 4, "n7": 49}
    assert report["parameter.n"].to_dict() == {"n2": 2, "n7": 7}
    assert report["status"].to_dict() == {"n2": "complete", "n7": "failed"}
    assert report["word"].to_dict() == {"n2": "even", "n7": "odd"}
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), pd.DataFrame(rows), check_dtype=False)
    with pytest.raises(papermill.PapermillExecutionError):  # before it glued anything
        papermill.execute_notebook(source, out / "wrong.ipynb", {"n": "x"}, kernel_name="python3", progress_bar=False)
    papermill.execute_notebook(source, out / "usual.ipynb", kernel_name="python3", progress_bar=False)
    assert main(["collect", str(out), "--json"]) == 1
    report = pd.DataFrame(json.loads(capsys.readouterr().out)).set_index("notebook")
    assert report.loc[["usual", "wrong"], "status"].tolist() == ["complete", "failed"]
    assert report.loc["usual", "parameter.n"] == 2  # the notebook's own value
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["collect", str(out)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith("usual") for line in lines) > 1  # a row is named in each part of the table
    (out / "torn.ipynb").write_text("{")
    assert main(["collect", str(out)]) == 2
    assert "an executed notebook must be readable" in capsys.readouterr().err

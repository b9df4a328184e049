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
from isonb.pages.values import glue

glue("square", n**2)
glue("word", "odd" if n % 2 else "even")
assert n < 5
"""


def executed(folder, name, n, exception=None):
    """A notebook as papermill leaves it."""

    def shown(key, text):
        kind = "application/papermill.record/text/plain"
        scrap = {"scrapbook": {"name": key, "mime_prefix": "application/papermill.record/"}}
        return {"output_type": "display_data", "data": {kind: [text]}, "metadata": scrap}

    cells = [
        {"cell_type": "markdown"},
        {"cell_type": "code", "outputs": [shown("square", str(n**2)), shown("word", "x")]},
    ]
    made = {"papermill": {"parameters": {"n": n}, "exception": exception}}
    (folder / f"{name}.ipynb").write_text(json.dumps({"metadata": made, "cells": cells}))


def test_glued_values_of_a_folder_are_one_table(tmp_path, capsys):
    executed(tmp_path, "two", 2)
    executed(tmp_path, "three", 3, True)
    (tmp_path / "empty.ipynb").write_text(json.dumps({"metadata": {}, "cells": []}))
    assert main(["collect", str(tmp_path), "--csv", str(tmp_path / "t.csv"), "--json"]) == 1  # three has failed
    rows = json.loads(capsys.readouterr().out)
    three, two = rows
    assert three == {"notebook": "three", "status": "failed", "parameter.n": 3, "square": 9.0, "word": "x"}
    assert (two["parameter.n"], two["square"]) == (2, 4.0)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), pd.DataFrame(rows), check_dtype=False)
    (tmp_path / "torn.ipynb").write_text("{")
    assert main(["collect", str(tmp_path)]) == 2
    assert "an executed notebook must be readable" in capsys.readouterr().err


@pytest.mark.slow
def test_a_papermill_batch_ends_in_one_table(tmp_path, capsys):
    source, out = tmp_path / "chapter.ipynb", tmp_path / "out"
    out.mkdir()
    cells = [v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}), v4.new_code_cell(CHAPTER)]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    source.write_text(nbformat.writes(v4.new_notebook(cells=cells, metadata=about)))
    for n in (2, 3):
        papermill.execute_notebook(source, out / f"n{n}.ipynb", {"n": n}, kernel_name="python3", progress_bar=False)
    with pytest.raises(papermill.PapermillExecutionError):
        papermill.execute_notebook(source, out / "n7.ipynb", {"n": 7}, kernel_name="python3", progress_bar=False)
    assert main(["collect", str(out), "--json"]) == 1
    told = pd.DataFrame(json.loads(capsys.readouterr().out)).set_index("notebook")
    assert told["square"].to_dict() == {"n2": 4, "n3": 9, "n7": 49}
    assert told["status"].to_dict() == {"n2": "complete", "n3": "complete", "n7": "failed"}
    assert told["word"].to_dict() == {"n2": "even", "n3": "odd", "n7": "odd"}

"""A notebook is saved as papermill saves it at the end, and far less often before that when saving is slow."""

import itertools
import time

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from papermill import engines

from isonb_lab.runtime.supervised import PATIENCE, notebook

CELLS = 12
SAVING = 0.3  # seconds


def test_slow_saves_are_few_and_a_failure_is_saved_with_all_before_it(tmp_path, monkeypatch):
    source, target, saves = tmp_path / "in.ipynb", tmp_path / "out.ipynb", []
    cells = [new_code_cell(f"x = {k}\nx") for k in range(CELLS)]
    cells += [new_markdown_cell("words"), new_code_cell("raise RuntimeError('the tree fell over')")]
    nbformat.write(new_notebook(cells=cells), source)
    write = engines.write_ipynb

    def slow(notebook, path):
        saves.append(time.monotonic())
        time.sleep(SAVING)
        write(notebook, path)

    monkeypatch.setattr(engines, "write_ipynb", slow)
    manager = engines.NotebookExecutionManager
    monkeypatch.setattr(manager, "save", manager.save)  # put back after the test
    with pytest.raises(papermill.PapermillExecutionError, match="the tree fell over"):
        notebook({"source": str(source), "target": str(target), "parameters": {}, "cwd": str(tmp_path)})
    assert len(saves) < CELLS, "papermill alone saves twice a cell"
    assert all(b - a > PATIENCE * SAVING for a, b in itertools.pairwise(saves[:-1]))
    done = [cell for cell in nbformat.read(target, as_version=4).cells if cell.get("outputs")]
    values = [cell.outputs[0].data["text/plain"] for cell in done if cell.metadata.papermill.status == "completed"]
    assert values == [str(k) for k in range(CELLS)]
    assert done[-1].outputs[0].output_type == "error"

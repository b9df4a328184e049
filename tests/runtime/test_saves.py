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
SAVING = 0.5  # seconds


def run(tmp_path, monkeypatch, *, last="x"):
    """Run a notebook of many quick cells; returns the times of its saves and what is on disk."""
    source, target, saves = tmp_path / "in.ipynb", tmp_path / "out.ipynb", []
    cells = [new_code_cell(f"x = {k}\nx") for k in range(CELLS)] + [new_markdown_cell("words"), new_code_cell(last)]
    nbformat.write(new_notebook(cells=cells), source)
    write = engines.write_ipynb

    def slow(notebook, path):
        saves.append(time.monotonic())
        time.sleep(SAVING)
        write(notebook, path)

    monkeypatch.setattr(engines, "write_ipynb", slow)
    manager = engines.NotebookExecutionManager
    monkeypatch.setattr(manager, "save", manager.save)  # put back after the test
    try:
        notebook({"source": str(source), "target": str(target), "parameters": {}, "cwd": str(tmp_path)})
    finally:
        result = nbformat.read(target, as_version=4)
    return saves, result


def test_slow_saves_are_few_and_the_last_one_is_whole(tmp_path, monkeypatch):
    saves, result = run(tmp_path, monkeypatch)
    before_the_end = saves[:-1]
    assert len(saves) < CELLS, "papermill alone saves twice a cell"
    assert all(b - a > PATIENCE * SAVING for a, b in itertools.pairwise(before_the_end))
    assert [cell.outputs[0].data["text/plain"] for cell in result.cells[:CELLS]] == [str(k) for k in range(CELLS)]
    assert {cell.metadata.papermill.status for cell in result.cells} == {"completed"}


def test_a_failure_is_saved_with_all_before_it(tmp_path, monkeypatch):
    with pytest.raises(papermill.PapermillExecutionError, match="the tree fell over"):
        run(tmp_path, monkeypatch, last="raise RuntimeError('the tree fell over')")
    result = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    done = [cell for cell in result.cells if cell.metadata.get("papermill", {}).get("status") == "completed"]
    assert len([cell for cell in done if cell.cell_type == "code"]) == CELLS
    assert any(output.output_type == "error" for cell in result.cells for output in cell.get("outputs", []))

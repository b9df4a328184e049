"""A live control under the tools that run notebooks: papermill and `jupyter execute` come to the end, every time."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook

TIMES = 20  # live controls in one notebook: each of them could stall
LIMIT = 240  # seconds, for a busy machine
SETUP = """\
import altair as alt

from isonb_lab import pages

pages.setup()


def draw(n, kind):
    values = [{"x": i / n, "kind": kind} for i in range(100)]
    chart = alt.Chart(alt.Data(values=values)).mark_point().encode(x="x:Q")
    pages.show(chart, description=f"100 points over {n}, {kind}.")
"""
CELLS = [SETUP, *["pages.live(draw, n=(1, 9), kind=['a', 'b'])"] * TIMES, "print('the end')"]
COMMANDS = {
    "papermill": ["papermill", "in.ipynb", "out.ipynb", "--no-progress-bar", "-k", "python3"],
    "execute": ["jupyter", "execute", "in.ipynb", "--output=out.ipynb"],
}


@pytest.mark.parametrize("tool", COMMANDS)
def test_the_run_ends(tool, tmp_path, monkeypatch):
    monkeypatch.delenv("ISONB_BOOK", raising=False)
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in CELLS]), tmp_path / "in.ipynb")
    program, *phrase = COMMANDS[tool]
    environment = {**os.environ, "JUPYTER_PREFER_ENV_PATH": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    with (tmp_path / "log").open("w") as log:
        command = [Path(sys.executable).with_name(program), *phrase]
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            code = run.wait(LIMIT)
        finally:
            for process in [*psutil.Process(run.pid).children(recursive=True), run] if run.returncode is None else []:
                process.kill()
            run.wait()
    assert code == 0, (tmp_path / "log").read_text()
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert cells[-1].outputs[0].text == "the end\n"
    for cell in cells[-1 - TIMES : -1]:
        box, picture = cell.outputs
        assert "application/vnd.jupyter.widget-view+json" in box.data
        assert picture.data["text/plain"] == "100 points over 5, a."

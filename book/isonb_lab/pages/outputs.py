"""From an executed notebook to what a page shows: outputs on the clean notebook, the same bytes for the same run."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from isonb_lab.pages.errors import ChapterError

WIDGET = "application/vnd.jupyter.widget"
INJECTED = "injected-parameters"
INSTALL = "isonb-install"  # of the cell by which a notebook that is opened alone installs what it needs
PARAGRAPH = "isonb-paragraph"  # of a cell that shows a paragraph with the numbers of the kernel
KERNEL_FILE = re.compile(r"/[^\s\"\\]{0,300}/ipykernel_\d+/\d+\.py")  # in JSON; bounded: base64 has many slashes


def code_cells(notebook: Any) -> list[Any]:
    """The chapter's own code cells: without what papermill injects, what installs and what shows a paragraph."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if not {INJECTED, INSTALL, PARAGRAPH} & set(cell.metadata.get("tags", []))]


def _without_folders(text: str, root: Path, temporary: str) -> str:
    """JSON without this machine's folders in its strings, so that no page names them."""
    text = KERNEL_FILE.sub("cell", text)
    named = {
        temporary: "tmp",
        str(root): ".",
        sys.prefix: "python",
        tempfile.gettempdir(): "tmp",
        str(Path.home()): "~",
    }
    for folder, short in named.items():
        if len(folder) > 1:
            text = re.sub(rf"{re.escape(folder)}(?=[/\s'\":,)\\]|$)", short, text)
    return text


def collect_outputs(executed: Any, root: Path, temporary: str = "") -> tuple[list[list[Any]], str]:
    """The outputs of each code cell, made deterministic, and what went to stderr (kept out of the pages).

    Chunks of one stream are joined (their borders depend on timing); widget views and counts are dropped.
    ``temporary`` is the folder that the run had for its temporary files.
    """
    whole = json.dumps([cell.outputs for cell in code_cells(executed)], ensure_ascii=False)
    outputs: list[list[Any]] = []
    errors = ""
    for raw in json.loads(_without_folders(whole, root, temporary)):
        clean: list[Any] = []
        for output in raw:
            output.pop("execution_count", None)
            if output.get("name") == "stderr":
                errors += output["text"]
            elif output["output_type"] == "stream" and clean and clean[-1].get("name") == output["name"]:
                clean[-1]["text"] += output["text"]
            elif not any(mime.startswith(WIDGET) for mime in output.get("data", {})):
                clean.append(output)
        outputs.append(clean)
    return outputs, errors


def apply_outputs(clean: Any, outputs: Sequence[Sequence[Any]]) -> None:
    """Put the outputs onto the code cells of ``clean``, counted 1, 2, 3 as if it had just run."""
    cells = code_cells(clean)
    if len(cells) != len(outputs):
        raise ChapterError(f"outputs of {len(outputs)} cells don't fit a notebook of {len(cells)}; run it again.")
    for count, (cell, new) in enumerate(zip(cells, outputs, strict=True), start=1):
        cell.execution_count = count
        cell.outputs = [nbformat.from_dict(dict(output)) for output in new]
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count

"""Executed notebooks as a table: the parameters of each, and the values that it has glued."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from isonb_lab.runs.record import RecordError
from isonb_lab.runs.table import flat
from isonb_lab.runtime.glue import glued


def glued_table(folder: str | Path) -> pd.DataFrame:
    """The values that executed notebooks below a folder have glued, one row a notebook.

    Columns: ``notebook`` (its path in the folder, without suffix), ``status`` (failed: papermill met an error in it),
    ``parameter.<name>`` as papermill filled them in or as the notebook has them, and each value by its name, numbers as
    numbers. Raises :class:`RecordError` for a file that is no notebook; notebooks that neither failed nor glued a value
    are left out.
    """
    rows = []
    for path in sorted(Path(folder).rglob("*.ipynb")):
        try:
            book = json.loads(path.read_text(encoding="utf-8"))
            metadata = book["metadata"].get("papermill", {})
            values: dict[str, Any] = dict(glued(book))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            fix = "Delete it, or execute it again."
            raise RecordError(f"an executed notebook must be readable; got {error} in {path}. {fix}") from error
        if values or metadata.get("exception"):
            about = {"notebook": path.relative_to(folder).with_suffix("").as_posix()}
            about["status"] = "failed" if metadata.get("exception") else "complete"
            for name, text in values.items():
                with contextlib.suppress(ValueError):
                    values[name] = float(text)
            parameters = _defaults(book["cells"]) | metadata.get("parameters", {})
            rows.append(about | flat(parameters, "parameter.") | values)
    return pd.DataFrame(rows)


def _defaults(cells: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The plain values that the cell of parameters gives to names."""
    values: dict[str, Any] = {}
    for cell in cells:
        if "parameters" in cell.get("metadata", {}).get("tags", ()):
            with contextlib.suppress(SyntaxError):
                for node in ast.parse("".join(cell["source"])).body:
                    name = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
                    if isinstance(name, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                        with contextlib.suppress(ValueError):
                            values[name.id] = ast.literal_eval(node.value)
    return values

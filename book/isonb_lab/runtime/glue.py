"""Values that the cells of a notebook keep for its text, as papermill and MyST-NB know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GLUE_PREFIX = "application/papermill.record/"  # MyST-NB's type for a value that is kept and not shown


def glued(notebook: Mapping[str, Any]) -> dict[str, str]:
    """The values that an executed notebook has glued, by name.

    >>> about = {"scrapbook": {"name": "share", "mime_prefix": GLUE_PREFIX}}
    >>> glued({"cells": [{"outputs": [{"metadata": about, "data": {GLUE_PREFIX + "text/plain": "0.5"}}]}]})
    {'share': '0.5'}
    """
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    scraps = [(output.get("metadata", {}).get("scrapbook", {}), output) for output in outputs]
    return {
        scrap["name"]: "".join(output["data"][GLUE_PREFIX + "text/plain"])
        for scrap, output in scraps
        if scrap.get("mime_prefix") == GLUE_PREFIX
    }

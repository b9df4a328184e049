"""A server extension of Jupyter: a chapter's notebook that is saved is saved in its source, too.

``make edit`` turns it on, and so does a file that ``make`` leaves among the settings of the environment's Jupyter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from tornado.web import HTTPError

from isonb.pages.chapters import Chapter
from isonb.pages.errors import PageError
from isonb.pages.notebooks.edits import save


def before_save(model: dict[str, Any], path: str, contents_manager: Any, **_: Any) -> None:
    """Carry the edits of a notebook into the ``.md`` beside it. A refusal is shown by JupyterLab, nothing is saved."""
    if model.get("type") != "notebook" or not path.endswith(".ipynb"):
        return
    whole = Path(contents_manager.root_dir) / path.strip("/")
    notebook = nbformat.from_dict(model["content"])
    try:
        save(Chapter(whole.parent, whole.stem), notebook)
    except PageError as error:
        raise HTTPError(409, log_message=str(error).replace("%", "%%"), reason=str(error)) from None
    model["content"]["metadata"] = dict(notebook.metadata)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "isonb.pages.notebooks.server"}]


def _load_jupyter_server_extension(server: Any) -> None:
    """What jupyter_server calls when it loads an extension; there is nothing to do yet."""


async def _start_jupyter_server_extension(server: Any) -> None:
    """What jupyter_server calls once all are loaded: jupytext puts a contents manager of its own in place before."""
    server.contents_manager.register_pre_save_hook(before_save)

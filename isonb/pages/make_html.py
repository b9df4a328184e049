"""Jupyter Book as a job on a leash (:mod:`isonb.runtime.leash`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["html"]


def html(job: Mapping[str, Any]) -> None:
    """``jupyter-book`` with ``arguments``; ends with its exit code."""
    from jupyter_book.cli.main import main  # type: ignore[import-untyped]

    main(job["arguments"])

"""The two libraries that pages load, Vega and MathJax, beside the pages."""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import BuildError
from isonb_lab.pages.vega import write_bundle

MATHJAX_PACKAGE = "sphinx-mathjax-offline"  # MathJax 3.2.2 in a Python package, so that no other index is needed


def mathjax() -> bytes:
    """MathJax from the installed package; :class:`BuildError` when it isn't there."""
    try:
        files = importlib.metadata.distribution(MATHJAX_PACKAGE).files or []
        (script,) = (file for file in files if file.name == "tex-svg.js")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise BuildError(f"formulas need {MATHJAX_PACKAGE}; run: pip install {MATHJAX_PACKAGE}==0.0.2") from None
    return Path(str(script.locate())).read_bytes()


def vendor(book: Book) -> None:
    """Write the two libraries that pages load, Vega and MathJax, to ``_build/vendor`` (copied into the pages)."""
    folder = book.build / "vendor"
    pinned = importlib.metadata.version("vl-convert-python")
    stamp = folder / "vega" / f"vl-convert-{pinned}.txt"
    if not stamp.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        write_bundle(folder / "vega" / "vega.js")
        stamp.write_text(f"vega.js was bundled by vl-convert-python {pinned}\n", encoding="utf-8")
    target = folder / "mathjax" / "tex-svg.js"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(mathjax())

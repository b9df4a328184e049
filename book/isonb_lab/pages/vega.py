"""Altair without a network: what a chart becomes in a notebook, and what that becomes in a page.

A notebook output carries the specification under the Vega-Lite MIME type that JupyterLab draws, and a PNG for viewers
that don't. A page carries it in a script tag; one loader (``static/isonb.js``) draws it with one bundle of Vega that
the build writes from vl-convert.
"""

from __future__ import annotations

import base64
import html
import json
import os
from pathlib import Path
from typing import Any, ClassVar

# JupyterLab 4 draws up to v5 and refuses the v6 type that Altair 6 would send; its Vega-Lite reads our specifications.
MIME = "application/vnd.vegalite.v5+json"
VL_VERSION = "6.4"
_png = True  # switched off while a live control redraws: drawing a PNG takes longer than the chart


def in_book() -> bool:
    """Whether this kernel runs a chapter for the book (environment ``ISONB_BOOK=1``)."""
    return os.environ.get("ISONB_BOOK") == "1"


def png_fallback(on: bool) -> bool:
    """Switch the PNG fallback of later outputs on or off; returns how it was."""
    global _png
    before, _png = _png, on
    return before


def render(spec: dict[str, Any], **_: object) -> dict[str, Any]:
    """The Altair renderer ``isonb``: a MIME bundle of the specification, its description and, live, a PNG."""
    bundle: dict[str, Any] = {MIME: spec, "text/plain": spec.get("description", "A chart without a description.")}
    if _png and not in_book():
        import vl_convert

        picture = vl_convert.vegalite_to_png(json.dumps(spec), vl_version=VL_VERSION, scale=1.5)
        bundle["image/png"] = base64.b64encode(picture).decode()
    return bundle


def page_html(spec: dict[str, Any]) -> str:
    """The chart as HTML: the specification as data, its description for readers without scripts."""
    data = json.dumps(spec, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")  # never ends the tag
    text = html.escape(str(spec.get("description", "")))
    return (
        '<div class="isonb-vega"><div class="isonb-vega-view"></div>'
        f'<script type="application/json">{data}</script><noscript><p>{text}</p></noscript></div>'
    )


class VegaMimeRenderer:
    """The MyST-NB plugin (entry point ``isonb_vega``) that puts charts into pages."""

    mime_priority_overrides: ClassVar[list[tuple[str, str, int | None]]] = [("*", MIME, 1)]

    @staticmethod
    def handle_mime(renderer: object, data: Any, inline: bool) -> list[Any] | None:
        """A raw HTML node for a chart; None leaves any other output to MyST-NB."""
        if inline or data.mime_type != MIME:
            return None
        from docutils import nodes  # type: ignore[import-untyped]

        spec = json.loads(data.content) if isinstance(data.content, str) else data.content
        return [nodes.raw(text=page_html(spec), format="html", classes=["output", "text_html"])]


def write_bundle(path: Path) -> None:
    """Write Vega, Vega-Lite and Vega-Embed, as vl-convert pins them, to one classic script."""
    import vl_convert

    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VL_VERSION)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"(() => {{{library}}})();\n", encoding="utf-8")

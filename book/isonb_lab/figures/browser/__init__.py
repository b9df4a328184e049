"""Scripts of pages that compute: what they read equals what isonb reads, as browser tests say.

``ml_matrix.js`` is the library ml-matrix (MIT), unchanged but for its first line; see ``isonb_lab/pages/VENDOR.md``.
"""

from pathlib import Path

LIBRARY = "ml_matrix.js"


def scripts(*names: str) -> str:
    """Scripts by name in one element. The library is to find no module system of the page: it becomes a global."""
    texts = {name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names}
    if LIBRARY in texts:
        texts[LIBRARY] = f"(function (exports, module, define) {{{texts[LIBRARY]}}})();\n"
    return f"<script>{''.join(texts.values())}</script>"

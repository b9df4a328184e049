"""The drawn picture of the first page shows the scores that isonb gives today."""

import html
import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "book" / "figures" / "three_clouds.py"


def test_three_clouds_show_their_scores():
    script = runpy.run_path(str(SCRIPT))
    drawn = html.unescape(SCRIPT.with_suffix(".svg").read_text(encoding="utf-8"))
    for name, cloud in script["clouds"]().items():
        assert f">{name}<" in drawn
        assert all(f">{score}<" in drawn for score in script["scores"](cloud))

"""A fifth paper, made up, takes six files and changes none: loss, method, study, grid, chapter, pictures."""

import os
import shutil
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient
from processes import python

import isonb

ROOT = Path(isonb.__file__).parents[1]
LOSS = '''
"""Fifth (Nobody, 2030)."""

from dataclasses import dataclass

from isonb.losses.common import Loss
from isonb.measures.cosine import cosine_penalty
from isonb.options import option


@dataclass(eq=False, repr=False)
class FifthLoss(Loss):
    """Vectors are to be orthogonal."""

    weight: float = option(1.0, "of the penalty", low=0, high=100)

    def forward(self, points):
        """Points (n, d); returns a scalar."""
        return self.weight * cosine_penalty(points)
'''
METHOD = '''
"""Fifth (Nobody, 2030)."""

from typing import ClassVar

from isonb.losses.fifth import FifthLoss
from isonb_lab.methods.shared import WithLoss, options_from


@options_from(FifthLoss)
class Fifth(WithLoss):
    """Vectors are to be orthogonal."""

    name: ClassVar[str] = "fifth"
    source: ClassVar[str] = "Fifth (Nobody, 2030)"


METHODS = (Fifth,)
'''
STUDY = '''
"""Fifth: arms and its claim."""

from isonb_lab.claims.design import PLAIN, Design
from isonb_lab.claims.verdicts import Change, Claim, Prediction


def arm_of(settings):
    return {"none": PLAIN, "fifth": "Fifth"}.get(settings["method.name"])


LOWER = Prediction("mean cosine, Fifth less none", Change("metric.end.cls.mean_cosine", "Fifth"), "less")
CLAIMS = (Claim(26, "The mean cosine falls", (LOWER,)),)
DESIGN = Design("fifth", "papers/fifth", ("fifth",), arm_of, CLAIMS, size="smoke")
'''
GRID = """
about: Fifth (Nobody, 2030).
smoke:
  - task: english_sentiment
    model: tiny
    protocol: smoke
    learning_rate: 0.001
    method: [none, {name: fifth, weight: 10}]
    seed: [0, 1, 2]
"""
FIGURES = '''
"""The picture of Fifth."""

import altair as alt


def cosines(runs):
    return alt.Chart(runs[["arm", "metric.end.cls.mean_cosine"]].set_axis(["arm", "cosine"], axis=1)).mark_point()
'''
CHAPTER = """
# Fifth

```{code-cell} ipython3
from isonb_lab import pages
from isonb_lab.claims.summary import claim_rows
from isonb_lab.figures import fifth as figures
from isonb_lab.papers import fifth
from isonb_lab.papers.studies import load_study

pages.setup()
study = load_study(fifth.DESIGN)
pages.assert_verdict(study, 26, "supported")
print(study.coverage().to_string(index=False))
print(claim_rows(study.verdicts()))
pages.show(figures.cosines(study.runs).encode(x="cosine:Q", y="arm:N"), description="A mark a run, a row an arm.")
```
"""
FILES = {
    "isonb/losses/fifth.py": LOSS,
    "book/isonb_lab/methods/fifth.py": METHOD,
    "book/isonb_lab/papers/fifth.py": STUDY,
    "book/experiments/fifth.yaml": GRID,
    "book/isonb_lab/figures/fifth.py": FIGURES,
    "book/papers/fifth.md": CHAPTER,
}
RUN = """
from isonb import cli
from isonb_lab.runs.publishing import publish
from isonb_lab.runs.record import write_record
from isonb_lab.sweeps.grids import load_grid
from isonb_lab.sweeps.inline import run_all

cli.main(["list", "methods"])
cli.main(["list", "grids"])
for record in run_all([run.config for run in load_grid("fifth", "smoke")], workers=1):
    write_record("records", record)
publish("records", "book/recorded", "fifth")
"""


@pytest.mark.slow
def test_one_loss_one_method_one_study_one_grid_one_chapter_and_one_file_of_pictures_are_enough(tmp_path, monkeypatch):
    assert len(METHOD.strip().splitlines()) < 25
    for package in ("isonb", "book/isonb_lab"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.lstrip(), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{tmp_path / 'book'}")
    listed = python("-P", "-c", RUN, cwd=tmp_path)
    assert "fifth  -- Fifth (Nobody, 2030)\n  Vectors are to be orthogonal.\n    weight=1.0  " in listed
    assert "fifth  smoke\n  Fifth (Nobody, 2030)." in listed
    chapter = jupytext.reads((tmp_path / "book/papers/fifth.md").read_text(encoding="utf-8"), "md:myst")
    resources = {"metadata": {"path": str(tmp_path / "book/papers")}}
    NotebookClient(chapter, kernel_name="python3", resources=resources).execute()
    outputs = chapter.cells[-1].outputs
    report = "".join(output.get("text", "") for output in outputs)
    assert report.count("3 of 3") == 2
    row = "'claim': '26. The mean cosine falls', 'verdict': 'supported (tiny; sentiment)'"
    assert f"{row}, 'cells for · against': '1 · 0 of 1'" in report
    assert any("application/vnd.vegalite.v5+json" in output.get("data", {}) for output in outputs)

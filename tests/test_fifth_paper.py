"""A fifth paper, made up, takes part by what CONTRIBUTING says and by nothing else: a method, a study and a grid."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import isonb

ROOT = Path(isonb.__file__).parents[1]
METHOD = '''
"""Fifth (Nobody, 2030)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from isonb import losses
from isonb.lab.methods.base import Method
from isonb.lab.options import option


class Scaled(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight, self.loss = weight, losses.CosRegLoss()

    def forward(self, x):
        return self.weight * self.loss(x)


@dataclass(frozen=True)
class Fifth(Method):
    """Vectors are to be orthogonal."""

    name: ClassVar[str] = "fifth"
    source: ClassVar[str] = "Fifth (Nobody, 2030)"

    weight: float = option(1.0, "of the penalty", low=0, high=100)

    def penalty(self):
        """The loss."""
        return Scaled(self.weight)


METHODS = (Fifth,)
'''
STUDY = '''
"""Fifth: arms and its claim."""

from isonb.lab.studies.design import PLAIN, Design
from isonb.lab.studies.verdicts import Claim, Part, by_cell, difference


def arm_of(config):
    return {"none": PLAIN, "fifth": "Fifth"}.get(config["method"]["name"])


def lower(study, suites):
    name = "metric.end.cls.mean_cosine"
    return by_cell(difference(study.units(name, "Fifth", suites), study.units(name, PLAIN, suites)))


CLAIMS = (Claim(26, "The mean cosine falls", (Part("mean cosine, Fifth less none", lower),)),)
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
USE = """
from isonb import cli
from isonb.lab.runs.record import write_record
from isonb.lab.runs.publishing import publish
from isonb.lab.studies.study import STUDIES, Study
from isonb.lab.studies.summary import claim_rows
from isonb.lab.sweeps.grids import load_grid
from isonb.lab.sweeps.inline import run_all

assert "fifth" in STUDIES
cli.main(["list", "methods"])
cli.main(["list", "grids"])
for record in run_all([run.config for run in load_grid("fifth", "smoke")], workers=1):
    write_record("records", record)
publish("records", "recorded", "fifth")
study = Study.load("fifth", folder="recorded")
print(study.coverage().to_string(index=False))
print(claim_rows({"recorded": study.verdicts()}))
"""


@pytest.mark.slow
def test_one_method_file_one_study_file_and_one_grid_are_enough(tmp_path):
    shutil.copytree(ROOT / "isonb", tmp_path / "isonb", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "book/experiments", tmp_path / "book/experiments")
    added = {
        "isonb/lab/methods/fifth.py": METHOD,
        "isonb/lab/studies/designs/fifth.py": STUDY,
        "book/experiments/fifth.yaml": GRID,
    }
    for name, text in added.items():
        (tmp_path / name).write_text(text.lstrip(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", USE],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout
    assert "fifth  -- Fifth (Nobody, 2030)\n  Vectors are to be orthogonal.\n    weight=1.0  " in told
    assert "fifth  smoke\n  Fifth (Nobody, 2030)." in told
    assert told.count("3 of 3") == 2
    assert "'claim': '26. The mean cosine falls', 'verdict': 'supported', 'cells for · against': '1 · 0 of 1'" in told

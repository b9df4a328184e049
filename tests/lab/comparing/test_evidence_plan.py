"""Plans were written before the runs that cite them."""

import hashlib
import re
import subprocess
from datetime import datetime

import pandas as pd
import pytest

from isonb_lab.papers import deployed
from isonb_lab.places import EXPERIMENTS_FOLDER, RECORDINGS_FOLDER
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.recordings import recorded

PLANS = sorted(EXPERIMENTS_FOLDER.glob("*_plan.md"))


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=EXPERIMENTS_FOLDER, capture_output=True)
    return done.stdout if done.returncode == 0 else b""


@pytest.fixture(scope="module")
def citing():
    """The runs of all recordings that cite a plan: its digest and when they started."""
    results = []
    for path in sorted(RECORDINGS_FOLDER.glob("*/runs.parquet")):
        runs = recorded(path.parent.name).runs
        if "manifest.plan" in runs:
            cell = f"{path.parent.name} " + runs["task"].astype(str) + runs["seed"].astype(str)
            runs = runs.assign(kind=processor_kinds(runs), cell=cell)
            results.append(runs[["manifest.plan", "manifest.started", "cell", "kind"]].dropna())
    return pd.concat(results)


def test_every_run_cites_the_plan_or_what_it_was_before_a_change_that_is_listed(citing):
    versions = {hashlib.sha256(plan.read_bytes()).hexdigest() for plan in PLANS}
    versions |= {digest for plan in PLANS for digest in re.findall(r"`([0-9a-f]{64})`", plan.read_text("utf-8"))}
    assert len(citing) > 20
    assert {*citing["manifest.plan"], *deployed.read()["plan"]} <= versions


def test_the_plan_is_older_than_every_run_that_cites_it(citing):
    written = {}
    for plan in PLANS:
        for line in git("log", "--format=%H %cI", "--", plan.name).decode().splitlines():
            commit, when = line.split()
            digest = hashlib.sha256(git("show", f"{commit}:./{plan.name}")).hexdigest()
            written[digest] = min(datetime.fromisoformat(when), written.get(digest, datetime.max.astimezone()))
    if not written:
        pytest.skip("no history of the plan here")
    for run in citing.itertuples(index=False):
        assert written[run[0]] < datetime.fromisoformat(run[1])


def test_what_is_paired_was_run_on_one_kind_of_processor(citing):
    assert citing.groupby("cell")["kind"].nunique().max() == 1

"""Plans were written before the runs that cite them."""

import hashlib
import re
import subprocess
from datetime import datetime

import pandas as pd
import pytest
import yaml

from isonb_lab.papers import deployed
from isonb_lab.places import EXPERIMENTS_FOLDER, RECORDINGS_FOLDER
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.recordings import recorded

PLANS = sorted(EXPERIMENTS_FOLDER.glob("*_plan.md"))
GRIDS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(EXPERIMENTS_FOLDER.glob("*.yaml"))}
PLANNED = {  # the plans of recorded grids
    name: grid["plan"] for name, grid in GRIDS.items() if "plan" in grid and (RECORDINGS_FOLDER / name).is_dir()
}
SHARED = ["task", "seed", "head", "holdout", "epochs", "batch_size"]  # by the runs of a pair


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=EXPERIMENTS_FOLDER, capture_output=True)
    return done.stdout if done.returncode == 0 else b""


def digest_at(commit, plan):
    """sha256 of a plan as it was at a commit; None without that commit."""
    text = git("show", f"{commit}:./{plan}")
    return hashlib.sha256(text).hexdigest() if text else None


@pytest.fixture(scope="module")
def citing():
    """The runs of all recordings that cite a plan: its digest and when they started.

    Those whose manifest lacks the digest cite the plan that their commit holds.
    """
    results = []
    for path in sorted(RECORDINGS_FOLDER.glob("*/runs.parquet")):
        name = path.parent.name
        runs = recorded(name).runs
        if name not in PLANNED and "manifest.plan" not in runs:
            continue
        plans = runs.get("manifest.plan", pd.Series(index=runs.index, dtype=object))
        commits = runs["manifest.code.commit"]
        if name in PLANNED:
            held = {commit: digest_at(commit, PLANNED[name]) for commit in commits[plans.isna()].unique()}
            plans = plans.fillna(commits.map(held))
        runs = runs.assign(**{"manifest.plan": plans})
        cell = f"{name} " + runs.reindex(columns=SHARED).map(str).agg(" ".join, axis=1)
        runs = runs.assign(kind=processor_kinds(runs), cell=cell)
        results.append(runs[["manifest.plan", "manifest.started", "cell", "kind"]].dropna())
    return pd.concat(results)


def test_a_run_that_lacks_its_plan_is_told_with_its_commit():
    """The recording's page has how many they are, and the commits that they were run at."""
    for name in PLANNED:
        runs = recorded(name).runs
        lacking = runs[runs["manifest.plan"].isna()] if "manifest.plan" in runs else runs
        page = (RECORDINGS_FOLDER / f"{name}.md").read_text("utf-8")
        assert not len(lacking) or f"{len(lacking)} runs" in page
        assert all(f"`{commit[:8]}`" in page for commit in lacking["manifest.code.commit"].unique())


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


def test_a_recording_that_tells_one_kind_of_processor_has_one():
    told = [
        page for page in RECORDINGS_FOLDER.glob("*.md") if "on one kind of processor, which" in page.read_text("utf-8")
    ]
    assert len(told) > 5
    assert all(processor_kinds(recorded(page.stem).runs).nunique() == 1 for page in told)

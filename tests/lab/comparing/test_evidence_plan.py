"""The plan of the evidence was written before the runs that cite it, and its numbers of seeds are the project's own."""

import hashlib
import re
import subprocess
from datetime import datetime

import pandas as pd
import pytest

from isonb_lab.comparing import plan_seeds
from isonb_lab.places import EXPERIMENTS_FOLDER, RECORDINGS_FOLDER
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.recordings import recorded
from isonb_lab.statistics.paired import seeds_needed
from isonb_lab.statistics.seeds import minimum_detectable

PLAN = EXPERIMENTS_FOLDER / "evidence_plan.md"
PLANS = sorted(EXPERIMENTS_FOLDER.glob("*_plan.md"))
KINDS = {
    "in the loss": ("istar", "cosreg", "entropy", "spectrum_control"),
    "a layer": ("softdecay", "isobn"),
    "second phase": ("isolayer",),
}
TASKS = {"sst2, minilm": "SST-2 (`minilm`)", "mrpc, minilm": "MRPC (`minilm`)", "cola, minilm": "CoLA (`minilm`)"}
FAMILY = 9 * 5  # arms and tasks of the head to head


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=PLAN.parent, capture_output=True)
    return done.stdout if done.returncode == 0 else b""


def citing():
    """The runs of all recordings that cite a plan: its digest and when they started."""
    results = []
    for folder in sorted(RECORDINGS_FOLDER.iterdir()):
        if (folder / "runs.parquet").is_file():
            runs = recorded(folder.name).runs
            if "manifest.plan" in runs:
                cell = f"{folder.name} " + runs["task"].astype(str) + runs["seed"].astype(str)
                runs = runs.assign(kind=processor_kinds(runs), cell=cell)
                results.append(runs[["manifest.plan", "manifest.started", "cell", "kind"]].dropna())
    return pd.concat(results)


def test_every_run_cites_the_plan_or_what_it_was_before_a_change_that_is_listed():
    versions = {hashlib.sha256(plan.read_bytes()).hexdigest() for plan in PLANS}
    versions |= {
        digest for plan in PLANS for digest in re.findall(r"`([0-9a-f]{64})`", plan.read_text(encoding="utf-8"))
    }
    runs = citing()
    assert len(runs) > 20
    assert set(runs["manifest.plan"]) <= versions


def test_the_plan_is_older_than_every_run_that_cites_it():
    written = {}
    for plan in PLANS:
        for line in git("log", "--format=%H %cI", "--", plan.name).decode().splitlines():
            commit, when = line.split()
            digest = hashlib.sha256(git("show", f"{commit}:./{plan.name}")).hexdigest()
            written[digest] = min(datetime.fromisoformat(when), written.get(digest, datetime.max.astimezone()))
    if not written:
        pytest.skip("no history of the plan here")
    for run in citing().itertuples(index=False):
        assert written[run[0]] < datetime.fromisoformat(run[1])


def test_what_is_paired_was_run_on_one_kind_of_processor():
    assert citing().groupby("cell")["kind"].nunique().max() == 1


def test_the_seeds_of_the_plan_are_those_of_the_recorded_spread():
    frame = plan_seeds(recorded("head_to_head").runs, gain=1.0)
    frame = frame[~frame["arm"].str.contains("layers=-1")]
    named = frame["arm"].str.split().str[0].map({name: kind for kind, names in KINDS.items() for name in names})
    text = {
        (task, kind): (float(spread), int(seeds))
        for task, kind, spread, seeds in re.findall(
            r"^\| (.+?) \| (in the loss|a layer|second phase) \| ([\d.]+) \| (\d+) \|$", PLAN.read_text(), re.MULTILINE
        )
    }
    want = {}
    for setting, task in TASKS.items():
        for kind in KINDS:
            spread = frame[frame["setting"].str.startswith(setting) & (named == kind)]["spread"].median()
            want[task, kind] = (round(spread, 2), seeds_needed(spread, 1.0, alpha=0.05 / FAMILY))
    assert text == want
    assert f"{minimum_detectable(1.0, 20, alpha=0.05 / FAMILY):.2f} times the spread" in PLAN.read_text()

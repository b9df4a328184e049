"""The way of an option from ``isonb run -o weight=-1`` to the loss: through few files, and it is resolved once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import isonb
from isonb.lab.runs.table import scan

ROOT = Path(isonb.__file__).resolve().parents[1]
WORDS = "run --method istar -o weight=-1 --protocol smoke --model tiny --set max_steps=1 --set cloud_examples=0"
WAY = {
    "isonb/cli/__init__.py",  # words as options
    "isonb/cli/commands.py",
    "isonb/lab/runs/settings.py",  # options as a run that is written out
    "isonb/lab/options.py",
    "isonb/lab/sweeps/execution.py",  # the run in a process of its own
    "isonb/runtime/leash.py",
    "book/experiments/finetune.md",  # the notebook in its kernel
    "isonb/lab/engines/finetune.py",
    "isonb/lab/methods/istar.py",  # the loss
}


def ours(file):
    """The place of a file in the repository; a cell's is its template. Nothing for files of others."""
    if "ipykernel_" in file:
        return "book/experiments/finetune.md"
    path = Path(file)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT / "isonb") else None


def test_an_option_passes_few_files_and_is_resolved_once(tmp_path):
    (tmp_path / "watch").mkdir()
    shutil.copy(Path(__file__).with_name("walks.py"), tmp_path / "watch" / "sitecustomize.py")
    places = os.pathsep.join([str(tmp_path / "watch"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": places, "ISONB_WALK": str(tmp_path / "walk"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", "import sys; from isonb.cli import main; sys.exit(main())", *WORDS.split()]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (record,) = scan(tmp_path / "runs" / "records").records.values()
    assert record.config["method"]["weight"] == -1
    events = [json.loads(line) for line in (tmp_path / "walk").read_text().splitlines()]
    names = [event for event, _ in events]
    for once in ("resolve method istar", "preflight", "build IStarLoss"):
        assert names.count(once) == 1, once
    before = names[: names.index("build IStarLoss")]  # afterwards, its control is planned to be shown beside it
    assert before.count("resolve a finetune run") == 1
    turns = ("resolve method istar", "build IStarLoss")  # and where the next process is started
    stacks = [files for event, files in events if event in turns or "leash.py" in event or "ipykernel" in event]
    assert len(stacks) == 4
    way = {place for files in stacks for file in files if (place := ours(file))}
    losses = {place for place in way if place.startswith("isonb/losses/")}
    assert way - losses == WAY
    assert len(losses) == 1
    assert len(way) <= 10

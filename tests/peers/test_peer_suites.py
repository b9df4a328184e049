"""The tests of giotto-ph, which lie in its package, run on isonb in its place: no test that asks ``shims.py`` fails.

Other libraries ship none; their bars, generators and diagrams are compared with ours in ``tests/barcodes``.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_suite_of_giotto_ph(tmp_path):
    package = Path(pytest.importorskip("gph").__file__).parent
    files = [str(package / f"python/test/test_{name}.py") for name in ("ripser", "wrp")]
    place = tmp_path / "outcomes.json"
    paths = os.pathsep.join(map(str, (ROOT, Path(__file__).parent)))
    settings = {"PYTHONPATH": paths, "PEERS_OUTCOMES": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "shims", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["--rootdir", str(tmp_path), "-c", os.devnull, *files]
    run = subprocess.run(command, env=os.environ | settings, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert place.exists(), run.stdout + run.stderr
    outcomes = json.loads(place.read_text(encoding="utf-8"))
    assert [why for outcome, why in outcomes.values() if outcome == "failed"] == []
    assert Counter(outcome for outcome, _ in outcomes.values())["passed"], run.stdout

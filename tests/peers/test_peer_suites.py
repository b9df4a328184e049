"""The tests that other libraries wrote for themselves, run on isonb in their place.

giotto-ph's lie in its package. The others ship theirs with their sources alone, and nothing is fetched here: unpack
those into ``_build/peers`` (or the folder that ``PEERS`` names) and their suites run too::

    pip download --no-binary :all: --no-deps --dest _build/peers ripser persim torch-topological

gudhi's are in its repository, under ``src/python/test``. What is judged is every test that asks a stand-in of
``shims.py``; what isonb doesn't offer is skipped there, each failure stands below with whose fault it is.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = Path(os.environ.get("PEERS", ROOT / "_build/peers"))
WIDE = "by design: 10 dimensions of 3 points are no sign of a transposed cloud; ours warns from 100 on"
WORDS = "by design: the same refusal in other words"
FAULTS = {
    "test_ripser.py: TestTransform.test_input_warnings": WIDE,
    "test_ripser_sklearn.py: TestTransform.test_input_warnings": WIDE,
    "test_ripser.py: TestTransform.test_non_square_dist_matrix": WORDS,
}
SUITES = {  # the library, the folder of its tests in the package or in its sources, and those about barcodes
    "giotto-ph": ("gph", "python/test", "ripser wrp"),
    "ripser": ("ripser", "ripser-*/tests", "ripser ripser_sklearn lower_star"),
    "torch_topological": ("torch_topological", "torch_topological-*/tests", "vietoris_rips_complex layers"),
    "persim": ("persim", "persim-*/test", "persistent_entropy"),
    "gudhi": ("gudhi", "gudhi*/src/python/test", "rips_complex simplex_generators sklearn_rips_persistence"),
}


@pytest.mark.slow
@pytest.mark.parametrize("peer", SUITES)
def test_the_suite_of_a_peer(peer, tmp_path):
    package, folder, names = SUITES[peer]
    for needed in {package, "gph", "gudhi", "ripser", "persim", "torch_topological"}:
        pytest.importorskip(needed)
    homes = (Path(importlib.util.find_spec(package).origin).parent, SOURCES)
    files = [str(file) for home in homes for name in names.split() for file in home.glob(f"{folder}/test_{name}.py")]
    if not files:
        pytest.skip(f"the installed {package} ships no tests, and its sources aren't in {SOURCES}")
    place = tmp_path / "outcomes.json"
    paths = os.pathsep.join(map(str, (ROOT, Path(__file__).parent)))
    settings = {"PYTHONPATH": paths, "PEERS_OUTCOMES": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "shims", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["--rootdir", str(tmp_path), "-c", os.devnull, *files]
    run = subprocess.run(command, env=os.environ | settings, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert place.exists(), run.stdout + run.stderr
    outcomes = json.loads(place.read_text(encoding="utf-8"))
    count = Counter(outcome for outcome, _ in outcomes.values())
    print(f"{peer}: {count['passed']} passed, {count['skipped']} not offered, {count['failed']} failed")
    failed = {name: why for name, (outcome, why) in outcomes.items() if outcome == "failed"}
    assert not failed.keys() - FAULTS, "\n".join(failed.values())
    assert count["passed"], run.stdout

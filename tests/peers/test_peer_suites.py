"""The tests of giotto-ph, which lie in its package, run on isonb in its place: no test that asks ``shims.py`` fails.

Other libraries ship none; their bars, generators and diagrams are compared with ours in ``tests/barcodes``.
"""

import os
import re
from pathlib import Path

import pytest
from processes import python

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_suite_of_giotto_ph(tmp_path):
    package = Path(pytest.importorskip("gph").__file__).parent
    files = [str(package / f"python/test/test_{name}.py") for name in ("ripser", "wrp")]
    paths = os.pathsep.join(map(str, (ROOT, Path(__file__).parent)))
    settings = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["-m", "pytest", "-q", "-p", "shims", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["--rootdir", tmp_path, "-c", os.devnull, *files]
    assert re.search(r"\d passed", python(*command, env=os.environ | settings, cwd=tmp_path))

"""A method in a file of the user's own: a grid of two runs, its fingerprint, and the mistakes."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch
from one_line import assert_one_line

import isonb
import isonb_lab
from isonb import cli
from isonb.errors import OptionError
from isonb_lab.engines.experiment import run
from isonb_lab.engines.preflight import preflight
from isonb_lab.methods import Method, MethodError, label, method_from, methods, resolved
from isonb_lab.runs.record import read_record
from isonb_lab.runs.settings import command, plan, resolve
from isonb_lab.sweeps import execution
from isonb_lab.sweeps.execution import prepare
from isonb_lab.sweeps.grids import load_grid
from isonb_lab.sweeps.sweep import sweep

SHIFT = '''
"""Sentence vectors, moved."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from isonb_lab.methods import Method
from isonb.options import option


@dataclass(frozen=True)
class Shift(Method):
    """A number is added to every coordinate of both sides."""

    by: float = option(1.0, "what is added", low=-100, high=100)

    def transform(self, first: Tensor, second: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Both sides, moved."""
        return first + self.by, second + self.by
'''
RUNNER = """
from isonb_lab.engines.experiment import run
from isonb_lab.runs.record import write_record
from isonb_lab.runs.settings import plan


def record(job):
    given = job["parameters"]
    write_record(given["out"] + "/records", run(plan(given["planned"]), progress=False))
"""
GRID = """
smoke:
  task: pairs.csv
  method: {name: "mine/shift.py:Shift", by: [0, 50]}
"""


@pytest.fixture(autouse=True)
def here(here):
    """With a method and a file of pairs."""
    (here / "mine").mkdir()
    (here / "mine/shift.py").write_text(SHIFT)
    pairs = [f"The {a} is {i},A {a} of {i * j},{i * j % 5}" for i in range(4) for j, a in enumerate("abc")]
    (here / "pairs.csv").write_text("\n".join(["sentence1,sentence2,score", *pairs]))
    return here


def test_a_method_of_ones_own_in_a_grid_through_a_sweep(here, monkeypatch):
    """The first run in a process of its own, which knows nothing but the configuration; the second in this one."""
    (here / "grid.yaml").write_text(GRID)
    (here / "runner.py").write_text(RUNNER)
    code = [str(Path(package.__file__).parents[1]) for package in (isonb, isonb_lab)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(here), *code]))
    still, moved = load_grid("grid.yaml", "smoke")
    assert [config.config["method"]["by"] for config in (still, moved)] == [0.0, 50.0]
    (outcome,) = sweep([still], "out", progress=False, runner="runner:record").outcomes
    assert (outcome.run_id, outcome.status, outcome.error) == (still.run_id, "finished", "")
    assert still.run_id.startswith("pairs-csv-tiny-shift-py-shift-s0-")
    first, second = read_record(here / f"out/records/{still.run_id}.json"), run(moved.config, progress=False)
    digest = hashlib.sha256((here / "mine/shift.py").read_bytes()).hexdigest()
    assert first.manifest["data"]["method"] == second.manifest["data"]["method"] == digest
    assert first.metrics["difference.spearman.all"] == 0  # nothing was added
    assert second.metrics["end.features.mean_cosine"] > 0.99 > first.metrics["end.features.mean_cosine"]
    assert sweep([still], "out", progress=False).outcomes[0].status == "skipped"
    (here / "mine/shift.py").write_text(SHIFT.replace("Both sides, moved", "Both sides"))
    assert prepare(plan(still.config), "out").differs.startswith(f"other method ({digest[:8]} then, ")
    (here / "mine/shift.py").unlink()
    assert label(first.config["method"]) == "mine/shift.py:Shift by=0"
    assert cli.main(["collect", "out"]) == 0


def test_a_class_of_a_file_is_a_method():
    method = method_from({"name": "./mine/shift.py:Shift", "by": "2"})
    assert isinstance(method, Method)
    assert resolved(method) == {"name": "mine/shift.py:Shift", "by": 2.0}
    assert type(method) is type(method_from("mine/shift.py:Shift"))
    assert "mine/shift.py:Shift" not in methods()
    config = resolve({"task": "pairs.csv", "model": "tiny", "method": {"name": "mine/shift.py:Shift", "by": 3}})
    assert "--method mine/shift.py:Shift -o by=3" in command(config)
    assert label(config["method"]) == "mine/shift.py:Shift by=3"
    preflight(plan(config))


def test_files_are_told_apart_and_options_are_checked(here):
    (here / "shift.py").write_text(SHIFT)
    names = ["shift.py:Shift", "mine/shift.py:Shift", f"{here}/shift.py:Shift"]
    kinds = [type(method_from(name)) for name in names]
    assert [kind.name for kind in kinds] == names
    assert len(set(kinds)) == 3
    with pytest.raises(OptionError, match=r"by of method mine/shift.py:Shift must be float from -100 to 100"):
        method_from({"name": "mine/shift.py:Shift", "by": 101})


def test_the_example_of_the_book_has_a_weight():
    from isonb_lab.places import BOOK

    penalty = method_from({"name": f"{BOOK}/practice/own/centred.py:Centred", "weight": 2}).penalty()
    assert penalty(torch.tensor([[1.0, 2.0], [-1.0, -2.0]])).item() == 0
    assert penalty(torch.tensor([[3.0, 4.0], [3.0, 4.0]])).item() == pytest.approx(2)


HEAD = "from dataclasses import dataclass\nfrom isonb_lab.methods import Method\n"
MISTAKES = {
    "no file": (None, "nowhere.py:Shift", "no file nowhere.py"),
    "no class named": (SHIFT, "a.py", "must be FILE.py:CLASS"),
    "no such class": (SHIFT, "a.py:Shfit", "Did you mean 'Shift'? It defines: Shift."),
    "no method": ("class Shift:\n    pass\n", "a.py:Shift", "Shift of a.py must be a Method; got a class of object"),
    "imported class": (HEAD, "a.py:Method", "It defines: none"),
    "syntax error": ("x = 1\nclass Shift(:\n", "a.py:Shift", "SyntaxError: invalid syntax in line 2"),
    "import error": ("x = 1\nimport no_such_library\n", "a.py:Shift", "No module named 'no_such_library' in line 2"),
    "exit": ("raise SystemExit(0)\n", "a.py:Shift", "SystemExit: 0 in line 1"),
    "plain option": (
        HEAD + "@dataclass(frozen=True)\nclass Shift(Method):\n    by: float = 1.0\n",
        "a.py:Shift",
        "each option of Shift must be made by isonb.options.option; got 'by' in a.py",
    ),
    "no dataclass": (SHIFT.replace("@dataclass(frozen=True)\n", ""), "a.py:Shift", "got 'by' in a.py"),
    "unknown type": (SHIFT.replace("by: float", "by: flaot"), "a.py:Shift", "name 'flaot' is not defined"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(case, here, capsys, monkeypatch):
    content, name, report = MISTAKES[case]
    monkeypatch.setattr(execution, "SupervisedProcess", lambda *args, **options: pytest.fail("a run was started"))
    if content is not None:
        (here / "a.py").write_text(content)
    assert_one_line(capsys, here, ["run", "--method", name], report)
    with pytest.raises(MethodError):
        method_from(name)


HELPED = SHIFT.replace("from torch import Tensor", "from torch import Tensor\n\nimport amount").replace(
    "first + self.by, second + self.by", "first + amount.of(self), second + amount.of(self)"
)
AMOUNT = "def of(method):\n    from more.words import COUNT\n\n    return method.by * COUNT\n"
READS = SHIFT.replace("    by: float", '    files = ("words.txt",)\n    by: float').replace(
    "first + self.by", 'first + float(self.file("words.txt").read_text())'
)


def moved(name):
    return method_from({"name": name, "by": 2}).transform(torch.zeros(1, 1), torch.zeros(1, 1), 0)[0].item()


@pytest.fixture
def helped(here):
    """A method with a module beside it, which imports a package of its own in a function."""
    (here / "mine/more").mkdir()
    helpers = {"amount.py": AMOUNT, "more/__init__.py": "", "more/words.py": "COUNT = 1\n"}
    for name, text in {"shift.py": HELPED, **helpers}.items():
        (here / "mine" / name).write_text(text)
    return here / "mine"


@pytest.mark.parametrize(
    ("part", "text"), [("amount.py", AMOUNT + "\n"), ("more/words.py", "COUNT = 3\n"), ("more/__init__.py", "#")]
)
def test_a_changed_helper_is_another_method(part, text, helped):
    before = method_from("mine/shift.py:Shift")
    assert moved("mine/shift.py:Shift") == 2
    assert type(method_from("mine/shift.py:Shift")) is type(before)
    (helped / part).write_text(text)
    assert method_from("mine/shift.py:Shift").sha256 != before.sha256
    assert moved("mine/shift.py:Shift") == (6 if "words" in part else 2), (
        "the code that runs is that of the fingerprint"
    )
    assert not list(helped.rglob("__pycache__"))
    assert str(helped) not in sys.path


def test_helpers_of_one_name_in_two_folders_are_two(helped, here):
    shutil.copytree(helped, here / "yours")
    (here / "yours/more/words.py").write_text("COUNT = 5\n")
    assert (moved("mine/shift.py:Shift"), moved("yours/shift.py:Shift")) == (2, 10)
    assert method_from("mine/shift.py:Shift").sha256 != method_from("yours/shift.py:Shift").sha256


def test_a_file_that_a_method_reads_is_part_of_it(here):
    (here / "mine/shift.py").write_text(READS)
    with pytest.raises(MethodError, match=r"the files of Shift must lie beside mine/shift.py; got no words.txt"):
        method_from("mine/shift.py:Shift")
    (here / "mine/words.txt").write_text("3")
    before = method_from("mine/shift.py:Shift")
    assert moved("mine/shift.py:Shift") == 3
    (here / "mine/words.txt").write_text("4")
    assert method_from("mine/shift.py:Shift").sha256 != before.sha256
    with pytest.raises(MethodError, match=r"must list each file that it reads; got 'other.txt'"):
        before.file("other.txt")

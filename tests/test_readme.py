"""What the pages name is there: paths, modules, functions, commands; the README's training script runs as it stands."""

import json
import math
import pkgutil
import re
import shlex
import shutil
from pathlib import Path

import pytest
from scipy import stats

from isonb import FitWarning, cli
from isonb_lab.pages import __main__ as pages
from isonb_lab.pages.chapters import Book

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("book/**/*.md"), *ROOT.glob("isonb/**/*.md")])
PAGES = [page for page in PAGES if not page.stem.endswith("_plan")]  # a plan names what is still to come
PATH = re.compile(r"`((?:isonb|book|tests|\.ci|\.github)/[^`\s:]+)(?:::(\w+))?`")
NAME = re.compile(r"`(isonb(?:\.\w+)+)(?:\([^`]*\))?`")
BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ |python -m )?(isonb(?:\.pages)? (?:[^\\\n]|\\\n)*)", re.MULTILINE)

# The script is meant for a GPU too: without one, the Trainer's default of pinned memory is only a warning.
pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning")


def lost_paths(text: str) -> list[str]:
    """Paths of this repository in backticks that nothing has, and tests that their file lacks.

    NAME, CHAPTER and <paper> stand for any.
    """
    lost = []
    for path, test in PATH.findall(text):
        files = list(ROOT.glob(re.sub(r"<\w+>|(?<![A-Za-z])[A-Z]{3,}", "*", path.rstrip("/"))))
        if not files or (test and f"def {test}(" not in files[0].read_text(encoding="utf-8")):
            lost.append(f"{path}::{test}" if test else path)
    return lost


def lost_names(text: str) -> list[str]:
    """Modules, classes and functions in backticks that can't be imported."""
    lost = []
    for name in NAME.findall(text):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            lost.append(name)
    return lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_names_on_the_pages_exist(page):
    text = page.read_text(encoding="utf-8")
    assert lost_paths(text) == []
    assert lost_names(text) == []


def commands(text: str) -> list[list[str]]:
    """The commands of this package in blocks of a terminal, as words; a line that ends in a backslash goes on."""
    lines = [line for kind, block in BLOCK.findall(text) if kind in ("", "bash") for line in COMMAND.findall(block)]
    return [shlex.split(line.replace("\\\n", " "), comments=True) for line in lines if "--help" not in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_the_pages_are_understood(page):
    for program, *words in commands(page.read_text(encoding="utf-8")):
        if program == "isonb":
            cli._parser().parse_args(words)
            continue
        options = pages.parser().parse_args(words)
        for chapter in Book(ROOT).pick(options.chapters) if "chapters" in options else ():
            chapter.validate(dict(getattr(options, "p", [])))


def blocks(text: str, name: str) -> list[str]:
    """What stands in the code blocks between the markers of a name."""
    between = text.partition(f"<!-- {name}:start -->")[2].partition(f"<!-- {name}:end -->")[0]
    return re.findall(r"^```\w*\n(.*?)^```$", between, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_training_script_learns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    (script,) = blocks(README.read_text(encoding="utf-8"), "train")
    with pytest.warns(FitWarning, match="few for 384 dimensions"):
        exec(compile(script, str(README), "exec"), names)
    said = capsys.readouterr().out
    for name in ("istar", "entropy"):
        losses, penalties = (json.loads(re.search(f"{name} {what} (.*)", said)[1]) for what in ("task loss", "penalty"))
        assert max(losses[-2:]) < 0.6 < min(losses[:2]), "the task loss falls well below that of guessing, 0.693"
        assert all(math.isfinite(value) and value != 0 for value in penalties)
    istar = json.loads(re.search("istar penalty (.*)", said)[1])
    assert istar[-1] < istar[0], "the negative weight lowers isotropy"
    assert (tmp_path / "runs" / "whitened" / "modules.json").is_file()


@pytest.mark.slow
def test_a_method_of_ones_own_gets_its_verdict_in_three_commands_and_in_ten_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    method, grid, transcript, lines = blocks(README.read_text(encoding="utf-8"), "own")
    assert lines.count("\n") <= 10
    (tmp_path / "mine.py").write_text(method)
    grid, lines = grid.replace("[0, 1, 2, 3, 4]", "[0, 1, 2]"), lines.replace("range(5)", "range(3)")  # sooner
    (tmp_path / "grid.yaml").write_text(grid)
    shutil.copy(ROOT / "book" / "practice" / "own" / "reviews.csv", tmp_path / "reviews.csv")
    commands = re.findall(r"^\$ isonb (.*)$", transcript, re.MULTILINE)
    assert 1 < len(commands) <= 3
    for command in commands:
        assert cli.main([*shlex.split(command), *(["--yes"] if command.startswith("sweep") else [])]) == 0
    screen = capsys.readouterr().out
    exec(lines, names := {})
    found = names["found"]
    scores = {
        arm: [record.metrics["accuracy"] for record in names["runs"][k : k + 3]] for k, arm in ((0, "none"), (3, "own"))
    }
    test = stats.ttest_rel(scores["own"], scores["none"])
    low, high = test.confidence_interval(0.95)
    (pair,) = found.pairs
    assert (pair.interval.low, pair.interval.high) == pytest.approx((100 * low, 100 * high))
    assert pair.p == pytest.approx(test.pvalue)
    assert pair.verdict in ("gain", "loss", "not significant")
    (row,) = [line for line in repr(found).splitlines() if line.startswith("mine.py:Centred")]
    assert row in screen  # by command and in Python the same numbers
    assert row in capsys.readouterr().out

"""What the pages name is there: paths, modules, functions, commands; the README's training lines run as they stand."""

import ast
import pkgutil
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
import torch
from scipy import stats
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainingArguments

from isonb import cli
from isonb.models.catalogue import EMBEDDED, embedded_folder
from isonb_lab.cli.commands import planned_run
from isonb_lab.data.rows import load_task
from isonb_lab.pages import __main__ as pages
from isonb_lab.pages.chapters import Book
from isonb_lab.sweeps.grids import grid_sizes, load_grid

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXPERIMENTS = ROOT / "book" / "practice" / "run_experiments.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("book/**/*.md"), *ROOT.glob("isonb/**/*.md")])
PAGES = [page for page in PAGES if not page.stem.endswith("_plan")]  # a plan names what is still to come
PATH = re.compile(r"`((?:isonb|book|tests|\.ci|\.github)/[^`\s:]+)(?:::(\w+))?`")
NAME = re.compile(r"`(isonb(?:\.\w+)+)(?:\([^`]*\))?`")
BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
EXTRAS = re.compile(r"([^\s'`]*)\[([a-z,]+)\]")
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
    """Modules, classes and functions, in backticks or imported by a block of Python, that can't be imported."""
    names, lost = NAME.findall(text), []
    for code in (block for kind, block in BLOCK.findall(text) if kind == "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("isonb"):
                names += [f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*"]
    for name in names:
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            lost.append(name)
    return lost


def lost_extras(text: str) -> list[str]:
    """Extras that a line with ``pip install`` asks of a distribution that has no such extra."""
    lost = []
    for line in re.findall("pip install.*", text):
        for place, names in EXTRAS.findall(line):
            project = ROOT / ("book" if "book" in place else "") / "pyproject.toml"
            known = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
            lost += [f"{place}[{name}]" for name in names.split(",") if name not in known]
    return lost


def commands(text: str) -> list[list[str]]:
    """The commands of this package in blocks of a terminal, as words; a line that ends in a backslash goes on."""
    lines = [line for kind, block in BLOCK.findall(text) if kind in ("", "bash") for line in COMMAND.findall(block)]
    return [shlex.split(line.replace("\\\n", " "), comments=True) for line in lines if "--help" not in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_names_on_the_pages_exist_and_commands_are_understood(page):
    text = page.read_text(encoding="utf-8")
    assert lost_paths(text) == []
    assert lost_names(text) == []
    assert lost_extras(text) == []
    assert f"{{doc}}`{page.stem}`" not in text, "a page that links to itself"
    for program, *words in commands(text):
        if program == "isonb":
            cli._parser().parse_args(words)
            continue
        options = pages.parser().parse_args(words)
        for chapter in Book(ROOT).pick(options.chapters) if "chapters" in options else ():
            chapter.validate(dict(getattr(options, "p", [])))


@pytest.mark.parametrize("page", ["practice/run_experiments.md", "experiments/README.md"])
def test_runs_and_grids_on_the_pages_can_be_planned(page, tmp_path):
    text = (ROOT / "book" / page).read_text(encoding="utf-8")
    text = re.sub("<!-- own:start -->.*<!-- own:end -->", "", text, flags=re.DOTALL)  # the last test runs it
    for words in (words for program, *words in commands(text) if program == "isonb"):
        options = cli._parser().parse_args(words)
        if options.command == "sweep":
            file = ROOT / options.grid
            assert options.size in grid_sizes(file if file.is_file() else options.grid)
        if options.command == "run":
            planned_run(options)
    for grid in (block for kind, block in BLOCK.findall(text) if kind == "yaml"):
        (tmp_path / "grid.yaml").write_text(grid, encoding="utf-8")
        assert load_grid(tmp_path / "grid.yaml", "small")


def test_every_grid_is_listed_with_its_sizes():
    folder = ROOT / "book" / "experiments"
    rows = [line.split("|") for line in (folder / "README.md").read_text("utf-8").splitlines() if ".yaml` |" in line]
    listed = {name: row[3].strip().split(", ") for row in rows for name in re.findall(r"`(\w+\.yaml)`", row[1])}
    assert listed == {grid.name: list(grid_sizes(grid)) for grid in folder.glob("*.yaml")}


def blocks(text: str, name: str) -> list[str]:
    """What stands in the code blocks between the markers of a name."""
    between = text.partition(f"<!-- {name}:start -->")[2].partition(f"<!-- {name}:end -->")[0]
    return re.findall(r"^```\w*\n(.*?)^```$", between, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_training_lines_learn(tmp_path):
    tiny, _ = embedded_folder(EMBEDDED["tiny"])
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    data = load_task("english_praise", limit=512).rename_column("label", "labels")
    names = {
        "model": AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=2, dtype=torch.float32),
        "arguments": TrainingArguments(
            str(tmp_path), max_steps=40, per_device_train_batch_size=16, gradient_accumulation_steps=2,
            learning_rate=1e-3, warmup_steps=8, logging_steps=5, save_strategy="no", report_to="none",
        ),
        "data": data.map(lambda row: tokenizer(row["sentence"]), remove_columns="sentence"),
        "tokenizer": tokenizer,
    }  # fmt: skip
    (lines,) = blocks(README.read_text(encoding="utf-8"), "train")
    exec(compile(lines, str(README), "exec"), names)
    log = [entry for entry in names["trainer"].state.log_history if "isonb_penalty" in entry]
    losses = [entry["loss"] - entry["isonb_penalty"] for entry in log]
    assert max(losses[-2:]) < 0.6 < min(losses[:2]), "the task loss falls well below that of guessing, 0.693"
    assert log[-1]["isonb_penalty"] < log[0]["isonb_penalty"], "the negative weight lowers isotropy"


@pytest.mark.slow(seconds=130)
def test_a_method_of_ones_own_gets_its_verdict_in_three_commands_and_in_ten_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    method, grid, transcript, lines = blocks(EXPERIMENTS.read_text(encoding="utf-8"), "own")
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
    result = names["found"]
    scores = {
        arm: [record.metrics["accuracy"] for record in names["runs"][k : k + 3]] for k, arm in ((0, "none"), (3, "own"))
    }
    test = stats.ttest_rel(scores["own"], scores["none"])
    low, high = test.confidence_interval(0.95)
    (pair,) = result.pairs
    assert (pair.interval.low, pair.interval.high) == pytest.approx((100 * low, 100 * high))
    assert pair.p == pytest.approx(test.pvalue)
    assert pair.verdict in ("gain", "loss", "not significant")
    (row,) = [line for line in repr(result).splitlines() if line.startswith("mine.py:Centred")]
    assert row in screen  # by command and in Python the same numbers
    assert row in capsys.readouterr().out

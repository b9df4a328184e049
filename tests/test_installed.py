"""isonb as its users have it: a wheel in another place than the checkout, an editable install under a type checker."""

import ast
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pandas as pd
import pytest
from build import ProjectBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import call, python
from test_house import foreign

import isonb
from isonb_lab.runs.settings import resolve
from isonb_lab.runs.table import scan

ROOT = Path(isonb.__file__).parents[1]
MODULE, LAB = (
    tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for folder in (ROOT, ROOT / "book")
)


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder of both sdists and of the wheels made from them, as for publishing."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "book"):
        python("-m", "build", "--no-isolation", "--outdir", folder, project)
    return folder


@pytest.fixture(scope="module")
def wheels(dist):
    """The wheel of isonb and that of isonb-lab."""
    return [next(dist.glob(f"{name}-*.whl")) for name in ("isonb", "isonb_lab")]


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """Run a command of the installed wheels in an empty folder; the libraries are those of this environment."""
    folder = tmp_path_factory.mktemp("elsewhere")
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    python(*pip, "--disable-pip-version-check", "--target", folder / "site", *wheels)
    hidden = {"PYTHONPATH": str(folder / "site"), "PYTHONSAFEPATH": "1", "CUDA_VISIBLE_DEVICES": ""}

    def run(*arguments):
        return python(*arguments, cwd=folder, env=os.environ | hidden)

    run.folder = folder
    return run


def test_the_wheels_hold_what_the_checkout_has_and_pass_twine(dist, wheels):
    python("-m", "twine", "check", "--strict", *dist.iterdir())
    extra = [(f"book/{folder}", f"isonb_lab/{folder}") for folder in ("experiments", "recorded")]
    places = [("isonb", "isonb")], [("book/isonb_lab", "isonb_lab"), *extra]
    for wheel, folders in zip(wheels, places, strict=True):
        expected = set()
        for here, second in folders:
            listed = call("git", "ls-files", "--cached", "--others", "--exclude-standard", here, cwd=ROOT).splitlines()
            expected |= {name.replace(here, second, 1) for name in listed if (ROOT / name).is_file()}
        assert len(expected) > 100
        assert {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name} == expected


@pytest.mark.slow
def test_run_sweep_and_collect_work_where_isonb_is_installed(installed):
    chosen = {"task": "english_acceptability", "model": "tiny", "protocol": "smoke"}
    arguments = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    report = installed("-m", "isonb", "run", *arguments, "--method", "istar", "-o", "weight=-1")
    (result,) = scan(installed.folder / "runs" / "records").records.values()
    assert result.config == resolve(chosen | {"method": {"name": "istar", "weight": -1}})
    assert f"{result.metrics['matthews']:.4f}" in report
    (installed.folder / "mine.yaml").write_text("smoke: {experiment: synthetic}\n", encoding="utf-8")
    assert "1 run: 1 finished." in installed("-m", "isonb", "sweep", "mine.yaml", "--size", "smoke")
    assert "2 runs, 0 failed, 0 damaged" in installed("-m", "isonb", "collect", "runs", "--out", "table.parquet")
    table = pd.read_parquet(installed.folder / "table.parquet")
    assert set(table["experiment"]) == {"finetune", "synthetic"}
    notebooks = (installed.folder / "runs" / "notebooks").glob("*.ipynb")
    assert {path.stem for path in notebooks} == set(table["run_id"])


@pytest.mark.slow
def test_an_installed_laboratory_has_grids_pictures_and_recordings(installed):
    code = """
import isonb
from isonb.cli import main
from isonb_lab.runs.recordings import RecordedError, recorded
from isonb_lab.figures import methods

print(isonb.__file__)
print(methods.side(0.1, 0.4), "doing nothing")
main(["list", "grids"])
main(["sweep", "istar", "--size", "smoke", "--out", "planned", "--dry-run"])
print(len(recorded("istar").runs), "recorded runs")
try:
    recorded("itsar")
except RecordedError as error:
    print(error)
"""
    report = installed("-c", code)
    assert Path(report.splitlines()[0]).is_relative_to(installed.folder)
    for text in ("above doing nothing", "istar_search", "13 to do", "Those of the book come with isonb-lab"):
        assert text in report
    assert int(re.search(r"(\d+) recorded runs", report)[1]) > 0


def test_a_type_checker_sees_types_and_misspelt_names_of_an_editable_install(tmp_path):
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    result = ProjectBuilder(ROOT).build("editable", tmp_path)
    paths = {"base": str(environment), "platbase": str(environment)}
    zipfile.ZipFile(result).extractall(sysconfig.get_path("purelib", vars=paths))
    lines = "import isonb\nisonb.isoscore(None, unbiassed=True)\nisonb.isocore\n"
    (tmp_path / "user.py").write_text(lines, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--python-executable", environment / "bin" / "python"]
    command += ["--cache-dir", tmp_path / "cache", "--ignore-missing-imports", "user.py"]
    options = {"cwd": tmp_path, "env": {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}}
    output = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options).stdout
    assert 'Unexpected keyword argument "unbiassed" for "isoscore"' in output
    assert 'has no attribute "isocore"' in output


# What is imported, the library that is not there, and the extra that brings it.
EXTRAS = [
    ("isonb_lab.runs.table", "pandas", "lab"),
    ("isonb_lab", "transformers", "lab"),
    ("isonb_lab.pages", "altair", "lab"),
    ("isonb.metrics", "torchmetrics", "metrics"),
    ("isonb.integrations.trainer", "transformers", "hf"),
    ("isonb.integrations.sentence_transformers", "sentence_transformers", "hf"),
]


def test_a_module_whose_extra_is_missing_names_the_extra():
    code = f"""
import importlib, sys
for name, library, extra in {EXTRAS!r}:
    sys.modules[library] = None
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(type(error).__name__, error)
    for loaded in [key for key in sys.modules if key.startswith(("isonb_lab", "isonb.metrics"))]:
        del sys.modules[loaded]
    del sys.modules[library]
"""
    report = python("-W", "ignore", "-c", code).splitlines()
    assert len(report) == len(EXTRAS)
    for line, (_, library, extra) in zip(report, EXTRAS, strict=True):
        source = "-e .* -e .*/book" if extra == "lab" else rf".*\[{extra}\].*"
        assert re.fullmatch(rf"DependencyError isonb\S+ needs {library}: pip install {source}", line), line


def test_the_lab_looks_for_what_its_files_import_and_brings_it():
    lab = ROOT / "book" / "isonb_lab"
    top = ast.parse((lab / "__init__.py").read_text(encoding="utf-8"))
    (call_of,) = [node for node in ast.walk(top) if isinstance(node, ast.Call) and ast.unparse(node.func) == "needs"]
    looked_for = {argument.value for argument in call_of.args[2:]}
    files = [path for path in lab.rglob("*.py") if path.relative_to(lab).parts[0] not in ("pages", "figures")]
    assert looked_for == set().union(*map(foreign, files)) - {"isonb_lab"}
    extras = MODULE["optional-dependencies"]
    lines = [line for extra in ("audit", "hf", "topology", "metrics") for line in extras[extra]]
    brought = {Requirement(line).name for line in [*lines, *LAB["dependencies"]]}
    owners = metadata.packages_distributions()
    for name in looked_for:
        assert {owner.lower().replace("_", "-") for owner in owners[name]} & brought


def test_every_direct_need_is_pinned_with_hashes_and_the_tools_of_tests_and_lint_apart_from_the_book():
    pins_of = runpy.run_path(str(ROOT / ".ci" / "pins.py"))["pins_of"]
    book, dev = (pins_of((ROOT / f"requirements{end}.txt").read_text(encoding="utf-8")) for end in ("", "-dev"))
    assert all([*book.values(), *dev.values()])
    assert not set(book) & set(dev)
    pinned = [
        {canonicalize_name(pin.name): pin.specifier for pin in map(Requirement, lock)} for lock in (book, book | dev)
    ]
    extras = MODULE["optional-dependencies"] | LAB["optional-dependencies"]
    for extra, lines in {**extras, "torch": MODULE["dependencies"], "lab": LAB["dependencies"]}.items():
        for need in map(Requirement, lines):
            pin = pinned[extra in ("cluster", "dev", "approximate")].get(canonicalize_name(need.name))
            assert need.name in ("isonb", "isonb-lab") or need.specifier.contains(str(pin).removeprefix("==")), need
    assert not {"mypy", "twine", "playwright", "pre-commit", "lightning", "faiss-cpu", "polars"} & set(pinned[0])


def test_actions_of_the_workflow_are_pinned_by_commit():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[0-9.]+", line) for line in used)

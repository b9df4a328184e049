"""The rooms of the package: which may use which, read from every import, lazy and type-only ones too."""

import ast
import graphlib
import re
from pathlib import Path

import pytest

import isonb

ROOT = Path(isonb.__file__).parent
# From top to bottom: a room may use those below it and none above. CONTRIBUTING says what each is for.
ROOMS = (
    "pages",
    "cli",
    "auditing",
    "lab/comparing",
    "lab/batch",
    "lab/sweeps",
    "lab/engines",
    "lab/studies",
    "lab/runs",
    "lab/data",
    "lab/encoders",
    "lab/methods",
    "lab/measuring",
    "lab/statistics",
    "lab/options",
    "metrics",
    "integrations",
    "losses",
    "transforms",
    "layers",
    "streaming",
    "measures",
    "barcodes",
    "points",
    "numerics",
    "checks",
    "runtime",
    "errors",
)
READERS = "lab/studies"  # reads what runs have left, and uses nothing that makes one
RUNNERS = ("lab/encoders", "lab/methods")  # nor that stands below it
MAKERS = ("isonb_lab.runs.settings", "isonb_lab.runs.publishing")
TABLES = ("cli", "auditing", "lab")  # pages are written from tables: of these rooms pages use none but
SHARED = ("lab/options", "lab/statistics")
GROUND = "isonb.errors"  # what even the lowest room may use
MOST = 16  # files of a folder beside its __init__


def arrows(root: Path) -> dict[str, set[str]]:
    """Every module below the package ``root``, and the modules of the package that it imports anywhere in its text.

    That a module's own packages are imported before it is no arrow: nobody wrote it.
    """
    files = {_name(root, path): path for path in root.rglob("*.py")}
    return {name: set(_imports(name, path, files)) - {name} for name, path in files.items()}


def _name(root, path):
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name, path, files):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            found = [full if (full := f"{source}.{alias.name}") in files else source for alias in node.names]
        else:
            continue
        yield from (target for target in found if target in files)


def room(module: str) -> str | None:
    """The room of a module, or None for what is no room: the list of public names."""
    place = module.replace(".", "/").removeprefix("isonb/")
    return next((room for room in ROOMS if place == room or place.startswith(f"{room}/")), None)


def forbidden(found: dict[str, set[str]]) -> list[str]:
    """The arrows that point up."""
    pairs = [(source, target) for source, targets in sorted(found.items()) for target in sorted(targets)]
    up = [f"{a} -> {b}" for a, b in pairs if room(a) and room(b) and ROOMS.index(room(b)) < ROOMS.index(room(a))]
    low = [f"{a} -> {b}" for a, b in pairs if room(a) == "runtime" and room(b) != "runtime" and b != GROUND]
    made = [f"{a} -> {b}" for a, b in pairs if room(a) == READERS and (room(b) in RUNNERS or b in MAKERS)]
    told = [
        f"{a} -> {b}"
        for a, b in pairs
        if room(a) == "pages" and str(room(b)).split("/")[0] in TABLES and room(b) not in SHARED
    ]
    return list(dict.fromkeys(up + low + made + told))


def circle(found: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, or nothing."""
    try:
        graphlib.TopologicalSorter(found).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def crowded(root: Path) -> list[str]:
    """Folders with more files than one can oversee."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    return [folder.name for folder in folders if len(set(folder.glob("*.py")) - {folder / "__init__.py"}) > MOST]


@pytest.fixture(scope="module")
def ours():
    return arrows(ROOT)


def test_no_arrow_points_up(ours):
    assert not forbidden(ours)


def test_no_circle(ours):
    assert not circle(ours)


@pytest.mark.parametrize("folder", [ROOT, Path(__file__).parent], ids=["isonb", "tests"])
def test_no_folder_is_a_hall(folder):
    assert crowded(folder) == []


def test_every_file_has_a_room(ours):
    places = set(ours) - {"isonb", "isonb.__main__", "isonb_lab"}
    assert {room(name) for name in places} == set(ROOMS)


def test_contributing_names_the_same_rooms_in_the_same_order():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `isonb/([\w/.]+)` \|", text, re.MULTILINE)
    assert tuple(name.removesuffix("/").removesuffix(".py") for name in named) == ROOMS


@pytest.fixture
def house(tmp_path):
    """A made-up house with the files given: text by place."""

    def build(files):
        for place, text in files.items():
            path = tmp_path / "isonb" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "isonb"

    return build


@pytest.mark.parametrize(
    "text",
    [
        "from isonb_lab.sweeps.execution import execute",
        "from isonb_lab.sweeps import execution",
        "import isonb_lab.sweeps.execution",
        "from ..sweeps import execution",
        "from ..sweeps.execution import execute",
        "def later():\n    from isonb_lab.sweeps.execution import execute",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from isonb_lab.sweeps.execution import Prepared",
    ],
)
def test_an_arrow_up_is_seen_however_it_is_written(house, text):
    root = house(
        {"__init__.py": "", "lab/runs/record.py": text, "lab/sweeps/__init__.py": "", "lab/sweeps/execution.py": ""}
    )
    assert forbidden(arrows(root)) == ["isonb_lab.runs.record -> isonb_lab.sweeps.execution"]
    down = house({"lab/runs/record.py": "", "lab/sweeps/execution.py": "from isonb_lab.runs.record import Record"})
    assert not forbidden(arrows(down))


@pytest.mark.parametrize("target", ["sweeps/grids", "methods/istar", "encoders/loading", "runs/settings"])
def test_studies_that_use_what_makes_runs_are_seen(house, target):
    name = target.replace("/", ".")
    files = {"lab/studies/study.py": f"def later():\n    import isonb_lab.{name}", f"lab/{target}.py": ""}
    assert forbidden(arrows(house(files))) == [f"isonb_lab.claims.study -> isonb_lab.{name}"]


def test_pages_that_use_the_lab_are_seen(house):
    files = {"pages/tables.py": "import isonb_lab.options\nimport isonb_lab.runs", "lab/options.py": ""}
    assert forbidden(arrows(house(files | {"lab/runs/__init__.py": ""}))) == [
        "isonb_lab.pages.tables -> isonb_lab.runs"
    ]


def test_the_lowest_room_uses_the_ground_alone(house):
    files = {"errors.py": "", "measures/spectrum.py": "", "runtime/files.py": "from isonb.errors import InputError"}
    assert not forbidden(arrows(house(files)))
    root = house({"runtime/files.py": "from isonb.measures.spectrum import singular_values"})
    assert forbidden(arrows(root)) == ["isonb.runtime.files -> isonb.measures.spectrum"]


def test_a_circle_is_seen_and_a_diamond_is_none(house):
    a, b, c = (f"lab/data/{name}.py" for name in "abc")
    files = {a: "from isonb_lab.data import b, c", b: "from isonb_lab.data import c", c: ""}
    assert not circle(arrows(house(files)))
    found = circle(arrows(house({c: "def later():\n    import isonb_lab.data.a"})))
    assert set(found) >= {"isonb_lab.data.a", "isonb_lab.data.c"}


def test_a_hall_is_seen(house):
    files = {f"lab/data/part{i}.py": "" for i in range(MOST)} | {"lab/data/__init__.py": ""}
    assert not crowded(house(files))
    assert crowded(house({"lab/data/one_more.py": ""})) == ["data"]


def test_a_file_outside_the_rooms_has_none():
    assert room("isonb_lab.stray") is None
    assert room("isonb_lab.optionsful") is None
    assert room("isonb_lab.options") == "lab/options"
    assert room("isonb_lab.data.tasks") == "lab/data"

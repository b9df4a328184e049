"""The rules of the house that code can check: what imports what, and what `import isonb` may need."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import isonb

ROOT = Path(isonb.__file__).parent
TESTS = Path(__file__).parent
ROOMS = ("measures", "barcodes", "losses", "layers", "transforms", "streaming", "numerics")
MATHS = sorted([*ROOT.glob("*.py"), *(path for room in ROOMS for path in (ROOT / room).glob("*.py"))])
MAY_IMPORT = {
    "maths": set(),
    "auditing": {"maths", "lab", "runtime"},  # of a model: the lab loads it
    "front": {"maths", "auditing"},  # isonb/__init__.py: the names of both
    "metrics": {"maths"},
    "training": {"maths"},
    "runtime": {"maths"},
    "lab": {"maths", "training", "runtime"},
    "pages": {"maths", "runtime"},
    "cli": {"maths", "auditing", "lab", "runtime"},
}


def wing(module: str) -> str:
    """The part of the house a module name belongs to."""
    head = module.removeprefix("isonb").lstrip(".").split(".")[0]
    named = {"__main__": "cli", "__init__": "front"}
    return named.get(head) or (head if head in MAY_IMPORT else "maths")


def imported(path: Path, top_level: bool = False) -> set[str]:
    """Modules a file imports, anywhere or only when it is itself imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def foreign(path: Path) -> set[str]:
    """Libraries other than torch that a file needs to be imported."""
    roots = {name.split(".")[0] for name in imported(path, top_level=True)}
    return roots - set(sys.stdlib_module_names) - {"torch", "isonb"}


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_down(path):
    own = wing("isonb." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    others = {wing(name) for name in imported(path) if name.startswith("isonb")} - {own}
    assert others <= MAY_IMPORT[own], f"{path.name} ({own}) imports from {sorted(others)}"


@pytest.mark.parametrize("path", MATHS, ids=lambda path: path.name)
def test_maths_needs_torch_alone(path):
    assert not foreign(path)


@pytest.mark.parametrize("path", sorted((ROOT / "metrics").glob("*.py")), ids=lambda path: path.name)
def test_metrics_need_torchmetrics_alone(path):
    assert foreign(path) <= {"torchmetrics"}


def long_functions(text: str, most: int = 35) -> list[str]:
    """Functions of more than ``most`` lines, their docstrings left out."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            told = node.body[0] if ast.get_docstring(node) else None
            lines = node.end_lineno - node.lineno + 1 - (told.end_lineno - told.lineno + 1 if told else 0)
            found += [node.name] * (lines > most)
    return found


@pytest.mark.parametrize("path", MATHS, ids=lambda path: path.name)
def test_no_function_of_the_maths_is_long(path):
    assert not long_functions(path.read_text(encoding="utf-8"))


def test_a_long_function_is_seen():
    assert long_functions("def f():\n" + "    x = 1\n" * 35) == ["f"]
    assert long_functions('def f():\n    """A.\n\n    B."""\n' + "    x = 1\n" * 34) == []


def asserts(node: ast.AST) -> bool:
    """An assertion, or a call of what asserts: pytest.raises and the helpers of the tests."""
    name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Assert) or name.startswith(("assert_", "check_", "expect", "raises"))


def early_returns(text: str) -> list[str]:
    """Tests that may return before anything was asserted."""
    found = []
    for test in ast.walk(ast.parse(text)):
        if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
            continue
        nested = [node for node in ast.walk(test) if is_function(node) and node is not test]
        elsewhere = {part for inner in nested for part in ast.walk(inner)}
        nodes = [node for node in ast.walk(test) if node not in elsewhere]
        first = min((node.lineno for node in nodes if asserts(node)), default=sys.maxsize)
        found += [test.name for node in nodes if isinstance(node, ast.Return) and node.lineno < first]
    return found


def is_function(node: ast.AST) -> bool:
    """Whether what stands in it is run elsewhere."""
    return isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef)


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda path: path.name)
def test_no_test_returns_before_it_has_asserted(path):
    assert not early_returns(path.read_text(encoding="utf-8"))


def test_an_early_return_is_seen():
    early = "def test_a(x):\n    if x:\n        return\n    assert x"
    late = "def test_a(x):\n    assert x\n    def inner():\n        return 1\n    return"
    assert early_returns(early) == ["test_a"]
    assert early_returns(late) == []


def test_import_with_nothing_but_torch_installed():
    script = """
import sys
class Block:
    allowed = set(sys.stdlib_module_names) | {"isonb", "torch", "torchgen", "functorch", "typing_extensions", "sympy",
                                              "mpmath", "numpy", "filelock", "fsspec", "jinja2", "networkx"}
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.allowed and not name.startswith("_"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Block())
import torch, isonb
print(float(isonb.isoscore(torch.eye(4))), len(isonb.__all__))
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert float(out[0]) == pytest.approx(2 / 3)
    assert int(out[1]) > 40


def test_everything_public_is_there_and_documented():
    assert isonb.__all__ == sorted(isonb.__all__)
    for name in isonb.__all__:
        thing = getattr(isonb, name)
        assert (thing.__doc__ or "").strip(), f"{name} has no docstring"

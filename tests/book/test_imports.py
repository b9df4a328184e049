"""Blocks of Python that no build executes import what isonb has."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import isonb_lab

PAGES = sorted(Path(isonb_lab.__file__).parents[1].rglob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def imported(page):
    """Module and name of each import from isonb in the blocks of a page."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("isonb"):
                yield from ((node.module, alias.name) for alias in node.names if alias.name != "*")


def is_there(module, name):
    place = importlib.import_module(module)
    return hasattr(place, name) or importlib.util.find_spec(f"{module}.{name}") is not None


def test_every_name_that_a_block_imports_is_there():
    names = {(*result, page.name) for page in PAGES for result in imported(page)}
    assert len(names) > 50
    assert [outcome for outcome in sorted(names) if not is_there(*outcome[:2])] == []

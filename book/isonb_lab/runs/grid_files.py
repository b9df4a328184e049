"""Grid files as data: the blocks of a size, and the product of a block's lists. No run is written out.

A grid has one list of blocks a size. A block is a mapping of settings; a list means each of its values, and a block is
the product of its lists::

    about: what the runs are for
    smoke:
      - task: [english_sentiment, english_acceptability]
        method: [none, {name: istar, weight: [0.1, 1]}]
        seed: [0, 1]

Beside the settings of an experiment a block may say ``experiment`` (else the task tells it), ``protocol`` (else "smoke"
or "full" in a size of that name, or that of the model) and ``method``. Runs that come up twice, in one block or in two,
are one run. Beside the sizes ``plan`` names the file, in the same folder, that was written before the runs and says
what they are to show; their manifests hold its sha256.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from isonb.errors import InputError, fail, in_one_line
from isonb_lab.places import grid_file, shipped_grids

SIZES = ("smoke", "small", "full", "paper")


class GridError(InputError):
    """A grid file that can't be read or names a run that doesn't exist. The message names file, size, block and key."""


def grid_blocks(path: str | Path, size: str) -> list[tuple[str, Any]]:
    """The blocks of one size of a grid, each behind its place in words, as :func:`combinations` takes them.

    ``path`` is a YAML file, or the name of a grid that comes with isonb, such as "istar". Raises :class:`GridError` for
    a file that isn't there or isn't a grid, and for a size it doesn't have.
    """
    grid = _read(path)
    if size not in grid or size not in SIZES:
        sizes = ", ".join(name for name in SIZES if name in grid)
        fail(GridError, f"the size must be one that {path} has", repr(size), f"It has: {sizes}.")
    blocks = grid[size] if isinstance(grid[size], list) else [grid[size]]
    return [(f"{path}, {size}, block {number}", block) for number, block in enumerate(blocks, start=1)]


def combinations(where: str, block: Any) -> Iterator[dict[str, Any]]:
    """Every combination of a block's values; a method that is a mapping is a block of its own."""
    if not isinstance(block, dict) or not block:
        fail(GridError, f"{where} must be a mapping of settings", repr(block)[:80], "Write 'task: ...' and so on.")
    if odd := [key for key in block if not isinstance(key, str)]:
        fail(GridError, f"keys of {where} must be names", repr(odd[0]), "Write the key in quotes.")
    choices = {key: _choices(key, value, where) for key, value in block.items()}
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def _choices(key: str, value: Any, where: str) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        fail(GridError, f"{key} of {where} must have at least one value", "an empty list", "Leave the key out.")
    choices: list[Any] = []
    for choice in values:
        if key == "method" and isinstance(choice, dict):
            choices += combinations(f"{where}, method", choice)
        elif choice is None or isinstance(choice, str | bool | int | float):
            choices.append(choice)
        else:
            must = f"{key} of {where} must be text, a number, true/false or a list"
            fail(GridError, must, repr(choice)[:80], "A list means each of its values; lists in lists have no meaning.")
    return choices


def grid_sizes(path: str | Path) -> tuple[str, ...]:
    """The sizes that a grid has, smallest first."""
    grid = _read(path)
    return tuple(name for name in SIZES if name in grid)


def about_grid(path: str | Path) -> str:
    """What a grid says about itself, in one line; empty where it says nothing."""
    return " ".join(_read(path).get("about", "").split())


def plan_digest(path: str | Path) -> str:
    """sha256 of the plan that a grid cites; empty where it cites none. GridError where the file isn't there."""
    if not (name := _read(path).get("plan")):
        return ""
    try:
        return hashlib.sha256((grid_file(path).parent / name).read_bytes()).hexdigest()
    except OSError as error:
        fix = "Correct its name."
        return fail(GridError, "the plan of a grid must be a file beside it", f"{error} for {path}", fix)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML as data only, where a key that stands twice is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """The mapping, unless a key stands twice in it."""
        names = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            name = key.value if isinstance(key, yaml.ScalarNode) else repr(key)
            if name in names:
                raise yaml.constructor.ConstructorError(None, None, f"key {name!r} stands twice", key.start_mark)
            names.add(name)
        return dict(super().construct_mapping(node, deep))


def _read(path: str | Path) -> dict[str, Any]:
    """The top level of a grid: sizes with their blocks, perhaps ``about``; no more than safe plain values."""
    try:
        grid = yaml.load(grid_file(path).read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        fix = f"Correct the path, or name one of isonb's own: {', '.join(shipped_grids())}."
        fail(GridError, "a grid must be a readable YAML file", f"no file {path}", fix)
    except (OSError, ValueError, yaml.YAMLError) as error:  # ValueError: the 45th of a 13th month
        got = f"{in_one_line(error)} in {path}"
        fail(GridError, "a grid must be a readable YAML file of plain values", got, "Correct it.")
    sizes = ", ".join(SIZES)
    if not isinstance(grid, dict) or not set(grid) & set(SIZES):
        fail(GridError, f"a grid must have blocks under {sizes}", f"neither of them in {path}", "Write one.")
    if odd := [key for key in grid if key not in (*SIZES, "about", "plan")]:
        fail(GridError, f"a grid has the keys about, plan, {sizes}", f"{odd[0]!r} in {path}", "Rename or remove it.")
    for key in ("about", "plan"):
        if not isinstance(grid.get(key, ""), str):
            fail(GridError, f"{key} must be text", f"{grid[key]!r} in {path}", "Put it in quotes.")
    return grid

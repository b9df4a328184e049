"""What a change of the code must leave alone: the ids of the recorded runs, and the numbers in the book's text.

``python tests/compare_book.py dump OUT.json`` writes, for the checkout whose ``isonb`` is imported, the run id of every
recorded row as its configuration gives it now, and every glued value of the executed chapters (``make book`` first).
``python tests/compare_book.py compare BEFORE.json AFTER.json`` lists what differs; its exit code is 1 if anything does.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import pkgutil
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

import isonb
import isonb.lab

BOOK = Path(isonb.__file__).resolve().parents[1] / "book"
GLUE = "application/papermill.record/"
NO_SETTING = ("run_id", "status", "error", "experiment", "method.name")


@functools.cache
def lab(module: str) -> Any:
    """The module of the lab with this name, whichever folder it stands in: dumps are made before and after moves."""
    found = [part.name for part in pkgutil.walk_packages(isonb.lab.__path__, "isonb.lab.")]
    return importlib.import_module(next(name for name in found if name.rpartition(".")[2] == module))


def recorded_ids(folder: Path) -> dict[str, dict[str, str]]:
    """By recording: run id of each row as recorded, and as its configuration gives it now."""
    return {
        path.parent.name: {row["run_id"]: _id(row) for row in pd.read_parquet(path).to_dict("records")}
        for path in sorted(folder.glob("*/runs.parquet"))
    }


def _id(row: Mapping[str, Any]) -> str:
    settings, methods = lab("settings"), importlib.import_module("isonb.lab.methods")
    config = {"experiment": row["experiment"], **_given(settings.EXPERIMENTS[row["experiment"]], row, "")}
    if isinstance(row.get("method.name"), str):
        kind = type(methods.method_from(row["method.name"]))
        config["method"] = {"name": kind.name, **_given(kind, row, "method.")}
    return lab("run_ids").run_id(settings.resolve(config))


def _given(kind: type, row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The options of ``kind`` that a row of a table holds. A table knows no None and mixes its types."""
    hints = typing.get_type_hints(kind)
    names = [part.name for part in fields(kind) if prefix + part.name in row]
    return {name: _typed(row[prefix + name], typing.get_args(hints[name]) or (hints[name],)) for name in names}


def _typed(value: Any, kinds: tuple[type, ...]) -> Any:
    if pd.isna(value):
        return None
    if isinstance(value, str) and kinds != (str,):  # a column of several types is kept as text
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    return int(value) if isinstance(value, float) and int in kinds and value.is_integer() else value


def glued(book: Path) -> dict[str, dict[str, str]]:
    """By chapter: the values that the executed notebook keeps for the text, by name."""
    found = {}
    for path in sorted(book.rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found[path.relative_to(book).with_suffix("").as_posix()] = dict(_scraps(cells))
    return found


def _scraps(cells: list[Any]) -> Iterator[tuple[str, str]]:
    for cell in cells:
        for output in cell.get("outputs", ()):
            scrap = output.get("metadata", {}).get("scrapbook")
            if scrap:
                text = output["data"][GLUE + "text/plain"]
                yield scrap["name"], text if isinstance(text, str) else "".join(text)


def differences(before: Mapping[str, Any], after: Mapping[str, Any], place: str = "") -> list[str]:
    """One line a value that isn't the same in two dumps."""
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, new, where = before.get(name), after.get(name), f"{place}{name}"
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{where} / ")
        elif old != new:
            found.append(f"{where}: {_said(old)} -> {_said(new)}")
    return found


def _said(value: Any) -> str:
    return "nothing" if value is None else f"{len(value)} values" if isinstance(value, dict) else repr(value)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    dump = commands.add_parser("dump", help="write run ids and glued values")
    dump.add_argument("out", type=Path)
    dump.add_argument("--book", type=Path, default=BOOK, help="folder of the chapters and their executed notebooks")
    compare = commands.add_parser("compare", help="list what differs between two dumps")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (options.before, options.after))
        found = differences(old, new)
        print("\n".join(found) or "equal: " + ", ".join(f"{sum(map(len, new[part].values()))} {part}" for part in new))
        return 1 if found else 0
    made = {"runs": recorded_ids(options.book / "recorded"), "glued": glued(options.book)}
    options.out.write_text(json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    moved = [
        f"{recorded} is now {now}" for ids in made["runs"].values() for recorded, now in ids.items() if recorded != now
    ]
    print("\n".join([*moved, *(f"{part}: {sum(map(len, values.values()))} values" for part, values in made.items())]))
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())

"""What a change of the code must leave alone: the verdicts of the studies, and the numbers in the book's text.

``python tests/compare_book.py dump OUT.json`` writes, for the checkout whose ``isonb`` is imported, the verdict of each
claim, and each glued value of the executed chapters (``make book`` first; ``--book`` names another folder of them).
``python tests/compare_book.py compare BEFORE.json AFTER.json`` lists what differs; its exit code is 1 if anything does.
A value is compared by its name, with those of this name on other pages: between two states a page may have been split.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import isonb
from isonb_lab.papers.studies import STUDIES, load_study
from isonb_lab.runtime import glue

BOOK = Path(isonb.__file__).resolve().parents[1] / "book"


def verdicts() -> dict[str, list[str]]:
    """The outcome of each claim, by study and claim."""
    judged = {name: load_study(name).verdicts() for name in STUDIES}
    return {f"{name}, claim {one.claim.number}": [one.outcome] for name, claims in judged.items() for one in claims}


def glued(book: Path) -> dict[str, list[str]]:
    """By name: the values that executed chapters keep for the text, each once, in order."""
    found: dict[str, set[str]] = {}
    for path in book.rglob("*.ipynb"):
        for name, value in glue.glued(json.loads(path.read_text(encoding="utf-8"))).items():
            found.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in found.items()}


def differences(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> list[str]:
    """One line a name whose values aren't the same in both."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [f"{name}: {_said(before.get(name))} -> {_said(after.get(name))}" for name in names]


def _said(values: list[str] | None) -> str:
    return " and ".join(values) if values else "nothing"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    dump = commands.add_parser("dump", help="write verdicts and glued values")
    dump.add_argument("out", type=Path)
    dump.add_argument("--book", type=Path, default=BOOK, help="folder of the executed notebooks")
    compare = commands.add_parser("compare", help="list what differs between two dumps")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "dump":
        made: dict[str, Any] = {"verdicts": verdicts(), "glued": glued(options.book)}
        options.out.write_text(json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        print(", ".join(f"{len(values)} {part}" for part, values in made.items()))
        return 0
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (options.before, options.after))
    found = {part: differences(old[part], new[part]) for part in new}
    for part, lines in found.items():
        same = sum(old[part].get(name) == values for name, values in new[part].items())
        print(f"{part}: {same} equal, {len(lines)} not", *lines, sep="\n")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

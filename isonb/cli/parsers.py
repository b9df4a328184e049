"""How a command is added to the command line, by isonb and by packages that bring commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MANY: dict[str, Any] = {"action": "append", "default": []}  # of an option that may come several times


@dataclass(frozen=True)
class Command:
    """A command: ``add`` gives the subparsers its parser, ``run`` turns parsed options into an exit code."""

    add: Callable[[str, Any], None]
    run: Callable[[argparse.Namespace], int]


def add_command(name: str, commands: Any, text: str, examples: str) -> argparse.ArgumentParser:
    """A command's parser: its help, and examples below it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=name)
    return parser

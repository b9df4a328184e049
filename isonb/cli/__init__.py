"""The command line ``isonb``: the audit, and the commands that installed packages bring.

A package brings commands by an entry point of the group :data:`GROUP`, a mapping from names to
:class:`~isonb.cli.parsers.Command`. Libraries are imported by the command that needs them, so help and errors of
spelling come at once.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import NoReturn, TextIO, cast

from isonb import __version__
from isonb.cli.audits import add_audit, run_audit
from isonb.cli.parsers import Command
from isonb.errors import CODE, DependencyError, InputError, fail, install_line, missing, on_a_screen
from isonb.runtime.terminal import Terminal, printable

GROUP = "isonb.commands"
LAB = ("run", "sweep", "status", "collect", "compare", "plan", "tasks", "list")  # of isonb-lab

CLOUDS = " (it compares runs; two files of vectors: isonb audit X --compare Y)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0, 1 (failed runs, a condition held), 2 (bad input), 3 (an error that nobody foresaw) or 130 (stopped).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and arguments[:1] == ["audit"]:  # a short process of ours: nothing that it makes need be collected
        gc.set_threshold(1_000_000)  # else the collector walks the objects of torch and numba again and again
        atexit.register(gc.freeze)  # and at the end once more
    with contextlib.redirect_stdout(cast(TextIO, Terminal(sys.stdout))):
        return _answered(arguments)


@functools.cache
def commands() -> dict[str, Command]:
    """The commands by name: the audit, then those of installed packages."""
    available = {"audit": Command(add_audit, run_audit)}
    for entry in metadata.entry_points(group=GROUP):
        available |= entry.load()
    return available


def _answered(arguments: list[str]) -> int:
    try:
        if not arguments:
            _parser().print_help()
            return 0
        options = _parsed(arguments)
        code = commands()[options.command].run(options)
        sys.stdout.flush()
        return code
    except (InputError, ImportError) as error:
        expected = isinstance(error, InputError | DependencyError)
        more = "" if expected else f". The lab's libraries: {install_line('lab')}"
        sentence, *fixes = str(error).split(CODE)
        lines = [
            f"error: {on_a_screen(' '.join(sentence.split()) + more)}",
            *(f"    {' '.join(line.split())}" for line in fixes),
        ]
        print("\n".join(map(printable, lines)), file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has left, as "| head" does; nor is there anybody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        resumable = arguments[:1] in (["run"], ["sweep"]) or any(word.startswith("--work") for word in arguments)
        print("stopped; the same command goes on from here" if resumable else "stopped", file=sys.stderr)
        return 130
    except Exception:  # a fault of isonb: an exit code of its own, since 1 says that a condition held
        traceback.print_exc()
        return 3


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are those of isonb: one line."""

    def error(self, message: str) -> NoReturn:
        """Raise it."""
        raise InputError(f"{message}. {self.prog} --help shows what there is")


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The words as options. What is left over after ``-o weight`` was meant as its value."""
    if arguments[0] in LAB and arguments[0] not in commands():
        raise missing(f"isonb {arguments[0]}{CLOUDS if arguments[0] == 'compare' else ''}", "isonb-lab", "lab")
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    for flag, attribute in (("-o", "option"), ("--set", "set")):
        names = [word for word in getattr(options, attribute, ()) if "=" not in word]
        if rest and names:
            fix = f"Write {flag} {names[0]}={rest[0]}."
            fail(InputError, f"{flag} must be NAME=VALUE", f"{names[0]!r} and {rest[0]!r}", fix)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}{CLOUDS if options.command == 'compare' else ''}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="isonb",
        description="Isotropy of embedding spaces: audits, and with isonb-lab the papers' experiments.",
        epilog="isonb COMMAND --help shows a command's options and examples. Start with: isonb audit vectors.npy",
    )
    parser.add_argument("--version", action="version", version=f"isonb {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in commands().items():
        command.add(name, subparsers)
    return parser

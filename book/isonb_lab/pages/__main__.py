"""The command line of the book: ``python -m isonb_lab.pages``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from isonb.runtime.files import DiskError, update
from isonb_lab.pages import lint
from isonb_lab.pages.build import build
from isonb_lab.pages.chapters import Book, Chapter
from isonb_lab.pages.errors import ChapterError, PageError
from isonb_lab.pages.notebooks.plain import readable
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.notebooks.slides import write_slides
from isonb_lab.pages.notebooks.student import write_copies, write_students
from isonb_lab.pages.run import Job, execute

EXAMPLES = """examples:
  python -m isonb_lab.pages build                              run what must run, then the HTML
  python -m isonb_lab.pages build --smoke                      the same with each chapter's smoke parameters
  python -m isonb_lab.pages params barcodes                    which parameters a chapter takes
  python -m isonb_lab.pages execute clouds_and_cones -p draws 20  one run with a parameter, into runs/
  python -m isonb_lab.pages student barcodes                   a notebook with empty solutions, in _build/student
  python -m isonb_lab.pages slides                             slides of the lessons, in _build/slides
  python -m isonb_lab.pages lint --fix                         check the sources; spell them as Jupyter saves them
"""
COMMANDS = {
    "build": ("lint, run, and build _build/html", "--jobs --force --smoke --quiet"),
    "execute": ("run chapters without building pages", "--jobs --force --smoke --quiet -p chapters"),
    "lint": ("check the sources of the chapters", "--fix chapters"),
    "play": ("write copies of the notebooks, to play with, to _build/lab", "--force chapters"),
    "student": ("write notebooks with empty solutions to _build/student", "--force chapters"),
    "slides": ("write the slides of the lessons, once they have run, to _build/slides", ""),
    "params": ("list a chapter's parameters", "chapter"),
}
CHAPTER: dict[str, Any] = {"metavar": "CHAPTER", "help": "a page of _toc.yml, or a unique end of its name"}
PAIR = {"nargs": 2, "action": "append", "default": [], "metavar": ("NAME", "VALUE")}
OPTIONS: dict[str, dict[str, Any]] = {
    "--jobs": {"type": int, "metavar": "N", "help": "chapters side by side (default: one a core)"},
    "--force": {"action": "store_true", "help": "run again what has run, overwrite what was edited or worked in"},
    "--smoke": {"action": "store_true", "help": "each chapter's smoke parameters: quick, small numbers"},
    "--quiet": {"action": "store_true", "help": "no progress bar"},
    "--fix": {"action": "store_true", "help": "rewrite them as Jupyter would save them"},
    "-p": {**PAIR, "help": "set a parameter of one chapter; the notebook goes to runs/"},
    "chapters": {**CHAPTER, "nargs": "*"},
    "chapter": {**CHAPTER, "dest": "chapters", "nargs": 1},
}


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="python -m isonb_lab.pages",
        description="Run the chapters of the book and build its pages.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--root", type=Path, default=Path(), help="folder with _toc.yml (default: here)")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (help_text, options) in COMMANDS.items():
        command = commands.add_parser(name, help=help_text)
        for option in options.split():
            command.add_argument(*([option] if option != "chapter" else []), **OPTIONS[option])
    return top


def _parameters(arguments: argparse.Namespace, chapter: Chapter) -> dict[str, object]:
    return {**(chapter.smoke if arguments.smoke else {}), **dict(getattr(arguments, "p", []))}


def _execute(book: Book, chapters: Sequence[Chapter], arguments: argparse.Namespace) -> str:
    if arguments.p and len(chapters) != 1:
        raise ChapterError(f"-p sets a parameter of one chapter; {len(chapters)} are named. Name one.")
    jobs = [Job(book, c, c.validate(_parameters(arguments, c))) for c in chapters]
    execute(jobs, workers=arguments.jobs, force=arguments.force, progress=not arguments.quiet)
    if not (arguments.p or arguments.smoke):
        return f"{len(jobs)} chapters have run. Next: python -m isonb_lab.pages build"
    lines = []
    for job in jobs:
        target = book.root / "runs" / f"{job.chapter.slug}-{job.key[:8]}.ipynb"
        update(target, nbformat.writes(readable(job, Index(book))) + "\n")
        lines.append(str(target.relative_to(book.root)))
    return "Open: " + ", ".join(lines)


def _run(book: Book, arguments: argparse.Namespace) -> str:
    """Do what a command says; what to print."""
    chapters = book.pick(getattr(arguments, "chapters", []))
    match arguments.command:
        case "execute":
            return _execute(book, chapters, arguments)
        case "build":
            lint.check(chapters)
            values = {chapter.name: _parameters(arguments, chapter) for chapter in chapters}
            page = build(book, values, workers=arguments.jobs, force=arguments.force, progress=not arguments.quiet)
            return f"Open {page.relative_to(book.root)} in a browser; no network is needed."
        case "lint":
            for chapter in lint.fix(chapters) if arguments.fix else []:
                print(f"rewrote {chapter.name}.md")
            chapters = Book(book.root).pick(arguments.chapters)
            lint.check(chapters)
            lint.check_style(chapters)
            return f"{len(chapters)} chapters keep the rules."
        case "student":
            paths = write_students(book, chapters, force=arguments.force)
            return f"{len(paths)} notebooks without solutions are in _build/student."
        case "play":
            edited = [str(path.relative_to(book.root)) for path in write_copies(book, chapters, force=arguments.force)]
            text = f" Kept as you left them: {', '.join(edited)}." if edited else ""
            return f"Open _build/lab/start.ipynb in JupyterLab.{text}"
        case "slides":
            page = write_slides(book)
            return f"Open {page.relative_to(book.root)} in a browser; no network is needed."
        case _:  # params
            shown = [f"{p.name} = {p.default!r}\t{p.domain}\t{p.help}" for p in chapters[0].parameters]
            return "\n".join(shown).expandtabs(24) or "This chapter has no parameters."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command: 0 when it went well, 1 with a message when not, 130 after Ctrl-C."""
    arguments = parser().parse_args(argv)
    try:
        print(_run(Book(arguments.root.resolve()), arguments))
    except (PageError, DiskError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. Chapters that had finished are kept; the same command goes on from there.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The command line of the book: ``python -m isonb.pages``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat

from isonb.pages import lint
from isonb.pages.build import build
from isonb.pages.chapters import Book, Chapter
from isonb.pages.errors import ChapterError, PageError
from isonb.pages.notebooks.handed_out import write_copies
from isonb.pages.notebooks.pair import pair, readable
from isonb.pages.notebooks.slides import write_slides
from isonb.pages.notebooks.student import write_students
from isonb.pages.notebooks.words import Index
from isonb.pages.run import Job, clean_build, execute
from isonb.runtime.files import DiskError, update

EXAMPLES = """examples:
  python -m isonb.pages build                              run what must run, then the HTML
  python -m isonb.pages build --smoke                      the same with each chapter's smoke parameters
  python -m isonb.pages params barcodes                    which parameters a chapter takes
  python -m isonb.pages execute barcodes -p corpus 100     one run with a parameter, into runs/
  python -m isonb.pages student barcodes                   a notebook with empty solutions, in _build/student
  python -m isonb.pages slides                             slides of the pictures of all chapters, in _build/slides
  python -m isonb.pages lint --fix                         check the sources; spell them as Jupyter saves them
"""


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="python -m isonb.pages",
        description="Run the chapters of the book and build its pages.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--root", type=Path, default=Path(), help="folder with _toc.yml (default: here)")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    made = commands.add_parser("build", help="lint, run, and build _build/html")
    ran = commands.add_parser("execute", help="run chapters without building pages")
    for command in (made, ran):
        command.add_argument("--jobs", type=int, metavar="N", help="chapters side by side (default: one a core)")
        command.add_argument("--force", action="store_true", help="run again what has run already")
        command.add_argument(
            "--smoke", action="store_true", help="each chapter's smoke parameters: quick, small numbers"
        )
        command.add_argument("--quiet", action="store_true", help="no progress bar")
    ran.add_argument("chapters", nargs="*", metavar="CHAPTER", help="a page of _toc.yml, or a unique end of its name")
    help_p = "set a parameter of one chapter; the notebook goes to runs/"
    ran.add_argument("-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help=help_p)
    checked = commands.add_parser("lint", help="check the sources of the chapters")
    checked.add_argument("--fix", action="store_true", help="rewrite them as Jupyter would save them")
    paired = commands.add_parser("pair", help="write the .ipynb beside each .md, to open in JupyterLab")
    paired.add_argument("--keep", action="store_true", help="write edits of the notebooks into their sources first")
    paired.add_argument("--force", action="store_true", help="also overwrite notebooks edited by hand")
    played = commands.add_parser("play", help="write copies of the notebooks, to play with, to _build/lab")
    played.add_argument("--force", action="store_true", help="also overwrite copies that were worked in")
    given = commands.add_parser("student", help="write notebooks with empty solutions to _build/student")
    given.add_argument("--force", action="store_true", help="also overwrite notebooks that were worked in")
    shown = commands.add_parser(
        "slides", help="write slides of the pictures of chapters that have run to _build/slides"
    )
    shown.add_argument("--smoke", action="store_true", help="of the runs with smoke parameters")
    for command in (checked, paired, played, given, shown):
        command.add_argument("chapters", nargs="*", metavar="CHAPTER")
    commands.add_parser("params", help="list a chapter's parameters").add_argument(
        "chapters", nargs=1, metavar="CHAPTER"
    )
    commands.add_parser("clean", help="remove _build and the generated notebooks")
    return top


def _parameters(book: Book, arguments: argparse.Namespace, chapter: Chapter) -> dict[str, object]:
    given: dict[str, object] = dict(chapter.smoke) if arguments.smoke else {}
    return {**given, **dict(getattr(arguments, "p", []))}


def _execute(book: Book, arguments: argparse.Namespace) -> str:
    chapters = book.pick(arguments.chapters)
    if arguments.p and len(chapters) != 1:
        raise ChapterError(f"-p sets a parameter of one chapter; {len(chapters)} are named. Name one.")
    jobs = [Job(book, c, c.validate(_parameters(book, arguments, c))) for c in chapters]
    execute(jobs, workers=arguments.jobs, force=arguments.force, progress=not arguments.quiet)
    if not (arguments.p or arguments.smoke):
        return f"{len(jobs)} chapters have run. Next: python -m isonb.pages build"
    lines = []
    for job in jobs:
        target = book.root / "runs" / f"{job.chapter.slug}-{job.key[:8]}.ipynb"
        update(target, nbformat.writes(readable(job, Index(book))) + "\n")
        lines.append(str(target.relative_to(book.root)))
    return "Open: " + ", ".join(lines)


def _build(book: Book, arguments: argparse.Namespace) -> str:
    lint.check(book.chapters)
    values = {chapter.name: _parameters(book, arguments, chapter) for chapter in book.chapters}
    index = build(book, values, workers=arguments.jobs, force=arguments.force, progress=not arguments.quiet)
    return f"Open {index.relative_to(book.root)} in a browser; no network is needed."


def _lint(book: Book, arguments: argparse.Namespace) -> str:
    chapters = book.pick(arguments.chapters)
    if arguments.fix:
        for chapter in lint.fix(chapters):
            print(f"rewrote {chapter.name}.md")
        chapters = Book(book.root).pick(arguments.chapters)
    lint.check(chapters)
    lint.check_style(chapters)
    return f"{len(chapters)} chapters keep the rules."


def _run(book: Book, arguments: argparse.Namespace) -> str:
    if arguments.command == "execute":
        return _execute(book, arguments)
    if arguments.command == "build":
        return _build(book, arguments)
    if arguments.command == "lint":
        return _lint(book, arguments)
    if arguments.command == "clean":
        clean_build(book)
        return "Removed _build and the generated notebooks."
    chapters = book.pick(arguments.chapters)
    if arguments.command == "student":
        made = write_students(book, chapters, force=arguments.force)
        return f"{len(made)} notebooks without solutions are in {(book.build / 'student').relative_to(book.root)}."
    if arguments.command == "play":
        kept = [path.relative_to(book.root).as_posix() for path in write_copies(book, chapters, force=arguments.force)]
        told = f" Kept as you left them: {', '.join(kept)}." if kept else ""
        return f"Open {(book.build / 'lab' / 'start.ipynb').relative_to(book.root)} in JupyterLab.{told}"
    if arguments.command == "slides":
        index = write_slides(book, chapters, {c.name: _parameters(book, arguments, c) for c in chapters})
        return f"Open {index.relative_to(book.root)} in a browser; no network is needed."
    if arguments.command == "params":
        shown = [f"{p.name} = {p.default!r}\t{p.rule}\t{p.help}" for p in chapters[0].parameters]
        return "\n".join(shown).expandtabs(24) or "This chapter has no parameters."
    words = Index(book)
    for chapter in chapters:
        pair(chapter, force=arguments.force, kept=arguments.keep, index=words)
    return f"{len(chapters)} notebooks stand beside their sources. Edit them with: make edit"


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

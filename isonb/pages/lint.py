"""The rules every chapter keeps, checked on its source alone: no kernel, a few seconds for the whole book."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

import jupytext

from isonb.pages import style
from isonb.pages.chapters import Chapter
from isonb.pages.errors import LintError, ParameterError
from isonb.pages.pair import canonical
from isonb.pages.reading import time_rule
from isonb.pages.visible import visible_rule
from isonb.runtime.files import update

__all__ = ["HEADINGS", "OVERVIEW", "check", "fix", "problems"]

HEADINGS = (
    "The question",
    "The idea",
    "Definition",
    "On a real model",
    "The experiment",
    "Ours beside theirs",
    "What this does not show",
    "Exercises",
    "Summary",
    "References",
)
OVERVIEW = ("What this does not show",)  # of a page that gathers what other chapters found
CHECK = "pages.check_parameters()"
BOX = ("You will learn", "Prerequisites", "Time")
EXERCISE = re.compile(
    r"^[`:]{3,}\{exercise(?:-start)?\}(?P<title>[^\n]*)\n(?P<options>(?::[^\n]*\n)*)(?P<body>.*?)^[`:]{3,}\{exercise-end\}",
    re.MULTILINE | re.DOTALL,
)
GRADE = re.compile(r"\S · (?:easy|medium|hard)$")  # how its title ends
SOLUTION = re.compile(
    r"^[`:]{3,}\{solution-start\} *(?P<label>\S+)[^\n]*\n(?P<options>(?::[^\n]*\n)*)"
    r"(?P<body>.*?)^[`:]{3,}\{solution-end\}",
    re.MULTILINE | re.DOTALL,
)
PICTURE = re.compile(r"^[`:]{3,}\{(?:figure|image)\}[^\n]*\n(?P<options>(?::[^\n]*\n)*)", re.MULTILINE)


def _prose(chapter: Chapter) -> str:
    return "\n\n".join(cell.source for cell in chapter.cells.cells if cell.cell_type == "markdown")


def _headings(text: str) -> list[tuple[int, str]]:
    """(level, title) of each heading outside fences."""
    found, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r"(`{3,}|~{3,}|:{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif fence and line.startswith(fence):
            fence = ""
        elif not fence and (head := re.match(r"(#{1,6}) +(.+)", line)):
            found.append((len(head[1]), head[2].strip()))
    return found


def _overview(chapter: Chapter) -> bool:
    """Whether the page only gathers what other chapters found (front matter ``isonb: {overview: true}``).

    It teaches nothing of its own, so it has no parts to learn from: no box, no exercises, no control to play with.
    """
    return bool(chapter.cells.metadata.get("isonb", {}).get("overview", False))


def _parameters(chapter: Chapter) -> Iterator[str]:
    try:
        _ = chapter.smoke
    except ParameterError as error:
        yield str(error).removeprefix(f"{chapter.name}: ")
        return
    tagged = ["parameters" in cell.metadata.get("tags", []) for cell in chapter.code]
    below = chapter.code[tagged.index(True) + 1 :][:1]
    if not any(CHECK in cell.source.splitlines() for cell in below):
        yield f"the cell below the parameters must have {CHECK}, so that they are checked wherever it runs"


def _template(chapter: Chapter) -> Iterator[str]:
    text = _prose(chapter)
    heads = _headings(text)
    if [level for level, _ in heads].count(1) != 1 or heads[0][0] != 1:
        yield "the page must begin with its one title (# Title)"
    wanted = OVERVIEW if _overview(chapter) else HEADINGS
    titles = [title for level, title in heads if level == 2]
    missing = [title for title in wanted if title not in titles]
    if missing:
        yield f"headings are missing: {', '.join('## ' + title for title in missing)}"
    elif [title for title in titles if title in wanted] != list(wanted):
        yield f"headings must stand once each, in this order: {', '.join(wanted)}"
    if _overview(chapter):
        return
    question = text.partition("## The question")[2].partition("\n## ")[0]
    if absent := [word for word in BOX if word not in question]:
        yield f"the box under the question must say {', '.join(BOX)}; it lacks {', '.join(absent)}"


class _Calls(ast.NodeVisitor):
    """The calls of a cell: ``found`` holds (name, call, whether it runs with the cell, not inside a function)."""

    def __init__(self, source: str) -> None:
        self.found: list[tuple[str, ast.Call, bool]] = []
        self.depth = 0
        lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
        self.visit(ast.parse("\n".join(lines)))

    def _inside(self, node: ast.AST) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _inside

    def visit_Call(self, node: ast.Call) -> None:
        """Note the call and look into it."""
        self.found.append((ast.unparse(node.func), node, self.depth == 0))
        self.generic_visit(node)


def _calls(chapter: Chapter) -> Iterator[tuple[int, dict[str, object], list[tuple[str, ast.Call, bool]]]]:
    for number, cell in enumerate(chapter.code, start=1):
        try:
            yield number, dict(cell.metadata), _Calls(cell.source).found
        except SyntaxError as error:
            raise LintError(f"{chapter.name}: code cell {number} isn't Python: {error}") from None


def _figures(chapter: Chapter) -> Iterator[str]:
    names: list[str] = []
    for number, metadata, calls in _calls(chapter):
        for name, call, _ in calls:
            if name == "pages.show" and not _described(call):
                yield f"code cell {number}: pages.show needs description='what the picture shows'"
        shown = [
            name
            for name, _, here in calls
            if here and (name == "pages.show" or name.split(".")[-1] in ("Image", "SVG"))
        ]
        if not shown:
            continue
        if len(shown) > 1:
            yield f"code cell {number}: one picture a cell, so that each has its own number; it shows {len(shown)}"
        figure = (metadata.get("mystnb") or {}).get("figure") or {}  # type: ignore[attr-defined]
        names.append(str(figure.get("name", "")))
        if not str(figure.get("caption", "")).strip() or not names[-1].startswith("fig-"):
            yield f"code cell {number}: a picture needs 'mystnb: {{figure: {{caption: ..., name: fig-...}}}}'"
    yield from (f"figure name {name} is used twice" for name in sorted({n for n in names if n and names.count(n) > 1}))
    text = _prose(chapter)
    for found in PICTURE.finditer(text):
        if not re.search(r"^:alt: *\S", found["options"], re.MULTILINE):
            yield "a figure or image directive needs ':alt: what the picture shows'"
    if re.search(r"!\[\s*\]\(", text):
        yield "an image needs a text alternative: ![what it shows](file)"


def _described(call: ast.Call) -> bool:
    for keyword in call.keywords:
        if keyword.arg == "description":
            value = keyword.value
            return not (isinstance(value, ast.Constant) and not str(value.value or "").strip())
    return False


def _interaction(chapter: Chapter) -> Iterator[str]:
    if _overview(chapter):
        return
    called = {name for _, _, calls in _calls(chapter) for name, _, _ in calls}
    if not any(name.endswith((".slider", "binding_range")) for name in called):
        yield "at least one picture needs a slider that works without a kernel (pages.slider)"
    if "pages.live" not in called:
        yield "the same control must exist for live sessions (pages.live)"


def _exercises(chapter: Chapter) -> Iterator[str]:
    if _overview(chapter):
        return
    text = chapter.source.read_text(encoding="utf-8")
    solutions = {found["label"]: found for found in SOLUTION.finditer(text)}
    labels = []
    for exercise in EXERCISE.finditer(text):
        named = re.search(r"^:label: *(\S+)", exercise["options"], re.MULTILINE)
        labels.append(named[1] if named else "")
        if not GRADE.search(exercise["title"]):
            yield f"exercise {labels[-1]} needs a title that ends with its grade: ' · easy', ' · medium' or ' · hard'"
        if "} Hint\n" not in exercise["body"]:
            yield f"exercise {labels[-1]} needs a hint, folded, before its end"
    if len(labels) < 2:
        yield f"at least two exercises are needed; there {'is one' if labels else 'are none'}"
    for label in labels:
        solution = solutions.get(label)
        if not label or solution is None:
            yield f"exercise {label or 'without a :label:'} needs its solution-start ... solution-end"
        elif "dropdown" not in solution["options"]:
            yield f"the solution of {label} must be folded: ':class: dropdown'"
        elif "{code-cell}" not in solution["body"]:
            yield f"the solution of {label} must be executed: put a code cell between its start and end"


def _round_trip(chapter: Chapter) -> Iterator[str]:
    text = chapter.source.read_text(encoding="utf-8")
    if canonical(text) != text:
        yield "Jupyter would save this file differently; run: python -m isonb.pages lint --fix"


RULES: tuple[Callable[[Chapter], Iterator[str]], ...] = (
    _parameters,
    _template,
    time_rule,
    _figures,
    _interaction,
    _exercises,
    visible_rule,
    _round_trip,
)


def problems(chapter: Chapter) -> list[str]:
    """Every rule that a chapter breaks, each as ``file: what must hold``."""
    return [f"{chapter.name}.md: {problem}" for rule in RULES for problem in rule(chapter)]


def check(chapters: Sequence[Chapter]) -> None:
    """Raise :class:`LintError` with all that is wrong in these chapters."""
    found = [problem for chapter in chapters for problem in problems(chapter)]
    if found:
        raise LintError("\n".join(found))


def fix(chapter: Chapter) -> bool:
    """Rewrite the source as Jupyter would save it, its Python as ruff formats it. Returns whether it changed."""
    notebook = chapter.fresh()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, source in zip(code, style.formatted(chapter), strict=True):
        cell.source = source
    return update(chapter.source, canonical(jupytext.writes(notebook, fmt="md:myst")))

"""Each rule of the book, broken once in the sample chapter."""

import re

import pytest

from isonb.pages import lint
from isonb.pages.__main__ import main
from isonb.pages.chapters import Book
from isonb.pages.errors import LintError

FIGURE = (
    "---\nmystnb:\n  figure:\n    caption: Points on a circle, cut off by a slider.\n"
    "    name: fig-sample\ntags: [hide-input]\n---\n"
)
SHOW = 'pages.show(chart, description="Points on a circle in two kinds; the slider hides the later ones.")'
HERE = 'print(__import__("os").getcwd())'
BREAKS = {
    "grammar": ("n: int = 40  # points; range 5..500", "n = 40", "a parameter line must read"),
    "no parameters": (":tags: [parameters]\n\n", "", "exactly one cell must be tagged parameters"),
    "unchecked": ("pages.check_parameters()", "1", "the cell below the parameters must have pages.check_parameters()"),
    "smoke": ("n: 20", "n: 2", "must be int, 5..500; got 2"),
    "smoke name": ("n: 20", "m: 20", "no parameter is called m"),
    "title": ("# A sample chapter\n", "## A sample chapter\n", "begin with its one title"),
    "heading": ("## Definition\n", "## Definitions\n", "headings are missing: ## Definition"),
    "order": ("## Summary\n\nIt works.\n\n## References", "## References\n\nIt works.\n\n## Summary", "in this order"),
    "box": ("**Time** a minute.", "", "it lacks Time"),
    "caption": (FIGURE, "", "a picture needs 'mystnb"),
    "name": ("name: fig-sample", "name: sample", "a picture needs 'mystnb"),
    "two pictures": (SHOW, f"{SHOW}\n{SHOW}", "one picture a cell"),
    "alt text": ("Much.", "![](picture.png)", "an image needs a text alternative"),
    "figure alt": ("Much.", "```{image} picture.png\n```", "needs ':alt:"),
    "slider": ("pages.slider(", "alt.param(", "a slider that works without a kernel"),
    "live": ("pages.live(draw, k=(1, n))", "draw(3)", "must exist for live sessions"),
    "one exercise": ("```{exercise-start} Two · easy\n:label: ex-two\n```\n", "", "at least two exercises"),
    "no hint": ("```{admonition} Hint", "```{admonition} Note", "exercise ex-one needs a hint"),
    "no solution": ("```{solution-start} ex-two", "```{solution-start} ex-three", "exercise ex-two needs its solution"),
    "open solution": ("ex-two\n:class: dropdown\n", "ex-two\n", "must be folded"),
    "solution not run": ("```{code-cell} ipython3\n2 + 2\n```\n", "Four.\n", "must be executed"),
    "spelling": ("isonb:\n  smoke:\n    n: 20\n", "isonb: {smoke: {n: 20}}\n", "lint --fix"),
    "long cell": (HERE, "\n".join([HERE] * 12), "an open cell has at most 12 lines of 80 columns; it has 15 lines"),
    "wide cell": (HERE, f"{HERE}  # {'x' * 60}", "lines of up to 96. Fold it"),
    "syntax": ("1 + 1", "1 +", "isn't Python"),
}


def test_the_sample_keeps_every_rule(book, capsys):
    assert lint.problems(book.chapters[0]) == []
    assert main(["--root", str(book.root), "lint"]) == 0
    assert "1 chapters keep the rules." in capsys.readouterr().out


@pytest.mark.parametrize("rule", BREAKS)
def test_a_broken_rule_is_named(book, rule):
    old, new, message = BREAKS[rule]
    source = book.root / "book" / "sample.md"
    text = source.read_text(encoding="utf-8")
    assert old in text
    source.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(LintError) as caught:
        lint.check(Book(book.root).chapters)
    assert message in str(caught.value)
    assert "book/sample" in str(caught.value)


def test_an_overview_needs_no_parts_to_learn_from(book):
    """It says what it doesn't show; figures, parameters and spelling are checked as anywhere."""
    source = book.root / "book" / "sample.md"
    text = source.read_text(encoding="utf-8").replace("isonb:\n  smoke:", "isonb:\n  overview: true\n  smoke:")
    for rule in ("heading", "box", "slider", "live", "one exercise", "open solution"):
        old, new, _ = BREAKS[rule]
        assert old in text
        text = text.replace(old, new)
    source.write_text(text, encoding="utf-8")
    assert lint.problems(Book(book.root).chapters[0]) == []
    for old, message in (("## What this does not show", "## What this does not show"), (FIGURE, "a picture needs")):
        source.write_text(text.replace(old, ""), encoding="utf-8")
        assert any(message in problem for problem in lint.problems(Book(book.root).chapters[0]))


def test_fix_spells_the_source_as_jupyter_would(book, capsys):
    source = book.root / "book" / "sample.md"
    good = source.read_text(encoding="utf-8")
    spelled = good.replace("isonb:\n  smoke:\n    n: 20\n", "isonb: {smoke: {n: 20}}\n").replace("1 + 1", "1+1")
    source.write_text(spelled, encoding="utf-8")
    assert main(["--root", str(book.root), "lint"]) == 1
    assert main(["--root", str(book.root), "lint", "--fix"]) == 0
    assert "rewrote book/sample.md" in capsys.readouterr().out
    assert source.read_text(encoding="utf-8") == good


def test_a_pages_problem_stops_the_build_before_anything_runs(book, capsys):
    source = book.root / "book" / "sample.md"
    source.write_text(source.read_text(encoding="utf-8").replace("## Summary", "## Sum"), encoding="utf-8")
    assert main(["--root", str(book.root), "build"]) == 1
    assert "LintError" in capsys.readouterr().err
    assert not book.build.exists()


def test_a_long_line_an_unknown_name_and_an_unformatted_cell_are_named_with_their_place(book):
    lint.check_style(book.chapters)
    source = book.root / "book" / "sample.md"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("1 + 1", f'"{"x " * 65}"\n1+1\nno_such_name', 1), encoding="utf-8")
    with pytest.raises(LintError) as caught:
        lint.check_style(Book(book.root).chapters)
    for told in (r"book/sample\.md:cell \d+:1:\d+: E501", r"md:cell \d+:3:1: F821", r"code cell \d+ isn't formatted"):
        assert re.search(told, str(caught.value))

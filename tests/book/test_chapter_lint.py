"""Each rule of the book, broken once in the sample chapter. The book's own chapters are read by ``make lint``."""

import pytest
from reading import rewrite

from isonb_lab.pages import lint
from isonb_lab.pages.__main__ import main
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import LintError

FIGURE = (
    "---\nmystnb:\n  figure:\n    caption: Points on a circle, cut off by a slider.\n"
    "    name: fig-sample\ntags: [hide-input]\n---\n"
)
SHOW = 'pages.show(chart, description="Points on a circle in two kinds; the slider hides the later ones.")'
HERE = 'print(__import__("os").getcwd())'
FOLDED = "```\n\n```{code-cell} ipython3\n:tags: [hide-input]\n\n1\n" * 12
BREAKS = {
    "grammar": ("n: int = 40  # points; range 5..500", "n = 40", "a parameter line must read"),
    "no parameters": (":tags: [parameters]\n\n", "", "exactly one cell must be tagged parameters"),
    "unchecked": ("pages.check_parameters()", "1", "the cell below the parameters must have pages.check_parameters()"),
    "front matter": ("  smoke:\n", "  smok:\n", "must have no names but smoke, early, slides; got smok"),
    "smoke": ("n: 20", "n: 2", "must be int from 5 to 500; got 2"),
    "title": ("# A sample chapter\n", "## A sample chapter\n", "begin with its one title"),
    "limits": ("## What this does not show", "## What it shows", "the page must say what its runs can't"),
    "answer": ("**The answer.**", "", "a numbered page opens with its answer"),
    "words": ("Much.", "Much. " * 2500, "a numbered page has at most 2500 words of prose"),
    "long sentences": ("Much.", f"{'much ' * 31}. " * 3, "sentences pass 30 words"),
    "numbers": ("Much.", "One of 3. " * 151, "a numbered page has at most 150 numbers"),
    "bars": (HERE, f"{HERE}\n{FOLDED}", "at most 12 folded cells; it has 1"),
    "name": ("name: fig-sample", "name: sample", "a picture needs 'mystnb"),
    "two pictures": (SHOW, f"{SHOW}\n{SHOW}", "one picture a cell"),
    "alt text": ("Much.", "![](picture.png)", "an image needs a text alternative"),
    "figure alt": ("Much.", "```{image} picture.png\n```", "needs ':alt:"),
    "live": ("pages.live(draw, k=(1, n))", "draw(3)", "must exist for live sessions"),
    "no hint": ("```{admonition} Hint", "```{admonition} Note", "exercise ex-one needs a hint"),
    "no solution": ("```{solution-start} ex-two", "```{solution-start} ex-three", "exercise ex-two needs its solution"),
    "open solution": ("ex-two\n:class: dropdown\n", "ex-two\n", "must be folded"),
    "spelling": ("isonb:\n  smoke:\n    n: 20\n", "isonb: {smoke: {n: 20}}\n", "lint --fix"),
    "long cell": (HERE, "\n".join([HERE] * 12), "an open cell has at most 12 lines of 80 columns; it has 16 lines"),
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
    rewrite(book.root / "book" / "sample.md", (old, new))
    with pytest.raises(LintError) as caught:
        lint.check(Book(book.root).chapters)
    assert message in str(caught.value)
    assert "book/sample" in str(caught.value)


@pytest.mark.parametrize(
    ("limit", "message"),
    [("ALL", "the numbered pages have at most 2 words together"), ("PAGES", "the book has at most 2 pages; it has 4")],
)
def test_the_book_as_a_whole_is_short(book, monkeypatch, limit, message):
    monkeypatch.setattr(lint, limit, 2)
    with pytest.raises(LintError, match=message):
        lint.check(Book(book.root).chapters)


def test_a_supplement_may_be_long(book):
    """Only the path through the book is kept short; what is seen of any page is checked everywhere."""
    source = book.root / "book" / "sample.md"
    rewrite(source, *(BREAKS[rule][:2] for rule in ("answer", "words")))
    rewrite(book.root / "_toc.yml", ("numbered: true", "numbered: false"))
    assert lint.problems(Book(book.root).chapters[0]) == []
    rewrite(source, (FIGURE, ""))
    assert any("a picture needs" in problem for problem in lint.problems(Book(book.root).chapters[0]))

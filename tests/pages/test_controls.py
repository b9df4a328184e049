"""The live control: a widget with a kernel; in the book its code is run, and nothing of it is shown."""

import altair as alt
import ipywidgets
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from isonb import pages
from isonb.pages.errors import PageError


@pytest.fixture(autouse=True)
def shell():
    InteractiveShell.instance()
    yield
    InteractiveShell.clear_instance()


@pytest.fixture
def book(monkeypatch):
    monkeypatch.setenv("ISONB_BOOK", "1")


def test_with_a_kernel_it_is_a_widget(monkeypatch):
    monkeypatch.delenv("ISONB_BOOK", raising=False)
    seen = []
    widget = pages.live(lambda n: seen.append(n), n=(1, 9, 2))
    assert isinstance(widget, ipywidgets.interactive)
    widget.update()
    widget.children[0].value = 3
    assert seen[-1] == 3


def test_in_the_book_it_runs_once_with_the_defaults_and_shows_nothing(book):
    seen = []

    def draw(n, kind, flag, free):
        seen.append((n, kind, flag, free))
        print("text")
        return alt.Chart()

    free = ipywidgets.FloatSlider(value=0.3, min=0, max=1)
    with capture_output() as shown:
        assert pages.live(draw, n=(10, 50, 10), kind=["a", "b"], flag=True, free=free) is None
    assert seen == [(30, "a", True, 0.3)]
    assert shown.stdout == ""
    assert shown.outputs == []


def test_a_broken_draw_fails_the_build(book):
    with pytest.raises(ZeroDivisionError):
        pages.live(lambda n: 1 / 0, n=(1, 3))


def test_a_returned_picture_is_shown_live(monkeypatch):
    monkeypatch.delenv("ISONB_BOOK", raising=False)
    widget = pages.live(lambda n: f"{n} points", n=(1, 3))
    with capture_output() as shown:
        widget.update()
    assert [output.data["text/plain"] for output in shown.outputs] == ["'2 points'"]


def test_a_draw_that_shows_nothing_is_refused(book):
    with pytest.raises(PageError, match="must show or return something"):
        pages.live(lambda n: None, n=(1, 3))


def test_controls_are_checked(book):
    with pytest.raises(PageError, match="at least one control"):
        pages.live(lambda: 1)
    with pytest.raises(PageError, match="control n must be"):
        pages.live(lambda n: n, n=object())

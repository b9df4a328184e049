"""The live control: a widget with a kernel; in the book its code is run, and nothing of it is shown."""

import altair as alt
import ipywidgets
import nbclient
import pytest
from IPython.utils.capture import capture_output
from nbformat.v4 import new_code_cell, new_notebook

from isonb_lab import pages
from isonb_lab.pages.errors import PageError

pytestmark = pytest.mark.usefixtures("shell")


@pytest.fixture
def book(monkeypatch):
    monkeypatch.setenv("ISONB_BOOK", "1")


def inverse(n):
    return f"{1 / n}"


@pytest.fixture
def live(monkeypatch):
    """Show a live control; the outputs it made, and what they are after its controls were moved."""
    monkeypatch.delenv("ISONB_BOOK", raising=False)

    def show(draw, moves=(), **controls):
        values = dict.fromkeys(controls)

        def keep(name, **options):
            values[name] = ipywidgets.interactive.widget_from_abbrev(controls[name])
            return values[name]

        with capture_output() as first:
            assert pages.live(draw, **{name: keep(name) for name in controls}) is None
        with capture_output() as later:
            for name, value in moves:
                values[name].value = value
        return values, first, later.outputs

    return show


def test_a_chart_has_no_png_while_it_moves(live):
    pages.setup()

    def draw(n):
        pages.show(alt.Chart(alt.Data(values=[{"x": n}])).mark_point().encode(x="x:Q"), description=f"A point at {n}.")

    _, shown, (moved,) = live(draw, [("n", 3)], n=(1, 3))
    assert sorted(shown.outputs[1].data) == sorted(moved.data) == ["application/vnd.vegalite.v5+json", "text/plain"]
    assert moved.data["text/plain"] == "A point at 3." == moved.data["application/vnd.vegalite.v5+json"]["description"]


def test_an_error_is_shown_in_the_place_of_the_picture_and_goes_again(live):
    _, _, later = live(inverse, [("n", 0), ("n", 2)], n=(-1, 3))
    assert "ZeroDivisionError" in later[0].data["text/plain"]
    assert "widgets.py" not in later[0].data["text/plain"]
    assert later[1].data == {"text/plain": "'0.5'"}
    assert later[0].update
    with pytest.raises(ZeroDivisionError):
        live(lambda n: 1 / 0, n=(1, 3))


def test_in_the_book_it_runs_once_with_the_defaults_and_shows_nothing(book):
    calls = []

    def draw(n, kind, flag, free):
        calls.append((n, kind, flag, free))
        return f"{n} {kind}"

    free = ipywidgets.FloatSlider(value=0.3, min=0, max=1)
    with capture_output() as shown:
        assert pages.live(draw, n=(10, 50, 10), kind=["a", "b"], flag=True, free=free) is None
    assert calls == [(30, "a", True, 0.3)]
    assert shown.stdout == ""
    assert shown.outputs == []


@pytest.mark.parametrize("result", ["book", "live"])
def test_a_draw_shows_one_picture(result, request):
    request.getfixturevalue(result)
    with pytest.raises(PageError, match=r"must show or return one picture; \{'n': 2\} gave 0"):
        pages.live(lambda n: None, n=(1, 3))
    with pytest.raises(PageError, match="gave 2"):
        pages.live(lambda n: print(n) or "picture", n=(1, 3))


def test_controls_are_checked(book):
    with pytest.raises(PageError, match="at least one control"):
        pages.live(lambda: 1)
    with pytest.raises(PageError, match="control n must be"):
        pages.live(lambda n: n, n=object())


CELLS = (
    "from isonb_lab import pages",
    *["pages.live(lambda n, kind: f'{n} {kind}', n=(1, 9), kind=['a', 'b'])"] * 20,
    "print('the end')",
)


def test_a_tool_that_runs_notebooks_comes_to_the_end(tmp_path, monkeypatch):
    """Each of many controls could stall it. That papermill does is seen by .ci/lone_notebooks.py."""
    monkeypatch.delenv("ISONB_BOOK", raising=False)
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    options = {"kernel_name": "python3", "timeout": 120, "resources": {"metadata": {"path": tmp_path}}}
    *controls, end = nbclient.NotebookClient(notebook, **options).execute().cells[1:]
    assert end.outputs[0].text == "the end\n"
    for cell in controls:
        box, picture = cell.outputs
        assert "application/vnd.jupyter.widget-view+json" in box.data
        assert picture.data["text/plain"] == "'5 a'"

"""Charts: a description or an error, shown once, the theme in place, and a bundle that notebooks and pages can draw."""

import json

import altair as alt
import pytest
from IPython.utils.capture import capture_output

from isonb_lab import pages
from isonb_lab.pages import vega
from isonb_lab.pages.errors import PageError


@pytest.fixture(autouse=True)
def setup(shell):
    """The theme and the renderer of the pages, which end with each test."""
    before = alt.renderers.active, alt.theme.active
    pages.setup()
    yield
    alt.renderers.enable(before[0])
    alt.theme.enable(before[1])


def chart():
    return alt.Chart(alt.Data(values=[{"x": 1, "y": 2}])).mark_point().encode(x="x:Q", y="y:Q")


@pytest.mark.parametrize("text", ["   ", 3])
def test_a_chart_without_a_description_is_refused(text):
    with pytest.raises(PageError, match="needs a description"):
        pages.show(chart(), description=text)
    with pytest.raises(PageError, match="takes an Altair chart; got str"):
        pages.show("chart", description="A word.")


def test_show_displays_once_with_its_description(shell, monkeypatch):
    monkeypatch.setenv("ISONB_BOOK", "1")
    with capture_output() as shown:
        result = pages.show(chart(), description="One\n  point.")
    (output,) = shown.outputs
    assert output.data["text/plain"] == "One point."
    assert output.data[vega.MIME]["description"] == "One point."
    with capture_output() as again:
        shell.display_formatter.format(result)  # what a cell does with its last line
    assert again.outputs == []
    assert result.to_dict()["description"] == "One point."


def test_live_output_has_a_picture_and_the_book_has_none(monkeypatch):
    spec = chart().properties(description="A point.").to_dict()
    monkeypatch.delenv("ISONB_BOOK", raising=False)
    assert set(vega.render(spec)) == {vega.MIME, "image/png", "text/plain"}
    monkeypatch.setenv("ISONB_BOOK", "1")
    assert set(vega.render(spec)) == {vega.MIME, "text/plain"}


def test_page_html_cannot_be_broken_by_data():
    spec = {"title": "</script><!--<b>", "description": 'a "quoted" <description>'}
    html = vega.page_html(spec)
    data = html.split('type="application/json">')[1].split("</script>")[0]
    assert json.loads(data) == spec
    assert html.count("<script") == html.count("</script>") == 1
    assert "&lt;description&gt;" in html


def test_impossible_controls_are_refused():
    for start, stop, step in ((1, 1, 0.1), (0, 1, 0)):
        with pytest.raises(PageError, match="needs start < stop"):
            pages.slider("cut", start, stop, step=step)
    with pytest.raises(PageError, match="at least one option"):
        pages.option_menu("which", [])
    assert chart().add_params(pages.option_menu("which", ["a", "b"])).to_dict()["params"][0]["value"] == "a"

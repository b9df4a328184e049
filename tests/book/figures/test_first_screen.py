"""The first screen: few words, one picture, no number without it; the README shows the same picture."""

import re

import pytest

import isonb
from isonb.models.loading import encode, load
from isonb_lab.data.corpus import sentences
from isonb_lab.figures import first_screen
from isonb_lab.places import RECORDINGS_FOLDER

ROOT = RECORDINGS_FOLDER.parents[1]


@pytest.fixture(scope="module")
def square():
    return first_screen.square()


def test_soup_and_rain_are_alike_until_the_shared_direction_is_taken_off(square):
    texts = [sentence.text for sentence in sentences()]
    states = encode(load("tiny"), texts, progress=False)
    vectors = isonb.mean_pool(states.hidden_states[-1], states.mask).double().numpy()
    soup, rain = (texts.index(item) for item in ("The soup needs more salt.", "It will rain tomorrow."))
    for view, cloud in (("as they are", vectors), ("shared direction taken off", vectors - vectors.mean(0))):
        x, y = cloud[soup], cloud[rain]
        assert square.pair(view) == pytest.approx(x @ y / (x @ x * y @ y) ** 0.5, abs=1e-9)
    assert (square.texts[0], square.texts[-1]) == (texts[soup], texts[rain])


def test_the_readme_shows_the_square_and_its_number(square):
    assert first_screen.TARGET.read_text(encoding="utf-8") == square.svg() + "\n"
    assert f"a similarity of {square.pair('as they are'):.2f}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_cell_holds_both_views(square):
    drawn = square._repr_html_()
    cells = re.findall(r'<td style="--view-0:([.\d]+);--view-1:([.\d]+)">', drawn)
    assert len(cells) == 64
    assert cells[7] == tuple(f"{square.pair(view):.2f}" for view in ("as they are", "shared direction taken off"))

"""An edit of what is shown, carried to what is written: roles stay, and only what was edited changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isonb.pages.notebooks.markdown import Reader
from isonb.pages.notebooks.two_sided import Piece, raw, reworded, shown

WORDS = {"glue a": "0.41 ± 0.02", "glue b": "3", "cite k": "(Doe, 2020)", "doc other": "[Other](other.ipynb)"}
TEXT = """It rose by {glue}`a` in {glue}`b` of 8 runs {cite}`k`.
See {doc}`other`, and the {glue}`b`rd one.

(here)=
## A head

More of {glue}`b`.
"""
BOX = "```{admonition} Hint\n:class: tip dropdown\nLook at {glue}`a`.\n```\n"


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ("rose", "fell", "fell by {glue}`a`"),
        ("of 8 runs", "of 9 runs, all told,", "{glue}`b` of 9 runs, all told, {cite}`k`"),
        ("0.41 ± 0.02", "0.42 ± 0.02", "It rose by 0.42 ± 0.02 in {glue}`b`"),
        ("(Doe, 2020)", "", "of 8 runs .\nSee {doc}`other`"),
        ("See [Other](other.ipynb), and", "See", "{cite}`k`.\nSee the {glue}`b`rd one.\n\n(here)="),
        ("in 3 of", "in 13 of", "by {glue}`a` in 13 of 8 runs {cite}`k`.\nSee {doc}`other`"),
        ("rd one", "rd two", "the {glue}`b`rd two"),
        (" in 3 of", "\nin 3 of", "by {glue}`a`\nin {glue}`b` of"),
        ("## A head", "## Another head", "(here)=\n## Another head"),
        ("More of 3.", "More of 3, {cite}`z`.", "More of {glue}`b`, {cite}`z`."),
        ("It rose", "3 times it rose", "3 times it rose by {glue}`a` in {glue}`b`"),
    ],
)
def test_an_edit_leaves_the_rest_as_it_was_written(old, new, want):
    pieces = Reader(WORDS).pieces(TEXT)
    assert raw(pieces) == TEXT
    assert shown(pieces).count(old) == 1 or old in ("rose", "It rose")
    edited = reworded(pieces, shown(pieces).replace(old, new, 1))
    assert want in edited
    assert shown(Reader(WORDS).pieces(edited)) == shown(pieces).replace(old, new, 1)


def test_a_box_is_edited_inside_and_goes_as_a_whole():
    text = f"Before.\n\n{BOX}\nAfter.\n"
    pieces = Reader(WORDS).pieces(text)
    plain = shown(pieces)
    assert "<details><summary>Hint</summary>\n\nLook at 0.41 ± 0.02.\n\n</details>\n" in plain
    assert reworded(pieces, plain.replace("Look", "Read it")) == text.replace("Look", "Read it")
    assert reworded(pieces, plain.replace("Hint", "A hint")) == text.replace("} Hint", "} A hint")
    start, end = plain.index("<details>"), plain.index("</details>") + len("</details>\n")
    assert reworded(pieces, plain[:start] + plain[end:]).split() == ["Before.", "After."]
    with pytest.raises(ValueError, match="must leave both ends of a box or take both"):
        reworded(pieces, plain.replace("</details>", ""))


PIECES = st.lists(
    st.one_of(
        st.text("ab .\n", max_size=8).map(lambda text: Piece(text, text)),
        st.tuples(st.text("x", min_size=1, max_size=2), st.text("ab ", min_size=1, max_size=3)).map(
            lambda both: Piece(f"<{both[0]}>", both[1])
        ),
    ),
    max_size=6,
)


def parsed(written, pieces):
    """What is shown of a text that holds pieces of these, found anew: each mark stands for one thing here."""
    for piece in pieces:
        if piece.raw != piece.plain:
            written = written.replace(piece.raw, piece.plain)
    return written


@given(PIECES, st.text("ab .\n", max_size=30))
def test_what_is_written_shows_what_was_edited(pieces, edited):
    marks = [piece for piece in pieces if piece.raw != piece.plain]
    if len({piece.raw for piece in marks}) == len(marks):
        assert parsed(reworded(pieces, edited), pieces) == edited
        assert reworded(pieces, shown(pieces)) == raw(pieces)

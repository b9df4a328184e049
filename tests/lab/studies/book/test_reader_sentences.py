"""What the book says of a classifier and of roundness is bound to the vectors that the classifier reads.

With a pooler it reads neither tokens nor [CLS]. So a paragraph that sets a head, an isotropy and a score beside each
other names what the head reads, by a value ``read...`` of the page.
"""

import re

import pytest

from isonb_lab.methods import reading_place
from isonb_lab.papers import read_where
from isonb_lab.places import BOOK

EXCLUDED = ("the_dial", "the_dial_more")  # a linear head there reads the very vectors that are turned
PAGES = sorted(
    page for part in ("results", "teaching") for page in BOOK.glob(f"{part}/*.md") if page.stem not in EXCLUDED
)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SUBJECTS = {
    "a head": r"\b(classifiers?|(trained|fine-tuned|linear) head)\b",
    "an isotropy": r"\b(rounder|less round|times as round|isotropy|isoscore\w*)\b",
    "a score that moved": r"\b(accuracy|points?|gains?|scores?|costs?)\b",
}
BOUND = "{glue}`read"


def unbound(source):
    """The paragraphs and rows that speak of a head, of isotropy and of a score, and not of what the head reads."""
    results = []
    for block in FENCE.sub("\n\n", source).split("\n\n"):
        for text in block.split("\n") if block.startswith("|") else re.split(r"\n(?=- )", block):
            plain = re.sub(r"\{\w+\}`[^`]*`", " 1 ", text).lower()
            if all(re.search(pattern, plain) for pattern in SUBJECTS.values()) and BOUND not in text:
                results.append(" ".join(text.split())[:90])
    return results


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_paragraph_about_a_classifier_says_what_it_reads(page):
    assert unbound(page.read_text(encoding="utf-8")) == []


def test_the_column_of_read_where_is_what_its_classifiers_read():
    column = f"metric.end.{reading_place('log_isoscore', 'pooler')}.participation_ratio_unbiased"
    assert column == read_where.READ


SENTENCE = "The classifier reads {{glue}}`{}` directions; with rounder tokens the accuracy rises."


def test_a_sentence_without_what_the_head_reads_is_found():
    assert unbound(SENTENCE.format("read-up")) == []
    assert len(unbound(SENTENCE.format("tokens-up"))) == 1
    row = "| a fine-tuned head | tokens twice as round, IsoScore 0.8 | accuracy +0.4 |"
    assert unbound(f"Text.\n\n{row}\n") == [row]
    assert unbound("A cosine gains where the space is rounder.") == []

"""Answers to exercises: the right one passes its check, a wrong one is told what it lacks, none stops a notebook."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import isonb
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import PageError
from isonb_lab.pages.exercises import CHECKS, check
from isonb_lab.statistics.seeds import minimum_detectable

CHAPTERS = Book(Path(__file__).resolve().parents[2]).chapters


def eight_bits(rows, steps=255):
    low, high = rows.min(1, keepdims=True), rows.max(1, keepdims=True)
    return np.round((rows - low) / (high - low) * steps) / steps * (high - low) + low


def seeds(deviation, alpha, target=0.01):
    return next(n for n in range(3, 400) if minimum_detectable(deviation, n, alpha=alpha) <= target)


ANSWERS = {  # label: a right answer, wrong ones
    "ex-cones-constant": ((384 * 0.6 / 0.4) ** 0.5, [1.0, "a lot"]),
    "ex-measuring-half": (lambda d: (d / 2 - 1) / (d - 1), [lambda d: 0.5]),
    "ex-n-rounder": (lambda n: n / (n + 384), [lambda n: n / 384, 0.2]),
    "ex-readers-mean": (
        {"search", "cosine", "mean_cosine"},
        [{"search"}, {"isoscore", "search", "cosine", "mean_cosine"}],
    ),
    "ex-recipes-bars": (
        lambda x: isonb.Whitening().fit(x).transform(x),
        [lambda x: x, isonb.soft_decay, lambda x: isonb.Whitening().fit_transform(x.flip(0).sin())],
    ),
    "ex-dial-root": (
        lambda x: isonb.PartialWhitening(p=0.5).fit_transform(x),
        [lambda x: x, lambda x: isonb.PartialWhitening(p=0.25).fit_transform(x), lambda x: x.sign() * x.abs().sqrt()],
    ),
    "ex-dose-directions": (lambda v: sum(v) ** 2 / sum(x * x for x in v), [len, lambda v: 2 * len(v)]),
    "ex-versus-seeds": (seeds, [lambda s, a: 10, lambda s, a: seeds(s, a) + 1]),
    "ex-audit-int8": (eight_bits, [lambda rows: rows, lambda rows: eight_bits(rows, 15), torch.sign]),
    "ex-training-ceiling": (
        lambda n, d: (n - 2) / (d - 1),
        [lambda n, d: n / d, lambda n, d: 6 / 7, lambda n, d: (n - 2) / (n - 1)],
    ),
}


@pytest.mark.parametrize("label", CHECKS)
def test_a_right_answer_passes_and_a_wrong_one_hears_why(label):
    right, wrong = ANSWERS[label]
    assert repr(check(label, right)) == "1", check(label, right)._repr_markdown_()
    for answer in wrong:
        assert repr(check(label, answer)) == "0"
        assert re.search("Must hold|should hold; got", check(label, answer).text)
    assert check(label, ...).text == "There is no answer."


def test_every_check_stands_in_one_chapter_below_its_exercise():
    sources = [chapter.source.read_text(encoding="utf-8") for chapter in CHAPTERS]
    stands = [label for text in sources for label in re.findall(r'^pages\.check\("([\w-]+)", answer\)$', text, re.M)]
    assert sorted(stands) == sorted(CHECKS)
    assert all(any(f":label: {label}\n" in text and f'check("{label}"' in text for text in sources) for label in stands)
    with pytest.raises(PageError, match="must have a check; got 'ex-none'"):
        check("ex-none", 1)

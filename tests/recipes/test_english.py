"""The embedded suite: promises of each split, no cheap way to the answer, and the rows that ship."""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
from english import suite as recipe
from english.suite import SIZES, SPLITS, TASKS
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from isonb_lab.data import sources
from isonb_lab.data import tasks as shipped

suite = functools.cache(recipe.suite)  # rows are only read here
CLASSIFIED = [name for name, task in TASKS.items() if task.labels]


def texts(row: dict) -> list[str]:
    """The sentences of a row."""
    joined = [row[c] for c in ("sentence", "sentence1", "sentence2") if c in row]
    return joined or [row["context"]]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_rows_are_what_the_registry_says(task, split):
    rows = suite(task, split)
    assert len(rows) == SIZES[split]
    assert all(tuple(row) == TASKS[task].columns for row in rows)
    assert len({json.dumps({k: v for k, v in row.items() if k != "id"}) for row in rows}) == len(rows)
    if "label" in rows[0]:
        assert Counter(row["label"] for row in rows) == {0: len(rows) // 2, 1: len(rows) // 2}
        assert {row["label"] for row in rows} == set(range(len(TASKS[task].labels)))
    for text in (t for row in rows for t in texts(row)):
        assert text == " ".join(text.split())


@pytest.mark.parametrize("task", TASKS)
def test_splits_share_no_sentence_whatever_the_seeds(task):
    every = {
        split: [t for seed in (0, 1) for row in suite(task, split, 60, seed) for t in texts(row)] for split in SPLITS
    }
    for one, two in itertools.combinations(SPLITS, 2):
        assert set(every[one]).isdisjoint(every[two])
    sentences = [t for row in suite(task, "train") for t in texts(row)]
    assert len(set(sentences)) > 0.95 * len(sentences)


def features(row: dict) -> str:
    """The words of a row, each with the column that it stands in."""
    columns = [c for c in ("sentence", "sentence1", "sentence2") if c in row]
    return " ".join(f"{c}:{w}" for c in columns for w in row[c].lower().split())


def shape(row: dict) -> list[float]:
    bags = [set(t.lower().strip(".").split()) for t in texts(row)]
    return [*(len(t.split()) for t in texts(row)), len(bags[0] & bags[-1]) / len(bags[0] | bags[-1])]


@pytest.mark.parametrize("task", [task for task in CLASSIFIED if task != "praise"])  # which is one of words alone
def test_no_cheap_way_to_the_answer(task):
    """Words without order stay below 0.66, lengths and word overlap below 0.65: chance is 0.5 and the truth is 1."""
    train, test = suite(task, "train"), suite(task, "test", 600)
    y, expected = ([row["label"] for row in rows] for rows in (train, test))
    bag = CountVectorizer(token_pattern=r"\S+")
    text = MultinomialNB().fit(bag.fit_transform(map(features, train)), y)
    assert text.score(bag.transform(map(features, test)), expected) < 0.66
    sizes = DecisionTreeClassifier(max_depth=4, random_state=0).fit([shape(r) for r in train], y)
    assert sizes.score([shape(r) for r in test], expected) < 0.65


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_rows_that_ship_are_those_of_the_recipe(task, split):
    reference = shipped.TASKS[f"english_{task}"]
    assert reference.splits == SPLITS
    assert sources.generated_rows(reference, split).to_pylist() == [
        {column: row[column] for column in reference.columns} for row in suite(task, split)
    ]


def test_every_task_of_the_recipe_ships_in_less_than_a_megabyte():
    assert {f"english_{task}" for task in TASKS} | {"english_sts"} == set(shipped.GENERATED)
    assert Path(shipped.__file__).with_name("english.parquet").stat().st_size < 1_000_000

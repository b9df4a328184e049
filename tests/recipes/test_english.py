"""The embedded suite: promises of each split, morphology, truth of the entailments, and no cheap way to the answer."""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from pathlib import Path

import english
import pytest
from english import SIZES, SPLITS, TASKS
from english.entailment import entails
from english.grammar import NP, Clause, say
from english.lexicon import NOUNS, VERBS, Word
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from isonb.lab.data import tasks as shipped

suite = functools.cache(english.suite)  # rows are only read here
CLASSIFIED = [name for name, task in TASKS.items() if task.kind == "classification"]
WORD = {v.lemma: v for v in VERBS}


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
        assert text[0].isupper()
        assert text.endswith(".")


@pytest.mark.parametrize("task", TASKS)
def test_splits_share_no_sentence_whatever_the_seeds(task):
    found = {
        split: {t for seed in (0, 1) for row in suite(task, split, 200, seed) for t in texts(row)} for split in SPLITS
    }
    for one, two in itertools.combinations(SPLITS, 2):
        assert not found[one] & found[two]
    assert len({t for row in suite(task, "train") for t in texts(row)}) > 0.95 * sum(
        len(texts(row)) for row in suite(task, "train")
    )


# A second opinion on entailment: try every small world.
DETS = {
    "every": lambda a, b: bool(a) and a <= b,
    "all": lambda a, b: bool(a) and a <= b,
    "no": lambda a, b: not a & b,
    "a": lambda a, b: bool(a & b),
    "some": lambda a, b: bool(a & b),
    "most": lambda a, b: len(a & b) > len(a - b),
    "two": lambda a, b: len(a & b) >= 2,
    "three": lambda a, b: len(a & b) >= 3,
}


def worlds(n: int):
    """Sets of dogs, spaniels (dogs all), old ones, sleepers and those who sleep quietly (sleepers all)."""
    subsets = [set(c) for k in range(n + 1) for c in itertools.combinations(range(n), k)]
    for dogs, old, sleepers in itertools.product(subsets, repeat=3):
        for spaniels in (s for s in subsets if s <= dogs):
            for quiet in (s for s in subsets if s <= sleepers):
                yield {"dog": dogs, "spaniel": spaniels, "old": old, "sleep": sleepers, "quiet": quiet}


def true_in(clause: Clause, world: dict[str, set[int]]) -> bool:
    restrictor = world[clause.agent.noun.lemma] & (world["old"] if clause.agent.adjective else world["dog"])
    return DETS[clause.agent.det](restrictor, world["quiet" if clause.manner else "sleep"])


def test_entails_agrees_with_all_small_worlds():
    """Sound on every pair; complete where only one thing changes (what the suite makes), determiners kept."""
    old, quiet = Word("old", "old"), Word("quietly", "quiet")
    clauses = [
        Clause(NP(det, NOUNS[noun], det not in ("every", "a"), adjective), WORD["sleep"], manner=manner)
        for det in DETS
        for noun, adjective, manner in itertools.product(("dog", "spaniel"), (None, old), (None, quiet))
    ]
    known = [
        *list(worlds(3))[::7],
        {"dog": {0, 1, 2}, "spaniel": {0, 1}, "old": {0}, "sleep": {0, 1, 2}, "quiet": {0}},
        {"dog": {0, 1, 2}, "spaniel": {0, 1, 2}, "old": {0, 1, 2}, "sleep": {0, 1, 2}, "quiet": {0, 1, 2}},
    ]
    table = {c: [true_in(c, w) for w in known] for c in clauses}
    # "every" and "all" presuppose their noun: worlds without one decide nothing
    for p, h in itertools.product(clauses, repeat=2):
        if p.agent.plural != h.agent.plural and "no" not in (p.agent.det, h.agent.det):
            continue
        held = [
            w for w in range(len(known))
            if known[w]["spaniel"] & known[w]["old"]  # every restrictor has a member
        ]  # fmt: skip
        follows = all(not table[p][w] or table[h][w] for w in held)
        if entails(p, h):
            assert follows, (say(p), say(h))
        elif p.agent.det == h.agent.det and p.agent.det in ("every", "all", "no", "a", "some"):
            assert not follows, (say(p), say(h))


def test_similarity_covers_the_scale():
    scores = [row["score"] for row in suite("similarity", "train")]
    assert all(isinstance(s, float) and 0 <= s <= 5 for s in scores)
    assert all(sum(low <= s < low + 1.001 for s in scores) >= 60 for low in range(5))


def test_answers_stand_where_they_say():
    for row in suite("span", "validation"):
        (text,), (start,) = row["answers"]["text"], row["answers"]["answer_start"]
        assert row["context"][start : start + len(text)] == text
        assert row["question"].endswith("?")
    assert len({row["id"] for row in suite("span", "train")}) == SIZES["train"]


def features(row: dict) -> str:
    return " ".join(
        f"{c}:{w}" for c in ("sentence", "sentence1", "sentence2") if c in row for w in row[c].lower().split()
    )


def shape(row: dict) -> list[float]:
    bags = [set(t.lower().strip(".").split()) for t in texts(row)]
    return [*(len(t.split()) for t in texts(row)), len(bags[0] & bags[-1]) / len(bags[0] | bags[-1])]


@pytest.mark.parametrize("task", [task for task in CLASSIFIED if task != "praise"])  # which is one of words alone
def test_no_cheap_way_to_the_answer(task):
    """Words without order stay below 0.66, lengths and word overlap below 0.65: chance is 0.5 and the truth is 1."""
    train, test = suite(task, "train"), suite(task, "test", 600)
    y, wanted = ([row["label"] for row in rows] for rows in (train, test))
    bag = CountVectorizer(token_pattern=r"\S+")
    words = MultinomialNB().fit(bag.fit_transform(map(features, train)), y)
    assert words.score(bag.transform(map(features, test)), wanted) < 0.66
    sizes = DecisionTreeClassifier(max_depth=4, random_state=0).fit([shape(r) for r in train], y)
    assert sizes.score([shape(r) for r in test], wanted) < 0.65


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_rows_that_ship_are_those_of_the_recipe(task, split):
    known = shipped.TASKS[f"english_{task}"]
    assert known.splits == SPLITS
    assert shipped.generated_rows(known.name, split).to_pylist() == [
        {column: row[column] for column in known.columns} for row in suite(task, split)
    ]


def test_every_task_of_the_recipe_ships_in_less_than_a_megabyte():
    assert {f"english_{task}" for task in TASKS} | {"english_sts"} == set(shipped.GENERATED)
    assert Path(shipped.__file__).with_name("english.parquet").stat().st_size < 1_000_000

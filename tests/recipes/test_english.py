"""The embedded suite: promises of each split, morphology, truth of the entailments, and no cheap way to the answer."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path

import english
import pytest
from english import LARGEST, SIZES, SPLITS, TASKS, SuiteError, majority
from english.acceptability import PHENOMENA, agreement
from english.draw import Draw
from english.entailment import entails
from english.grammar import NP, Clause, Wording, say, share
from english.inference import INFERENCES
from english.lexicon import NOUNS, VERBS, Word, vocabulary
from english.pairs import components, likeness
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


def test_acceptability_and_pairs_share_no_sentence_across_tasks():
    shared = ("acceptability", "paraphrase", "entailment", "similarity")
    train, test = ({t for task in shared for r in suite(task, split) for t in texts(r)} for split in ("train", "test"))
    assert not train & test


def test_the_same_rows_on_every_machine():
    def digest(tasks):
        rows = json.dumps([suite(t, s, 30, 7) for t in tasks for s in SPLITS])
        return hashlib.sha256(rows.encode()).hexdigest()[:16]

    assert digest([task for task in TASKS if task != "praise"]) == "0c700e52692ca993"
    assert digest(["praise"]) == "3765bceeea61573e"


def test_a_smaller_size_is_a_beginning_and_another_seed_is_another_sample():
    assert suite("paraphrase", "train", 20) == suite("paraphrase", "train", 50)[:20]
    assert suite("paraphrase", "train", 20) != suite("paraphrase", "train", 20, seed=1)


def test_vocabulary_and_length():
    told = [t for task in ("acceptability", "entailment") for r in suite(task, "train") for t in texts(r)]
    lengths = {len(t.split()) for t in told}
    every = [t for task in TASKS for r in suite(task, "train") for t in texts(r)]
    assert len(vocabulary()) >= 600
    assert len({word.strip(".,").lower() for t in every for word in t.split()}) > 900
    assert min(lengths) <= 5
    assert 20 <= max(lengths) <= 30
    assert len(lengths) >= 15


def test_forms_of_verbs_and_nouns():
    verbs = {
        "catch": ("catches", "caught", "caught"),
        "study": ("studies", "studied", "studied"),
        "eat": ("eats", "ate", "eaten"),
        "drop": ("drops", "dropped", "dropped"),
        "regret": ("regrets", "regretted", "regretted"),
        "write": ("writes", "wrote", "written"),
    }
    assert {k: (WORD[k].third, WORD[k].past, WORD[k].participle) for k in verbs} == verbs
    nouns = {"wolf": "wolves", "child": "children", "box": "boxes", "person": "people", "bus": "buses"}
    nouns |= {"library": "libraries", "monkey": "monkeys", "knife": "knives", "potato": "potatoes", "mouse": "mice"}
    assert {k: NOUNS[k].plural for k in nouns} == nouns


def test_articles():
    rows = [t.lower().rstrip(".").split() for task in TASKS for r in suite(task, "train") for t in texts(r)]
    pairs = {(a, b) for words in rows for a, b in itertools.pairwise(words) if a in ("a", "an")}
    assert len(pairs) > 100
    odd = {"useful", "honest"}
    assert {b for a, b in pairs if b not in odd and (b[0] in "aeiou") != (a == "an")} == set()
    assert {("a", "honest"), ("an", "useful")}.isdisjoint(pairs)


def test_one_clause_many_wordings():
    dog, cat = NP("the", NOUNS["dog"], True), NP("a", NOUNS["owl"])
    clause = Clause(dog, WORD["bite"], cat, negated=True, present=True)
    assert say(clause) == "The dogs do not bite an owl."
    assert say(clause, Wording(passive=True)) == "An owl is not bitten by the dogs."
    given = Clause(cat, WORD["give"], NP("two", NOUNS["box"], True), NP("the", NOUNS["child"]))
    assert say(given) == "An owl gave two boxes to the child."
    assert say(given, Wording(dative=True)) == "An owl gave the child two boxes."
    assert say(given, Wording(passive=True)) == "Two boxes were given to the child by an owl."


def test_share_ignores_roles_synonyms_and_modifiers():
    one = Clause(NP("the", NOUNS["doctor"]), WORD["help"], NP("a", NOUNS["boy"]))
    two = Clause(NP("some", NOUNS["boy"], True), WORD["assist"], NP("the", NOUNS["physician"]), negated=True)
    assert share(one) == share(two)


@pytest.mark.parametrize("phenomenon", PHENOMENA, ids=lambda f: f.__name__)
def test_good_and_bad_differ(phenomenon):
    """From one seed the bad sentence and the good one are never the same."""
    assert all(phenomenon(Draw(f"{i}"), True) != phenomenon(Draw(f"{i}"), False) for i in range(200))


@pytest.mark.parametrize("inference", INFERENCES, ids=lambda f: f.__name__)
def test_each_kind_of_pair_gives_both_verdicts(inference):
    draw = Draw("both")
    assert {inference(draw, wanted).entailed for wanted in (True, False) for _ in range(60)} == {True, False}


def test_agreement_can_be_seen():
    """No noun looks the same in both numbers, and no verb whose bare form is a past is asked to agree."""
    assert all(n.plural != n.lemma for n in NOUNS.values())
    same = {v.lemma for v in VERBS if v.past == v.lemma}
    assert same
    bad = [agreement(Draw(f"{i}"), False).rstrip(".").split() for i in range(2000)]
    assert not any(same & set(words) and not {"do", "does"} & set(words) for words in bad)


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


def test_likeness():
    chef, boy, girl = (NP("the", NOUNS[n]) for n in ("chef", "boy", "girl"))
    one = Clause(chef, WORD["help"], boy)
    assert likeness(one, Clause(NP("the", NOUNS["cook"]), WORD["assist"], boy)) == 5.0
    swapped = likeness(one, Clause(boy, WORD["help"], chef))
    sister = likeness(one, Clause(chef, WORD["help"], girl))
    other = likeness(one, Clause(NP("two", NOUNS["owl"], True), WORD["sleep"]))
    assert other < swapped < sister < 5.0
    assert other == 0.0
    assert likeness(one, Clause(chef, WORD["help"], boy, negated=True)) == 3.0
    assert components(one)["agent"] == "chef"


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


def test_baselines():
    assert all(TASKS[t].baseline(suite(t, "validation")) == 0.5 for t in CLASSIFIED if TASKS[t].metric == "accuracy")
    assert TASKS["acceptability"].baseline(suite("acceptability", "validation")) == 0.0
    assert 0 < TASKS["span"].baseline(suite("span", "validation")) < 0.4
    answer = [{"context": "The old cat sat. It ran.", "answers": {"text": ["old cat"], "answer_start": [4]}}]
    assert majority("f1", answer) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("irony", "train"), "task must be one of acceptability, paraphrase.*got 'irony'"),
        (("span", "dev"), "split must be one of train, validation, test; got 'dev'"),
        (("span", "train", LARGEST + 1), "size must be an integer from 1 to"),
        (("span", "train", 5, "a"), "seed must be an integer; got 'a'"),
    ],
)
def test_errors_name_what_is_valid(call, said):
    with pytest.raises(SuiteError, match=said):
        english.suite(*call)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_rows_that_ship_are_those_of_the_recipe(task, split):
    known = shipped.TASKS[f"english_{task}"]
    assert known.splits == SPLITS
    assert shipped.GENERATED[known.name](split) == [
        {column: row[column] for column in known.columns} for row in suite(task, split)
    ]


def test_every_task_of_the_recipe_ships_in_less_than_a_megabyte():
    assert {f"english_{task}" for task in TASKS} | {"english_sts"} == set(shipped.GENERATED)
    assert Path(shipped.__file__).with_name("english.parquet").stat().st_size < 1_000_000

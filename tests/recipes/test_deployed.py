"""The dial as one deploys it: what is read is never what is fitted on, and a small study is whole."""

import numpy as np
import pandas as pd
import pytest
from dial import deployed

FIRST, SECOND = ("red", "old", "big", "wet", "far", "new"), ("sea", "hat", "dog", "sun", "tea", "map")
WORDS = [f"{item} {two}" for item in FIRST for two in SECOND]


def pairs(start, count, name="score"):
    first, other = WORDS[start : start + count], WORDS[start + 1 : start + count + 1]
    return {"sentence1": first, "sentence2": other, name: [float(i % 5) for i in range(count)], "subset": ["a"] * count}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """All sets that are read, of a few rows, in the hub's layout."""
    draw = np.random.default_rng(2)
    texts = [" ".join(draw.choice(WORDS, 4)) for _ in range(400)]
    tables = {f"sts/sts{year}/test": pairs(3 * at, 6) for at, year in enumerate(range(12, 17))}
    tables |= {"sts/sickr/test": pairs(18, 6), "sts/stsb/test": pairs(23, 5)}
    tables |= {"glue/stsb/train": pairs(27, 8, "label"), "glue/stsb/validation": pairs(0, 4, "label")}
    for split, at in (("train", 0), ("validation", 60)):
        first, second, label = texts[at : at + 60], texts[at + 60 : at + 120], [i % 2 for i in range(60)]
        paragraphs = [texts[at + i // 2] for i in range(40)]
        tables[f"squad/{split}"] = {"id": list(map(str, range(40))), "title": "t", "context": paragraphs}
        tables[f"squad/{split}"] |= {"question": first[:40], "answers": [{"text": ["a"], "answer_start": [0]}] * 40}
        for task in ("sst2", "cola"):
            tables[f"glue/{task}/{split}"] = {"sentence": texts[at + 100 : at + 160], "label": label}
        tables[f"glue/mrpc/{split}"] = {"sentence1": first, "sentence2": second, "label": label}
        tables[f"glue/qnli/{split}"] = {"question": first, "sentence": second, "label": label}
    tables["sst5/test"] = {"text": texts[300:340], "label": [i % 5 for i in range(40)]}
    tables["text/train"] = {"text": texts * 10}
    for name, columns in tables.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(columns).to_parquet(tmp_path / f"{name}.parquet", index=False)
    monkeypatch.setenv("ISONB_DATA", str(tmp_path))
    for cached in (deployed.squad, deployed.similar, deployed.labelled):
        cached.cache_clear()
    yield tmp_path
    for cached in (deployed.squad, deployed.similar, deployed.labelled):
        cached.cache_clear()


def test_a_pair_is_read_once_and_the_fit_sees_no_sentence_that_is_read(data):
    result = deployed.similar()
    read = [
        frozenset((items.texts[a], items.texts[b]))
        for items in result.values()
        for a, b in zip(items.first, items.second, strict=True)
    ]
    assert len(read) == len(set(read))
    sentences = {text for name in deployed.STS for text in result[name].texts}
    assert not sentences & set(deployed.unread_sentences())
    assert deployed.unread_sentences()


def test_fewer_paragraphs_are_some_of_more(data):
    assert deployed.wikipedia(7) == deployed.wikipedia(20)[:7]


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
def test_a_small_study_is_whole(data, tmp_path, monkeypatch):
    monkeypatch.setattr(deployed, "SIZES", (0.5, 1))
    table = deployed.table("tiny", tmp_path / "cache")
    assert set(table["reader"]) == set(deployed.READERS)
    cell = ["layer", "pool", "reader", "fit", "texts"]
    assert (table.groupby(cell)["turn"].size() % len(deployed.TURNS) == 0).all()
    raw = table[table["turn"] == "raw"]
    assert (raw["gain"] == 0).all()
    assert ((table["gain_low"] <= table["gain"] + 0.2) & (table["gain"] <= table["gain_high"] + 0.2)).all()
    chosen = table[(table["fit"] == "unread") & (table["set"] == "all")].groupby(["pool", "reader"])["chosen"].sum()
    assert (chosen == 1).all()
    assert set(table.loc[table["fit"] == "wikipedia", "texts"]) == {64, 128}

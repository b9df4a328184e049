"""The dial as one deploys it: fits on texts that aren't read, whole passages, p chosen on held-out data.

What is read, by which fits and how it is judged stands in ``book/experiments/deployed_plan.md``.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dial import plan, readers
from dial.encode import SEED, encode_into, texts_folder, versions
from dial.record import write_beside
from dial.study import Turned, gain
from isonb.models.loading import load
from isonb_lab.data.rows import load_task
from isonb_lab.data.sources import read_folder, sample
from isonb_lab.papers.deployed import LAYERS, READERS
from isonb_lab.places import EXPERIMENTS_FOLDER

Array = np.ndarray[Any, Any]
Turn = tuple[str, float]

RAW: Turn = plan.RAW
TURNS: tuple[Turn, ...] = (RAW, *(("whitening", p) for p in (0.0, 0.25, 0.5, 0.75, 1.0)))
TOKENS = 256
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sickr", "stsb_test")
HEADS = {"sst2": "sst2_joint", "cola": "cola", "mrpc": "mrpc", "qnli": "qnli"}
NEIGHBOURS = ("sst2", "cola")
TRAINED, HELD, ASKED = 3000, 0.2, 1000  # training rows of a head, share that chooses p, questions that choose it
SIZES = (0.5, 1, 2, 5, 20)  # paragraphs of Wikipedia a dimension


@dataclass(frozen=True)
class Items:
    """What a reader reads of one set: texts, their places by side, and the answers."""

    texts: tuple[str, ...]
    first: Array
    second: Array | None
    answer: Array


@functools.cache
def squad(split: str, limit: int | None = None) -> Items:
    """Questions of a split of SQuAD, ``limit`` of them drawn; ``answer`` is the row of each one's paragraph."""
    table = read_folder(texts_folder(), "squad", split)
    contexts = table["context"].to_pylist()
    paragraphs = list(dict.fromkeys(contexts))
    place = {text: row for row, text in enumerate(paragraphs)}
    rows = sample(len(contexts), limit, SEED)
    questions = table["question"].to_pylist()
    texts = (*paragraphs, *(questions[row] for row in rows))
    return Items(texts, np.arange(len(rows)) + len(paragraphs), None, np.array([place[contexts[row]] for row in rows]))


def _indexed(columns: Sequence[Sequence[str]], answer: Sequence[float]) -> Items:
    texts = tuple(dict.fromkeys(text for row in zip(*columns, strict=True) for text in row))
    place = {text: row for row, text in enumerate(texts)}
    first, *second = (np.array([place[text] for text in column]) for column in columns)
    return Items(texts, first, second[0] if second else None, np.array(answer))


@functools.cache
def similar() -> dict[str, Items]:
    """The pairs of each set of :data:`STS`, without those that a set before it has; and ``held_out``, of no set."""
    unique: set[frozenset[str]] = set()
    by_name = {}
    for name in (*STS, "held"):
        pairs, scores = [], []
        for task, split in [(name, None)] if name in STS else [("stsb", "train"), ("stsb", "validation")]:
            rows = load_task(task, split=split)
            for mine, other, score in zip(
                rows["sentence1"], rows["sentence2"], rows["score" if name in STS else "label"], strict=True
            ):
                if (pair := frozenset((mine, other))) not in unique:
                    unique.add(pair)
                    pairs.append((mine, other))
                    scores.append(float(score))
        by_name[name] = _indexed(list(zip(*pairs, strict=True)), scores)
    return by_name


@functools.cache
def labelled(name: str, split: str) -> Items:
    """Rows of a head's task: up to :data:`TRAINED` to train on, all to test on."""
    rows = load_task(HEADS[name], split=split, limit=TRAINED if split == "train" else None, seed=SEED)
    return _indexed([rows[column] for column in rows.column_names if column != "label"], rows["label"])


def wikipedia(count: int) -> tuple[str, ...]:
    """Paragraphs of Wikipedia; fewer are some of more."""
    texts = read_folder(texts_folder(), "text", "train")["text"].to_pylist()
    draw = np.random.default_rng(SEED).permutation(len(texts))[:count]
    return tuple(texts[row] for row in draw)


def unread_sentences() -> tuple[str, ...]:
    """Sentences of STS-B's other pairs that stand in no set that is read."""
    read = {text for name in STS for text in similar()[name].texts}
    return tuple(text for text in similar()["held"].texts if text not in read)


class Vectors:
    """The vectors (pools, n, d) of texts at one layer, encoded once into a cache for all layers of an encoder."""

    def __init__(self, encoder: str, cache: Path) -> None:
        self.name, self.cache = encoder, cache / "deployed" / encoder
        self.cache.mkdir(parents=True, exist_ok=True)

    @functools.cached_property
    def encoder(self) -> Any:
        """The model itself, loaded where something isn't in the cache."""
        return load(self.name)

    def of(self, name: str, texts: Sequence[str], layer: int) -> Array:
        """The vectors of a named set of texts."""
        target = self.cache / f"{name}.npy"
        if not target.exists():
            encode_into(target, self.encoder, texts, LAYERS[self.name], TOKENS, self.cache, f"{self.name} {name}")
        vectors = np.load(target, mmap_mode="r")
        return np.asarray(vectors[LAYERS[self.name].index(layer)])


@dataclass(frozen=True)
class Cloud:
    """One layer of an encoder, as its readers ask for it."""

    vectors: Vectors
    layer: int
    pool: int

    def points(self, name: str, texts: Sequence[str]) -> Array:
        """The points (n, d) of a named set of texts."""
        return np.asarray(self.vectors.of(name, texts, self.layer)[self.pool])


def _search(cloud: Cloud, split: str, limit: int | None, turned: Callable[[Array], Array]) -> Array:
    items = squad(split, limit)
    x = turned(cloud.points(f"squad_{split}", items.texts))
    passages = np.arange(len(x) - len(items.first))
    return readers.retrieval(x, items.first, items.answer, passages, f"squad {split}")["retrieval"]


def _pairs(cloud: Cloud, name: str, turned: Callable[[Array], Array]) -> Array:
    items = similar()[name]
    assert items.second is not None
    return readers.similarity(turned(cloud.points(name, items.texts)), items.first, items.second, items.answer, name)


def _rows(x: Array, items: Items) -> Array:
    return x[items.first] if items.second is None else readers.pair_features(x, items.first, items.second)


def _headed(cloud: Cloud, reader: str, name: str, turned: Callable[[Array], Array], held_out: bool) -> Array:
    """A head or neighbours on a task's test rows; ``held_out``: on a fifth of the training rows, trained on others."""
    items = labelled(name, "train")
    train, labels = _rows(turned(cloud.points(f"{name}_train", items.texts)), items), items.answer
    if held_out:
        away = np.arange(len(train)) % round(1 / HELD) == 0
        test, truth, train, labels = train[away], labels[away], train[~away], labels[~away]
    else:
        tested = labelled(name, "validation")
        test, truth = _rows(turned(cloud.points(f"{name}_test", tested.texts)), tested), tested.answer
    read = readers.linear_head if reader == "linear head" else readers.neighbours
    return read(train, labels, test, truth, f"{name} {held_out}")


def outcomes(
    cloud: Cloud, reader: str, turned: Callable[[Array], Array], *, held_out: bool = False
) -> dict[str, Array]:
    """What a reader makes of turned vectors, set by set; ``held_out``: on the data that choose p."""
    if reader == "search":
        split, count = ("train", ASKED) if held_out else ("validation", None)
        return {"squad": _search(cloud, split, count, turned)}
    if reader == "similarity":
        return {name: _pairs(cloud, name, turned) for name in (("held",) if held_out else STS)}
    names = tuple(HEADS) if reader == "linear head" else NEIGHBOURS
    return {name: _headed(cloud, reader, name, turned, held_out) for name in names}


def fits(cloud: Cloud, reader: str) -> Iterator[tuple[str, int, Array]]:
    """The clouds that turns are fitted on: a word, how many texts, the points."""
    if reader == "search":
        for fit, split, limit in (("searched", "validation", None), ("unread", "train", ASKED)):
            items = squad(split, limit)
            count = len(items.texts) - len(items.first)
            yield fit, count, cloud.points(f"squad_{split}", items.texts)[:count]
    elif reader == "similarity":
        texts = unread_sentences()
        yield "unread", len(texts), cloud.points("sts_unread", texts)
    else:
        names = tuple(HEADS) if reader == "linear head" else NEIGHBOURS
        train = [cloud.points(f"{name}_train", labelled(name, "train").texts) for name in names]
        yield "unread", sum(map(len, train)), np.concatenate(train)
    dim = cloud.points("wikipedia_10", wikipedia(10)).shape[1]
    whole = cloud.points("wikipedia", wikipedia(round(SIZES[-1] * dim)))
    for size in SIZES:
        yield "wikipedia", round(size * dim), whole[: round(size * dim)]


def rows_of(vectors: Vectors, layer: int) -> Iterator[dict[str, Any]]:
    """One row for each pooling, reader, fit, turn and set ("all" for the mean): score, gain over raw, interval.

    ``chosen``: whether held-out data choose this turn of the fit "unread".
    """
    for pool, word in enumerate(plan.POOLS):
        cloud = Cloud(vectors, layer, pool)
        for reader in READERS:
            raw = outcomes(cloud, reader, lambda x: np.asarray(x, dtype=np.float32))
            for fit, texts, fitted in fits(cloud, reader):
                dial = Turned(fitted)
                chosen = _chosen(cloud, reader, dial) if fit == "unread" else None
                for turn in TURNS:
                    read = raw if turn == RAW else outcomes(cloud, reader, _by(dial, turn))
                    for name in (*read, "all"):
                        mine, plain = (
                            np.mean(list(by_name.values()), axis=0) if name == "all" else by_name[name]
                            for by_name in (read, raw)
                        )
                        yield {
                            "encoder": vectors.name, "layer": layer, "pool": word, "reader": reader, "fit": fit,
                            "texts": texts, "turn": turn[0], "p": turn[1], "set": name, "score": mine[0],
                            **gain(mine, plain), "chosen": turn == chosen,
                        }  # fmt: skip


def _by(dial: Turned, turn: Turn) -> Callable[[Array], Array]:
    return lambda x: dial.read(x)(turn)


def _chosen(cloud: Cloud, reader: str, dial: Turned) -> Turn:
    scores = {
        turn: float(np.mean([mine[0] for mine in outcomes(cloud, reader, _by(dial, turn), held_out=True).values()]))
        for turn in TURNS
    }
    return max(scores, key=scores.__getitem__)


def table(encoder: str, cache: Path) -> pd.DataFrame:
    """All rows of an encoder."""
    vectors = Vectors(encoder, cache)
    return pd.DataFrame([row for layer in LAYERS[encoder] for row in rows_of(vectors, layer)])


def publish(encoders: Sequence[str], cache: Path, folder: Path) -> None:
    """Read, and publish what was read beside the rows of other encoders."""
    digest = hashlib.sha256((EXPERIMENTS_FOLDER / "deployed_plan.md").read_bytes()).hexdigest()
    path = folder / "scores.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    for encoder in encoders:
        rows = write_beside(path, table(encoder, cache).assign(plan=digest))
        recorded = sorted(rows["encoder"].unique())
        about = {"plan": digest, "rows": len(rows), "encoders": recorded, "versions": versions()}
        (folder / "manifest.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        print(f"{encoder}: {len(rows)} rows in {path}", flush=True)

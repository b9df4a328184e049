"""The study of the dial: every turn read by every reader, gains with paired intervals, best places and their parts."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from isonb.errors import FitWarning, InputError, fail
from isonb.lab.dial import readers
from isonb.lab.dial.encode import LAYERS, POOLS, SIMILARITY, layers_of, read_set
from isonb.lab.dial.readers import ReaderScore
from isonb.measures.registry import measure_all
from isonb.runtime.places import EXPERIMENTS_FOLDER
from isonb.streaming.moments import Moments
from isonb.transforms.turns import (
    DimensionScale,
    MeanShift,
    PartialWhitening,
    SingularDecay,
    Standardise,
)

__all__ = [
    "FULL",
    "PLACES",
    "SHORT",
    "Cell",
    "Turned",
    "best_place",
    "cell",
    "parts_of",
    "plan_digest",
    "read_layer",
    "rows_of",
    "tables_of",
]

Array = np.ndarray[Any, Any]
Turn = tuple[str, float]  # the family and its strength
RAW: Turn = ("raw", 0.0)
PLACES = (-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
SHORT: tuple[Turn, ...] = (RAW, *(("whitening", p) for p in PLACES))
FULL: tuple[Turn, ...] = (
    *SHORT,
    *(("dropped", float(count)) for count in (1, 2, 3, 5, 10)),
    *(("mean", s) for s in (-0.5, 1.0, 3.0)),
    *(("loudest", factor) for factor in (0.0, 3.0)),
    ("standardised", 1.0),
    *(("softdecay", alpha) for alpha in (-0.2, -0.6)),
)
PARTS = ("first token", "mean", "direction 1", "directions 2 and 3", "directions 4 to 10", "the rest")
GROUPS = {"direction 1": (0, 1), "directions 2 and 3": (1, 3), "directions 4 to 10": (3, 10), "the rest": (10, None)}
PART_PLACE = 0.75
TAILS = (0.025, 0.975)
SAMPLED = ("sts12", "sts13", "sts14", "sts15", "sts16", "sickr")
SINGLE, PAIRS = ("sst2_train", "cola_train"), ("mrpc_train", "qnli_train", "qqp_test")
FITTED_ON = {  # the texts of an own fit where one set alone has too few for its dimensions
    **dict.fromkeys(SAMPLED, SAMPLED),
    **dict.fromkeys(("sst2", "cola"), SINGLE),
    **dict.fromkeys(("mrpc", "qnli", "qqp"), PAIRS),
}
HEADS = {"sst2": "single", "cola": "single", "mrpc": "pair", "qnli": "pair"}
READERS = {  # of which sets a reader's score is the mean
    "similarity": SIMILARITY,
    "retrieval": ("squad",),
    "recall at 1": ("squad",),
    "threshold": ("mrpc", "qqp"),
    "neighbours": ("sst2", "cola"),
    "topics": ("squad",),
    "k-means": ("squad",),
    "linear head": tuple(HEADS),
    "hidden layer": ("sst2", "cola"),
    "own topics": ("corpus",),
}
REACHED = ("isoscore", "isoscore_unbiased", "mean_cosine", "anisotropy_1", "explained_variance_3", "rbf_uniformity")


def plan_digest() -> str:
    """sha256 of the plan that was written before the grid ran."""
    return hashlib.sha256((EXPERIMENTS_FOLDER / "dial_plan.md").read_bytes()).hexdigest()


class Turned:
    """Every turn fitted on one cloud (n, d): the eigenvectors are taken once and each strength is set anew."""

    def __init__(self, fitted_on: Array) -> None:
        points = torch.from_numpy(np.asarray(fitted_on, dtype=np.float64))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            moments = Moments().update(points)
            self.dial = PartialWhitening().fit_moments(moments)
            self.others = {
                "mean": MeanShift().fit_moments(moments),
                "loudest": DimensionScale().fit_moments(moments),
                "standardised": Standardise().fit_moments(moments),
                "softdecay": SingularDecay().fit_moments(moments),
            }
        self.mean, self.axes = self.dial.state["mean"], self.dial.state["axes"]

    def read(self, x: Array) -> Callable[[Turn], Array]:
        """Of points (n, d) the turned ones, in float32, up to a rotation that no reader sees."""
        points = torch.from_numpy(np.asarray(x, dtype=np.float64))
        along = (points - self.mean) @ self.axes

        def turned(turn: Turn) -> Array:
            family, strength = turn
            if family == "raw":
                made = points
            elif family == "whitening":
                self.dial.p = strength
                made = along * self.dial.factors()
            elif family == "dropped":
                made = along * (torch.arange(along.shape[1]) >= strength)
            else:
                option = {"mean": "s", "loudest": "factor", "standardised": "p", "softdecay": "alpha"}[family]
                setattr(self.others[family], option, strength)
                made = self.others[family].transform(points)
            return made.float().numpy()

        return turned

    def parts(self, x: Array, done: frozenset[str]) -> Array:
        """Points with some parts of the turn at :data:`PART_PLACE` done, in float32, up to a rotation."""
        values = self.dial.state["values"]
        level = values[10:].mean()
        factor = torch.ones_like(values)
        for part in done & set(GROUPS):
            group = slice(*GROUPS[part])
            factor[group] = (values[group].clamp_min(1e-12 * values[0]) / level) ** (-PART_PLACE / 2)
        made = (torch.from_numpy(np.asarray(x, dtype=np.float64)) - self.mean) @ self.axes * factor
        if "mean" not in done:
            made = made + self.mean @ self.axes
        return made.float().numpy()


@dataclass
class Cell:
    """What all readers made of one layer of one encoder: outcomes by (pool, fit, turn), reader and set."""

    outcomes: dict[tuple[Any, ...], dict[tuple[str, str], ReaderScore]] = field(default_factory=dict)
    isotropy: dict[tuple[Any, ...], dict[str, float | None]] = field(default_factory=dict)

    def add(self, other: Cell) -> None:
        """Take in what was read on other sets."""
        for key, found in other.outcomes.items():
            self.outcomes.setdefault(key, {}).update(found)
            if key not in self.isotropy or "isoscore" not in self.isotropy[key]:
                self.isotropy[key] = other.isotropy.get(key, {})

    def overall(self, key: tuple[Any, ...], reader: str) -> ReaderScore | None:
        """A reader's mean over its sets, if it read them all."""
        found = [self.outcomes[key].get((reader, name)) for name in READERS[reader]]
        return ReaderScore.mean_of([one for one in found if one]) if all(found) else None


Load = Callable[[str], Array]  # a set's vectors (pools, n, d) of the layer
Read = Callable[[Callable[[str], Array], bool], dict[tuple[str, str], ReaderScore]]


def own_fit(load: Load, name: str) -> list[Turned]:
    """The turns of both pools, fitted on the texts that are read under a name (:data:`FITTED_ON`)."""
    vectors = [load(place) for place in FITTED_ON.get(name, (name,))]
    return [Turned(np.concatenate([one[pool] for one in vectors])) for pool in range(len(POOLS))]


def _reading(name: str, heavy: bool) -> Read:
    """How the sets of a name are read, given each set's turned vectors."""
    if name in (*SIMILARITY, "qqp"):
        (place,) = stored(name)
        rows = read_set(place)
        reader, function = ("threshold", readers.threshold) if name == "qqp" else ("similarity", readers.similarity)
        gold = rows["label"] if name == "qqp" else rows["score"]
        return lambda turned, slow: {(reader, name): function(turned(place), rows["first"], rows["second"], gold, name)}
    if name == "squad":
        return _read_squad(read_set(name))
    if name == "corpus":
        rows = read_set(name)
        return lambda turned, slow: {("own topics", name): readers.topics(turned(name), rows["topic"], name)}
    return _read_labelled(name, heavy)


def _read_squad(rows: dict[str, Any]) -> Read:
    passages = np.arange(len(rows["topic"]))

    def read(turned: Callable[[str], Array], slow: bool) -> dict[tuple[str, str], ReaderScore]:
        x = turned("squad")
        made = readers.retrieval(x, rows["first"], rows["second"], passages, "squad")
        found = {(reader, "squad"): outcome for reader, outcome in made.items()}
        found["topics", "squad"] = readers.topics(x[passages], rows["topic"], "topics")
        if slow:
            found["k-means", "squad"] = readers.k_means(x[passages], rows["topic"], "topics")
        return found

    return read


def _read_labelled(name: str, heavy: bool) -> Read:
    train, test = read_set(f"{name}_train"), read_set(f"{name}_test")

    def features(x: Array, rows: dict[str, Any]) -> Array:
        return x[rows["first"]] if HEADS[name] == "single" else readers.pair_features(x, rows["first"], rows["second"])

    def read(turned: Callable[[str], Array], slow: bool) -> dict[tuple[str, str], ReaderScore]:
        vectors = turned(f"{name}_train"), turned(f"{name}_test")
        inputs = features(vectors[0], train), train["label"], features(vectors[1], test), test["label"], name
        found = {("linear head", name): readers.linear_head(*inputs)}
        if HEADS[name] == "single":
            found["neighbours", name] = readers.neighbours(*inputs)
            if slow and heavy:
                found["hidden layer", name] = readers.hidden_layer(*inputs)
        if name == "mrpc":
            pairs = test["first"], test["second"], test["label"], name
            found["threshold", name] = readers.threshold(vectors[1], *pairs)
        return found

    return read


def cell(
    load: Load,
    name: str,
    wikipedia: Sequence[Turned] = (),
    own: Sequence[Turned] = (),
    *,
    heavy: bool = False,
    only: Collection[Turn] | None = None,
) -> Cell:
    """All turns and parts of one layer, read on the sets of one name; ``heavy`` adds the hidden layer.

    ``wikipedia``: turns fitted on the Wikipedia rows, one a pool; without them there is the other fit alone. ``own``:
    those of :func:`own_fit`, taken anew where they aren't given. ``only`` names the turns to read, and leaves out the
    parts.
    """
    made = Cell()
    read = _reading(name, heavy)
    own = own or own_fit(load, name)
    for pool, fit, fitted, turns in _fits(own, wikipedia):
        reads = _Reads(load, fitted, POOLS.index(pool))
        for turn in turns if only is None else [turn for turn in turns if turn in only]:
            reads.turn = turn
            key = (pool, fit, *turn)
            slow = pool == "mean" and fit == "own" and (turn == RAW or turn in _SLOW)
            made.outcomes[key] = read(reads, slow)
            if name in ("stsb_test", "corpus"):
                made.isotropy[key] = _reached(reads(name), whole=slow)
    for order, done in _orders() if only is None else ():
        pool_of_part = int("first token" in done)
        reads = _Reads(load, own[pool_of_part], pool_of_part, done)
        made.outcomes["parts", order, len(done)] = read(reads, False)
    return made


def _reached(x: Array, *, whole: bool) -> dict[str, float | None]:
    """Isotropy by every measure of :data:`REACHED`, or by those that take no time."""
    return measure_all(torch.from_numpy(x).double(), REACHED if whole else ("isoscore", "mean_cosine"))


_SLOW = frozenset(("whitening", p) for p in (0.0, 0.5, 0.75, 1.0, 1.5))  # for readers and measures that take time


class _Reads:
    """The turned vectors of each set that is asked for, its coordinates taken once."""

    def __init__(self, load: Load, fitted: Turned, pool: int, done: frozenset[str] | None = None) -> None:
        self.load, self.fitted, self.pool, self.done, self.turn = load, fitted, pool, done, RAW
        self.known: dict[str, Callable[[Turn], Array]] = {}

    def __call__(self, name: str) -> Array:
        if self.done is not None:
            return self.fitted.parts(self.load(name)[self.pool], self.done)
        if name not in self.known:
            self.known[name] = self.fitted.read(self.load(name)[self.pool])
        return self.known[name](self.turn)


def _fits(own: Sequence[Turned], wikipedia: Sequence[Turned]) -> Iterator[tuple[str, str, Turned, tuple[Turn, ...]]]:
    for fit, turned in (("own", own), ("wikipedia", wikipedia)):
        for pool, fitted in zip(POOLS, turned, strict=False):
            yield pool, fit, fitted, FULL if pool == "mean" and fit == "own" else SHORT


def _orders() -> Iterator[tuple[str, frozenset[str]]]:
    for order, parts in (("first token first", PARTS), ("first token last", PARTS[::-1])):
        for count in range(len(parts) + 1):
            yield order, frozenset(parts[:count])


def _gain(one: ReaderScore, other: ReaderScore, name: str = "gain") -> dict[str, float]:
    """What one outcome is above another, with the interval of the difference on the same draws."""
    low, high = np.quantile(one.draws - other.draws, TAILS)
    return {name: one.score - other.score, f"{name}_low": float(low), f"{name}_high": float(high)}


def rows_of(made: Cell) -> Iterator[dict[str, Any]]:
    """One row for each turn, reader and set ("all" for a reader's mean): score, gain over raw and its interval."""
    for key in made.outcomes:
        if key[0] == "parts":
            continue
        pool, fit, family, strength = key
        for reader, sets in READERS.items():
            for name in (*sets, "all"):
                one, raw = (
                    made.overall(at, reader) if name == "all" else made.outcomes[at].get((reader, name))
                    for at in (key, (pool, fit, *RAW))
                )
                if one is None or raw is None:
                    continue
                shown = made.isotropy.get(key, {})
                place = {"pool": pool, "fit": fit, "turn": family, "strength": strength, "reader": reader, "set": name}
                reached = {measure: shown.get(measure, float("nan")) for measure in REACHED}
                gain = _gain(one, raw)
                yield {**place, "score": one.score, **gain, **reached}


def best_place(made: Cell, pool: str, fit: str, reader: str) -> dict[str, Any] | None:
    """The turn among raw and the places of p with the highest score, its gain, and the interval of both.

    In an interval of places raw counts as p = 0, whose vectors differ by their mean.
    """
    found = [one for turn in SHORT if (one := made.overall((pool, fit, *turn), reader))]
    if len(found) < len(SHORT):
        return None
    scores, draws = np.array([one.score for one in found]), np.stack([one.draws for one in found])
    best, places = int(scores.argmax()), np.array([0.0, *PLACES])
    low, high = np.quantile(places[draws.argmax(0)], TAILS)
    by_turn = dict(zip(SHORT, found, strict=True))
    over = _gain(by_turn["whitening", 1.5], by_turn["whitening", 1.0], "over")
    place = {"pool": pool, "fit": fit, "reader": reader, "raw": scores[0], "score": scores[best]}
    at = {"best_turn": SHORT[best][0], "best": places[best], "best_low": low, "best_high": high}
    return {**place, **at, **_gain(found[best], found[0]), **over}


def parts_of(made: Cell, reader: str) -> Iterator[dict[str, Any]]:
    """What each part of the turn at p = 0.75 adds to a reader's score, in both orders, with intervals."""
    for order, parts in (("first token first", PARTS), ("first token last", PARTS[::-1])):
        steps = [made.overall(("parts", order, count), reader) for count in range(len(parts) + 1)]
        if not all(steps):
            return
        for part, before, after in zip(parts, steps, steps[1:], strict=False):
            if before and after:
                yield {"reader": reader, "order": order, "part": part, "score": after.score, **_gain(after, before)}


def layer_loader(cache: Path, encoder: str, layer: int) -> Load:
    """The vectors (pools, n, d) of a layer, set by set, from the cache."""

    def load(name: str) -> Array:
        vectors = np.load(cache / encoder / f"{name}.npy", mmap_mode="r")
        return np.asarray(vectors[layers_of(encoder, name, len(vectors)).index(layer)])

    return load


def layers_read(encoder: str) -> tuple[int, ...]:
    """The layers of the plan."""
    return tuple(layer for layer in LAYERS[encoder] if encoder != "smollm2" or layer not in (5, 25))


NAMES = (*SIMILARITY, "squad", "qqp", *HEADS, "corpus")


def read_layer(cache: Path, encoder: str, layer: int) -> Cell:
    """Read one layer on every set whose vectors lie in the cache.

    What was read of a set is kept in the cache, so a run that was stopped goes on where it stood.
    """
    load, whole, heavy = layer_loader(cache, encoder, layer), Cell(), layer == layers_read(encoder)[2]
    fits: dict[str | tuple[str, ...], list[Turned]] = {}
    for name in NAMES:
        kept = cache / "cells" / f"{encoder}-{layer}-{name}.pickle"
        needed = {*stored(name), *FITTED_ON.get(name, ()), "wikipedia"}
        if not kept.exists() and all((cache / encoder / f"{one}.npy").exists() for one in needed):
            for texts in ("wikipedia", FITTED_ON.get(name, name)):
                fits[texts] = fits.get(texts) or own_fit(load, "wikipedia" if texts == "wikipedia" else name)
            made = cell(load, name, fits["wikipedia"], fits[FITTED_ON.get(name, name)], heavy=heavy)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.with_suffix(".partial").write_bytes(pickle.dumps((made.outcomes, made.isotropy)))
            kept.with_suffix(".partial").replace(kept)
        if kept.exists():
            whole.add(Cell(*pickle.loads(kept.read_bytes())))
    return whole


def stored(name: str) -> tuple[str, ...]:
    """The sets of texts that are read under a name."""
    return (f"{name}_train", f"{name}_test") if name in HEADS else ("qqp_test",) if name == "qqp" else (name,)


def names_of(wanted: Iterable[str]) -> list[str]:
    """The names of what some readers read. Raises :class:`~isonb.errors.InputError` for a reader that isn't there."""
    wanted = list(wanted)
    if unknown := sorted(set(wanted) - set(READERS)):
        fail(InputError, f"readers must be some of {', '.join(READERS)}", ", ".join(unknown), "Name these.")
    return [name for name in NAMES if any(name in READERS[reader] for reader in wanted)]


def tables_of(made: Cell, encoder: str, layer: int) -> dict[str, pd.DataFrame]:
    """The tables of a layer: scores of turns, best places, and the parts of the gain."""
    fits = [(pool, fit) for pool in POOLS for fit in ("own", "wikipedia")]
    rows = {
        "scores": list(rows_of(made)),
        "best": [row for place in fits for reader in READERS if (row := best_place(made, *place, reader))],
        "parts": [row for reader in READERS for row in parts_of(made, reader)],
    }
    return {
        name: pd.DataFrame([{"encoder": encoder, "layer": layer, **row} for row in found])
        for name, found in rows.items()
    }

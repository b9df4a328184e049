"""The study of the dial: every turn read by every reader, gains with paired intervals, best places and their parts."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dial import plan, readers
from dial.encode import SIMILARITY, layers_of, read_set
from isonb.errors import FitWarning
from isonb.measures.registry import measure_all
from isonb.streaming.moments import Moments
from isonb.transforms.graded import DimensionScale, MeanTranslation, PartialWhitening, SingularDecay, Standardize

Array = np.ndarray[Any, Any]
Turn = tuple[str, float]  # the family and its strength
Key = tuple[str, str, str, float]  # pool, fit and turn
Load = Callable[[str], Array]  # a set's vectors (pools, n, d) of one layer

RAW, PARTS, POOLS = plan.RAW, plan.PARTS, plan.POOLS
SHORT: tuple[Turn, ...] = (RAW, *(("whitening", p) for p in plan.PLACES))
FULL: tuple[Turn, ...] = (
    *SHORT,
    *(("dropped", float(count)) for count in (1, 2, 3, 5, 10)),
    *(("mean", s) for s in (-0.5, 1.0, 3.0)),
    *(("loudest", factor) for factor in (0.0, 3.0)),
    ("standardised", 1.0),
    *(("softdecay", alpha) for alpha in (-0.2, -0.6)),
)
SLOW: tuple[Turn, ...] = (RAW, *(("whitening", p) for p in (0.0, 0.5, 0.75, 1.0, 1.5)))  # where all readers read
ORDERS = {"first token first": PARTS, "first token last": PARTS[::-1]}
GROUPS = {"direction 1": (0, 1), "directions 2 and 3": (1, 3), "directions 4 to 10": (3, 10), "the rest": (10, None)}
KEYS: tuple[Key, ...] = (
    *(("mean", "own", *turn) for turn in FULL),
    *((pool, fit, *turn) for pool, fit in (("mean", "wikipedia"), *((POOLS[1], fit) for fit in ("own", "wikipedia")))
      for turn in SHORT),
    *((POOLS["first token" in parts[:count]], "own", order, float(count))
      for order, parts in ORDERS.items() for count in range(len(PARTS) + 1)),
)  # fmt: skip
ENDS = tuple(key for key in KEYS if key[2:] in (RAW, ("whitening", -1.0), ("whitening", 2.0)))

SAMPLED = ("sts12", "sts13", "sts14", "sts15", "sts16", "sickr")
FITTED_ON = {  # the texts of an own fit that several sets share
    **dict.fromkeys(SAMPLED, SAMPLED),
    **dict.fromkeys(("sst2", "cola"), ("sst2_train", "cola_train")),
    **dict.fromkeys(("mrpc", "qnli", "qqp"), ("mrpc_train", "qnli_train", "qqp_test")),
}
HEADS = ("sst2", "cola", "mrpc", "qnli")
NAMES = (*SIMILARITY, "squad", "qqp", *HEADS, "corpus")
READERS = {  # of which sets a reader's score is the mean
    "similarity": SIMILARITY,
    "retrieval": ("squad",),
    "recall at 1": ("squad",),
    "threshold": ("mrpc", "qqp"),
    "neighbours": ("sst2", "cola"),
    "topics": ("squad",),
    "k-means": ("squad",),
    "linear head": HEADS,
    "hidden layer": ("sst2", "cola"),
    "own topics": ("corpus",),
}
MEASURED = 2000  # texts of a set whose isotropy is measured
TAILS = (0.025, 0.975)


class Turned:
    """Every turn fitted on one cloud (n, d): the eigenvectors are taken once and each strength is set anew."""

    def __init__(self, fitted_on: Array) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            moments = Moments().update(torch.from_numpy(np.asarray(fitted_on, dtype=np.float64)))
            self.dial = PartialWhitening().fit_moments(moments)
            self.others = {
                "mean": (MeanTranslation().fit_moments(moments), "s"),
                "loudest": (DimensionScale().fit_moments(moments), "factor"),
                "standardised": (Standardize().fit_moments(moments), "p"),
                "softdecay": (SingularDecay().fit_moments(moments), "alpha"),
            }
        self.mean, self.axes, self.values = (self.dial.state[name] for name in ("mean", "axes", "values"))

    def read(self, x: Array) -> Callable[[Turn], Array]:
        """Of points (n, d) the turned ones, in float32, up to a rotation that no reader sees."""
        points = torch.from_numpy(np.asarray(x, dtype=np.float64))
        along = (points - self.mean) @ self.axes

        def turned(turn: Turn) -> Array:
            family, strength = turn
            if family == "raw":
                result = points
            elif family == "whitening":
                self.dial.p = strength
                result = along * self.dial.factors()
            elif family == "dropped":
                result = along * (torch.arange(along.shape[1]) >= strength)
            elif family in ORDERS:
                done = ORDERS[family][: int(strength)]
                result = along * self._factors(done) + (0 if "mean" in done else self.mean @ self.axes)
            else:
                transform, option = self.others[family]
                setattr(transform, option, strength)
                result = transform.transform(points)
            return result.float().numpy()

        return turned

    def _factors(self, done: Iterable[str]) -> torch.Tensor:
        """What each direction is multiplied by where some groups of :data:`GROUPS` are turned by its p = 0.75."""
        level, factor = self.values[10:].mean(), torch.ones_like(self.values)
        for part in set(done) & set(GROUPS):
            group = slice(*GROUPS[part])
            factor[group] = (self.values[group].clamp_min(1e-12 * self.values[0]) / level) ** (-plan.PART_PLACE / 2)
        return factor


@dataclass
class Cell:
    """What all readers made of one layer: outcomes by turn, reader and set, and the isotropy of a set at a turn."""

    outcomes: dict[tuple[Key, str, str], Array] = field(default_factory=dict)
    isotropy: dict[tuple[Key, str], dict[str, float | None]] = field(default_factory=dict)

    def of(self, key: Key, reader: str, name: str = "all") -> Array | None:
        """A reader's outcome on a set, or its mean over all its sets if it read them all."""
        if name != "all":
            return self.outcomes.get((key, reader, name))
        per_set = [
            self.outcomes[key, reader, treated]
            for treated in READERS[reader]
            if (key, reader, treated) in self.outcomes
        ]
        return np.mean(per_set, axis=0) if len(per_set) == len(READERS[reader]) else None

    def reached(self, key: Key, names: Iterable[str]) -> dict[str, float]:
        """Isotropy by every measure of the plan, the mean over some sets; NaN where it wasn't measured."""
        per_set = [self.isotropy.get((key, name), {}) for name in names]
        table = pd.DataFrame(per_set, columns=list(plan.REACHED), dtype=float)
        return {measure: float(table[measure].mean(skipna=False)) for measure in plan.REACHED}


def stored(name: str) -> tuple[str, ...]:
    """The sets of texts that are read under a name."""
    return (f"{name}_train", f"{name}_test") if name in HEADS else ("qqp_test",) if name == "qqp" else (name,)


def _outcomes(name: str, turned: dict[str, Array], slow: bool, heavy: bool) -> dict[str, Array]:
    """What each reader makes of the sets of a name, given each set's turned vectors."""
    place = stored(name)[-1]
    rows, x = read_set(place), turned[place]
    if name in SIMILARITY:
        return {"similarity": readers.similarity(x, rows["first"], rows["second"], rows["score"], name)}
    if name == "corpus":
        return {"own topics": readers.topics(x, rows["topic"], name)}
    if name == "squad":
        passages = np.arange(len(rows["topic"]))
        result = readers.retrieval(x, rows["first"], rows["second"], passages, name)
        result["topics"] = readers.topics(x[passages], rows["topic"], "topics")
        return result | ({"k-means": readers.k_means(x[passages], rows["topic"], "topics")} if slow else {})
    result = {}
    if name in READERS["threshold"]:
        result["threshold"] = readers.threshold(x, rows["first"], rows["second"], rows["label"], name)
    if name in HEADS:
        trained = read_set(f"{name}_train")
        train, test = _features(turned[f"{name}_train"], trained), _features(x, rows)
        inputs = train, trained["label"], test, rows["label"], name
        result["linear head"] = readers.linear_head(*inputs)
        if name in READERS["neighbours"]:
            result["neighbours"] = readers.neighbours(*inputs)
            result |= {"hidden layer": readers.hidden_layer(*inputs)} if slow and heavy else {}
    return result


def _features(x: Array, rows: dict[str, Any]) -> Array:
    return readers.pair_features(x, rows["first"], rows["second"]) if "second" in rows else x[rows["first"]]


def read_layer(load: Load, names: Iterable[str] = NAMES, keys: Sequence[Key] = KEYS, *, heavy: bool = False) -> Cell:
    """The turns of one layer, read on the sets of some names; ``heavy`` adds the hidden layer."""
    result = Cell()

    @functools.cache
    def fitted(texts: tuple[str, ...], pool: int) -> Turned:
        return Turned(np.concatenate([load(text)[pool] for text in texts]))

    @functools.cache
    def points(texts: tuple[str, ...], pool: int, place: str) -> Callable[[Turn], Array]:
        return fitted(texts, pool).read(load(place)[pool])

    for name, key in itertools.product(names, keys):
        pool, fit, turn = POOLS.index(key[0]), key[1], key[2:]
        texts = FITTED_ON.get(name, (name,)) if fit == "own" else ("wikipedia",)
        turned = {place: points(texts, pool, place)(turn) for place in stored(name)}
        full = key[:2] == ("mean", "own")
        slow = full and turn in SLOW
        for reader, outcome in _outcomes(name, turned, slow, heavy).items():
            result.outcomes[key, reader, name] = outcome
        if full and turn[0] not in ORDERS:
            points_read = torch.from_numpy(turned[stored(name)[-1]][:MEASURED]).double()
            measures = plan.REACHED if slow and name in ("stsb_test", "corpus") else ("isoscore", "mean_cosine")
            result.isotropy[key, name] = measure_all(points_read, measures)
        if key == keys[-1]:
            points.cache_clear()  # the next name reads other sets
    return result


def gain(treated: Array, other: Array, name: str = "gain") -> dict[str, float]:
    """What one outcome is above another, with the interval of the difference on the same draws."""
    low, high = np.quantile((treated - other)[1:], TAILS)
    return {name: float(treated[0] - other[0]), f"{name}_low": float(low), f"{name}_high": float(high)}


def rows_of(result: Cell) -> Iterator[dict[str, Any]]:
    """One row for each turn, reader and set ("all" for a reader's mean): score, gain over raw and its interval."""
    for key, (reader, sets) in itertools.product(KEYS, READERS.items()):
        for name in (*sets, "all") if key[2] not in ORDERS else ():
            treated, raw = result.of(key, reader, name), result.of((*key[:2], *RAW), reader, name)
            if treated is not None and raw is not None:
                place = dict(zip(("pool", "fit", "turn", "strength"), key, strict=True))
                reached = result.reached(key, sets if name == "all" else [name])
                yield {**place, "reader": reader, "set": name, "score": treated[0], **gain(treated, raw), **reached}


def best_place(result: Cell, pool: str, fit: str, reader: str) -> dict[str, Any] | None:
    """The turn among raw and the places of p with the highest score, its gain, and the interval of both.

    In an interval of places raw counts as p = 0, whose vectors differ by their mean.
    """
    per_set = {turn: treated for turn in SHORT if (treated := result.of((pool, fit, *turn), reader)) is not None}
    if len(per_set) < len(SHORT):
        return None
    at = np.stack(list(per_set.values())).argmax(0)
    best, places = SHORT[at[0]], np.array([0.0, *plan.PLACES])
    low, high = np.quantile(places[at[1:]], TAILS)
    return {
        "pool": pool,
        "fit": fit,
        "reader": reader,
        "raw": per_set[RAW][0],
        "score": per_set[best][0],
        "best_turn": best[0],
        "best": places[at[0]],
        "best_low": low,
        "best_high": high,
        **gain(per_set[best], per_set[RAW]),
        **gain(per_set["whitening", 1.5], per_set["whitening", 1.0], "over"),
    }


def parts_of(result: Cell, reader: str) -> Iterator[dict[str, Any]]:
    """What each part of the turn at p = 0.75 adds to a reader's score, in both orders, with intervals."""
    for order in ORDERS:
        steps = [treated for key in KEYS if key[2] == order and (treated := result.of(key, reader)) is not None]
        if len(steps) == len(PARTS) + 1:
            for part, (before, after) in zip(ORDERS[order], itertools.pairwise(steps), strict=True):
                yield {"reader": reader, "order": order, "part": part, "score": after[0], **gain(after, before)}


def tables_of(result: Cell, encoder: str, layer: int) -> dict[str, pd.DataFrame]:
    """The tables of a layer: scores of turns, best places, and the parts of the gain."""
    fits = itertools.product(POOLS, ("own", "wikipedia"), READERS)
    rows = {
        "scores": list(rows_of(result)),
        "best": [row for place in fits if (row := best_place(result, *place))],
        "parts": [row for reader in READERS for row in parts_of(result, reader)],
    }
    return {
        name: pd.DataFrame([{"encoder": encoder, "layer": layer, **row} for row in per_set])
        for name, per_set in rows.items()
    }


def layer_loader(cache: Path, encoder: str, layer: int) -> Load:
    """The vectors (pools, n, d) of a layer, set by set, from the cache."""

    def load(name: str) -> Array:
        vectors = np.load(cache / encoder / f"{name}.npy", mmap_mode="r")
        return np.asarray(vectors[layers_of(encoder, name, len(vectors)).index(layer)])

    return load

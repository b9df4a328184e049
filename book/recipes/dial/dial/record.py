"""The recorded tables of the dial: published with what made them, and made again to compare."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dial import plan
from dial.encode import SETS, encode_set, minutes, note_time, read_set
from dial.study import (
    ENDS,
    FITTED_ON,
    NAMES,
    READERS,
    layer_loader,
    read_layer,
    rows_of,
    stored,
    tables_of,
)
from dial.views import class_rows, depth_rows, spectra_rows, turned_clouds
from isonb.errors import InputError, fail
from isonb.models.catalogue import EMBEDDED
from isonb.models.loading import load
from isonb_lab.data.sources import data_folder

CLOUDS = {"smollm2": 15, "minilm": 6}  # the layers that the picture turns
POINT = ["encoder", "layer", "pool", "fit", "turn", "strength", "reader", "set"]


def publish(tables: Mapping[str, pd.DataFrame], folder: Path, *, cpu_minutes: float) -> None:
    """Write the tables, each row with the plan's sha256, and their manifest, which has the digests of the texts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.assign(plan=plan.plan_digest()).to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")
    about = {
        "plan": plan.plan_digest(),
        "tables": {name: len(table) for name, table in tables.items()},
        "weights": {name: entry.sha256 for name, entry in EMBEDDED.items()},
        "texts": {name: hashlib.sha256("\n".join(read_set(name)["texts"]).encode()).hexdigest() for name in SETS},
        "cpu_minutes": round(cpu_minutes),
        "versions": {name: version(name) for name in ("torch", "transformers", "numpy", "scipy", "scikit-learn")},
    }
    (folder / "manifest.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def whole(cache: Path, folder: Path, encoders: Iterable[str]) -> None:
    """Encode, read and publish all that the plan names of some encoders; vectors in the cache aren't made again."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for encoder in encoders:
        loaded = load(encoder)
        for name in SETS:
            encode_set(loaded, encoder, name, cache)
        began = time.process_time()
        loads = {layer: layer_loader(cache, encoder, layer) for layer in plan.LAYERS[encoder]}
        for layer, vectors in loads.items():
            cell = read_layer(vectors, heavy=layer == plan.LAYERS[encoder][2])
            for name, table in tables_of(cell, encoder, layer).items():
                parts.setdefault(name, []).append(table)
        rows: dict[str, Any] = {
            "depth": depth_rows(loaded, encoder, cache),
            "spectra": spectra_rows(loaded, encoder),
            "classes": itertools.chain.from_iterable(class_rows(loads[layer], encoder, layer) for layer in loads),
        }
        if encoder in CLOUDS:
            rows["turned"] = turned_clouds(loads[CLOUDS[encoder]], encoder)
        for name, frames in rows.items():
            parts.setdefault(name, []).append(pd.DataFrame(frames))
        note_time(cache, f"{encoder}: read", began)
    tables = {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}
    publish(tables, folder, cpu_minutes=minutes(cache))


def read_again(encoder: str, readers: Iterable[str], cache: Path, layers: Iterable[int] = ()) -> pd.DataFrame:
    """The end points of the curves of some readers, computed anew from the texts: raw, p = -1 and p = 2, every fit.

    Vectors that lie in the cache are taken from there. ``layers``: all of the plan if none is named. Without a data
    folder there are the book's own sentences alone, and no fit on Wikipedia.
    """
    readers = list(readers)
    if unknown := sorted(set(readers) - set(READERS)):
        fail(InputError, f"readers must be some of {', '.join(READERS)}", ", ".join(unknown), "Name these.")
    names = [name for name in NAMES if any(name in READERS[reader] for reader in readers)]
    keys = [key for key in ENDS if key[1] == "own" or data_folder(None)]
    needed = [place for name in names for place in (*stored(name), *FITTED_ON.get(name, ()))]
    needed += ["wikipedia"] if len(keys) == len(ENDS) else []
    loaded, parts = load(encoder), []
    for name in dict.fromkeys(needed):
        encode_set(loaded, encoder, name, cache)
    for layer in layers or plan.LAYERS[encoder]:
        cell = read_layer(layer_loader(cache, encoder, layer), names, keys, heavy=layer == plan.LAYERS[encoder][2])
        parts += [{"encoder": encoder, "layer": layer, **row} for row in rows_of(cell)]
    return pd.DataFrame(parts)


def differences(again: pd.DataFrame, recorded: pd.DataFrame) -> pd.DataFrame:
    """Scores computed anew beside the recorded ones, with their difference and how far rounding may move them.

    Another processor rounds vectors another way, by a millionth. So a row that stood on the border may be read as the
    other class, and a score that counts rows moves by one of them; the others move less.
    """
    both = again.merge(recorded, on=POINT, suffixes=("", "_recorded"))
    both["difference"] = both["score"] - both["score_recorded"]
    sets = [READERS[point.reader] if point.set == "all" else (point.set,) for point in both.itertuples()]
    both["allowed"] = [float(np.mean([1 / _items(name) for name in names])) for names in sets]
    return both[[*POINT, "score", "score_recorded", "difference", "allowed"]]


def _items(name: str) -> int:
    """How many pairs, questions, test rows or sentences of a set are scored."""
    rows = read_set(stored(name)[-1])
    return len(rows["first"] if "first" in rows else rows["texts"])

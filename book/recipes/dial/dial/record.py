"""The recorded tables of the dial: published with what made them, and made again to compare."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dial import plan
from dial.encode import SETS, encode_set, minutes, note_time, read_set, versions
from dial.study import ENDS, FITTED_ON, NAMES, READERS, Load, layer_loader, read_layer, rows_of, stored, tables_of
from dial.views import class_rows, depth_rows, spectra_rows, turned_clouds
from isonb.errors import InputError, fail
from isonb.models.catalogue import EMBEDDED
from isonb.models.loading import load
from isonb.runtime.files import replace
from isonb_lab.data.sources import data_folder

CLOUDS = {"smollm2": 15, "minilm": 6}  # the layers that the picture turns
POINT = ["encoder", "layer", "pool", "fit", "turn", "strength", "reader", "set"]


def publish(tables: Mapping[str, pd.DataFrame], folder: Path, *, cpu_minutes: float) -> None:
    """Write the tables, each row with the plan's sha256, and their manifest, which has the digests of the texts.

    Rows of other encoders that lie in the folder stay as they are, and ``cpu_minutes`` are added to theirs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    others, path = 0, folder / "manifest.json"
    published = ", ".join(sorted(tables["scores"]["encoder"].unique()))
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    minutes_of, rows = earlier.get("minutes_of", {}), dict(earlier.get("tables", {}))
    for name, table in tables.items():
        rows[name] = len(write_beside(folder / f"{name}.parquet", table.assign(plan=plan.plan_digest())))
        if name == "scores" and rows[name] > len(table):
            others = earlier["cpu_minutes"] - minutes_of.get(published, 0)
    about = {
        "plan": plan.plan_digest(),
        "tables": rows,
        "weights": {name: entry.sha256 for name, entry in EMBEDDED.items()},
        "texts": {name: hashlib.sha256("\n".join(read_set(name)["texts"]).encode()).hexdigest() for name in SETS},
        "cpu_minutes": round(others + cpu_minutes),
        "minutes_of": minutes_of | {published: round(cpu_minutes)},
        "versions": versions(),
    }
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def write_beside(path: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """Write rows into a table, beside those of other encoders that it has; the whole table."""
    if path.exists():
        before = pd.read_parquet(path)
        rows = pd.concat([before[~before["encoder"].isin(rows["encoder"])], rows], ignore_index=True)
    rows.to_parquet(path, index=False, compression="zstd")
    return rows


def whole(cache: Path, folder: Path, encoders: Sequence[str]) -> None:
    """Encode, read and publish all that the plan names of some encoders; vectors in the cache aren't made again."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for encoder in encoders:
        loaded = load(encoder)
        for name in SETS:
            encode_set(loaded, encoder, name, cache)
        loads = {layer: layer_loader(cache, encoder, layer) for layer in plan.LAYERS[encoder]}
        for layer, vectors in loads.items():
            for name, table in layer_tables(vectors, encoder, layer, cache).items():
                parts.setdefault(name, []).append(table)
        began = time.process_time()
        rows: dict[str, Any] = {
            "depth": depth_rows(loaded, encoder, cache),
            "spectra": spectra_rows(loaded, encoder),
            "classes": itertools.chain.from_iterable(class_rows(loads[layer], encoder, layer) for layer in loads),
        }
        if encoder in CLOUDS:
            rows["turned"] = turned_clouds(loads[CLOUDS[encoder]], encoder)
        for name, frames in rows.items():
            parts.setdefault(name, []).append(pd.DataFrame(frames))
        note_time(cache, f"{encoder}: depth, spectra, classes", began)
    tables = {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}
    publish(tables, folder, cpu_minutes=minutes(cache, encoders))


def layer_tables(vectors: Load, encoder: str, layer: int, cache: Path) -> dict[str, pd.DataFrame]:
    """The tables of a layer, from the cache where a run that was stopped has read them by the same plan."""
    digest = plan.plan_digest()[:8]
    paths = {name: cache / encoder / f"{name}_{layer}_{digest}.parquet" for name in ("scores", "best", "parts")}
    if not all(path.exists() for path in paths.values()):
        began = time.process_time()
        tables = tables_of(read_layer(vectors, heavy=layer == plan.LAYERS[encoder][2]), encoder, layer)
        for name, path in paths.items():
            replace(path, tables[name].to_parquet(index=False))
        note_time(cache, f"{encoder}: layer {layer}", began)
    return {name: pd.read_parquet(path) for name, path in paths.items()}


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

"""The recorded tables of the dial: published with what made them, read by the chapter, and made again to compare."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError, fail
from isonb.lab.dial.cloud import turned_clouds
from isonb.lab.dial.depth import depth_rows, spectra_rows
from isonb.lab.dial.encode import LAYERS, SETS, encode_set, read_set
from isonb.lab.dial.study import (
    FITTED_ON,
    RAW,
    Cell,
    cell,
    layer_loader,
    layers_read,
    names_of,
    plan_digest,
    read_layer,
    rows_of,
    stored,
    tables_of,
)
from isonb.lab.encoders.catalogue import EMBEDDED
from isonb.lab.encoders.loading import load
from isonb.runtime.places import RECORDINGS_FOLDER

__all__ = ["CLOUDS", "ENDS", "FOLDER", "differences", "manifest", "publish", "read", "read_again", "whole"]

FOLDER = RECORDINGS_FOLDER / "dial"
CLOUDS = {"smollm2": 15, "minilm": 6}  # the layers that the picture turns
ENDS = (RAW, ("whitening", -1.0), ("whitening", 2.0))
POINT = ["pool", "fit", "turn", "strength", "reader", "set"]


def read(name: str) -> pd.DataFrame:
    """A recorded table by its name. Raises :class:`~isonb.errors.InputError` for one that isn't there."""
    path = FOLDER / f"{name}.parquet"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.parquet"))) or "none"
        fail(InputError, f"a recorded table of the dial must be one of {known}", name, "Name one of these.")
    return pd.read_parquet(path)


def manifest() -> dict[str, Any]:
    """What made the tables: plan, weights, texts, versions."""
    made: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    return made


def publish(tables: Mapping[str, pd.DataFrame], folder: Path, *, cpu_minutes: float) -> None:
    """Write the tables, each row with the plan's sha256, and their manifest, which has the digests of the texts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.assign(plan=plan_digest()).to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")
    texts = {name: hashlib.sha256("\n".join(read_set(name)["texts"]).encode()).hexdigest() for name in SETS}
    told = {
        "plan": plan_digest(),
        "tables": {name: len(table) for name, table in tables.items()},
        "weights": {name: entry.sha256 for name, entry in EMBEDDED.items()},
        "texts": texts,
        "cpu_minutes": round(cpu_minutes),
        "versions": {name: version(name) for name in ("torch", "transformers", "numpy", "scipy", "scikit-learn")},
    }
    (folder / "manifest.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def whole(cache: Path, folder: Path = FOLDER, cpu_minutes: float | None = None) -> None:
    """Encode, read and publish all that the plan names; what lies in the cache isn't done again.

    Takes about an hour of one core; ``cpu_minutes`` says how long it took where it was done in several goes.
    """
    made: dict[str, list[pd.DataFrame]] = {}
    for encoder in LAYERS:
        loaded = load(encoder)
        for name in SETS:
            encode_set(loaded, encoder, name, cache)
        rows: dict[str, Any] = {
            "depth": depth_rows(loaded, encoder, cache),
            "spectra": spectra_rows(loaded, encoder),
        }
        if encoder in CLOUDS:
            rows["turned"] = turned_clouds(layer_loader(cache, encoder, CLOUDS[encoder]), encoder)
        for layer in layers_read(encoder):
            for name, table in tables_of(read_layer(cache, encoder, layer), encoder, layer).items():
                made.setdefault(name, []).append(table)
        for name, found in rows.items():
            made.setdefault(name, []).append(pd.DataFrame(found))
    spent = time.process_time() / 60 if cpu_minutes is None else cpu_minutes
    publish({name: pd.concat(found, ignore_index=True) for name, found in made.items()}, folder, cpu_minutes=spent)


def read_again(encoder: str, layer: int, readers: Iterable[str], cache: Path) -> pd.DataFrame:
    """The end points of the curves of some readers, computed anew from the texts: raw, p = -1 and p = 2, own fit.

    Vectors that lie in the cache are taken from there.
    """
    loaded, whole = None, Cell()
    for name in names_of(readers):
        for place in {*stored(name), *FITTED_ON.get(name, ())}:
            if not (cache / encoder / f"{place}.npy").exists():
                loaded = loaded or load(encoder)
                encode_set(loaded, encoder, place, cache)
        whole.add(cell(layer_loader(cache, encoder, layer), name, only=ENDS))
    return pd.DataFrame(rows_of(whole))


def differences(again: pd.DataFrame, encoder: str, layer: int) -> pd.DataFrame:
    """Rows computed anew beside the recorded ones, with the difference of their scores."""
    recorded = read("scores").query("encoder == @encoder and layer == @layer")
    both = again.merge(recorded, on=POINT, suffixes=("", "_recorded"))
    both["difference"] = both["score"] - both["score_recorded"]
    return both[[*POINT, "score", "score_recorded", "difference"]]

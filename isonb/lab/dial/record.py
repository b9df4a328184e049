"""The recorded tables of the dial: published with what made them, read by the chapter, and made again to compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError, fail
from isonb.lab.dial.encode import SETS, encode_set, read_set
from isonb.lab.dial.study import FITTED_ON, RAW, Cell, cell, layer_loader, names_of, plan_digest, rows_of, stored
from isonb.lab.encoders.catalogue import EMBEDDED
from isonb.lab.encoders.loading import load
from isonb.runtime.places import RECORDINGS_FOLDER

__all__ = ["ENDS", "FOLDER", "differences", "manifest", "publish", "read", "read_again"]

FOLDER = RECORDINGS_FOLDER / "dial"
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
    """Write the tables and their manifest. The texts themselves stay out: their digests are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")
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

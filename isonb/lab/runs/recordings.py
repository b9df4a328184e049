"""Recordings: published tables of runs that describe themselves, such as those of ``book/recorded``.

A folder a recording: ``runs.parquet`` (one row a run, as :func:`isonb.lab.runs.table.table` gives it),
``series.parquet`` (one row a logged value) and ``manifest.json`` (schema, run ids, checksums of both, and the defaults
that the options of these runs had). Nothing of what makes runs is needed to read one.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb.runtime.places import RECORDINGS_FOLDER

FOLDER = RECORDINGS_FOLDER
SCHEMA = 1
FILES = ("runs.parquet", "series.parquet")


class RecordedError(InputError):
    """A recording that isn't there, isn't as it was published, or can't be made."""


@dataclass(frozen=True)
class Recorded:
    """A recording as it was published.

    ``runs``: one row a run; ``series``: run_id, name, step, value; ``manifest``: what the folder says of itself;
    ``defaults``: those of the options, by column, for each experiment and, as "method.NAME", for each method.
    """

    runs: pd.DataFrame
    series: pd.DataFrame
    manifest: Mapping[str, Any]
    defaults: Mapping[str, Mapping[str, Any]]


def recorded(name: str, folder: str | Path | None = None) -> Recorded:
    """The recording ``name`` of ``book/recorded``, or of ``folder``.

    Raises :class:`RecordedError` if it isn't there, is of another schema, or has other content than was published.
    """
    home = (FOLDER if folder is None else Path(folder)) / name
    try:
        about = json.loads((home / "manifest.json").read_text(encoding="utf-8"))
        content = {file: (home / file).read_bytes() for file in FILES}
    except (OSError, ValueError) as error:
        fix = "Those of the book are in a checkout of isonb, not in an installed package; publish() makes others."
        raise RecordedError(f"a recording must be a readable folder; got {error} for {name!r}. {fix}") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        got = about.get("schema") if isinstance(about, dict) else about
        raise RecordedError(f"{name} must have schema {SCHEMA}; got {got!r}. Publish it again.")
    sums = {file: hashlib.sha256(data).hexdigest() for file, data in content.items()}
    if other := [file for file in FILES if about.get("sha256", {}).get(file) != sums[file]]:
        raise RecordedError(f"{name} must be as it was published; got another {other[0]}. Publish it again.")
    runs, series = (pd.read_parquet(io.BytesIO(content[file])) for file in FILES)
    return Recorded(runs, series, about, about.get("defaults", {}))

"""One run's record as one JSON file: whole or not there, and read back only if it is as it was written.

It is written in one move (:mod:`isonb.runtime.files`). Its checksum covers every value.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isonb.errors import InputError
from isonb.lab.options import shown
from isonb.lab.runs.run_ids import run_id
from isonb.runtime.files import replace

__all__ = ["SCHEMA", "Record", "RecordError", "read_record", "write_record"]

SCHEMA = 1
SHOWN = 16  # metrics of a printed record
ODD = ("nan", "inf", "-inf")
STATUSES = ("complete", "failed")
KEYS = ("checksum", "config", "error", "manifest", "metrics", "run_id", "schema", "series", "status")
AGAIN = "Delete the file and run it again (a sweep does so by itself)."


class RecordError(InputError):
    """A record that can't be written, or a file that isn't the record that was written."""


@dataclass(frozen=True, repr=False)
class Record:
    """What one run leaves. ``run_id`` follows from ``config``. Printed, it is one screen.

    ``metrics``: final numbers by name (None: not defined here). ``series``: logged (step, value) pairs by name.
    ``status``: complete or failed; ``error`` says why a run failed and is empty otherwise.
    """

    config: Mapping[str, Any]
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    series: Mapping[str, Iterable[tuple[float, float | None]]] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    status: str = "complete"
    error: str = ""

    @property
    def run_id(self) -> str:
        """The stable name of the run, also of its file."""
        return run_id(self.config)

    def __repr__(self) -> str:
        """Id, status, the first metrics, and how much more there is."""
        lines = [f"Record {self.run_id} ({self.status})", *([f"  error: {shown(self.error)}"] if self.error else [])]
        lines += [f"  {name}: {_short(value)}" for name, value in list(self.metrics.items())[:SHOWN]]
        more = len(self.metrics) - SHOWN
        lines += [f"  and {more} more metrics, by record.metrics"] if more > 0 else []
        lines += [f"  {len(self.series)} series, by record.series"] if self.series else []
        return "\n".join(lines)


def write_record(folder: str | Path, record: Record) -> Path:
    """Write ``<folder>/<run id>.json`` in one move and return its path; the last complete writer of a run wins.

    Makes the folder. Raises :class:`RecordError` for values that JSON can't hold and
    :class:`~isonb.runtime.files.DiskError` when the disk refuses; an older record of the same run is then untouched.
    """
    body = _body(record)
    text = json.dumps({**body, "checksum": _checksum(body)}, sort_keys=True, indent=1, ensure_ascii=False)
    path = Path(folder) / f"{record.run_id}.json"
    try:
        content = (text + "\n").encode()
    except UnicodeEncodeError as error:
        fix = "Take the half characters out of its configuration and manifest."
        raise RecordError(f"a record must be text that a file can hold; got {error}. {fix}") from error
    replace(path, content)
    return path


def read_record(path: str | Path) -> Record:
    """The record in ``path``. Raises :class:`RecordError`, with what to do, unless it is whole and of this version."""
    try:
        if Path(path).exists() and not Path(path).is_file():  # reading a pipe would wait for ever
            raise OSError("no regular file")
        found = json.loads(Path(path).read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"a record must be a readable JSON file; got {error} in {path}. {AGAIN}") from error
    if not isinstance(found, dict) or "schema" not in found:
        raise RecordError(f"a record must be a JSON object with a schema; got neither in {path}. {AGAIN}")
    if found["schema"] != SCHEMA:
        fix = "Read it with the isonb that wrote it, or run it again into another folder."
        raise RecordError(f"a record must have schema {SCHEMA}; got {found['schema']!r} in {path}. {fix}")
    if missing := sorted(set(KEYS) ^ set(found)):
        raise RecordError(f"a record must have the keys {', '.join(KEYS)}; got a difference in {missing}. {AGAIN}")
    if found.pop("checksum") != _checksum(found):
        raise RecordError(f"a record must be as it was written; got another checksum in {path}. {AGAIN}")
    try:
        return _parse(found)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise RecordError(f"a record's parts must have their kinds; got {error} in {path}. {AGAIN}") from error


def _parse(found: Mapping[str, Any]) -> Record:
    record = Record(
        config=dict(found["config"]),
        metrics={name: _number(value) for name, value in found["metrics"].items()},
        series={name: [(_step(s, name), _number(v)) for s, v in pairs] for name, pairs in found["series"].items()},
        manifest=dict(found["manifest"]),
        status=found["status"],
        error=found["error"],
    )
    if record.run_id != found["run_id"] or record.status not in STATUSES:
        raise RecordError(f"run_id {found['run_id']!r} with status {record.status!r}")
    return record


def _body(record: Record) -> dict[str, Any]:
    if record.status not in STATUSES:
        raise RecordError(f"status must be one of {', '.join(STATUSES)}; got {record.status!r}. Name one of them.")
    body = {
        "config": dict(record.config),
        "error": record.error.encode("utf-8", "backslashreplace").decode(),  # a path in it may be no text
        "manifest": dict(record.manifest),
        "metrics": {name: _text(value, name) for name, value in record.metrics.items()},
        "run_id": record.run_id,
        "schema": SCHEMA,
        "series": {n: [[_step(s, n), _text(v, n)] for s, v in pairs] for n, pairs in record.series.items()},
        "status": record.status,
    }
    try:
        return dict(json.loads(json.dumps(body, allow_nan=False)))
    except (TypeError, ValueError) as error:
        fix = "Convert tensors and arrays to numbers or lists."
        raise RecordError(f"a record must hold plain JSON values; got {error}. {fix}") from error


def _short(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.6g}" if isinstance(value, int | float) else shown(value)


def _text(value: Any, name: str) -> float | str | None:
    """A number as JSON can hold it: NaN and infinity, which a diverged run gives, as text."""
    if hasattr(value, "item"):  # numpy and torch scalars
        with contextlib.suppress(ValueError, RuntimeError):
            value = value.item()
    if value is None or (isinstance(value, int | float) and math.isfinite(value)):
        return value
    if isinstance(value, float):
        return repr(value)
    raise RecordError(f"{name} must be a number or None; got {shown(value)}. Give each number its own name.")


def _step(value: Any, name: str) -> float:
    step = _text(value, name)
    if step is None or isinstance(step, str):
        raise RecordError(f"a step of {name} must be a finite number; got {value!r}. Count the updates.")
    return step


def _number(value: Any) -> float | None:
    """A number as it was written: NaN and infinity, and nothing else, as text."""
    if isinstance(value, str) and value in ODD:
        return float(value)
    if value is None or (isinstance(value, int | float) and math.isfinite(value)):
        return value
    raise ValueError(f"the value {shown(value)}")


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

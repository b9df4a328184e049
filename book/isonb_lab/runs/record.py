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
from isonb.options import shown
from isonb.runtime.files import replace
from isonb_lab.runs.run_ids import run_id
from isonb_lab.runs.settings import identity

SCHEMA = 1
SHOWN = 16  # metrics of a printed record
STATUSES = ("complete", "failed")
KEYS = {"checksum", "config", "error", "manifest", "metrics", "run_id", "schema", "series", "status"}
AGAIN = "Delete the file and run it again (a sweep does so by itself)."


class RecordError(InputError):
    """A record that can't be written, or a file that isn't the record that was written."""


@dataclass(frozen=True, repr=False)
class Record:
    """What one run leaves. Printed, it is one screen.

    ``metrics``: final numbers by name (None: not defined here). ``series``: logged (step, value) pairs by name.
    ``status``: complete or failed; ``error`` says why a run failed and is empty otherwise. ``named``: the id that the
    run was planned under; empty: it follows from ``config``.
    """

    config: Mapping[str, Any]
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    series: Mapping[str, Iterable[tuple[float, float | None]]] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    status: str = "complete"
    error: str = ""
    named: str = ""

    @property
    def run_id(self) -> str:
        """The stable name of the run, also of its file."""
        return self.named or run_id(identity(self.config))

    def __repr__(self) -> str:
        """Id, status, the first metrics, and how much more there is."""
        lines = [f"Record {self.run_id} ({self.status})", *([f"  error: {shown(self.error)}"] if self.error else [])]
        for name, value in list(self.metrics.items())[:SHOWN]:
            number = f"{value:.6g}" if isinstance(value, int | float) else shown(value)
            lines.append(f"  {name}: {'undefined' if value is None else number}")
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
    replace(path, (text + "\n").encode("utf-8", "backslashreplace"))
    return path


def read_record(path: str | Path) -> Record:
    """The record in ``path``. Raises :class:`RecordError`, with what to do, unless it is whole and of this version."""
    try:
        body = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"a record must be a readable JSON file; got {error} in {path}. {AGAIN}") from error
    if not isinstance(body, dict) or "schema" not in body:
        raise RecordError(f"a record must be a JSON object with a schema; got neither in {path}. {AGAIN}")
    if body["schema"] != SCHEMA:
        fix = "Read it with the isonb that wrote it, or run it again into another folder."
        raise RecordError(f"a record must have schema {SCHEMA}; got {body['schema']!r} in {path}. {fix}")
    if set(body) != KEYS or body.pop("checksum") != _checksum(body):
        raise RecordError(f"a record must be as it was written; got another checksum in {path}. {AGAIN}")
    return Record(
        config=body["config"],
        metrics={name: _number(value) for name, value in body["metrics"].items()},
        series={name: [(step, _number(value)) for step, value in pairs] for name, pairs in body["series"].items()},
        manifest=body["manifest"],
        status=body["status"],
        error=body["error"],
        named=body["run_id"],
    )


def sound_record(path: Path) -> Record | None:
    """The record in ``path``, if it is there, is good, and is that of the run that its name says."""
    with contextlib.suppress(RecordError):
        record = read_record(path)
        return record if record.run_id == path.stem else None
    return None


def _body(record: Record) -> dict[str, Any]:
    if record.status not in STATUSES:
        raise RecordError(f"status must be one of {', '.join(STATUSES)}; got {record.status!r}. Name one of them.")
    body = {
        "config": dict(record.config),
        "error": record.error.encode("utf-8", "backslashreplace").decode(),
        "manifest": dict(record.manifest),
        "metrics": {name: _text(value, name) for name, value in record.metrics.items()},
        "run_id": record.run_id,
        "schema": SCHEMA,
        "series": {n: [[_text(s, n, True), _text(v, n)] for s, v in pairs] for n, pairs in record.series.items()},
        "status": record.status,
    }
    try:
        return dict(json.loads(json.dumps(body, allow_nan=False)))
    except (TypeError, ValueError) as error:
        fix = "Convert tensors and arrays to numbers or lists."
        raise RecordError(f"a record must hold plain JSON values; got {error}. {fix}") from error


def _text(value: Any, name: str, step: bool = False) -> float | str | None:
    """A number as JSON can hold it: NaN and infinity, which a diverged run gives, as text. A step is finite."""
    if hasattr(value, "item"):  # numpy and torch scalars
        with contextlib.suppress(ValueError, RuntimeError):
            value = value.item()
    finite = isinstance(value, int | float) and math.isfinite(value)
    if step and not finite:
        raise RecordError(f"a step of {name} must be a finite number; got {value!r}. Count the updates.")
    if value is None or finite:
        return value  # type: ignore[no-any-return]
    if isinstance(value, float):
        return repr(value)
    raise RecordError(f"{name} must be a number or None; got {shown(value)}. Give each number its own name.")


def _number(value: Any) -> float | None:
    """A number as it was written: NaN and infinity as text."""
    return float(value) if isinstance(value, str) else value


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

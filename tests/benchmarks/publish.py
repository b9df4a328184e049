"""From a record of ``make bench`` or ``make bench-gpu`` to the one that the book shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from isonb.runtime.files import replace
from isonb.runtime.places import RECORDINGS_FOLDER

PUBLISHED, CARD_PUBLISHED = RECORDINGS_FOLDER / "bench.json", RECORDINGS_FOLDER / "bench_gpu.json"


class PublishError(ValueError):
    """A record that can't be shown: not there, not whole, of toy sizes, or with wrong results."""


def publish(record: Path, target: Path, suites: Sequence[str]) -> Path:
    """Copy ``record`` to ``target`` if every one of ``suites`` ran at full size and no result disagrees.

    Raises :class:`PublishError` otherwise, and leaves ``target`` as it was.
    """
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PublishError(f"a record must be a readable JSON file; got {error}. Run make bench first.") from error
    ran = {one["suite"] for one in (*found["rows"], *found["memory"])}
    if lacking := [suite for suite in suites if suite not in ran]:
        raise PublishError(f"every suite must have run; {', '.join(lacking)} did not. Run make bench without names.")
    if found["sizes"] != "full":
        raise PublishError(f"sizes must be full; got {found['sizes']}. Run make bench without --small.")
    wrong = [f"{one['what']}, {one['size']}" for one in (*found["rows"], *found["memory"]) if one["verdict"] == "WRONG"]
    if wrong:
        raise PublishError(f"all results must agree; these don't: {'; '.join(wrong)}. Find out which side is wrong.")
    replace(target, record.read_bytes())
    return target

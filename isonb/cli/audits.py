"""``isonb audit``: vectors from a file, a report to look at, and rules that a build can fail on."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail

__all__ = ["AuditError", "read_vectors", "run_audit"]

RULE = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>[<>])\s*(?P<value>[-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")
KINDS = ("fault", "warning")


class AuditError(InputError):
    """A file that holds no vectors, or a rule that can't be read."""


def run_audit(options: argparse.Namespace) -> int:
    """Audit a file, print what was found, write the reports asked for; 1 where a rule is broken."""
    rules = [_rule(text) for text in options.fail_on]
    outputs = [Path(path) for path in (options.html, options.json) if path]
    for path in outputs:
        if not path.parent.is_dir():
            fail(AuditError, f"the folder of {path} must exist", str(path.parent), "Make it first.")
    vectors = read_vectors(options.vectors, options.name)
    from isonb.auditing import audit
    from isonb.runtime.files import replace

    found = audit(vectors, sample=options.sample, seed=options.seed)
    known = found.values()
    for name, _, _ in rules:
        if name not in (*KINDS, *known):
            fail(
                AuditError, f"a rule must name one of {', '.join((*KINDS, *known))}", repr(name), "Choose one of them."
            )
    print(found)
    for path, text in ((options.html, found.html), (options.json, found.to_json)):
        if path:
            replace(Path(path), text().encode())
    broken = [text for text, rule in zip(options.fail_on, rules, strict=True) if _broken(rule, found)]
    for text in broken:
        print(f"broken    {text}", file=sys.stderr)
    return 1 if broken else 0


def read_vectors(path: str | Path, name: str | None = None) -> Any:
    """The vectors of a .npy (mapped, not loaded), .npz or .parquet file, as an array (n, d).

    ``name``: which array or column, where there are several. Raises :class:`AuditError` for a file that holds none.
    """
    path = Path(path)
    if not path.is_file():
        fail(AuditError, "the vectors must be in a file", f"no file {path}", "Check the path.")
    readers = {".npy": _npy, ".npz": _npz, ".parquet": _parquet}
    if path.suffix not in readers:
        fail(AuditError, f"the file must be one of {', '.join(readers)}", path.name, "Save it by numpy.save.")
    try:
        return readers[path.suffix](path, name)
    except InputError:
        raise
    except Exception as error:  # what a damaged file makes a reader raise is its own business
        reason = f"{type(error).__name__}: {error}"
        raise AuditError(f"{path.name} must be readable; got {reason}. Save it again.") from error


def _npy(path: Path, name: str | None) -> Any:
    import numpy as np

    return np.load(path, mmap_mode="r", allow_pickle=False)


def _npz(path: Path, name: str | None) -> Any:
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        return arrays[_chosen(list(arrays), name, path)]


def _parquet(path: Path, name: str | None) -> Any:
    try:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq
    except ImportError:
        fix = "pip install pyarrow, or save .npy."
        fail(AuditError, "pyarrow must be installed to read .parquet", "no pyarrow", fix)
    kinds = pq.read_schema(path)
    lists = [f.name for f in kinds if pa.types.is_list(f.type) or pa.types.is_fixed_size_list(f.type)]
    column = pq.read_table(path, columns=[_chosen(lists, name, path)]).column(0)
    rows = column.combine_chunks()
    widths = set(pc.list_value_length(rows).drop_null().to_pylist())
    if len(widths) != 1 or column.null_count:
        got = f"{column.null_count} missing and lengths {sorted(widths)[:4]}"
        fail(AuditError, "every row must hold a vector of one length", got, "Leave the others out.")
    return np.asarray(rows.flatten()).reshape(len(rows), -1)


def _chosen(names: list[str], name: str | None, path: Path) -> str:
    if name is not None and name in names:
        return name
    if name is None and len(names) == 1:
        return names[0]
    got = f"{len(names)} of them ({', '.join(names[:8])})" if name is None else repr(name)
    return fail(AuditError, f"--name must name the vectors in {path.name}", got, "Pass one of them.")


def _rule(text: str) -> tuple[str, str, float]:
    if text in KINDS:
        return text, ">", 0.0
    found = RULE.fullmatch(text)
    if found is None:
        fail(AuditError, '--fail-on must be fault, warning or as "mean cosine>0.5"', repr(text), "Write it so.")
    return found["name"], found["sign"], float(found["value"])


def _broken(rule: tuple[str, str, float], found: Any) -> bool:
    name, sign, value = rule
    if name in KINDS:
        worst = KINDS[: KINDS.index(name) + 1]
        return any(one.severity in worst for one in found.findings)
    got = found.values()[name]
    return not got <= value if sign == ">" else not got >= value

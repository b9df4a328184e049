"""``isonb audit``: vectors from a file or a model on texts, a report to look at, and rules that a build can fail on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isonb.cli.audit_files import AuditError, read_pairs, read_texts, read_vectors
from isonb.cli.gates import broken, check_names, gate
from isonb.errors import fail

__all__ = ["AuditError", "read_vectors", "run_audit"]

RULE = 'fault, warning or as "mean cosine>0.5"'
KINDS = ("fault", "warning")


def run_audit(options: argparse.Namespace) -> int:
    """Audit what is named, print what was found, write the reports asked for; 1 where a rule is broken."""
    words = [text for text in options.fail_on if text in KINDS]
    gates = [gate(text, RULE) for text in options.fail_on if text not in KINDS]
    for path in (Path(path) for path in (options.html, options.json) if path):
        if not path.parent.is_dir():
            fail(AuditError, f"the folder of {path} must exist", str(path.parent), "Make it first.")
    _check_words(options)
    found = (_compared if options.compare else _model if options.texts else _vectors)(options)
    check_names(gates, found.values(), KINDS)
    print(found)
    _write(options.html, found.html)
    _write(options.json, found.to_json)
    worst = {text: KINDS[: KINDS.index(text) + 1] for text in words}
    told = [text for text in words if any(one.severity in worst[text] for one in found.findings)]
    for text in told:
        print(f"broken    {text}", file=sys.stderr)
    return 1 if broken(gates, found.values()) or told else 0


def _check_words(options: argparse.Namespace) -> None:
    """Words that only some audits know."""
    for word, given, needs in (("--column", options.column, "texts"), ("--work", options.work, "texts")):
        if given and not getattr(options, needs):
            fail(AuditError, f"{word} must come with --{needs}", repr(given), "Leave it out, or name the texts.")
    clash = [f"--{name}" for name in ("texts", "pairs", "queries") if getattr(options, name)]
    if options.compare and clash:
        fail(AuditError, "--compare must stand without --texts, --pairs and --queries", clash[0], "Run it apart.")


def _vectors(options: argparse.Namespace) -> Any:
    vectors = read_vectors(options.vectors, options.name)
    queries = None if options.queries is None else read_vectors(options.queries)
    pairs = None if options.pairs is None else read_pairs(options.pairs, rows=True)
    from isonb.auditing import audit

    rate = options.false_match_rate
    return audit(vectors, sample=options.sample, seed=options.seed, pairs=pairs, queries=queries, false_match_rate=rate)


def _compared(options: argparse.Namespace) -> Any:
    first, second = (read_vectors(path, options.name) for path in (options.vectors, options.compare))
    from isonb.auditing import compare

    return compare(first, second, sample=options.sample, seed=options.seed)


def _model(options: argparse.Namespace) -> Any:
    texts = read_texts(options.texts, options.column)
    queries = None if options.queries is None else read_texts(options.queries)
    pairs = None if options.pairs is None else read_pairs(options.pairs, rows=False)
    from isonb.auditing import audit

    return audit(
        options.vectors,
        texts,
        sample=options.sample,
        seed=options.seed,
        pairs=pairs,
        queries=queries,
        false_match_rate=options.false_match_rate,
        pool=options.pool,
        max_length=options.max_length,
        batch_size=options.batch_size,
        device=options.device,
        work=options.work,
    )


def _write(path: str | None, made: Callable[[], str]) -> None:
    if path:
        from isonb.runtime.files import replace

        replace(Path(path), made().encode())

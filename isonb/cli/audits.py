"""``isonb audit``: vectors from a file or a model on texts, a report to look at, and rules that a build can fail on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from isonb.cli.audit_files import AuditError, read_pairs, read_texts
from isonb.cli.limits import broken, check_names, limit
from isonb.errors import fail
from isonb.runtime.files import deliver

RULE = 'fault, warning or as "mean cosine>0.5"'
KINDS = ("fault", "warning")
STDOUT = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}


def run_audit(options: argparse.Namespace) -> int:
    """Audit what is named, print what it says, write the reports asked for; 1 where a rule is broken."""
    words = [text for text in options.fail_on if text in KINDS]
    limits = [limit(text, RULE) for text in options.fail_on if text not in KINDS]
    for path in (Path(path) for path in (options.html, options.json) if path):
        if not path.parent.is_dir():
            fail(AuditError, f"the folder of {path} must exist", str(path.parent), "Make it first.")
    _check_words(options)
    report = (_compared if options.compare else _audited)(options)
    check_names(limits, report.values(), KINDS)
    for path, made in ((options.html, report.html), (options.json, report.to_json)):
        if path:
            deliver(Path(path), made().encode())
    # a report that goes to the standard output has it for itself
    print(report, file=sys.stderr if {options.html, options.json} & STDOUT else sys.stdout)
    worst = {text: KINDS[: KINDS.index(text) + 1] for text in words}
    told = [text for text in words if any(one.severity in worst[text] for one in report.findings)]
    for text in told:
        print(f"broken    {text}", file=sys.stderr)
    return 1 if broken(limits, report.values()) or told else 0


def _check_words(options: argparse.Namespace) -> None:
    """Words that only some audits know."""
    for word, given, needs in (("--column", options.column, "texts"), ("--work", options.work, "texts")):
        if given and not getattr(options, needs):
            fail(AuditError, f"{word} must come with --{needs}", repr(given), "Leave it out, or name the texts.")
    clash = [f"--{name}" for name in ("pairs", "queries") if getattr(options, name)]
    if options.compare and clash:
        fail(AuditError, "--compare must stand without --pairs and --queries", clash[0], "Run it apart.")
    for name in ("queries", "compare"):
        if getattr(options, f"{name}_name") and not getattr(options, name):
            fail(AuditError, f"--{name}-name must come with --{name}", "it alone", "Leave it out, or name the file.")


def _compared(options: argparse.Namespace) -> Any:
    from isonb.auditing import compare

    texts = None if options.texts is None else read_texts(options.texts, options.column)
    names = (options.name, options.compare_name or options.name)
    sizes = {"sample": options.sample, "seed": options.seed}
    return compare(options.vectors, options.compare, texts, names=names, **sizes)


def _audited(options: argparse.Namespace) -> Any:
    texts = None if options.texts is None else read_texts(options.texts, options.column)
    pairs = None if options.pairs is None else read_pairs(options.pairs, rows=texts is None)
    from isonb.auditing import audit
    from isonb.auditing.reading import matrix

    queries = options.queries
    if queries is not None:
        queries = matrix(queries, "queries", options.queries_name) if texts is None else read_texts(queries)
    words = ["name", "sample", "seed", "false_match_rate", "pool", "max_length", "batch_size", "device", "work"]
    return audit(
        options.vectors, texts, pairs=pairs, queries=queries, **{word: getattr(options, word) for word in words}
    )

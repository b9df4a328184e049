"""``isonb audit``: vectors from a file or a model on texts, a report to look at, and rules that a build can fail on."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from isonb.cli.limits import Limit, broken, check_names, limit
from isonb.cli.parsers import MANY, add_command
from isonb.errors import InputError, fail
from isonb.runtime.files import OPEN, deliver

RULE = 'fault, warning or as "mean cosine>0.5"'
KINDS = ("fault", "warning")
RATE = 0.01  # of false matches, as isonb.audit has it, whose import takes seconds
TEXT = ("text", "sentence")  # columns that need no --column
SIDES = (("text1", "text2"), ("sentence1", "sentence2"), ("row1", "row2"))
LABELS = ("label", "score")
WITH_NUMBER = re.compile(r"layer \d+ .+|(random|unrelated|row) cosine.*|threshold .+|overlap@\d+")  # names of rules
STDOUT = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}


class AuditError(InputError):
    """A file that doesn't hold what it should, or a rule that can't be read."""


def add_audit(name: str, commands: Any) -> None:
    """The options of ``isonb audit``."""
    examples = (
        "isonb audit vectors.npy\n"
        "isonb audit table.parquet --name embedding --fail-on fault --fail-on 'mean cosine>0.5'\n"
        "isonb audit minilm --texts lines.txt --work cache --html report.html\n"
        "isonb audit minilm --texts lines.txt --pairs pairs.csv --false-match-rate 0.01\n"
        "isonb audit run.npz --name passages --queries run.npz --queries-name queries\n"
        "isonb audit vectors.npy --rows faulty.csv --fix fixed.npy\n"
        "isonb audit float32.npy --compare float16.npy --fail-on 'overlap@10<0.95'\n"
        "isonb audit minilm --compare tiny --texts lines.txt"
    )
    text = "say what vectors or a model are like: defects, the cosine of random rows, the shape, what would help"
    parser = add_command(name, commands, text, examples)
    add = parser.add_argument
    formats = "arrays, tables, tensors, indexes, or a folder of them"
    add("vectors", metavar="FILE|MODEL", help=f"vectors, one per row: {formats}; with --texts a model")
    add("--name", help="array of an archive, or column of a table, where there are several")
    add("--sample", type=int, default=5000, help="rows that the shape is measured on (%(default)s)")
    add("--seed", type=int, default=0, help="seed of the sample (%(default)s)")
    add("--pairs", metavar="FILE", help="table of text1, text2, label (of vectors row1, row2, label)")
    add("--queries", metavar="FILE", help="vectors of queries (of a model: texts), for a threshold without labels")
    text = "share of false matches that the threshold lets through (%(default)s)"
    add("--false-match-rate", type=float, default=RATE, metavar="SHARE", help=text)
    add("--queries-name", metavar="NAME", help="array or column of the queries, where there are several")
    add("--compare", metavar="FILE|MODEL", help="the same rows from elsewhere: say what moved")
    add("--compare-name", metavar="NAME", help="its array or column (that of --name)")
    add("--html", metavar="FILE", help="write a report that opens without a network")
    add("--json", metavar="FILE", help="write every number and finding")
    add("--rows", metavar="FILE", help="write the number of every row that a finding names, as CSV")
    text = "write the vectors without broken rows and dimensions and, with --pairs, with the remedy that helps on them"
    add("--fix", metavar="FILE.npy", help=text)
    rule = 'exit with 1 where it holds: "fault", "warning", or a number by name, as in "mean cosine>0.5"; repeatable'
    add("--fail-on", metavar="RULE", help=rule, **MANY)
    add = parser.add_argument_group("of a model").add_argument
    text = "one per line in .txt or /dev/stdin, or .jsonl, .csv, .tsv, .parquet; beside a file of vectors: of its rows"
    add("--texts", metavar="FILE", help=text)
    add("--column", metavar="NAME", help="column of the texts, where it isn't called text")
    add("--work", metavar="DIR", help="keep the vectors there; an audit that was cut short goes on from them")
    add("--pool", default="auto", help="mean, cls, last, or as the model's folder says (%(default)s)")
    add(
        "--prompt",
        metavar="NAME",
        help='one of the model\'s prompts for all texts, "" for none (each side has its own)',
    )
    add("--max-length", type=int, help="most tokens of a text that are read (the model's own, or 256)")
    add("--batch-size", type=int, default=32, help="texts at a time (%(default)s)")
    add("--device", default="cpu", help="where the model runs (%(default)s)")


def run_audit(options: argparse.Namespace) -> int:
    """Audit what is named, print what it says, write the reports asked for; 1 where a rule is broken."""
    parts = [text for text in options.fail_on if text in KINDS]
    limits = [limit(text, RULE) for text in options.fail_on if text not in KINDS]
    _check_rules(limits, options.compare is not None)
    _check_words(options)
    _check_places(options)
    report = (_compared if options.compare else _audited)(options)
    for path, render in ((options.html, report.html), (options.json, report.to_json), (options.rows, _rows(report))):
        if path:
            deliver(Path(path), render().encode())
    # a report that goes to the standard output has it for itself
    print(report, file=sys.stderr if {options.html, options.json, options.rows} & STDOUT else sys.stdout)
    check_names(limits, report.values(), KINDS)
    worst = {text: KINDS[: KINDS.index(text) + 1] for text in parts}
    violated = [text for text in parts if any(finding.severity in worst[text] for finding in report.findings)]
    for text in violated:
        print(f"broken    {text}", file=sys.stderr)
    return 1 if broken(limits, report.values()) or violated else 0


def _check_rules(limits: Sequence[Limit], compared: bool) -> None:
    """Refuse a name that no audit has, before anything is measured; those of layers and shares wait for the report."""
    named = [rule for rule in limits if not WITH_NUMBER.fullmatch(rule.name)]
    if not named:
        return
    from isonb.auditing.measured import AUDITED
    from isonb.measures.registry import titles

    words = [word for pair in titles(*AUDITED).items() for word in pair]
    names = ["CKA", "CKA, debiased", *(f"rise of {word}" for word in words)] if compared else words
    check_names(named, dict.fromkeys(names), KINDS)


def _rows(report: Any) -> Callable[[], str]:
    """The rows that findings name, as CSV."""
    return lambda: "".join(f"{','.join(map(str, line))}\n" for line in [("row", "finding", "severity"), *report.rows()])


def _commands(options: argparse.Namespace, report: Any) -> tuple[str, ...]:
    """What to type next: what is advised, done; or labelled pairs, where the floor is withheld."""
    from isonb.auditing.fixing import advises
    from isonb.auditing.vectors import AuditOptions

    if not report.sound or not report.next_steps:
        return ()
    parts = ["isonb", "audit", options.vectors]
    making = ("name", "texts", "column", "pool", "prompt", "max_length", "work")  # all that makes the vectors
    chosen = AuditOptions(options.sample, options.seed, options.false_match_rate).chosen(bool(options.pairs))
    for name, setting in ({name: getattr(options, name) for name in making} | chosen).items():
        if setting not in (None, "auto"):
            parts += [f"--{name.replace('_', '-')}", str(setting)]
    if advises(report.findings, report.remedies):
        pairs = ["--pairs", options.pairs] if options.pairs else []
        return shlex.join([*parts, *pairs, "--fix", "fixed.npy"]), "isonb audit fixed.npy"
    columns = "text1, text2 and label" if _of_model(options) else "row1, row2 and label"
    command = shlex.join([*parts, "--pairs", "pairs.csv"])
    return (f"{command}  # a table of yours: {columns}, 1 for a match, 0 for none",)


def _of_model(options: argparse.Namespace) -> bool:
    """Whether texts are encoded; of a file of vectors they are what its rows are called."""
    return options.texts is not None and not os.path.isfile(options.vectors)


def _check_words(options: argparse.Namespace) -> None:
    """Words that only some audits know."""
    for word in ("column", "work", "prompt"):
        if (setting := getattr(options, word)) is not None and not options.texts:
            fail(AuditError, f"--{word} must come with --texts", repr(setting), "Leave it out, or name the texts.")
    clash = [f"--{name}" for name in ("pairs", "queries") if getattr(options, name)]
    clash += [f"--{name}" for name in ("work", "prompt", "fix") if getattr(options, name) is not None]
    if options.compare and clash:
        must = "--compare must stand without --pairs, --queries, --work, --prompt and --fix"
        fail(AuditError, must, clash[0], "Run it apart.")
    if options.false_match_rate != RATE and not (options.pairs or options.queries):
        fix = "Leave it out, or name the file."
        fail(AuditError, "--false-match-rate must come with --pairs or --queries", options.false_match_rate, fix)
    for name in ("queries", "compare"):
        if getattr(options, f"{name}_name") and not getattr(options, name):
            fail(AuditError, f"--{name}-name must come with --{name}", "it alone", "Leave it out, or name the file.")


def _check_places(options: argparse.Namespace) -> None:
    """Reports go to folders that exist, none over an input or another one."""
    taken = {name: getattr(options, name) for name in ("vectors", "compare", "texts", "pairs", "queries")}
    for word in ("html", "json", "rows", "fix"):
        if (path := getattr(options, word)) is None:
            continue
        if not Path(path).parent.is_dir():
            fail(AuditError, f"the folder of {path} must exist", str(Path(path).parent), "Make it first.")
        same = [name for name, other in taken.items() if other is not None and _same_file(path, other)]
        if same:
            fail(AuditError, f"--{word} must name a file of its own", f"{path} ({same[0]})", "Name a new one.")
        taken[word] = path


def _same_file(path: str, other: str) -> bool:
    """Whether two paths lead to one file, there or not yet, or the first to one in the second's folder.

    A device or an open stream may be named twice.
    """
    real, known = os.path.realpath(path), os.path.realpath(other)
    if os.path.isdir(known):
        return os.path.isfile(real) and os.path.commonpath([real, known]) == known
    return real == known and (os.path.isfile(real) or not os.path.exists(real))


def _compared(options: argparse.Namespace) -> Any:
    from isonb.auditing import compare

    texts = None if options.texts is None else read_texts(options.texts, options.column)
    names = (options.name, options.compare_name or options.name)
    parts = ["sample", "seed", "pool", "max_length", "batch_size", "device"]
    how = {word: getattr(options, word) for word in parts}
    return compare(options.vectors, options.compare, texts, names=names, **how)


def _audited(options: argparse.Namespace) -> Any:
    texts = None if options.texts is None else read_texts(options.texts, options.column)
    pairs = None if options.pairs is None else read_pairs(options.pairs, rows=not _of_model(options))
    from isonb.auditing import audit
    from isonb.auditing.fixing import check_path
    from isonb.auditing.reading import matrix

    if options.fix is not None:
        check_path(options.fix, options.vectors, options.queries)
    queries = options.queries
    if queries is not None:
        named = options.queries_name
        if _of_model(options):
            queries = read_texts(queries, named, "--queries-name")
        else:
            queries = matrix(queries, "queries", named)
    parts = ["name", "sample", "seed", "false_match_rate", "pool", "max_length", "batch_size", "device", "work"]
    how = {word: getattr(options, word) for word in [*parts, "prompt", "fix"]}
    report = audit(options.vectors, texts, pairs=pairs, queries=queries, **how)
    return dataclasses.replace(report, commands=_commands(options, report))


class Texts(list[str]):
    """Texts with the name of their file, which a report says."""

    name = ""


def read_texts(path: str | Path, column: str | None = None, word: str = "--column") -> Texts:
    """The texts of a .txt file or an open stream, one a line, or of a column of a .jsonl, .csv, .tsv or .parquet file.

    ``column``: which, unless it is called text or sentence or is the only one of text; ``word`` names it. A missing
    value is an empty text. Raises an :class:`~isonb.errors.InputError` for a file that holds none.
    """
    path = Path(path)
    is_plain = path.suffix.lower() == ".txt" or str(path.parent) in OPEN
    texts = Texts(_lines(path) if is_plain else _texts(path, column, word))
    texts.name = path.name
    if not any(text.strip() for text in texts):
        fail(AuditError, f"{path.name} must hold texts", "an empty file", "Write one text a line.")
    return texts


def _lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        fail(AuditError, "the texts must be in a file", f"no file {path} ({error.strerror})", "Check the path.")
    except UnicodeDecodeError as error:
        got = f"byte {content[error.start]:#04x} in line {content.count(bytes([10]), 0, error.start) + 1}"
        fail(AuditError, f"{path.name} must be UTF-8 throughout", got, "Save all of it in that encoding.")
    if "\0" in text:
        fail(AuditError, f"{path.name} must be text", "a zero byte: it is binary", "Save it as UTF-8, a text a line.")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _table(path: Path) -> Any:
    from isonb.runtime.tables import read_file

    if not path.is_file():
        fail(AuditError, "texts and pairs must be in a file", f"no file {path}", "Check the path.")
    return read_file(path)


def _texts(path: Path, column: str | None, word: str) -> list[str]:
    table = _table(path)
    texts = [field.name for field in table.schema if _is_text(field.type)]
    candidates = [name for name in TEXT if name in texts] or texts
    name = candidates[0] if column is None and (len(candidates) == 1 or candidates[:1] == ["text"]) else column
    if name not in texts:
        got = f"{len(texts)} columns of text ({', '.join(texts[:8])})" if column is None else repr(column)
        fail(AuditError, f"{word} must name a column of text in {path.name}", got, "Pass one of its columns.")
    return ["" if text is None else text for text in table.column(name).to_pylist()]


def _is_text(kind: Any) -> bool:
    from pyarrow import types  # type: ignore[import-untyped,unused-ignore]

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(check(kind) for check in (types.is_string, types.is_large_string, types.is_string_view))


def read_pairs(path: str | Path, rows: bool) -> tuple[list[Any], list[Any], list[float]]:
    """Labelled pairs of a table: text1, text2 (or sentence1, sentence2) and label (or score).

    With ``rows``: row1, row2 and label (or score). Raises an :class:`~isonb.errors.InputError` for other values and
    columns, and for columns of which both may be meant.
    """
    path = Path(path)
    table = _table(path)
    names = table.column_names
    sides = [pair for pair in SIDES if set(pair) <= set(names) and (pair[0] == "row1") == rows]
    labels = [name for name in LABELS if name in names]
    if len(sides) != 1 or len(labels) != 1:
        required = "row1, row2" if rows else "text1, text2 (or sentence1, sentence2)"
        must = f"{path.name} must have the columns {required} and label (or score), not both"
        fail(AuditError, must, ", ".join(names), "Rename or drop some.")
    first, second = (_floats(table, path, name) if rows else table.column(name).to_pylist() for name in sides[0])
    return first, second, _floats(table, path, labels[0])


def _floats(table: Any, path: Path, name: str) -> list[float]:
    values = table.column(name).to_pylist()
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError) as error:
        must, fix = f"the column {name} of {path.name} must hold numbers", "Correct that row."
        fail(AuditError, must, str(error), fix)

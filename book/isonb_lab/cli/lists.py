"""What there is to choose from, as text for a terminal: tasks, models, methods, protocols, grids."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from isonb.errors import DependencyError, install_line
from isonb.models.catalogue import EMBEDDED, embedded_place
from isonb.options import declared
from isonb.runtime.told import Columns, Section, as_text
from isonb_lab.data.tasks import TASKS
from isonb_lab.methods import catalogue
from isonb_lab.places import shipped_grids
from isonb_lab.runs.protocols import BY_TASK, PROTOCOLS
from isonb_lab.runs.settings import EXPERIMENTS
from isonb_lab.sweeps.grids import about_grid, grid_sizes

WIDTH = 100


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Rows of text below the first one, in columns."""
    head, *rows = rows
    return as_text("", [Section("", [Columns("", head, rows, words=range(len(head)))])])


def tasks() -> str:
    """Every task: kind, main metric, where its rows come from."""
    rows = [("task", "kind", "metrics", "rows")]
    for task in TASKS.values():
        place = (
            f"{task.hub}{f' ({task.config})' if task.config else ''}, or {task.folder}/" if task.hub else "generated"
        )
        rows.append((task.name, task.kind, ", ".join(task.metrics), place))
    return columns(rows) + (
        "\n\nA data folder is named by --data or ISONB_DATA; otherwise the hub is asked.\n"
        "Or a file of your own (CSV, TSV, JSON lines, parquet, a saved data set): isonb tasks check FILE"
    )


def models() -> str:
    """The embedded models, whether each is there, and how to name others."""
    rows = [("model", "comes with", "protocol", "")]
    for name, entry in EMBEDDED.items():
        try:
            state = "" if embedded_place(entry).is_dir() else "not there"
        except DependencyError as error:
            state = f"not there; {str(error).rpartition('. ')[2]}"
        rows.append((name, entry.source, entry.protocol, state))
    return columns(rows) + (
        "\n\nOr a folder with safetensors weights, or a hub id such as google-bert/bert-base-uncased. A folder\n"
        "ISONB_MODELS/google-bert/bert-base-uncased stands for that id. Fetched models lie in ISONB_CACHE."
    )


def methods() -> str:
    """Every method: what it does, its options with type, range, default and meaning."""
    parts = []
    for entry in catalogue():
        source = f"  -- {entry['source']}" if entry["source"] else ""
        lines = [f"{entry['name']}{source}", _wrapped(entry["about"].replace("``", ""), "  ")]
        for name, option in entry["options"].items():
            lines.append(_wrapped(f"{name}={option['default']}  {option['rule']}", "    ", hang="      "))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n\nGive options by -o name=value, as in: isonb run --method istar -o weight=-3"


def protocols() -> str:
    """Every protocol: what it sets; then every setting with its default."""
    parts = []
    for name, changes in PROTOCOLS.items():
        paragraphs = [
            f"  {kind}: " + ", ".join(f"{key}={value}" for key, value in of.items()) for kind, of in changes.items()
        ]
        paragraphs += [
            f"{task}: " + ", ".join(f"{k}={v}" for k, v in of.items()) for task, of in BY_TASK.get(name, {}).items()
        ]
        parts.append(
            "\n".join([name, *(_wrapped(line.strip(), "  ", hang="    ") for line in paragraphs or ["the defaults"])])
        )
    for kind, settings in EXPERIMENTS.items():
        lines = [f"settings of a {kind} run, by --set name=value"]
        for name, entry in declared(settings).items():
            lines.append(_wrapped(f"{name}={entry.default}  {entry.metadata['help']}", "  ", hang="    "))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def measures() -> str:
    """The measures that records, audits, monitors and rules name: title, range, and what each sees."""
    from isonb.auditing.measured import AUDITED
    from isonb.measures.registry import MEASURES, TOKEN_MEASURES  # brings torch

    every = [*MEASURES.values(), *TOKEN_MEASURES.values()]
    rows = [
        ("measure", "title", "range", "sees"),
        *((measure.name, measure.title, measure.range, measure.sees) for measure in every),
    ]
    sentence = "Of a cloud of points; the last four of the tokens of each sentence."
    rules = f"A rule on an audit takes name or title of {', '.join(AUDITED)}; one on a run the name in its record."
    examples = ("isonb audit vectors.npy --fail-on 'mean_cosine>0.5'", "isonb run --fail-on 'end.cls.mean_cosine>0.5'")
    return "\n".join([columns(rows), "", _wrapped(f"{sentence} {rules}", ""), *examples])


def grids() -> str:
    """The grids that come with isonb: their sizes and what they are for."""
    parts = [
        f"{name}  {', '.join(grid_sizes(path))}\n{_wrapped(about_grid(path), '  ')}"
        for name, path in shipped_grids().items()
    ]
    return "\n".join(parts) + "\n\nSweep one by its name, as in: isonb sweep istar --size smoke"


def _wrapped(text: str, indent: str, hang: str | None = None) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent if hang is None else hang)


LISTS: dict[str, Callable[[], str]] = {
    "tasks": tasks,
    "models": models,
    "methods": methods,
    "measures": measures,
    "protocols": protocols,
    "install": partial(install_line, "lab"),
    "grids": grids,
}

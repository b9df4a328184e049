"""What the commands of ``isonb`` do, from parsed options to an exit code."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from isonb.cli.limits import LIMIT, Limit, LimitError, broken, check_names, limit
from isonb.errors import InputError, fail
from isonb.runtime.terminal import screen
from isonb_lab.cli.comparisons import control_lines, run_compare, run_plan
from isonb_lab.cli.lists import LISTS
from isonb_lab.cli.summary import in_columns, progress, scores, summary, time_words, title
from isonb_lab.cli.tasks import check, task_name
from isonb_lab.engines.preflight import preflight
from isonb_lab.runs.manifest import mixed_processors
from isonb_lab.runs.notebooks import glued_table
from isonb_lab.runs.record import read_record
from isonb_lab.runs.settings import Planned, plan
from isonb_lab.runs.table import check_table, scan, table, write_table
from isonb_lab.sweeps.cost import Estimate, estimate, needs
from isonb_lab.sweeps.execution import Prepared, earlier_outcome, execute, prepare
from isonb_lab.sweeps.gpus import visible
from isonb_lab.sweeps.grids import about_grid, load_grid
from isonb_lab.sweeps.outcomes import Report
from isonb_lab.sweeps.sweep import status, sweep

ASK_ABOVE = 24  # estimated hours above which a person at a terminal is asked


class CommandError(InputError):
    """A command line that makes no sense."""


def under(text: str) -> Limit:
    """The limit of ``--fail-under NAME=VALUE``.

    >>> under("accuracy=0.8").broken_by(0.7)
    True
    """
    name, _, value = text.partition("=")
    match = LIMIT.fullmatch(f"{name.strip()}<{value.strip()}")
    if match is None or "<" in name:
        fail(LimitError, "--fail-under must be NAME=NUMBER", repr(text), "Write --fail-under accuracy=0.8, say.")
    return Limit(match.string, match["name"], "<", float(match["value"]))


def planned_run(options: argparse.Namespace) -> Planned:
    """The run that the options of ``isonb run`` ask for."""
    values = _pairs(options.set, "--set")
    for name in ("seed", "task", "model", "method", "experiment", "protocol"):
        if (value := getattr(options, name)) is not None and values.setdefault(name, value) != value:
            got = f"--{name} {value} and --set {name}={values[name]}"
            fail(CommandError, f"{name} must have one value", got, "Leave one of them out.")
    method = _pairs(options.option, "-o")
    if values.get("experiment") == "synthetic":  # without task, encoder and method: what is named is refused
        values |= {"method": "none"} if method else {}
    else:
        values["task"] = task_name(values.get("task", "english_sentiment"), options)
        values["method"] = {"name": values.get("method", "none")} | method
    return plan(values)


def _run(options: argparse.Namespace) -> int:
    limits = [*map(under, options.fail_under), *(limit(text, 'as "accuracy<0.8"') for text in options.fail_on)]
    planned, out = planned_run(options), Path(options.out)
    run = prepare(planned, out, **_preparation(options))
    if earlier_outcome(run) is None:
        run = replace(run, planned=preflight(run.planned, run.data))
    print(title(planned), flush=True)
    if run.differs:
        usual = out / "records" / f"{planned.run_id}.json"
        print(f"inputs    {run.differs} than in {usual}: this is another run", flush=True)
    with progress(run.work):
        outcome = execute(run)
    log = out / "logs" / f"{outcome.run_id}.log"
    if outcome.status not in ("finished", "skipped"):
        again = "\nagain     the same with --retry-failed" if outcome.status == "failed before" else ""
        print(screen(f"{outcome}{_place_in_method(log, planned.config)}\nlog       {log}{again}"), file=sys.stderr)
        return 130 if outcome.status == "stopped" else 1
    path = out / "records" / f"{outcome.run_id}.json"
    record = read_record(path)
    for name, value, base in scores(record):
        what = "plain vectors" if planned.experiment == "similarity" else "the majority baseline"
        comparison = "" if base is None else f"   ({what}: {base:.4f})"
        print(f"{name:9s} {'undefined' if value is None else f'{value:.4f}'}{comparison}")
    for line in control_lines(planned, record, out):
        print(line)
    note = "" if outcome.status == "finished" else "   (it was there before; nothing was run)"
    for text in record.manifest.get("warnings", ()):
        print(f"warning   {text}")
    print(f"time      {time_words(record.manifest)}")
    print(f"record    {path}{note}\nnotebook  {out / 'notebooks' / f'{outcome.run_id}.ipynb'}")
    if options.predictions:
        print(f"examples  {out / 'predictions' / f'{outcome.run_id}.parquet'}")
    print(f"next      the same with another --method or --seed, then: isonb collect {options.out}")
    check_names(limits, record.metrics)
    return 1 if broken(limits, record.metrics) else 0


def _preparation(options: argparse.Namespace) -> dict[str, Any]:
    """Where rows come from and what runs leave, as :func:`prepare` takes it."""
    outputs = {"report_to": options.report_to, "keep_predictions": options.predictions}
    return {"data": options.data, "retry_failed": options.retry_failed, **outputs}


def _place_in_method(log: Path, config: Mapping[str, Any]) -> str:
    """The last line of a user's own file that the traceback in the log names, as a line to print, or nothing."""
    method = str(config.get("method", {}).get("name", "")).rpartition(":")[0]
    if not method.endswith(".py") or not log.is_file():
        return ""
    log_text = log.read_text(encoding="utf-8", errors="replace")
    lines = re.findall(rf"{re.escape(method)}(?::|\", line )(\d+)", log_text)
    return f"\nwhere     {method}, line {lines[-1]}" if lines else ""


def _sweep(options: argparse.Namespace) -> int:
    grid = load_grid(options.grid, options.size)
    prepared = [prepare(run, options.out, **_preparation(options)) for run in grid]
    print(about_grid(options.grid))
    for differs, count in Counter(run.differs for run in prepared if run.differs).items():
        print(f"inputs    {count} runs of {differs} than in the records there: other runs")
    todo = _todo(prepared, options)
    required = needs(todo, options.data)
    for need in required:
        print(f"{need.kind:10s}{'' if need.there else 'MISSING '}{need.name}: {need.where} ({need.runs} runs)")
    cost = estimate(todo, options.gpu)
    print(f"estimate  {cost}", flush=True)
    if options.dry_run:
        return 0 if all(need.there for need in required) else 2
    if not todo:
        over = Report([outcome for run in prepared if (outcome := earlier_outcome(run))])
        print(over)
        return over.exit_code
    if not options.yes and not all(need.there for need in required):
        fix = "Bring them, or start the others anyway with --yes."
        fail(CommandError, "models and data must be there", "MISSING above", fix)
    if not options.yes and not _agreed(cost, options):
        return 0
    how = {"workers": options.workers, "scheduler": options.scheduler}
    report = sweep([run.planned for run in prepared], options.out, **how, **_preparation(options))
    print(f"{report}\nnext      isonb collect {options.out}, isonb compare {options.out}")
    return report.exit_code


def _todo(runs: Sequence[Prepared], options: argparse.Namespace) -> list[Planned]:
    """The runs that have no record yet, after saying how many have one."""
    records = scan(folder).records if (folder := Path(options.out) / "records").is_dir() else {}
    ended = {run.run_id: records[run.run_id].status for run in runs if run.run_id in records}
    over = [run.run_id for run in runs if earlier_outcome(run)]
    complete, failed = (list(ended.values()).count(status) for status in ("complete", "failed"))
    todo = {run.run_id: run.planned for run in runs if run.run_id not in over}
    print(f"runs      {len(runs)}: {complete} recorded, {failed} failed before, {len(todo)} to do")
    return list(todo.values())


def _agreed(cost: Estimate, options: argparse.Namespace) -> bool:
    """Whether to start: a person at a terminal is asked before a long sweep."""
    gpus, elsewhere = visible(), options.scheduler not in (None, "local")
    hours = (cost.gpu_hours if gpus or elsewhere else cost.cpu_hours) / (options.workers or len(gpus) or 1)
    if hours <= ASK_ABOVE or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    return input(f"That is about {hours:,.0f} hours here. Start? [y/N] ").strip().lower() in ("y", "yes")


def _status(options: argparse.Namespace) -> int:
    if not Path(options.out).is_dir():
        fail(CommandError, "OUT must be the folder of a sweep", repr(options.out), "Name the --out of the sweep.")
    runs = load_grid(options.grid, options.size) if options.grid else None
    note = status(options.out, runs, options.data)
    print(json.dumps(asdict(note)) if options.json else note)
    return 0


def _collect(options: argparse.Namespace) -> int:
    folder = Path(options.folder) / "records"
    if options.out:
        check_table(options.out)
    if not folder.is_dir():
        return _collect_glued(options)
    scanned = scan(folder)
    means = summary(scanned.records.values())
    if options.out:
        write_table(table(scanned.records.values()), options.out)
    if options.json:
        print(means.to_json(orient="records"))
        return 0
    if len(means):
        shown = means if means["undefined"].any() else means.drop(columns="undefined")
        print(in_columns(shown.set_index("model"), float_format=lambda value: f"{value:.4f}"))
    failed = len(scanned.records) - len(scanned.complete())
    print(f"{len(scanned.complete())} runs, {failed} failed, {len(scanned.damaged)} damaged records")
    if note := mixed_processors(table(scanned.records[name] for name in scanned.complete())):
        print(note)
    if options.out:
        print(f"table     {options.out}: one row a run")
    return 0


def _collect_glued(options: argparse.Namespace) -> int:
    """The same for a folder of executed chapters: one row a notebook, its parameters and the values it has glued."""
    frame = glued_table(options.folder)
    if frame.empty:
        got = f"{options.folder!r}, which holds neither records nor notebooks with glued values"
        fail(CommandError, "OUT must be the folder of a sweep or of executed chapters", got, "Name one of these.")
    print(frame.to_json(orient="records") if options.json else in_columns(frame.set_index("notebook")))
    if options.out:
        write_table(frame, options.out)
    return 1 if "failed" in set(frame["status"]) else 0


def _list(options: argparse.Namespace) -> int:
    print(LISTS[options.what]())
    return 0


def _pairs(values: Sequence[str], flag: str) -> dict[str, Any]:
    """``name=value`` words as a mapping, values read as YAML: numbers, true, null, text."""
    import yaml  # type: ignore[import-untyped]

    pairs: dict[str, Any] = {}
    for word in values:
        name, mark, value = word.partition("=")
        if not mark or not name.strip() or name.strip() == "name":
            fail(CommandError, f"{flag} must be NAME=VALUE", repr(word), f"Write {flag} weight=-3, say.")
        try:
            setting = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError):  # ValueError: the 45th of a 13th month
            setting = value
        if pairs.setdefault(name.strip(), setting) != setting:
            got = f"{pairs[name.strip()]} and {setting}"
            fail(CommandError, f"{name.strip()} must have one value", got, f"Leave one {flag} out.")
    return pairs


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "sweep": _sweep,
    "status": _status,
    "collect": _collect,
    "compare": run_compare,
    "plan": run_plan,
    "tasks": check,
    "list": _list,
}

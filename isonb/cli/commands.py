"""What the commands of ``isonb`` do, from parsed options to an exit code."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.cli.audits import run_audit
from isonb.cli.comparisons import run_compare, run_plan
from isonb.cli.limits import broken, check_names, limit, under
from isonb.cli.lists import LISTS
from isonb.cli.progress import progress
from isonb.cli.summary import scores, summary, time_words, title
from isonb.cli.tasks import check, named
from isonb.errors import InputError, fail
from isonb.lab.engines.preflight import preflight
from isonb.lab.runs.arithmetic import mixed_processors
from isonb.lab.runs.record import read_record
from isonb.lab.runs.run_ids import run_id
from isonb.lab.runs.settings import resolve
from isonb.lab.runs.table import check_table, collect, scan, table
from isonb.lab.sweeps.cost import Estimate, estimate
from isonb.lab.sweeps.gpus import visible
from isonb.lab.sweeps.grids import about_grid, load_grid
from isonb.lab.sweeps.job import execute, known, prepare
from isonb.lab.sweeps.needs import needs
from isonb.lab.sweeps.sweep import status, sweep

__all__ = ["COMMANDS", "CommandError", "asked"]

ASK_ABOVE = 24  # estimated hours above which a person at a terminal is asked


class CommandError(InputError):
    """A command line that makes no sense."""


def asked(options: argparse.Namespace) -> dict[str, Any]:
    """The configuration that the options of ``isonb run`` ask for."""
    # Two minutes on two cores is what a first run may take: tiny, with the settings it was tuned with.
    model, protocol = ("tiny", "embedded") if options.model is None else (options.model, "small")
    protocol = protocol if options.protocol is None else options.protocol
    given = {"task": named(options), "model": model, "seed": options.seed, "protocol": protocol}
    method = {"name": options.method} | _pairs(options.option, "-o")
    return resolve(given | {"method": method} | _pairs(options.set, "--set"))


def _run(options: argparse.Namespace) -> int:
    limits = [*map(under, options.fail_under), *(limit(text, 'as "accuracy<0.8"') for text in options.fail_on)]
    config, out = asked(options), Path(options.out)
    job = prepare(config, out, data=options.data, retry_failed=options.retry_failed)
    if known(job) is None:
        preflight(job.config, job.data)
    print(title(config), flush=True)
    if job.differs:
        print(f"apart     {job.differs} than in {out / 'records' / run_id(config)}.json: a run of its own", flush=True)
    with progress(job):
        outcome = execute(job)
    log = out / "logs" / f"{outcome.run_id}.log"
    if outcome.status not in ("finished", "skipped"):
        again = "\nagain     the same with --retry-failed" if outcome.status == "failed before" else ""
        print(f"{outcome}\nlog       {log}{again}", file=sys.stderr)
        return 130 if outcome.status == "stopped" else 1
    path = out / "records" / f"{outcome.run_id}.json"
    record = read_record(path)
    for name, value, base in scores(record):
        what = "plain vectors" if config["experiment"] == "similarity" else "the majority baseline"
        beside = "" if base is None else f"   ({what}: {base:.4f})"
        print(f"{name:9s} {'undefined' if value is None else f'{value:.4f}'}{beside}")
    told = "" if outcome.status == "finished" else "   (it was there before; nothing was run)"
    print(f"time      {time_words(record.manifest)}")
    print(f"record    {path}{told}\nnotebook  {out / 'notebooks' / f'{outcome.run_id}.ipynb'}")
    print(f"next      the same with another --method or --seed, then: isonb collect {options.out}")
    check_names(limits, record.metrics)
    return 1 if broken(limits, record.metrics) else 0


def _sweep(options: argparse.Namespace) -> int:
    planned = [run.config for run in load_grid(options.grid, options.size)]
    jobs = [prepare(config, options.out, data=options.data) for config in planned]
    configs = [job.config for job in jobs]
    print(about_grid(options.grid))
    for differs, count in Counter(job.differs for job in jobs if job.differs).items():
        print(f"apart     {count} runs of {differs} than in the records there: runs of their own")
    todo = _todo(configs, options)
    wanted = needs(todo, options.data)
    for need in wanted:
        print(f"{need.kind:10s}{'' if need.there else 'MISSING '}{need.name}: {need.where} ({need.runs} runs)")
    cost = estimate(todo, options.gpu)
    print(f"estimate  {cost}", flush=True)
    if options.dry_run or not todo:
        return 0
    if not options.yes and not all(need.there for need in wanted):
        fix = "Bring them, or start the others anyway with --yes."
        fail(CommandError, "models and data must be there", "MISSING above", fix)
    if not options.yes and not _agreed(cost, options):
        return 0
    how = {"workers": options.workers, "scheduler": options.scheduler, "data": options.data}
    report = sweep(configs, options.out, retry_failed=options.retry_failed, **how)
    print(f"{report}\nnext      isonb collect {options.out}")
    return report.exit_code


def _todo(configs: list[Mapping[str, Any]], options: argparse.Namespace) -> list[Mapping[str, Any]]:
    """The runs that have no record yet, after saying how many have one."""
    there = scan(folder).records if (folder := Path(options.out) / "records").is_dir() else {}
    names = {run_id(config): config for config in configs}
    complete = [name for name in names if name in there and there[name].status == "complete"]
    failed = [name for name in names if name in there and there[name].status == "failed"]
    over = {*complete, *([] if options.retry_failed else failed)}
    print(
        f"runs      {len(names)}: {len(complete)} recorded, {len(failed)} failed before, {len(names) - len(over)} to do"
    )
    return [config for name, config in names.items() if name not in over]


def _agreed(cost: Estimate, options: argparse.Namespace) -> bool:
    """Whether to start: a person at a terminal is asked before a long sweep."""
    gpus = visible()
    hours = (cost.gpu_hours if gpus or options.scheduler else cost.cpu_hours) / (options.workers or len(gpus) or 1)
    if hours <= ASK_ABOVE or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    return input(f"That is about {hours:,.0f} hours here. Start? [y/N] ").strip().lower() in ("y", "yes")


def _status(options: argparse.Namespace) -> int:
    if not Path(options.out).is_dir():
        fail(CommandError, "OUT must be the folder of a sweep", repr(options.out), "Name the --out of the sweep.")
    configs = [run.config for run in load_grid(options.grid, options.size)] if options.grid else None
    print(status(options.out, configs))
    return 0


def _collect(options: argparse.Namespace) -> int:
    folder = Path(options.folder) / "records"
    if not folder.is_dir():
        got = f"{options.folder!r}, which holds no folder of records"
        fail(CommandError, "OUT must be the folder of a sweep", got, "Name the --out of the sweep.")
    if options.out:
        check_table(options.out)
    scanned = scan(folder)
    means = summary(scanned.records.values())
    if len(means):
        print(means.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4f}"))
    failed = len(scanned.records) - len(scanned.complete())
    print(f"{len(scanned.complete())} runs, {failed} failed, {len(scanned.damaged)} damaged records")
    if told := mixed_processors(table(scanned.records[name] for name in scanned.complete())):
        print(told)
    if options.out:
        collect(folder, options.out)
        print(f"table     {options.out}: one row a run")
    return 0


def _list(options: argparse.Namespace) -> int:
    print(LISTS[options.what]())
    return 0


def _pairs(given: Sequence[str], flag: str) -> dict[str, Any]:
    """``name=value`` words as a mapping, values read as YAML: numbers, true, null, text."""
    import yaml  # type: ignore[import-untyped]

    from isonb.runtime.yaml_text import read_yaml

    pairs: dict[str, Any] = {}
    for word in given:
        name, mark, value = word.partition("=")
        if not mark or not name.strip() or name.strip() == "name":
            fail(CommandError, f"{flag} must be NAME=VALUE", repr(word), f"Write {flag} weight=-3, say.")
        try:
            pairs[name.strip()] = read_yaml(value, yaml.SafeLoader)
        except (yaml.YAMLError, ValueError):  # ValueError: the 45th of a 13th month, a number of 5,000 digits
            pairs[name.strip()] = value
    return pairs


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "sweep": _sweep,
    "status": _status,
    "collect": _collect,
    "compare": run_compare,
    "plan": run_plan,
    "audit": run_audit,
    "tasks": check,
    "list": _list,
}

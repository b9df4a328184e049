"""The commands of the lab: run one experiment, sweep a grid, see how it stands, collect and compare its results.

:mod:`isonb.cli` finds them by an entry point. Libraries are imported when a command runs.
"""

from __future__ import annotations

import argparse
from typing import Any

from isonb.cli.parsers import MANY, Command, add_command

DATA = 'data folder in the hub\'s layout, or "hub" (ISONB_DATA, else the hub)'
LISTS = ("tasks", "models", "methods", "measures", "protocols", "install", "grids")


def _run(options: argparse.Namespace) -> int:
    from isonb_lab.cli.commands import COMMANDS

    return COMMANDS[options.command](options)


def _add_run(name: str, commands: Any) -> None:
    examples = (
        "isonb run\n"
        "isonb run --method istar -o weight=-3 -o zeta=0.4 --seed 1\n"
        "isonb run --task english_sts --model tiny --method whitening -o k=64\n"
        "isonb run --task cola --model google-bert/bert-base-uncased --data hub --set epochs=4 --seed 1\n"
        "isonb run --task reviews.csv --target stars --kind regression --method my_method.py:MyMethod\n"
        "isonb run --task reviews.csv --fail-under accuracy=0.8 --fail-on 'end.cls.mean_cosine>0.9'"
    )
    text = "run one experiment and leave its record and its notebook"
    parser = add_command(name, commands, text, examples)
    add = parser.add_argument
    add("--task", help="task (english_sentiment), or a file of your own; isonb list tasks")
    add("--model", help="embedded name, hub id or folder (tiny); isonb list models")
    add("--method", metavar="NAME", help="method (none), or FILE.py:CLASS; isonb list methods")
    add("-o", "--option", metavar="NAME=VALUE", help="an option of the method; repeatable", **MANY)
    add("--seed", type=int, help="seed (0)")
    add("--experiment", metavar="NAME", help="doses or synthetic; finetune and similarity are inferred from the task")
    add("--protocol", help="settings to start from (those of the model); isonb list protocols")
    add("--set", metavar="NAME=VALUE", help="a setting of the run; repeatable", **MANY)
    _add_outputs(add)
    limits = parser.add_argument_group(
        "for CI: exit code 1 below --fail-under, where a rule of --fail-on holds, or if the run failed; 2 for a mistake"
    )
    add = limits.add_argument
    add("--fail-under", metavar="NAME=NUMBER", help="the least that a metric may be; repeatable", **MANY)
    add("--fail-on", metavar="RULE", help='exit with 1 where it holds, as "end.cls.isoscore<0.01"; repeatable', **MANY)
    _add_columns(parser)


def _add_outputs(add: Any) -> None:
    """Where rows of runs come from, and what they leave."""
    add("--data", help=DATA)
    add("--out", default="runs", help="folder of records and notebooks (%(default)s)")
    add("--retry-failed", action="store_true", help="run again what failed before")
    trackers = "trackers, separated by commas, as the Trainer's report_to: tensorboard, wandb, mlflow, ..."
    add("--report-to", default="", metavar="NAMES", help=trackers)
    add("--predictions", action="store_true", help="keep OUT/predictions/ID.parquet: one row an example")


def _add_columns(parser: argparse.ArgumentParser) -> None:
    """What can be said of data of one's own; the names are those of isonb_lab.data.own."""
    add = parser.add_argument_group("of a file of your own, where it can't be guessed").add_argument
    add("--kind", help="classification, regression, similarity or span")
    add("--inputs", metavar="NAMES", help="columns of text, separated by commas")
    add("--target", metavar="NAME", help="column to predict")
    add("--labels", metavar="NAMES", help="names of the labels 0, 1, ..., separated by commas")
    add("--metrics", metavar="NAMES", help="metrics, separated by commas; the first is the main one")
    add("--training-split", metavar="NAME", help="split to train on, of a folder with several")
    add("--validation-split", metavar="NAME", help="split whose scores are reported")


def _add_tasks(name: str, commands: Any) -> None:
    examples = "isonb tasks check reviews.csv\nisonb tasks check reviews.csv --target stars --kind regression"
    parser = add_command(name, commands, "say what is understood of data of your own, and show three rows", examples)
    parser.add_argument("what", choices=("check",))
    parser.add_argument("task", metavar="FILE", help="CSV, TSV, JSON lines, parquet, a folder, or a YAML file")
    _add_columns(parser)


def _add_sweep(name: str, commands: Any) -> None:
    examples = (
        "isonb sweep istar --size smoke\n"
        "isonb sweep book/experiments/softdecay.yaml --size small --data ~/data --workers 2\n"
        "isonb sweep book/experiments/istar.yaml --size paper --data hub --dry-run --gpu h200\n"
        "isonb sweep book/experiments/istar.yaml --size paper --data hub --scheduler tcp://head:8786 --yes"
    )
    text = "run every experiment of a grid that has no record yet"
    parser = add_command(name, commands, text, examples)
    add = parser.add_argument
    add("grid", metavar="GRID", help="YAML file, or the name of one that comes with isonb; isonb list grids")
    add("--size", default="small", help="smoke, small, full or paper (%(default)s)")
    add("--workers", type=int, help="runs at a time (one per GPU, or one)")
    add("--scheduler", metavar="ADDRESS", help='of a Dask scheduler; "local": processes of this machine (the default)')
    add("--gpu", default="a100", help="GPU of the estimate (%(default)s)")
    add("--dry-run", action="store_true", help="say what would run and what it would cost, and start nothing")
    add("--yes", action="store_true", help="don't ask before long sweeps, and start where models or data are missing")
    _add_outputs(add)


def _add_status(name: str, commands: Any) -> None:
    examples = "isonb status runs\nisonb status runs book/experiments/head_to_head.yaml --size small"
    add = add_command(name, commands, "say how the runs of a folder stand", examples).add_argument
    add("out", metavar="OUT", help="folder of a sweep")
    add("grid", metavar="GRID", nargs="?", help="YAML file or name, to count the runs still to do")
    add("--size", default="small", help="size of the grid (%(default)s)")
    add("--data", help=DATA)
    add("--json", action="store_true", help="print it as JSON")


def _add_collect(name: str, commands: Any) -> None:
    examples = "isonb collect runs\nisonb collect runs --out table.parquet\nisonb collect executed --csv table.csv"
    text = "print means and standard deviations over seeds, or the values of executed chapters, and write one table"
    add = add_command(name, commands, text, examples).add_argument
    add("folder", metavar="OUT", help="folder of a sweep, or of executed notebooks whose glued values are gathered")
    add("--out", "--csv", metavar="FILE", help="table of one row a run or notebook: .csv, .md, .html or .parquet")
    add("--json", action="store_true", help="print what is printed as JSON")


def _add_compare(name: str, commands: Any) -> None:
    examples = (
        "isonb compare runs\n"
        "isonb compare runs --gain 1 --where task=cola --html report.html\n"
        "isonb compare runs --against runs-of-last-week --fail-on 'losses>0'\n"
        "isonb compare book/recorded/head_to_head --where cloud_examples=500"
    )
    text = "compare each method of your runs with its matched control, paired by seed: gains, intervals, verdicts"
    add = add_command(name, commands, text, examples).add_argument
    add("runs", metavar="RUNS", help="folder of a sweep or of records, a recording, or a table of isonb collect")
    add("--against", metavar="RUNS", help="the same runs by another version of your code, to compare with")
    add("--where", metavar="COLUMN=VALUE", help="only runs with this value; repeatable", **MANY)
    add("--gain", type=float, help="a gain in points, to be told how many seeds would show it")
    add("--power", type=float, default=0.8, help="share of studies that show the detectable gain (%(default)s)")
    add("--level", type=float, default=0.95, help="of the intervals and verdicts (%(default)s)")
    for kind in ("html", "json", "csv"):
        add(f"--{kind}", metavar="FILE", help=f"write the comparison as {kind.upper()}")
    text = (
        'exit with 1 where it holds, as in "losses>0": of gain, high, p, failed, gains, losses, refused; repeatable. A '
        "verdict that can't be given breaks its rule. The exit code is 1, too, where runs are broken or none is judged"
    )
    add("--fail-on", metavar="RULE", help=text, **MANY)


def _add_plan(name: str, commands: Any) -> None:
    first = "isonb plan head_to_head --out runs --gain 1\n"
    examples = first + "isonb plan grid.yaml --size small --out runs --gain 0.5 --power 0.9"
    text = "say how many seeds and hours a gain needs, from a pilot of three seeds"
    add = add_command(name, commands, text, examples).add_argument
    add("grid", metavar="GRID", help="YAML file or name; isonb list grids")
    add("--size", default="small", help="size of the grid (%(default)s)")
    add("--out", default="runs", help="folder with the pilot: three seeds of the grid's runs (%(default)s)")
    add("--data", help=DATA)
    add("--gain", type=float, required=True, help="the gain to be shown, in points")
    add("--power", type=float, default=0.8, help="share of studies that show it (%(default)s)")


def _add_list(name: str, commands: Any) -> None:
    text = "list tasks, models, methods with options, measures, protocols with settings, grids, or how to install"
    parser = add_command(name, commands, text, "isonb list methods\nisonb list tasks")
    parser.add_argument("what", choices=LISTS)


COMMANDS = {
    name: Command(add, _run)
    for name, add in {
        "run": _add_run,
        "sweep": _add_sweep,
        "status": _add_status,
        "collect": _add_collect,
        "compare": _add_compare,
        "plan": _add_plan,
        "tasks": _add_tasks,
        "list": _add_list,
    }.items()
}

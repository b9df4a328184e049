"""A printed table of scores in the paper's layout, with ours beside it from every recording that has the task."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from isonb_lab.claims.design import PLAIN, Settings, task_name
from isonb_lab.claims.printed import printed
from isonb_lab.claims.study import Study
from isonb_lab.claims.table import task_and_encoder
from isonb_lab.claims.treated_runs import by_regime, in_short, options, training_of, unordered
from isonb_lab.statistics.seeds import student

NO_SCORES = "relative|EV_|IsoScore|change"  # metrics of a printed table that are no scores
WATCHED_BY = ("patience", "validations")  # settings that say little of a training
ANOTHER_LOSS = ("method.unbiased", "True")  # than the paper's: told wherever it is
AVERAGE = "Average"  # a printed row that is no task
PRINTED = {"mnli": "MNLI-m", "mnli_mm": "MNLI-mm"}  # what is printed of a task with two validation splits
UNMOVED = "as plain"  # of a method that didn't act
Chosen = Callable[[Settings], bool]
Lack = Callable[[str, Sequence[str]], str]
Value = Callable[[Sequence[str]], Mapping[str, float]]
Cell = Callable[[Iterable[float]], str]


@dataclass(frozen=True)
class PairedScores:
    """The scores of one training regime on a task: those of plain training, and of a setting of a method, by seed."""

    task: str
    model: str
    settings: str
    plain: Mapping[int, float]
    scores: Mapping[int, float]
    plain_runs: Mapping[int, str]
    runs: Mapping[int, str]

    @property
    def gains(self) -> list[float]:
        """What the method adds at the same seed."""
        return [self.scores[seed] - self.plain[seed] for seed in self.scores.keys() & self.plain.keys()]

    def labelled(self, text: str) -> PairedScores:
        """The same with further words behind its settings."""
        return replace(self, settings=", ".join(filter(None, (self.settings, text))))


def paired_scores(study: Study, method: Chosen, tasks: Sequence[str]) -> list[PairedScores]:
    """Each regime of the study's runs in which a method ran beside plain training, once for each of its settings.

    Args:
        study: of any runs that train a model.
        method: whether settings of a method are those that the table has.
        tasks: as the paper prints them; ours on others aren't looked at.
    """
    runs = study.runs.dropna(subset="score")
    names = [(run, item) for run in runs["run_id"] if printed_task(item := study.settings[run]) in tasks]
    scores = dict(zip(runs["run_id"], runs["score"], strict=True))
    plain: dict[frozenset[tuple[str, str]], dict[int, str]] = {}
    for run, item in names:
        if item.get("method.name") == PLAIN:
            plain.setdefault(training_of(item), {})[int(item["seed"])] = run
    methods = {run: item for run, item in names if method(item) and training_of(item) in plain}
    results = []
    for name, regime in by_regime(methods.items()).items():
        by_setting: dict[frozenset[tuple[str, str]], dict[int, str]] = {}
        for run in regime:
            by_setting.setdefault(unordered(options(methods[run])), {})[int(methods[run]["seed"])] = run
        varied = {column for column, _ in frozenset().union(*by_setting) - frozenset.intersection(*by_setting)}
        item = methods[regime[0]]
        without = plain[training_of(item)]
        for chosen, runs_of in by_setting.items():
            regime_words = name.removeprefix(task_and_encoder(item)).split(", ")
            lines = [text for text in regime_words if text and not text.startswith(WATCHED_BY)]
            rows = task_name(item["task"]).partition(" ")[2]  # "with test rows"
            lines = [*filter(None, [rows]), *lines]
            lines += [in_short(*pair) for pair in sorted(chosen) if pair[0] in varied or pair == ANOTHER_LOSS]
            before, after = ({seed: scores[run] for seed, run in some.items()} for some in (without, runs_of))
            results.append(
                PairedScores(printed_task(item), str(item["model"]), ", ".join(lines), before, after, without, runs_of)
            )
    return results


def revalued(cells: Sequence[PairedScores], value: Value, *, before: Value | None = None) -> list[PairedScores]:
    """The same runs with another number in the place of their score; where some seed has it both ways.

    Args:
        cells: of :func:`paired_scores`.
        value: the numbers of runs, by run id.
        before: where the number without the method is one of its own runs, before it acts; else it is the plain runs'.
    """
    results = []
    for item in cells:
        scores = _numbers(value, item.runs)
        plain = _numbers(before, item.runs) if before else _numbers(value, item.plain_runs)
        results += [replace(item, plain=plain, scores=scores)] if scores.keys() & plain.keys() else []
    return results


def _numbers(value: Value, runs: Mapping[int, str]) -> dict[int, float]:
    numbers = value(list(runs.values()))
    return {seed: numbers[run] for seed, run in runs.items() if run in numbers}


def gains(cells: Sequence[PairedScores]) -> pd.DataFrame:
    """The gains in points with Student's 95% interval over seeds, from two seeds on; of a method that did something.

    Columns: model, task, metric (the settings, in words), gain, low, high: those of a printed gain.
    """
    rows = []
    for item in cells:
        if len(item.gains) > 1 and any(item.gains):
            mean = student([100 * gain for gain in item.gains])
            rows.append((f"{item.model} (ours)", item.task, item.settings, *mean.ends))
    return pd.DataFrame(rows, columns=["model", "task", "metric", "gain", "low", "high"])


def score_rows(
    paper: str,
    table: str,
    base: str,
    methods: Mapping[str, Sequence[PairedScores]],
    cell: Cell,
    *,
    metrics: Sequence[str] = (),
    named: Mapping[str, str] | None = None,
    lack: Lack | None = None,
) -> list[dict[str, str]]:
    """The table in the paper's layout: a row a printed task and encoder, then ours, or the price of what wasn't run.

    A printed average has no row of ours: it is over tasks that ours don't all have.

    Args:
        paper: whose table.
        table: "Table 1".
        base: the column of plain training.
        methods: what is beside printed values, by the column; of ``base`` plain runs, for tasks without a method.
        cell: how several scores are printed.
        metrics: the printed ones, by default all that are scores.
        named: the columns that the paper prints under another name, by that name.
        lack: what is said of columns without runs of a task: :func:`~isonb_lab.papers.prices.lacks`.
    """
    theirs = _printed_cells(paper, table, metrics).rename(columns=dict(named or {}))
    theirs = theirs.reindex(columns=list(dict.fromkeys([base, *methods]))).dropna(how="all").astype(object).fillna("–")
    rows = []
    for task in dict.fromkeys(theirs.index.get_level_values("task")):
        rows += [{"task": task, "encoder": model} | dict(cells) for model, cells in theirs.loc[task].iterrows()]
        rows += our_rows([task], base, methods, cell, lack) if task != AVERAGE else []
    return rows


def our_rows(
    tasks: Sequence[str],
    base: str,
    methods: Mapping[str, Sequence[PairedScores]],
    cell: Cell,
    lack: Lack | None = None,
) -> list[dict[str, str]]:
    """Our part of :func:`score_rows`: a row a task and training, or the price of what wasn't run.

    The columns of a row are over the seeds that all of them have. Methods with the same plain runs share a row where
    each has one setting, whatever its own settings had to be told apart by. Plain runs alone have a row on a task where
    no method ran. What ``lack`` says of the columns that no row of a task has stands below.
    """
    rows: list[dict[str, str]] = []
    for task in tasks:
        trained: dict[str, dict[str, PairedScores]] = {}
        beside: dict[Hashable, list[tuple[str, PairedScores]]] = {}
        items = [(name, item) for name, results in methods.items() for item in results if item.task == task]
        found = {name for name, _ in items} - {base}
        for name, item in items:
            if name in found or not found:
                beside.setdefault(frozenset(item.plain_runs.items()), []).append((name, item))
        for some in beside.values():
            share = len(dict(some)) == len(some)
            words = max((item.settings for _, item in some), key=len)
            for name, item in some:
                settings = words if share else item.settings
                trained.setdefault(f"{item.model} (ours{', ' * bool(settings)}{settings})", {})[name] = item
        ours = {text: _over_shared_seeds(base, columns, cell) for text, columns in trained.items()}
        missing = [name for name in methods if name not in {*found, base}]
        if lack and missing:
            ours[f"ours: {lack(task, missing)}"] = {}
        elif not ours:
            ours = {"ours: not run": {}}
        rows += [{"task": task, "encoder": text} | cells for text, cells in ours.items()]
    return [{column: row.get(column, "–") for column in ("task", "encoder", base, *methods)} for row in rows]


def _over_shared_seeds(base: str, columns: Mapping[str, PairedScores], cell: Cell) -> dict[str, str]:
    every = [*columns.values()]
    shared = sorted(set(every[0].plain).intersection(*(item.scores for item in every)))
    by_seed = {base: every[0].plain} | {name: item.scores for name, item in columns.items()}
    cells = {name: cell([scores[seed] for seed in shared]) for name, scores in by_seed.items() if shared}
    still = [name for name, item in columns.items() if name != base and len(item.gains) > 1 and not any(item.gains)]
    return cells | dict.fromkeys(still, UNMOVED)


def joined_rows(tables: Sequence[Sequence[Mapping[str, str]]]) -> list[dict[str, str]]:
    """Tables as one, cell by cell; a row that a table lacks has a dash there.

    >>> joined_rows([[{"task": "CoLA", "encoder": "tiny", "none": "0.6"}], []])
    [{'task': 'CoLA', 'encoder': 'tiny', 'none': '0.6 / –'}]
    """
    cells = [{(row["task"], row["encoder"]): row for row in table} for table in tables]
    first = {key: row for some in reversed(cells) for key, row in some.items()}
    order = dict.fromkeys(key for some in cells for key in some)

    def joined(key: tuple[str, str], name: str) -> str:
        parts = [some.get(key, {}).get(name, "–") for some in cells]
        return " / ".join(parts) if {*parts} != {"–"} else "–"

    return [
        {name: text if name in ("task", "encoder") else joined(key, name) for name, text in first[key].items()}
        for key in order
    ]


def _printed_cells(paper: str, table: str, metrics: Sequence[str]) -> pd.DataFrame:
    """The printed scores as fractions, with their deviation: task, model, a column a method."""
    numbers = printed(paper, table, percent=False)
    names = [metric.removesuffix("_x100") for metric in metrics]
    chosen = numbers["metric"].isin(names) if metrics else ~numbers["metric"].str.contains(NO_SCORES)
    numbers = numbers[chosen]
    deviations = numbers["std"].map(" ({:.3f})".format).where(numbers["std"].notna(), "")
    numbers = numbers.assign(text=numbers["value"].map("{:.3f}".format) + deviations)
    index = ["task", "model"]
    return numbers.pivot_table(index=index, columns="method", values="text", aggfunc=" / ".join, sort=False)


def is_plain(settings: Settings) -> bool:
    """Whether a run has no method."""
    return bool(settings.get("method.name", PLAIN) == PLAIN)


def printed_task(settings: Settings) -> str:
    """The task of a run as the papers print it, whatever rows it is scored on."""
    name = str(settings.get("task")).removesuffix("_joint")
    return PRINTED.get(name, task_name(name))

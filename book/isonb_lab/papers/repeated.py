"""The head to head made twice, on different kinds of processors: do the gains come back?

A run gives other numbers on another kind of processor, as it does with another seed. So the head to head is of one
kind. Other recordings repeat much of it: a conclusion that hangs on the processor would show there. Some runs were made
again from their printed commands, on the same kind.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from isonb_lab.claims.design import PLAIN
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import FEWEST, difference
from isonb_lab.papers.studies import load_study
from isonb_lab.places import EXPERIMENTS_FOLDER
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.recordings import FOLDER, recorded, scored
from isonb_lab.runs.settings import Planned
from isonb_lab.statistics.paired import paired_tests
from isonb_lab.sweeps.grids import grid_sizes

from . import prices
from .arms import METHODS
from .head_to_head import DESIGN, OTHERS

REPEATED = "made_again"
TOLERANCE = 1e-6  # of scores, on the same kind of processor
SYNTHETIC = "metric.all.isoscore"  # stands for the score of a run without a task


def two_kinds() -> tuple[Study, Study]:
    """The head to head as its own recording has it, and as the other kinds of processors made it."""
    here, elsewhere = (
        load_study(replace(DESIGN, recordings=names, claims=())) for names in (DESIGN.recordings, OTHERS)
    )
    return here, elsewhere


def runs_twice(here: Study, elsewhere: Study) -> pd.DataFrame:
    """One row a run that both studies have: ``suite``, ``arm``, ``seed``, and its score ``here`` and ``there``."""
    columns = ["run_id", "suite", "arm", "seed", "score"]
    both = here.runs[columns].merge(elsewhere.runs[["run_id", "score"]], on="run_id", suffixes=("", "_there"))
    return both.rename(columns={"score": "here", "score_there": "there"}).drop(columns="run_id")


def gains_twice(here: Study, elsewhere: Study) -> pd.DataFrame:
    """What a method gains over plain training at the same seed, ``here`` and ``there``: a row a suite, arm and seed."""
    gains = {
        arm: [difference(study.units("score", arm), study.units("score", PLAIN)) for study in (here, elsewhere)]
        for arm in METHODS
    }
    rows = [
        (suite, arm, seed, first[suite, seed], second[suite, seed])
        for suite in here.suites
        for arm, (first, second) in gains.items()
        for name, seed in sorted(first)
        if name == suite and (suite, seed) in second
    ]
    return pd.DataFrame(rows, columns=["suite", "arm", "seed", "here", "there"])


def gains_apart(twice: pd.DataFrame) -> pd.DataFrame:
    """Whether the mean gains of :func:`gains_twice` differ from one kind of processor to the other.

    One row a suite and arm with three seeds or more: ``n``, the mean gains ``here`` and ``there``, the mean difference
    ``difference`` of the same seeds with Student's interval ``low`` to ``high``, and ``p`` of the paired test by Holm's
    method over all rows.
    """
    groups = twice.groupby(["suite", "arm"], sort=False)
    cells = {name: cell for name, cell in groups if len(cell) >= FEWEST}
    tests = paired_tests({name: list(cell["there"] - cell["here"]) for name, cell in cells.items()})
    rows = [
        (*name, len(cells[name]), *cells[name][["here", "there"]].mean(), *test.interval.ends, test.p)
        for name, test in tests.items()
    ]
    return pd.DataFrame(rows, columns=["suite", "arm", "n", "here", "there", "difference", "low", "high", "p"])


def planned() -> dict[str, tuple[set[str], Planned]]:
    """The grids and the run behind each id of what the book's grids plan, of size small or full."""
    results: dict[str, tuple[set[str], Planned]] = {}
    for path in sorted(EXPERIMENTS_FOLDER.glob("*.yaml")):
        for size in {"small", "full"} & set(grid_sizes(path)):
            for run in prices.planned(path.stem, size):
                results.setdefault(run.run_id, (set(), run))[0].add(path.stem)
    return results


def repeats() -> pd.DataFrame:
    """One row a run that was made again on the same kind of processor: by how much it differs from the first.

    Columns: ``run_id``, ``kind`` (of processor), ``task``, ``model``, ``method``, ``seed``, ``score``, ``again``,
    and ``difference``, the largest one of a measured number, as a share of it where it is above 1. A synthetic run has
    no task, encoder or method, and its score is the IsoScore of all its points.
    """
    columns = ["run_id", "kind", "task", "model", "method", "seed", "score", "again", "difference"]
    second = _with_scores(recorded(REPEATED).runs)
    measured = [name for name in second if name.startswith("metric.")]
    names = sorted({path.parent.name for path in FOLDER.glob("*/runs.parquet")} - {REPEATED})
    output = (recorded(name).runs for name in names)
    parts = [_with_scores(runs[runs["run_id"].isin(second["run_id"])]) for runs in output]
    first = pd.concat([part.reindex(columns=[*columns, "method.name", *measured]) for part in parts])
    first = first.drop_duplicates(["run_id", "kind"]).set_index(["run_id", "kind"])
    second = second.set_index(["run_id", "kind"]).reindex(first.index).dropna(subset="score")
    first = first.loc[second.index]
    item, other = (runs[measured].apply(pd.to_numeric) for runs in (first, second))
    named = first[["task", "model", "method.name"]].fillna("").rename(columns={"method.name": "method"})
    result = named.assign(
        seed=first["seed"].astype(int),
        score=first["score"],
        again=second["score"],
        difference=((item - other).abs() / item.abs().clip(lower=1)).max(axis=1),
    )
    return result.reset_index()[columns]


def _with_scores(runs: pd.DataFrame) -> pd.DataFrame:
    table = scored(runs).assign(kind=processor_kinds(runs))
    return table.assign(score=table["score"].fillna(table[SYNTHETIC])) if SYNTHETIC in table else table

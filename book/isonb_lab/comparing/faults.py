"""Runs that no comparison should be made of: too many of them crashed, or they are of several inputs."""

from __future__ import annotations

import pandas as pd

from isonb.runtime.told import clipped
from isonb_lab.statistics.seeds import share

ACCIDENTS = 0.05  # of the runs may end with an error by an accident of the machine
ROWS = ("train", "validation", "held", "rows", "model")  # fingerprints of a manifest: of rows, and of weights


def fault(arm: pd.DataFrame, control: pd.DataFrame) -> str:
    """What is wrong with the runs of a method or of its control in one setting; "" where nothing is.

    Either has failed if the exact 95% interval of its share of runs that ended with an error lies above
    :data:`ACCIDENTS`: the runs that are left are survivors, whose scores say little of the method. Runs are mixed where
    a seed was run more than once, or where the fingerprints of rows or weights differ among the runs of one side.
    """
    for name, runs in (("the method", arm), ("the control", control)):
        if mixture := _mixed(runs[runs["status"] == "complete"]):
            return f"mixed inputs: {mixture} of {name}. Give each a folder of its own, or choose by --where"
    for name, runs in (("the method", arm), ("the control", control)):
        lost = runs[runs["status"] != "complete"]
        if len(lost) and share(len(lost), len(runs)).low > ACCIDENTS:
            errors = lost["error"].dropna().astype(str) if "error" in lost else pd.Series(dtype=str)
            example = f" ({clipped(errors.value_counts().index[0])})" if errors.any() else ""
            return f"{len(lost)} of {len(runs)} runs of {name} ended with an error{example}"
    return ""


def _mixed(runs: pd.DataFrame) -> str:
    twice = runs["seed"][runs["seed"].duplicated()]
    for column in ("inputs", *(f"manifest.data.{name}" for name in ROWS)):
        if column in runs and (kinds := runs[column].nunique(dropna=column != "inputs")) > 1:
            return f"{kinds} values of {column} among the runs"
    return f"seed {twice.iloc[0]} was run more than once among the runs" if len(twice) else ""

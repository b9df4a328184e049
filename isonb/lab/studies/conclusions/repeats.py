"""Runs of the head to head that were made again from their printed commands: do the numbers come back?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from isonb.lab.runs.recordings import FOLDER, recorded
from isonb.lab.studies.study import Study

__all__ = ["REPEATED", "TOLERANCE", "repeats"]

REPEATED = "head_to_head_again"
TOLERANCE = 1e-6  # of scores, on the same kind of processor
MEASURE = "metric.end.cls.isoscore"  # a number that every update of the run has a part in


def repeats(study: Study, folder: Path | None = None) -> pd.DataFrame:
    """One row a repeated run: ``suite``, ``arm``, ``seed``, ``score``, ``again``, and by how much IsoScore differs.

    Without the recording of repeated runs there are no rows.
    """
    columns = ["suite", "arm", "seed", "score", "again", "isoscore_apart"]
    if not ((FOLDER if folder is None else folder) / REPEATED).is_dir():
        return pd.DataFrame(columns=columns)
    second = recorded(REPEATED, folder).runs.set_index("run_id")
    first = study.runs[study.runs["run_id"].isin(second.index)]
    rows = [
        (
            run["suite"],
            run["arm"],
            int(run["seed"]),
            float(run["score"]),
            float(second.at[run["run_id"], f"metric.{run['metric']}"]),
            float(second.at[run["run_id"], MEASURE] - run[MEASURE]),
        )
        for run in first.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=columns)

"""What arms change, as rows of a table: the plain value, and differences at the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isonb.lab.studies.study import PLAIN, Study
from isonb.lab.studies.verdicts import difference
from isonb.pages.evidence import spread

__all__ = ["change_rows"]


def change_rows(
    study: Study, columns: Mapping[str, str], suites: Sequence[str], arms: Sequence[str], base: str = PLAIN
) -> list[dict[str, str]]:
    """One row a suite and arm that ran there: ``columns`` names columns of the runs by their heading.

    Cells are mean ± half of Student's 95% interval and the number of runs: of the value in the rows of ``base``, of
    the difference from it at the same seed in the others, with a sign.
    """
    rows = []
    for suite in suites:
        ran = set(study.runs.loc[study.runs["suite"] == suite, "arm"])
        plain = {name: study.units(column, base, [suite]) for name, column in columns.items()}
        for arm in (arm for arm in arms if arm in ran):
            row = {"task": suite, "arm": f"{arm} (value)" if arm == base else arm}
            for name, column in columns.items():
                change = difference(study.units(column, arm, [suite]), plain[name]).values()
                row[name] = spread(plain[name].values()) if arm == base else spread(change, sign="+")
            rows.append(row)
    return rows

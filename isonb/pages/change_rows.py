"""What arms change, as rows of a table: the plain value, and differences at the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from isonb.pages.evidence import spread

__all__ = ["change_rows"]


def change_rows(
    values: Mapping[str, pd.DataFrame], *, suites: Sequence[str], arms: Sequence[str], base: str = "none"
) -> list[dict[str, str]]:
    """One row a suite and arm that ran there, one column a name of ``values``: tables of suite, arm, seed and value.

    Cells are mean ± half of Student's 95% interval and the number of runs: of the value in the rows of ``base``, in the
    others of the difference from it at the same seed, with a sign.
    """
    series = {name: table.set_index(["suite", "arm", "seed"])["value"].sort_index() for name, table in values.items()}
    ran = {key[:2] for numbers in series.values() for key in numbers.index}
    return [
        {"task": suite, "arm": f"{arm} (value)" if arm == base else arm}
        | {name: _cell(numbers, suite, arm, base) for name, numbers in series.items()}
        for suite in suites
        for arm in arms
        if (suite, arm) in ran
    ]


def _cell(numbers: pd.Series, suite: str, arm: str, base: str) -> str:
    own, plain = (numbers.loc[(suite, name)] if (suite, name) in numbers.index else None for name in (arm, base))
    if own is None or plain is None:
        return spread([])
    return spread(own) if arm == base else spread((own - plain).dropna(), sign="+")

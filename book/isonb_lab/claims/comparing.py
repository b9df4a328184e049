"""Methods against plain training: what each gains, tested together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from isonb_lab.claims.design import PLAIN
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import FEWEST, NO_SETTING, by_cell, difference
from isonb_lab.statistics.paired import GAIN, LOSS, OPEN, Name, paired_tests
from isonb_lab.statistics.seeds import LEVEL, Interval, student

ALIKE = 0.02  # two scores, or two values of IsoScore, that count as alike
ALL_LAYERS = "isoscore_star_all_layers"  # the one measure of the tokens of all layers
ABOVE, BELOW = "above", "below"
LABELS = {GAIN: ABOVE, LOSS: BELOW, OPEN: OPEN}  # of a paired test, as the book prints its verdict


def against_plain(study: Study, arms: Sequence[str], *, family: int = 0) -> pd.DataFrame:
    """What each of the ``arms`` gains over plain training on each task on which something learned.

    The columns of :meth:`~isonb_lab.claims.study.Study.paired`, ``arm``, ``p`` of the paired test by Holm's method
    over all rows, and ``outcome``: significantly above or below plain training, or not significant.
    A method without a working setting on a task is no test: its outcome says so, and it has no ``p``. ``mde`` is
    the minimum detectable effect at the first step of Holm's method, which is what a verdict needs. With a planned
    ``family`` of so many cells those that lack a planned run have no row, and count as p = 1.
    """
    broken = study.no_setting
    lacking = study.plan[study.plan["run_id"].isna()] if family else study.plan[:0]
    partly = set(lacking[["arm", "suite"]].itertuples(index=False, name=None))
    plain = study.units("score", PLAIN)
    gains = {
        (arm, suite): values
        for arm in arms
        for suite, values in by_cell(difference(study.units("score", arm), plain)).items()
        if len(values) >= FEWEST and not study.unlearned(suite) and not partly & {(arm, suite), (PLAIN, suite)}
    }
    works = {name: values for name, values in gains.items() if name not in broken}
    tests = paired_tests(works, family=family)
    rows = []
    for name, values in gains.items():
        mean, test = student(values), tests.get(name)
        lines = (np.nan, np.nan, NO_SETTING) if test is None else (test.visible, test.p, LABELS[test.verdict])
        rows.append((*name, mean.n, *mean.ends, *lines))
    return pd.DataFrame(rows, columns=["arm", "suite", "n", "mean", "low", "high", "mde", "p", "outcome"])


def joint_intervals(samples: Mapping[Name, Sequence[float]]) -> dict[Name, Interval]:
    """Student's intervals of several means that hold together with probability 0.95, by Bonferroni's inequality.

    A statement about all of them, that none leaves room for a gain, needs these: 95% intervals one by one miss some.

    >>> several = joint_intervals({"a": [0.1, 0.2, 0.3], "b": [0.0, 0.1, 0.2]})
    >>> round(several["a"].high, 2), round(student([0.1, 0.2, 0.3]).high, 2)
    (0.56, 0.45)
    """
    shared = 1 - (1 - LEVEL) / max(len(samples), 1)
    return {name: student(values, level=shared) for name, values in samples.items()}


def direction_of(values: Sequence[float], margin: float = ALIKE) -> str:
    """Which way a measure went: "rose" or "fell" where the interval lies beyond the margin of 0.

    "significant but negligible" where it leaves 0 out and not the margin, and nothing where it holds 0.

    >>> direction_of([0.10, 0.12, 0.11]), direction_of([0.001, 0.0012, 0.0011]), direction_of([0.1, -0.2, 0.1])
    ('rose', 'significant but negligible', '')
    """
    if len(values) < FEWEST:
        return ""
    mean = student(values)
    if mean.low > margin or mean.high < -margin:
        return "rose" if mean.estimate > 0 else "fell"
    return "significant but negligible" if mean.low > 0 or mean.high < 0 else ""

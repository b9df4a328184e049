"""One number a run from a series over layers; layer 0, the embedding output, is left out."""

from __future__ import annotations

from collections.abc import Sequence

from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import Units

__all__ = ["half_mean", "last_less_others"]


def half_mean(study: Study, name: str, arm: str, suites: Sequence[str], *, late: bool) -> Units:
    """Mean of the series ``name`` over the later, or the earlier, half of the layers, keyed by (suite, seed)."""
    part = study.logged(name, arm, suites)
    part = part[part["step"] > 0]
    part = part[(part["step"] > part.groupby("suite")["step"].transform("max") / 2) == late]
    return {(str(s), int(k)): float(v) for (s, k), v in part.groupby(["suite", "seed"])["value"].mean().items()}


def last_less_others(study: Study, name: str, arm: str, suites: Sequence[str]) -> Units:
    """The series ``name`` at the last layer less its mean over the others, keyed by (suite, seed)."""
    part = study.logged(name, arm, suites)
    found = {}
    for (suite, seed), run in part[part["step"] > 0].sort_values("step").groupby(["suite", "seed"]):
        found[str(suite), int(seed)] = float(run["value"].iloc[-1] - run["value"].iloc[:-1].mean())
    return found

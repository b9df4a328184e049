"""Controlled English: six small tasks whose answers are known because the sentences are made from their meanings.

In the manner of BLiMP (Warstadt et al. 2020) and HANS (McCoy et al. 2019). Read :mod:`~english.words`,
then :mod:`~english.grammar`, then any one of the phenomena. :func:`suite` gives the rows.
"""

from __future__ import annotations

from english.suite import LARGEST, SIZES, SPLITS, TASKS, SuiteError, Task, majority, suite

__all__ = ["LARGEST", "SIZES", "SPLITS", "TASKS", "SuiteError", "Task", "majority", "suite"]

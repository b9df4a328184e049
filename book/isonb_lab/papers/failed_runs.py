"""Failed fine-tunings: what plain training and the methods have of them where plain training is unsteady.

That a regulariser prevents failed runs is an old finding about fine-tuning (Mosbach et al. 2021). It was looked for
here after the runs had been seen, and says so. Then it was tested with new seeds: hypothesis H2 of
``evidence_plan.md``. No hypothesis there speaks of what those seeds gain in the mean; the scores are an outcome of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from scipy import stats as scipy_stats

from isonb_lab.claims.design import PLAIN
from isonb_lab.claims.study import Study
from isonb_lab.claims.table import failed, settings_of_rows
from isonb_lab.runs.recordings import recorded, scored
from isonb_lab.statistics.seeds import Interval, share

from .arms import COSREG, METHODS
from .head_to_head import arm_of

FAST = "STS-B at rate 2e-4"  # runs of the head to head before its rows and rates were chosen anew
RECORDING, RATE = "head_to_head_xeon", 2e-4
NEW_SEEDS = range(11, 41)  # of H2, with plain training and with CosReg at weight 0.3 behind a pooler


def unsteady_runs(study: Study) -> pd.DataFrame:
    """The runs of tasks on which plain training fails now and then: suite, arm, seed, score, failed.

    Those of the head to head, ``study``, and :data:`FAST` of another recording.
    """
    runs = recorded(RECORDING).runs
    runs = runs[(runs["task"] == "stsb") & (runs["learning_rate"] == RATE) & (runs["seed"] > 0)]
    arms = [arm_of(settings) for settings in settings_of_rows(runs)]
    fast = pd.DataFrame(
        {"suite": FAST, "arm": arms, "seed": runs["seed"], "score": runs["metric.pearson"], "metric": "pearson"}
    )
    fast = fast.assign(majority=0.0, rows=study.runs.loc[study.runs["suite"] == "STS-B", "rows"].iloc[0])
    fast = fast[fast["arm"].isin([PLAIN, *METHODS])].assign(failed=failed)
    columns = ["suite", "arm", "seed", "score", "failed"]
    plain = study.runs[(study.runs["arm"] == PLAIN) & study.runs["failed"]]["suite"].unique()
    mine = study.runs[study.runs["suite"].isin(plain) & study.runs["arm"].isin([PLAIN, *METHODS])]
    return pd.concat([mine[columns], fast[columns]], ignore_index=True)


@dataclass(frozen=True)
class Prevented:
    """The failed runs of ``arms`` together and of plain training, with exact intervals and Fisher's exact p."""

    arms: tuple[str, ...]
    methods: Interval
    plain: Interval
    p: float


def new_seeds() -> pd.DataFrame:
    """The runs of H2: plain training and CosReg on sentiment (tiny) at rate 1e-3, with ``arm`` and ``failed``."""
    runs = scored(recorded("evidence_head_to_head").runs)
    runs = runs[(runs["task"] == "english_sentiment") & (runs["learning_rate"] == 1e-3) & (runs["head"] == "pooler")]
    runs = runs[runs["seed"].isin(NEW_SEEDS) & (runs["method.weight"].fillna(0.3) == 0.3)]
    return runs.assign(arm=[arm_of(settings) for settings in settings_of_rows(runs)], failed=failed(runs))


def with_new_seeds() -> Prevented:
    """H2 of the plan: the failed runs of CosReg against those of plain training, with seeds that no one had seen."""
    return _against_plain(new_seeds(), (COSREG,))


def gains_with_new_seeds() -> pd.DataFrame:
    """What CosReg gains over plain training in the runs of H2, in points by seed; ``failed``: one of the two did."""
    table = new_seeds().pivot(index="seed", columns="arm", values=["score", "failed"])
    gain = 100 * (table["score"][COSREG] - table["score"][PLAIN]).astype(float)
    return pd.DataFrame({"gain": gain, "failed": table["failed"].astype(bool).any(axis=1)})


def prevented(runs: pd.DataFrame) -> Prevented:
    """The arms that never failed on any of these tasks, together, against plain training on the same tasks.

    The arms are chosen by what they did, so ``p`` flatters: it is a reason to test this with new seeds, and no test.
    """
    tasks = set(runs["suite"])
    by_arm = {str(arm): some for arm, some in runs.groupby("arm", sort=False)}
    never = tuple(a for a, some in by_arm.items() if not some["failed"].any() and set(some["suite"]) == tasks)
    return _against_plain(runs, never)


def _against_plain(runs: pd.DataFrame, arms: tuple[str, ...]) -> Prevented:
    groups = [runs[runs["arm"].isin(some)]["failed"] for some in (arms, (PLAIN,))]
    counts = [(int(group.sum()), len(group)) for group in groups]
    table = [[k, n - k] for k, n in counts]
    methods, plain = (share(k, n) if n else Interval(0.0, 0.0, 1.0, 0.95, 0, "none") for k, n in counts)
    return Prevented(arms, methods, plain, float(scipy_stats.fisher_exact(table).pvalue))

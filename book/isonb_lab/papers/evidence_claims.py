"""The papers' claims on a model that learns its tasks: the runs of ``evidence_claims``, as ``evidence_plan.md`` has it.

What is read of these runs stands beside each claim, in the study of its paper.
"""

from __future__ import annotations

from isonb_lab.claims.comparing import joint_intervals
from isonb_lab.claims.design import PLAIN, Design, Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.table import task_and_encoder
from isonb_lab.claims.verdicts import difference
from isonb_lab.statistics.seeds import Interval

from . import arms, istar, shrink_the_longest
from .over_tasks import seed_means


def arm_of(settings: Settings) -> str | None:
    """Which bars are in the loss, the weight of I-STAR and what differs besides, or the method."""
    mine = {"softdecay": arms.SOFTDECAY, "isolayer": arms.ISOLAYER}.get(settings.get("method.name", "none"))
    return mine or shrink_the_longest.arm_of(settings) or istar.arm_of(settings)


METHODS = (istar.WEAK_DOWN, istar.WEAK_UP, shrink_the_longest.SELECTED, arms.SOFTDECAY, arms.ISOLAYER)


def joint_gains(study: Study) -> dict[str, Interval]:
    """The mean gain of the papers' methods over both tasks, with intervals that hold together."""
    plain = study.units("score", PLAIN)
    units = dict.fromkeys(study.suites, 1.0)
    return joint_intervals({arm: seed_means(difference(study.units("score", arm), plain), units) for arm in METHODS})


DESIGN = Design(
    name=arms.LEARNED,
    page="results/ledger",
    recordings=(arms.LEARNED,),
    arm=arm_of,
    suite=task_and_encoder,
    size="full",
)

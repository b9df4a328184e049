"""The papers' claims on a model that learns its tasks: the runs of ``evidence_claims``, as ``evidence_plan.md`` has it.

What is read of these runs stands beside each claim, in the study of its paper.
"""

from __future__ import annotations

from isonb.lab.studies.design import Design, Settings
from isonb.lab.studies.table import task_and_encoder

from . import arms, istar, shrink_the_longest

__all__ = ["DESIGN"]


def arm_of(settings: Settings) -> str | None:
    """Which bars are in the loss, the weight of I-STAR and what differs besides, or the method."""
    mine = {"softdecay": arms.SOFTDECAY, "isolayer": arms.ISOLAYER}.get(settings.get("method.name", "none"))
    return mine or shrink_the_longest.arm_of(settings) or istar.arm_of(settings)


DESIGN = Design(
    name=arms.LEARNED,
    page="results/claims_cells",
    recordings=(arms.LEARNED,),
    arm=arm_of,
    suite=task_and_encoder,
    size="full",
)

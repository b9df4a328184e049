"""Shrink the longest (arXiv 2501.05502): arms by which bars are in the loss, and claims 1 to 5.

Its runs are those of ``evidence_claims`` that train plainly or with the entropy loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from isonb.lab.studies.design import PLAIN, Design, Settings
from isonb.lab.studies.study import Study
from isonb.lab.studies.table import task_and_encoder
from isonb.lab.studies.verdicts import Claim, Evidence, Prediction, Units, difference

from . import arms

__all__ = ["ALL", "DESIGN", "SELECTED"]

ALL, SELECTED = "all bars", "selected bars"
DETAILS = {", raw": "", ", centred": "_centered"}
ALIKE = 0.01  # shares that count as alike
SAME_SCORE = 0.02
PUBLISHED = {  # the paper's method; an arm is named by what differs from it
    "name": "none",
    "select": True,
    "per_label": True,
    "normalize": False,
    "max_dim": 0,
    "in_cluster": 0,
    "weight": 1,
}


def arm_of(settings: Settings) -> str | None:
    """Which bars are in the loss, and what else differs from the paper's method."""
    method = {option: settings.get(f"method.{option}", usual) for option, usual in PUBLISHED.items()}
    if method["name"] == "none":
        return PLAIN
    if method["name"] != "entropy":
        return None
    words = [SELECTED if method["select"] else ALL]
    words += ["without labels"] if not method["per_label"] else []
    words += ["over ln m"] if method["normalize"] else []
    words += [", ".join(f"H{k}" for k in range(int(method["max_dim"]) + 1))] if method["max_dim"] else []
    words += [f"others {method['in_cluster']:+g}"] if method["in_cluster"] else []
    words += [f"weight {method['weight']:g}"] if method["weight"] != 1 else []
    return ", ".join(words)


def shares(study: Study, k: int, arm: str, suites: Sequence[str]) -> Units:
    """A_k of the training batch over the last 30% of the updates, raw and centred."""
    values: dict[tuple[str, int], float] = {}
    for cell, ending in DETAILS.items():
        values |= study.tail(f"step.train.cls.anisotropy_{k}{ending}", arm, suites, cell)
    return values


def _share_change(study: Study, suites: Sequence[str], *, k: int, arm: str, base: str) -> Evidence:
    """A_k of an arm less that of another."""
    return difference(shares(study, k, arm, suites), shares(study, k, base, suites))


def _rise(study: Study, suites: Sequence[str], *, ending: str) -> Evidence:
    """A1 of the validation rows' [CLS] vectors after training less that before, of plain fine-tuning."""
    end, start = (study.units(f"metric.{at}.cls.anisotropy_1{ending}", PLAIN, suites) for at in ("end", "start"))
    return difference(end, start)


share: dict[str, Any] = {"details": tuple(DETAILS), "trained": True, "depends": "the task or the form of the share"}
CLAIMS = (
    Claim(
        1,
        "Without a regulariser A1 rises",
        tuple(
            Prediction(
                f"A1{detail}, end less start",
                partial(_rise, ending=ending),
                "greater",
                trained=True,
                runs_of=arms.HEAD_TO_HEAD,
            )
            for detail, ending in DETAILS.items()
        ),
    ),
    Claim(
        2,
        "The entropy loss lowers A1",
        tuple(
            Prediction(
                f"A1 of the last 30%, {arm} less none",
                partial(_share_change, k=1, arm=arm, base=PLAIN),
                **share,
            )
            for arm in (SELECTED, ALL)
        ),
    ),
    Claim(
        3,
        "Selected bars lower A1 at least as much as all",
        (
            Prediction(
                f"A1 of the last 30%, selected less all, at most {ALIKE}",
                partial(_share_change, k=1, arm=SELECTED, base=ALL),
                "at most",
                ALIKE,
                **share,
            ),
        ),
    ),
    Claim(
        4,
        "Selected bars gain, all bars are on par",
        (
            arms.scored(arms.ENTROPY, on=arms.ENTROPY_ON),
            arms.scored(arms.ALL_BARS, direction="equal", margin=SAME_SCORE, runs_of=arms.NEIGHBOURS),
            arms.scored(SELECTED, room=arms.POINT, runs_of=""),
            arms.scored(ALL, direction="equal", margin=SAME_SCORE, runs_of=""),
        ),
    ),
    Claim(
        5,
        "A3 rises with selected bars",
        (
            Prediction(
                "A3 of the last 30%, selected bars less none",
                partial(_share_change, k=3, arm=SELECTED, base=PLAIN),
                "greater",
                **share,
            ),
        ),
    ),
)
DESIGN = Design(
    name="shrink_the_longest",
    page="papers/shrink_the_longest_more",
    recordings=(arms.LEARNED,),
    arm=arm_of,
    claims=CLAIMS,
    suite=task_and_encoder,
    size="full",
    grid=arms.LEARNED,
)

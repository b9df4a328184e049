"""The planned runs that train a model: where claims look for the settings of their own paper, and what tables have.

``own_cells`` and ``own_cells_minilm`` have the papers' own weights, layers, heads and tasks. Their runs count as soon
as they are recorded.
"""

from __future__ import annotations

from dataclasses import replace

from isonb_lab.claims.design import PLAIN, Design, Settings
from isonb_lab.claims.table import task_and_encoder

from .arms import ALL_BARS, ENTROPY, HEAD_TO_HEAD, LEARNED, NEIGHBOURS, OWN_CELLS, TABLES, TRAINED
from .head_to_head import arm_of as method_of
from .head_to_head import no_setting

SERIES = (  # beginnings of what claims and pages read of the papers' own cells: what is published of them
    "dimension.end.tokens.mean",
    "k.end.",
    "layer.end.cls.two_nn",
    "layer.end.tokens.",
    "layer.start.tokens.",
    "step.second.",
    "step.train.cls.anisotropy_",
    "step.validation.",
)


def arm_of(settings: Settings) -> str | None:
    """The method, as the head to head names it; entropy is two, by its bars."""
    arm = method_of(settings) or settings.get("method.name", PLAIN)
    return ALL_BARS if arm == ENTROPY and not settings.get("method.select", True) else arm


DESIGN = Design(
    name=TRAINED,
    page="results/ledger",
    recordings=(LEARNED, HEAD_TO_HEAD, "evidence_methods", NEIGHBOURS, *OWN_CELLS),
    arm=arm_of,
    suite=task_and_encoder,
    size="full",
    grid=LEARNED,
    more=(
        (HEAD_TO_HEAD, "small"),
        ("evidence_methods", "full"),
        (NEIGHBOURS, "small"),
        *((name, "full") for name in OWN_CELLS),
    ),
    no_setting=no_setting,
)

# Planned for other questions: no claim of a paper is judged on them.
OTHERS = (("real_models", "full"), ("istar_doses", "small"), ("evidence_dose", "full"))


def arm_of_tables(settings: Settings) -> str | None:
    """As :func:`arm_of`; a step in a random direction, a control of the doses, is no method of a paper."""
    return None if settings.get("method.direction", "gradient") == "random" else arm_of(settings)


# What stands beside printed tables: every recording whose plain runs are of one kind of processor with its others. No
# run that chose a setting is among these, and none that was made again.
PRINTED_TABLES = replace(
    DESIGN,
    name=TABLES,
    recordings=(*DESIGN.recordings, *(name for name, _ in OTHERS)),
    arm=arm_of_tables,
    more=(*DESIGN.more, ("head_to_head_other_choice", "small"), *OTHERS),
    no_setting=frozenset,
)

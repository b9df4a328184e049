"""Today's neighbours of the papers' methods, two settings each, beside plain training on SST-2 and MRPC.

The claims are no paper's: each says that a neighbour raises the score. Nothing was chosen among the two settings, so
both are arms. Whether a neighbour moves isotropy is read from the same vectors as in the head to head.
"""

from __future__ import annotations

from collections.abc import Sequence

from isonb.measures.registry import titles
from isonb_lab.claims.design import PLAIN, Design, Settings
from isonb_lab.claims.verdicts import claim

from .arms import changed

LABELS = {
    "gor": "GOR",
    "sigreg": "SIGReg",
    "log_isoscore": "-ln IsoScore-U",
    "entropy": "entropy (all bars)",
    "mean_direction": "mean direction",
}
FORMS = {False: "R2", True: "R1"}
SETTINGS: dict[str, tuple[float, ...] | tuple[str, ...]] = {
    "gor": (0.03, 0.003),
    "sigreg": (0.002, 0.0002),
    "log_isoscore": (0.005, 0.0005),
    "entropy": (1.0, 0.1),
    "mean_direction": tuple(FORMS.values()),
}
MEASURES = titles("isoscore", "isoscore_unbiased")


def _named(name: str, setting: float | str) -> str:
    return f"{LABELS[name]} {setting if isinstance(setting, str) else format(setting, 'g')}"


def arms_of(name: str) -> tuple[str, ...]:
    """The arms of a method, in the order of the grid; none for one that isn't a neighbour.

    >>> arms_of("gor"), arms_of("mean_direction"), arms_of("istar")
    (('GOR 0.03', 'GOR 0.003'), ('mean direction R2', 'mean direction R1'), ())
    """
    settings: Sequence[float | str] = SETTINGS.get(name, ())
    return tuple(_named(name, setting) for setting in settings)


ARMS = (PLAIN, *(arm for name in LABELS for arm in arms_of(name)))


def arm_of(settings: Settings) -> str | None:
    """The method and its setting; entropy counts with all bars alone."""
    name = settings.get("method.name", "none")
    if name == "none":
        return PLAIN
    if name not in LABELS or (name == "entropy" and settings["method.select"]):
        return None
    subtracted = bool(settings.get("method.subtract"))
    return _named(name, FORMS[subtracted] if name == "mean_direction" else float(settings["method.weight"]))


CLAIMS = tuple(
    claim(
        name, f"{LABELS[name]}: raises the score", *(changed("score", "score", arm, "greater") for arm in arms_of(name))
    )
    for name in LABELS
)
DESIGN = Design(
    name="neighbours",
    page="results/ledger",
    recordings=("neighbours", "neighbours_h200"),  # SST-2 on a processor, MRPC on a card
    arm=arm_of,
    claims=CLAIMS,
    acts_on=dict.fromkeys(arms_of("mean_direction"), "second"),
)

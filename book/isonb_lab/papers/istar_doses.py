"""I-STAR at other doses: is lowering isotropy harmful, or is λ = -1 too strong, or too early?

The claims are no paper's: they are what the losses at lambda = -1 may be due to. "late", "turned" and "released" were
added when runs had been seen. λ = -1 with zeta 0.2, without pads and with grouped lengths is a setting of ours: neither
the paper nor its code has it. "released" has the code's pads and lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

from isonb_lab.claims.design import PLAIN, Design, Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import Evidence, Prediction, Units, claim, difference

from .arms import changed

FULL, THIRD, TENTH = "λ = -1", "λ = -0.3", "λ = -0.1"
LATE, RANDOM, SHRUNK, RELEASED = (
    "λ = -1 from the second epoch",
    "λ = -1, random direction",
    "λ = -1, ζ = 0.8",
    "λ = -1, padding as points",
)
ARMS = (PLAIN, FULL, THIRD, TENTH, LATE, RANDOM, SHRUNK, RELEASED)
ISOTROPY = "metric.end.tokens.isoscore_star_all_layers"
SMALL = 0.02  # a change of the score that doesn't count


def arm_of(settings: Settings) -> str | None:
    """The dose of a run, or none."""
    method = settings.get("method.name", "none")
    if method != "istar":
        return PLAIN if method == "none" else None
    requests = {
        LATE: "method.after" in settings,
        RANDOM: "method.direction" in settings,
        SHRUNK: float(settings.get("method.zeta", 0.2)) != 0.2,
        RELEASED: bool(settings.get("method.include_pads")),
    }
    others = [arm for arm, present in requests.items() if present]
    return others[0] if others else f"λ = {float(settings['method.weight']):g}"


def objective(study: Study, arm: str, suites: Sequence[str] | None = None) -> Units:
    """What I-STAR minimises at lambda = -1, at the end of a run: validation loss - (1 - IsoScore*), one a run.

    The loss is that of the held-out rows at the last validation; IsoScore* is that of all tokens of all layers.
    """
    logged = study.logged("step.validation.loss", arm, suites).sort_values("step").groupby("run_id").last()
    losses = {(row.suite, int(row.seed)): float(row.value) for row in logged.itertuples()}
    scores = study.units(ISOTROPY, arm, suites)
    return {unit: losses[unit] - (1 - scores[unit]) for unit in sorted(set(losses) & set(scores))}


def _lower(arm: str, other: str) -> Prediction:
    """The prediction that an arm ends lower by the objective than another."""

    def evidence(study: Study, suites: Sequence[str]) -> Evidence:
        return difference(objective(study, arm, suites), objective(study, other, suites))

    return Prediction(f"objective, {arm} less {other}", evidence, "less")


def _score(arm: str, direction: str, base: str = PLAIN) -> Prediction:
    margin = SMALL if direction == "equal" else 0.0
    return changed("score", "score", arm, direction, base=base, margin=margin, arms=())


CLAIMS = (
    claim("harm", "λ = -1 lowers the score", _score(FULL, "less")),
    claim("strong", "Weaker penalties leave the score as it is", _score(THIRD, "equal"), _score(TENTH, "equal")),
    claim("early", "A penalty from the second epoch on leaves the score as it is", _score(LATE, "equal")),
    claim(
        "direction",
        "A step of the same length in a random direction leaves the score as it is",
        _score(RANDOM, "equal"),
    ),
    claim("objective", "Plain training ends lower by I-STAR's own objective", _lower(PLAIN, FULL)),
    claim(
        "late",
        "A penalty from the second epoch on loses less, and ends lower in its own objective than plain training",
        _score(LATE, "greater", FULL),
        _lower(LATE, PLAIN),
    ),
    claim("turned", "A step of the same length in a random direction loses less", _score(RANDOM, "greater", FULL)),
    claim(
        "released",
        "With padding as points and mixed lengths, as released, λ = -1 loses less",
        _score(RELEASED, "greater", FULL),
    ),
)
DESIGN = Design(name="istar_doses", page="results/dose_more", recordings=("istar_doses",), arm=arm_of, claims=CLAIMS)

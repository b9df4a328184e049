"""IsoLayer, dose and response: is it the loss that harms, or the rate, or that nothing stops it?

The claims are no paper's: they are what the collapse of the earlier recording may have been due to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from isonb_lab.claims.design import Design, Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import Evidence, Prediction, Units, claim, difference

HEADS = ("linear", "pooler")
JOINT = ("joint", "1e-03")  # loss and rate of the earlier recording: the paper gives no rate, so this one is ours
TASK_ALONE, LOUDEST = ("task", "1e-03"), ("isotropy", "1e-03")
KEYS = ("suite", "head", "seed", "loss", "rate")
PATIENCE = 5  # epochs without improvement on held-out rows, as in isonb_lab.engines.second_phase
SMALL = 0.02  # a change of the score that doesn't count


def responses(study: Study) -> pd.DataFrame:
    """Every score and IsoScore: run_id, suite, head, seed, loss, rate, what, update, value."""
    names = [name for name in study.series["name"].unique() if name.startswith("step.dose.")]
    doses = pd.DataFrame([(name, *name.split(".")[2:]) for name in names], columns=["name", "loss", "rate", "what"])
    table = study.series.rename(columns={"step": "update", "arm": "head"}).merge(doses, on="name")
    return table[["run_id", *KEYS, "what", "update", "value"]]


def changes(study: Study) -> pd.DataFrame:
    """One row a run, loss and rate: what the layer changed where it would have stopped, and at the end.

    Columns: suite, head, seed, loss, rate; ``epoch`` of the best score on the held-out rows, before :data:`PATIENCE`
    epochs without a better one; ``update`` of it; ``score`` and ``isoscore`` there less those before the layer,
    ``score_end`` and ``isoscore_end`` after the last epoch; ``before``, the IsoScore before the layer.
    """
    rows = []
    logged = responses(study)
    every = logged.pivot(index=[*KEYS, "update"], columns="what", values="value").reset_index("update")
    for key, wide in every.groupby(level=list(KEYS)):
        best = stopping(wide["held"].tolist(), PATIENCE)
        update, score, isoscore = (wide[name].to_numpy() for name in ("update", "score", "isoscore"))
        row = dict(zip(KEYS, key, strict=True)) | {"epoch": best, "update": update[best], "before": isoscore[0]}
        for name, values in (("score", score), ("isoscore", isoscore)):
            row |= {name: values[best] - values[0], f"{name}_end": values[-1] - values[0]}
        rows.append(row)
    table = pd.DataFrame(
        rows, columns=[*KEYS, "epoch", "update", "before", "score", "score_end", "isoscore", "isoscore_end"]
    )
    return logged[[*KEYS]].drop_duplicates().merge(table)  # in the order of the runs


def stopping(scores: Sequence[float], patience: int) -> int:
    """The epoch whose state is kept: the first best one before ``patience`` epochs without improvement.

    ``scores[0]`` is the score before training, which is no candidate.

    >>> stopping([0.8, 0.7, 0.75, 0.75, 0.74, 0.9], patience=2)
    2
    """
    best, at = -float("inf"), 0
    for epoch, value in enumerate(scores[1:], start=1):
        if value > best:
            best, at = value, epoch
        elif epoch - at >= patience:
            break
    return at


def _units(study: Study, suites: Sequence[str], *, column: str, dose: tuple[str, str]) -> Units:
    """A column of :func:`changes` at a dose."""
    table = changes(study)
    table = table[(table["loss"] == dose[0]) & (table["rate"] == dose[1]) & table["suite"].isin(suites)]
    return {(f"{r.suite}, {r.head}", int(r.seed)): float(getattr(r, column)) for r in table.itertuples()}


def _owed(study: Study, suites: Sequence[str]) -> Evidence:
    """What the joint loss gains beyond the task's loss alone, of the same fine-tuned model."""
    return difference(*(_units(study, suites, column="score", dose=dose) for dose in (JOINT, TASK_ALONE)))


def _score(what: str, evidence: Callable[[Study, Sequence[str]], Evidence], direction: str) -> Prediction:
    return Prediction(f"score {what}", evidence, direction, SMALL, trained=True, details=DETAILS)


def _raised(what: str, column: str) -> Prediction:
    return Prediction(what, partial(_units, column=column, dose=JOINT), "greater", details=DETAILS)


DETAILS = tuple(f", {head}" for head in HEADS)
AT_END, AT_STOP = (partial(_units, column=column, dose=JOINT) for column in ("score_end", "score"))
UNHARMED = f"joint loss at 1e-3, less than {SMALL} below that without the layer"
CLAIMS = (
    claim(
        "end", "The joint loss at 1e-3 doesn't lower the score", _score(f"at the end, {UNHARMED}", AT_END, "at least")
    ),
    claim(
        "stop",
        "It doesn't lower the score with a stop on held-out rows",
        _score(f"at the stop, {UNHARMED}", AT_STOP, "at least"),
    ),
    claim(
        "penalty",
        "The penalty without the task's loss lowers the score",
        _score("at the end, penalty at 1e-3", partial(_units, column="score_end", dose=LOUDEST), "less"),
    ),
    claim(
        "owed",
        "Without the isotropy loss the layer scores the same",
        _score(f"at the stop, joint loss less the task's alone, at 1e-3, alike within {SMALL}", _owed, "equal"),
    ),
    claim(
        "shape",
        "The joint loss at 1e-3 raises IsoScore, stopped or not",
        _raised("IsoScore at the stop", "isoscore"),
        _raised("IsoScore at the end", "isoscore_end"),
    ),
)


def arm_of(settings: Settings) -> str | None:
    """The head."""
    return str(settings["head"]) if settings["experiment"] == "doses" else None


DESIGN = Design(name="layer_doses", page="results/dose_more", recordings=("layer_doses",), arm=arm_of, claims=CLAIMS)

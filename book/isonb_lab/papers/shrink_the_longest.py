"""Shrink the longest (arXiv 2501.05502): arms by which bars are in the loss, and claims 1 to 5.

Its runs are those of ``evidence_claims`` that train plainly or with the entropy loss.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from isonb_lab.claims.design import PLAIN, Settings, task_name
from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import Treated, in_short
from isonb_lab.claims.verdicts import Prediction, Value, claim, less, tail

from . import arms

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
    parts = [SELECTED if method["select"] else ALL]
    parts += ["without labels"] if not method["per_label"] else []
    parts += ["over ln m"] if method["normalize"] else []
    parts += [", ".join(f"H{k}" for k in range(int(method["max_dim"]) + 1))] if method["max_dim"] else []
    parts += [f"others {method['in_cluster']:+g}"] if method["in_cluster"] else []
    parts += [f"weight {method['weight']:g}"] if method["weight"] != 1 else []
    return ", ".join(parts)


def shares(k: int) -> dict[str, Value]:
    """A_k of the training batch over the last 30% of the updates, raw and centred."""
    return {detail: tail(f"step.train.cls.anisotropy_{k}{ending}") for detail, ending in DETAILS.items()}


PLAIN_RUNS = arms.plain_on(arms.SHRINK_TASKS, **arms.SHRINK_TRAINING)
TREATMENTS = {SELECTED: arms.entropy_of(select=True), ALL: arms.entropy_of(select=False)}


def _own_share(k: int, arm: str, base: str = PLAIN, direction: str = "less", **more: Any) -> Prediction:
    """A_k of the training batch over the last 30% of the updates, raw and centred, at the paper's setting."""
    text = f"A{k} of the last 30%, {arm} less {base}"
    other = TREATMENTS.get(base, PLAIN_RUNS)
    return arms.treated(text, TREATMENTS[arm], direction, value=shares(k), base=other, depends=FORM, **more)


# A1 of the validation rows' [CLS] vectors after training less that before.
A1 = {detail: f"cls.anisotropy_1{ending}" for detail, ending in DETAILS.items()}
RISES = {detail: less(f"metric.end.{name}", f"metric.start.{name}") for detail, name in A1.items()}
FORM = "the task or the form of the share"
share: dict[str, Any] = {"details": tuple(DETAILS), "depends": FORM}
CLAIMS = (
    claim(
        1,
        "Without a regulariser A1 rises",
        *(
            arms.shown(f"A1{detail}, end less start", value, PLAIN, "greater", runs_of=arms.HEAD_TO_HEAD)
            for detail, value in RISES.items()
        ),
        arms.treated("A1, end less start", PLAIN_RUNS, evidence=Treated(RISES, PLAIN_RUNS), depends=FORM),
    ),
    claim(
        2,
        "The entropy loss lowers A1",
        *(arms.changed("A1 of the last 30%", shares(1), arm, **share) for arm in (SELECTED, ALL)),
        *(_own_share(1, arm) for arm in (SELECTED, ALL)),
    ),
    claim(
        3,
        "Selected bars lower A1 at least as much as all",
        arms.shown(
            f"A1 of the last 30%, selected less all, at most {ALIKE}",
            shares(1),
            SELECTED,
            "at most",
            ALL,
            margin=ALIKE,
            arms=(SELECTED, ALL),
            **share,
        ),
        _own_share(1, SELECTED, ALL),
    ),
    claim(
        4,
        "Selected bars gain, all bars are on par",
        arms.scored(arms.ENTROPY, on=arms.ENTROPY_ON),
        arms.scored(arms.ALL_BARS, direction="equal", margin=SAME_SCORE, runs_of=arms.NEIGHBOURS),
        arms.scored(SELECTED, expected_effect=arms.SHRINK_GAIN, runs_of=""),
        arms.scored(ALL, direction="equal", margin=SAME_SCORE, runs_of=""),
        arms.treated(
            f"score, {SELECTED} less none", TREATMENTS[SELECTED], base=PLAIN_RUNS, expected_effect=arms.SHRINK_GAIN
        ),
        arms.treated(
            f"score, {ALL} less none, alike within {arms.SHRINK_GAIN}",
            TREATMENTS[ALL],
            "equal",
            base=PLAIN_RUNS,
            margin=arms.SHRINK_GAIN,
        ),
    ),
    claim(
        5,
        "A3 rises with selected bars",
        arms.changed("A3 of the last 30%", shares(3), SELECTED, "greater", **share),
        _own_share(3, SELECTED, direction="greater"),
    ),
)


def trainings(study: Study) -> list[str]:
    """How the runs of each suite were trained, for a sentence.

    "tiny on SST-2 (20,000 rows, epochs 1, batch size 32)", where no number of rows is all of them.
    """
    texts = []
    for run in study.settings.values():
        rows = f"{run['train_examples']:,.0f} rows" if run.get("train_examples") else "all rows"
        others = [in_short(column, run[column]) for column in ("epochs", "batch_size") if column in run]
        texts.append(f"{run['model']} on {task_name(run['task'])} ({', '.join([rows, *others])})")
    return list(dict.fromkeys(texts))


def of_paper(study: Study) -> list[str]:
    """The runs that have the paper's own tasks, batches and passes, and its method or none."""
    own = (PLAIN_RUNS, *TREATMENTS.values())
    return [run for run, settings in study.settings.items() if any(one.has(settings) for one in own)]


def score_course(study: Study, arm: str) -> pd.DataFrame:
    """The main score of an arm's runs at each validation, as a series."""
    names = "step.validation." + study.series["run_id"].map(study.runs.set_index("run_id")["metric"])
    return study.series[(study.series["name"] == names) & (study.series["arm"] == arm)]


DESIGN = arms.learned_design("shrink_the_longest", arm_of, CLAIMS)
PAPER_RUNS = arms.paper_design(DESIGN.name, {PLAIN: PLAIN_RUNS, **TREATMENTS})

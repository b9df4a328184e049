"""IsoLayer (Attieh et al., ICDAR 2023): arms, and claims 23 to 25. IsoBN, its rival, ran in the head to head alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from isonb_lab.claims.design import PLAIN, Settings
from isonb_lab.claims.study import Study
from isonb_lab.claims.treated_runs import Treated
from isonb_lab.claims.treatment import Treatment
from isonb_lab.claims.verdicts import Prediction, Value, claim, less

from . import arms

DETAILS = {", raw": "", ", centred": "_centered"}
BEFORE, BEHIND = "metric.end.cls.isoscore", "metric.end.second.isoscore"
SAME_SCORE = 0.02


def arm_of(settings: Settings) -> str | None:
    """The method; IsoBN in live runs."""
    names = {"none": PLAIN, "isolayer": arms.ISOLAYER, "isobn": arms.ISOBN}
    return names.get(settings.get("method.name", "none"))


def roundest_task(runs: pd.DataFrame) -> tuple[str, float, float] | None:
    """The task with the highest mean IsoScore behind the trained layer, before the layer and behind it.

    A failed run doesn't count, and no run without the layer: None where no other is left.

    >>> scores = {BEFORE: [0.1, 0.1, 0.1, 0.9], BEHIND: [0.2, 0.3, 0.9, None], "failed": [False, False, True, False]}
    >>> roundest_task(pd.DataFrame(scores | {"suite": ["CoLA", "SST-5", "RTE", "SST-5"]}))
    ('SST-5', 0.1, 0.3)
    >>> roundest_task(pd.DataFrame({"suite": ["CoLA"], "failed": [False]}))
    """
    learned = runs[~runs["failed"].astype(bool)].reindex(columns=["suite", BEFORE, BEHIND]).dropna(subset=BEHIND)
    means = learned.groupby("suite").mean()
    if means.empty:
        return None
    best = int(means[BEHIND].argmax())
    before, behind = means.to_numpy(float)[best].tolist()
    return str(means.index[best]), before, behind


def isoscore_bound(explained: Sequence[float], dim: int, slack: float = 0.0) -> float:
    """The highest IsoScore that explained variances of 1, 2, ... components allow; ``slack`` is their rounding.

    With shares of the variance p1, p2, ..., the steps of ``explained``, the squares of all shares sum to
    p1^2 + p2^2 + ... or more.

    >>> isoscore_bound([0.5, 1.0, 1.0], 11), isoscore_bound([0.5], 4)
    (0.1, 1.0)
    """
    first, *others = (after - before for before, after in zip((0.0, *explained), explained, strict=False))
    least = (first - slack, *(share - 2 * slack for share in others))
    return (1 / sum(max(share, 0.0) ** 2 for share in least) - 1) / (dim - 1)


def _variance(k: int, text: str, value: Callable[[str], Value], base: str = "") -> tuple[Prediction, ...]:
    """Explained variance of k components behind the layer, less that of ``base``, in the head to head: raw, centred."""
    return tuple(
        arms.shown(
            f"head to head: {text}{detail}",
            value(f"explained_variance_{k}{ending}"),
            arms.ISOLAYER,
            base=base,
            runs_of=arms.HEAD_TO_HEAD,
            arms=(arms.ISOLAYER, base or arms.ISOLAYER),
        )
        for detail, ending in DETAILS.items()
    )


def _end(name: str) -> Value:
    """A measure behind the layer less the same before it."""
    return less(f"metric.end.second.{name}", f"metric.end.cls.{name}")


def _with(treatment: Treatment, model: str) -> Treatment:
    """A treatment of one encoder's runs alone."""
    return replace(treatment, settings={**treatment.settings, "model": (model,)})


def _after_less_before(text: str, name: str, direction: str) -> Prediction:
    """A measure behind the layer less before it, at the paper's setting: linear head, its own tasks."""
    return arms.treated(text, arms.ISOLAYER_LAYER, direction, evidence=Treated(_end(name), arms.ISOLAYER_LAYER))


def _read_behind(name: str) -> Value:
    """A measure of what the classifier reads: behind IsoLayer's layer, or scaled by IsoBN."""

    def value(study: Study, runs: Sequence[str]) -> dict[str, float]:
        scaled, behind = (study.numbers(f"metric.end.{at}.{name}", runs) for at in ("features", "second"))
        method = study.runs.set_index("run_id")["method.name"].reindex(list(runs))
        return dict(scaled.where(method != "isolayer", behind).dropna())

    return value


SMALLER, LARGER = "google-bert/bert-base-cased", "FacebookAI/roberta-large"  # the paper's encoders
NEEDS = "a larger encoder: 90 runs of roberta-large in isolayer.yaml, about 4 hours of one A100"
OF_LARGER, OF_SMALLER = _with(arms.ISOLAYER_LAYER, LARGER), _with(arms.ISOLAYER_LAYER, SMALLER)
# of any encoder but the larger, on whose runs no value of this setting is the treatment's
OF_OTHERS = replace(arms.ISOLAYER_LAYER, by_cell={(LARGER, task): {"model": ()} for task in arms.ISOLAYER_TASKS})
FALL_OF_EV1 = {
    detail: less(f"metric.end.cls.explained_variance_1{ending}", f"metric.end.second.explained_variance_1{ending}")
    for detail, ending in DETAILS.items()
}
behind = "IsoScore, after the layer less before"
EV3 = {detail: _read_behind(f"explained_variance_3{ending}") for detail, ending in DETAILS.items()}
# IsoBN scales what the pooler gives, IsoLayer's head is linear
against: dict[str, Any] = {"base": arms.ISOBN_LAYER, "may_differ": ("head",)}
CLAIMS = (
    claim(
        23,
        "The layer raises IsoScore and the score",
        *(
            arms.shown(f"{arms.RUNS[runs]}: {behind}", _end("isoscore"), arms.ISOLAYER, "greater", runs_of=runs)
            for runs in (arms.HEAD_TO_HEAD, arms.LEARNED)
        ),
        arms.scored(arms.ISOLAYER),
        arms.scored(arms.ISOLAYER, expected_effect=arms.ISOLAYER_GAIN, runs_of=arms.LEARNED),
        _after_less_before(behind, "isoscore", "greater"),
        arms.treated("score, IsoLayer less none", arms.ISOLAYER_LAYER, expected_effect=arms.ISOLAYER_GAIN),
    ),
    claim(
        24,
        "The layer lowers EV1, less for RoBERTa-large",
        *_variance(1, "EV1, after the layer less before", _end),
        *(
            _after_less_before(f"EV1, after the layer less before{detail}", f"explained_variance_1{ending}", "less")
            for detail, ending in DETAILS.items()
        ),
        arms.treated(
            "fall of EV1, RoBERTa-large less BERT-base",
            OF_LARGER,
            "less",
            value=FALL_OF_EV1,
            base=OF_SMALLER,
            may_differ=("model",),
            needs=NEEDS,
        ),
    ),
    claim(
        25,
        "On a par with IsoBN in the score; EV3 lower for BERT, higher for RoBERTa",
        arms.scored(arms.ISOLAYER, arms.ISOBN, "equal", margin=SAME_SCORE),
        *_variance(3, "EV3, IsoLayer less IsoBN", _read_behind, arms.ISOBN),
        arms.treated(
            f"score, IsoLayer less IsoBN, alike within {arms.ISOLAYER_GAIN:.2g}",
            arms.ISOLAYER_LAYER,
            "equal",
            margin=arms.ISOLAYER_GAIN,
            **against,
        ),
        *(
            arms.treated(f"EV3, IsoLayer less IsoBN{detail}", OF_OTHERS, "less", value=value, **against)
            for detail, value in EV3.items()
        ),
        arms.treated(
            "EV3, IsoLayer less IsoBN, RoBERTa-large", OF_LARGER, "greater", value=EV3, needs=NEEDS, **against
        ),
    ),
)
DESIGN = arms.learned_design("isolayer", arm_of, CLAIMS)
PLAIN_RUNS = arms.plain_on(arms.ISOLAYER_TASKS, head=("linear",), holdout=(0.3,))
PAPER_RUNS = arms.paper_design(DESIGN.name, {PLAIN: PLAIN_RUNS, arms.ISOLAYER: arms.ISOLAYER_LAYER})

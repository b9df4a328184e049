"""The arms of the head to head, and what a claim predicts of their scores.

In the papers' own grids the plain models hardly learned their tasks, and no method had a stopping or a strength of its
own. In the head to head they did, and in the runs that ``evidence_plan.md`` asks for: a claim about trained models is
judged there (``runs_of`` of a prediction), by the arms named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from isonb_lab.claims.design import PLAIN, TASK_NAMES, Design, Settings
from isonb_lab.claims.printed import printed
from isonb_lab.claims.table import task_and_encoder
from isonb_lab.claims.treated_runs import Treated
from isonb_lab.claims.treatment import Treatment
from isonb_lab.claims.verdicts import Change, Claim, Evidence, Prediction, Values

HEAD_TO_HEAD, NEIGHBOURS, LEARNED = "head_to_head", "neighbours", "evidence_claims"
# The studies of what claims are judged on and of what stands in tables; the papers' own settings.
TRAINED, TABLES, OWN_CELLS = "trained_runs", "printed_tables", ("own_cells", "own_cells_minilm")
RUNS = {HEAD_TO_HEAD: "head to head", NEIGHBOURS: "neighbours", LEARNED: "runs that learned"}
POINT = 0.01  # the gain or loss that a claim about a score is about, where the plan says so
LOWER, RAISE, ENTROPY = "I-STAR (lower)", "I-STAR (raise)", "entropy"
SOFTDECAY, ISOLAYER, ISOBN, COSREG, SPECTRUM = "SoftDecay", "IsoLayer", "IsoBN", "CosReg", "spectrum control"
LAST = "I-STAR (last layer)"  # lower, on the tokens of the last layer alone: C6
ARMS = (PLAIN, LOWER, RAISE, ENTROPY, SOFTDECAY, ISOLAYER, ISOBN, COSREG, SPECTRUM)
METHODS = ARMS[1:]
# The vectors that a method changes, by arm; entropy changes the [CLS] vectors.
ACTS_ON = dict.fromkeys((LOWER, RAISE, LAST, COSREG, SPECTRUM), "tokens")
ACTS_ON |= {SOFTDECAY: "features", ISOBN: "features", ISOLAYER: "second"}
ENTROPY_ON = ("SST-2", "CoLA", "MRPC", "SST-2 (tiny)", "sentiment (tiny)")  # on STS-B it has no classes to act in
ALL_BARS = "entropy (all bars) 1"  # of the neighbours, with the weight of its paper


# What each paper states of its own runs. Rates and encoders aren't among it: none of their encoders is run here.
GLUE = ("sst2", "sst2_joint", "sst5", "qnli", "rte", "mrpc", "qqp", "cola", "stsb", "squad")
ISTAR_LOWER, ISTAR_RAISE = (-5, -3, -1), (0.5, 1, 3, 5)
SHRINK_TASKS, SHRINK_TRAINING = ("cola", "mrpc"), {"batch_size": (64,), "epochs": (10,), "head": ("pooler",)}
SOFTDECAY_TRAINING = {"batch_size": (32,), "epochs": (3,), "head": ("pooler",)}
SOFTDECAY_TASKS, ISOLAYER_TASKS = ("cola", "sst2", "sst2_joint", "mrpc", "qnli", "rte"), ("rte", "cola", "mrpc")


ISTAR_ENCODERS = {  # by the names of its tables
    "ALBERT": "albert/albert-base-v2",
    "BERT": "google-bert/bert-base-cased",
    "DistilBERT": "distilbert/distilbert-base-cased",
}
LAST_LAYER = {"tiny": 4, "minilm": 6}  # whose runs name a layer by its number; -1 is the last of any encoder


def istar_at(weights: Sequence[float], tasks: Sequence[str] = GLUE, **method: Sequence[Any]) -> Treatment:
    """I-STAR as released (padding counts) at weights of its paper, on all layers unless told.

    Where no zeta is told it is 0.2, and with the paper's own encoders what its Table 2 has for each task.
    """
    options = {"zeta": (0.2,), "layers": ("all",), "unbiased": (False,), "include_pads": (True,), **method}
    settings = {"weight": tuple(weights), **options}
    named = {f"method.{name}": tuple(values) for name, values in settings.items()}
    return Treatment("istar", tuple(tasks), named, by_cell={} if "zeta" in method else chosen_zetas())


def chosen_zetas() -> dict[tuple[str, str], dict[str, tuple[Any, ...]]]:
    """The zeta of I-STAR's Table 2 by encoder and task, as treatments name them.

    >>> chosen_zetas()["google-bert/bert-base-cased", "rte"]
    {'method.zeta': (0.8,)}
    """
    return _chosen("zeta", "method.zeta")


def at_chosen_weights(treatment: Treatment) -> Treatment:
    """A treatment of I-STAR that with the paper's own encoders has the weight that its Table 2 has for each task.

    >>> at_chosen_weights(istar_at((-1,))).by_cell["distilbert/distilbert-base-cased", "cola"]
    {'method.zeta': (0.4,), 'method.weight': (-3.0,)}
    """
    weights = _chosen("lambda", "method.weight")
    return replace(treatment, by_cell={cell: {**treatment.by_cell.get(cell, {}), **weights[cell]} for cell in weights})


def _chosen(parameter: str, column: str) -> dict[tuple[str, str], dict[str, tuple[Any, ...]]]:
    """What I-STAR's Table 2 has for each encoder and task."""
    table = printed("istar", "Table 2", percent=False, metric=parameter)
    tasks = {name: task for task, name in TASK_NAMES.items()}
    cells = table[table["task"].isin(tasks)].itertuples()
    return {(ISTAR_ENCODERS[cell.model], tasks[cell.task]): {column: (cell.value,)} for cell in cells}


def plain_on(tasks: Sequence[str], **settings: Sequence[Any]) -> Treatment:
    """Plain training on a paper's tasks."""
    return Treatment(PLAIN, tuple(tasks), {name: tuple(values) for name, values in settings.items()})


def entropy_of(*, select: bool) -> Treatment:
    """The entropy loss as Shrink the longest has it, with selected or with all bars."""
    method = {"select": (select,), "weight": (1,), "per_label": (True,), "max_dim": (0,), "normalize": (False,)}
    settings = {f"method.{name}": values for name, values in method.items()} | {"method.in_cluster": (0,)}
    return Treatment("entropy", SHRINK_TASKS, settings | SHRINK_TRAINING)


def cosreg_at(weight: float) -> Treatment:
    """CosReg as I-STAR's paper has it: on the last layer, padding counted."""
    return Treatment(
        "cosreg", GLUE, {"method.weight": (weight,), "method.layers": (-1,), "method.include_pads": (True,)}
    )


SOFTDECAY_LAYER = Treatment("softdecay", SOFTDECAY_TASKS, {"method.alpha": (-0.2,)} | SOFTDECAY_TRAINING)
ISOLAYER_LAYER = Treatment("isolayer", ISOLAYER_TASKS, {"head": ("linear",), "holdout": (0.3,), "method.depth": (1,)})
ISOBN_LAYER = Treatment("isobn", ISOLAYER_TASKS, {"head": ("pooler",), "holdout": (0.3,)})


def learned_design(name: str, arm: Callable[[Settings], str | None], claims: tuple[Claim, ...]) -> Design:
    """The design of a paper whose claims are judged on the runs that learned."""
    return Design(
        name=name,
        page=f"papers/{name}",
        recordings=(LEARNED,),
        arm=arm,
        claims=claims,
        suite=task_and_encoder,
        size="full",
        grid=LEARNED,
    )


def paper_design(name: str, treatments: Mapping[str, Treatment]) -> Design:
    """The design of minilm's runs with a paper's own ``treatments``, by arm, as ``own_cells_plan.md`` asks for them."""

    def arm(settings: Settings) -> str | None:
        return next((arm for arm, treatment in treatments.items() if treatment.has(settings)), None)

    return Design(
        name=f"{name}_own",
        page=f"papers/{name}",
        recordings=OWN_CELLS[1:],
        arm=arm,
        suite=task_and_encoder,
        size="full",
        grid=OWN_CELLS[1],
    )


def printed_gain(paper: str, table: str, method: str, base: str) -> float:
    """The median gain that a table prints, over its models, tasks and metrics: what a claim of a gain is about.

    >>> round(printed_gain("istar", "Table 1", "I-STAR", "Base"), 5)
    0.00335
    """
    numbers = printed(paper, table, percent=False, method=[method, base])
    numbers = numbers[~numbers["metric"].str.contains("relative|EV_|IsoScore")]
    wide = numbers.pivot_table(index=["model", "task", "metric"], columns="method", values="value")
    return float((wide[method] - wide[base]).median())


ISTAR_GAIN = printed_gain("istar", "Table 1", "I-STAR", "Base")
SOFTDECAY_GAIN = printed_gain("softdecay", "Table 2", "+SoftDecay", "base")
ISOLAYER_GAIN = min(
    printed_gain("isolayer", "Table 2", "Finetuned LM + Isotropy Layer", "Finetuned LM"),
    printed_gain(
        "isolayer", "Table 3", "IsoLayer (isotropy method on)", "IsoLayer column, baseline without the method"
    ),
)
SHRINK_GAIN = 0.005  # its Table 2 is lost in the text; own_cells_plan.md takes half a point


def treated(
    what: str,
    treatment: Treatment,
    direction: str = "greater",
    *,
    value: Values = "score",
    base: Treatment | None = None,
    may_differ: tuple[str, ...] = (),
    evidence: Callable[[Any, Sequence[str]], Evidence] | None = None,
    **more: Any,
) -> Prediction:
    """The prediction about the runs that have a claim's own treatment, in whichever recording of :data:`TRAINED`.

    ``base``: plain training on the same tasks, unless told; the seeds and all other settings are the same.
    ``evidence``: another one than the difference of ``value`` from the base.
    """
    evidence = evidence or Treated(value, treatment, base or plain_on(treatment.tasks), may_differ)
    options = {"trained": True, "on": (), "runs_of": TRAINED, "treatment": treatment, "decided_by": "agree", **more}
    return Prediction(f"at the paper's setting: {what}", evidence, direction, **options)


def shown(what: str, value: Values, arm: str, direction: str = "less", base: str = "", **more: Any) -> Prediction:
    """The prediction of a value of an arm's trained models, or of what it has more of it than ``base``."""
    return Prediction(what, Change(value, arm, base), direction, **{"trained": True, "arms": (arm,), **more})


def changed(
    what: str, value: Values, arm: str, direction: str = "less", *, base: str = PLAIN, margin: float = 0.0, **more: Any
) -> Prediction:
    """The prediction that an arm changes a value of trained models, against plain training unless ``base`` is told."""
    alike = f", alike within {margin}" if direction == "equal" else ""
    return shown(f"{what}, {arm} less {base}{alike}", value, arm, direction, base, margin=margin, **more)


def scored(
    arm: str, base: str = PLAIN, direction: str = "greater", *, runs_of: str = HEAD_TO_HEAD, **more: Any
) -> Prediction:
    """The prediction that an arm scores above another, below, or alike: in the head to head, or where ``runs_of`` says.

    ``""``: in the runs of the claim's own study, which are those that learned.
    """
    what = f"{RUNS[runs_of or LEARNED]}: score"
    return changed(what, "score", arm, direction, base=base, runs_of=runs_of, arms=(arm, base), **more)

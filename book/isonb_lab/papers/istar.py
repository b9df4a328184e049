"""I-STAR (Rudman and Eickhoff, ICLR 2024): arms by lambda and what differs besides, and claims 6 to 15."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
from scipy import stats as scipy_stats

from isonb_lab.claims.design import PLAIN, Design, Settings, task_name
from isonb_lab.claims.printed import printed
from isonb_lab.claims.study import Study
from isonb_lab.claims.table import task_and_encoder
from isonb_lab.claims.treated_runs import Treated, by_regime, training_of, treated_runs
from isonb_lab.claims.verdicts import Change, Evidence, Prediction, Value, claim, difference
from isonb_lab.statistics.resampling import rank_correlation
from isonb_lab.statistics.seeds import LEVEL, Interval, student

from . import arms
from .figure_2 import disagreements, nearer, too_low

ISOTROPY, ALL_TOKENS = "metric.end.tokens.isoscore_star_all_layers", "IsoScore* of the tokens of all layers"
COSINE, LAST_ISOTROPY = "metric.end.tokens.mean_cosine", "metric.end.tokens.isoscore_star"
OF_LAST = "of the last layer's tokens"
BY_LAYER = "layer.end.tokens.isoscore_star"
TWO_NN = "layer.end.cls.two_nn"
CLS_TWO_NN = "metric.end.cls.two_nn"
WEAK_DOWN, WEAK_UP = "λ = -0.1", "λ = +0.1"
SWEPT = re.compile(r"λ = (?P<weight>[^,]+)(, ζ = [^,]+)?")  # arms on all layers
ENDS = tuple(f"{WEAK_DOWN}, ζ = {zeta}" for zeta in (0, 1))
SINGLES = tuple(f"{WEAK_DOWN}, layer {layer}" for layer in (1, 4))
COSREG_DOWN = f"{arms.COSREG} -1"  # of the paper's own cells; the other one, at 1, is named as everywhere
ZETAS = arms.chosen_zetas()
ALIKE = 0.02  # two values of IsoScore* that count as alike
ROUNDING = 1e-9
SMALL = "figure_2"  # the study of small samples


def usual_zeta(settings: Settings) -> float:
    """The ζ of a run whose arm tells none: 0.2, and with the paper's encoders what its Table 2 has for the task.

    >>> usual_zeta({"model": "google-bert/bert-base-cased", "task": "rte"}), usual_zeta({"model": "tiny"})
    (0.8, 0.2)
    """
    cell = str(settings.get("model")), str(settings.get("task"))
    return float(ZETAS.get(cell, {"method.zeta": (0.2,)})["method.zeta"][0])


def arm_of(settings: Settings) -> str | None:
    """The method with its weight, and what else differs from the paper's: ζ where it isn't the usual one."""
    method = settings.get("method.name", "none")
    if method != "istar":
        return {"none": PLAIN, "cosreg": arms.COSREG}.get(method)
    zeta, layers = float(settings.get("method.zeta", 0.2)), settings.get("method.layers", "all")
    usual = usual_zeta(settings)
    parts = [f"λ = {float(settings['method.weight']):+g}"]
    parts += ["unbiased"] if settings.get("method.unbiased") else []
    parts += [f"ζ = {zeta:g}"] if zeta != usual else []
    parts += [f"layer {layers}"] if layers != "all" else []
    return ", ".join(parts)


def own_arm(settings: Settings) -> str | None:
    """The arm of a run of the paper's own cells, CosReg at -1 apart from CosReg at 1.

    Of minilm those at I-STAR's constant rate; the other papers' designs stand in the same grid.
    """
    if settings["model"] == "minilm" and settings.get("schedule") != "constant":
        return None
    arm = arm_of(settings)
    return COSREG_DOWN if arm == arms.COSREG and float(settings["method.weight"]) < 0 else arm


def lowers(settings: Settings) -> bool:
    """Whether a run is I-STAR with λ < 0 and the usual ζ on all layers, the arm of Table 1."""
    whole = settings.get("method.name") == "istar" and settings.get("method.layers", "all") == "all"
    zeta = float(settings.get("method.zeta", 0.2))
    return whole and float(settings["method.weight"]) < 0 and zeta == usual_zeta(settings)


def is_cosreg(settings: Settings) -> bool:
    """Whether a run is CosReg with a weight above 0, the rival of Table 1."""
    return settings.get("method.name") == "cosreg" and float(settings.get("method.weight", 1)) > 0


@dataclass(frozen=True)
class Sweep:
    """The arms in which a study varies λ, and ζ at the weakest λ < 0 and single layers at any.

    ``arms``: by λ, with plain training between; ``down`` is the one before it; ``zetas``: at ``down``.
    """

    arms: tuple[str, ...]
    down: str
    zetas: tuple[str, ...]
    layers: tuple[str, ...]


def sweep(study: Study) -> Sweep:
    """What a study sweeps; each λ at the usual ζ, or where that has no run at the ζ that was run."""
    arms_of_runs = study.arms or tuple(study.runs["arm"].unique())
    named = {arm: match for arm in arms_of_runs if (match := SWEPT.fullmatch(arm))}
    weights = sorted({float(match["weight"]) for match in named.values()})
    of = {weight: [arm for arm, match in named.items() if float(match["weight"]) == weight] for weight in weights}
    at = {weight: [arm for arm in arms if ", " not in arm] or arms for weight, arms in of.items()}
    lower, higher = ([arm for weight in weights if weight * sign > 0 for arm in at[weight]] for sign in (-1, 1))
    down = (lower or [WEAK_DOWN])[-1]
    weight = down.partition(", ")[0]
    zetas = tuple(arm for arm in named if arm.startswith(f"{weight}, ζ") and arm != down)
    layers = tuple(arm for arm in arms_of_runs if arm.partition(", layer")[0] in lower and ", layer" in arm)
    return Sweep((*lower, PLAIN, *higher), down, zetas, layers)


def weights_of(*sweeps: Sweep) -> list[str]:
    """The arms that some sweeps vary λ over, each once, by rising λ."""
    arms_of_sweeps = dict.fromkeys(arm for item in sweeps for arm in item.arms)
    return sorted(arms_of_sweeps, key=lambda arm: float(match["weight"]) if (match := SWEPT.fullmatch(arm)) else 0.0)


def with_encoder(study: Study, suite: str) -> str:
    """A suite in prose, its encoder first, which the name of a suite leaves out where it is minilm.

    "tiny on SST-2 with test rows"; a suite without runs stays as it is.
    """
    models = study.runs.loc[study.runs["suite"] == suite, "model"].unique()
    return " and ".join(f"{model} on {suite.replace(f' ({model})', '')}" for model in models) or suite or "no task"


def correlation(study: Study, suite: str) -> Interval | None:
    """Spearman's correlation of isotropy and score over the arms of a task's sweep: its mean over seeds, else None.

    Seeds count that have every arm. With fewer than two there is no interval, and so no answer.
    """
    runs = study.runs.reindex(columns=["suite", "arm", "seed", ISOTROPY, "score"]).dropna()
    planned = set(study.plan.loc[study.plan["suite"] == suite, "arm"])
    swept = [arm for arm in sweep(study).arms if arm in planned or not planned] or [PLAIN]
    if PLAIN in (swept[0], swept[-1]):  # one-sided
        return None
    runs = runs[(runs["suite"] == suite) & runs["arm"].isin(swept)]
    of_seeds = (_spearman(some) for _, some in runs.groupby("seed") if some["arm"].nunique() == len(swept))
    values = [value for value in of_seeds if value == value]
    return student(values) if len(values) > 1 else None


def _spearman(runs: pd.DataFrame) -> float:
    """Over some runs; NaN where a side is constant."""
    varies = (runs[[ISOTROPY, "score"]].nunique() > 1).all()
    return float(scipy_stats.spearmanr(runs[ISOTROPY], runs["score"]).statistic) if varies else math.nan


def is_choice(model: str, settings: Settings) -> bool:
    """Whether a run is one of those that Table 2 chooses among, as released, with an encoder."""
    released = settings.get("model") == model and settings.get("method.include_pads") is True
    return released and SWEPT.fullmatch(own_arm(settings) or "") is not None


def _choices(study: Study, suite: str) -> tuple[dict[str, dict[tuple[str, int], float]], list[tuple[str, int]]]:
    """The scores of I-STAR's settings on all layers, and the seeds that all of them have."""
    swept = sweep(study)
    settings = dict.fromkeys([*swept.arms, *swept.zetas])
    scores = {arm: units for arm in settings if arm != PLAIN and (units := study.units("score", arm, [suite]))}
    return scores, sorted(set.intersection(*map(set, scores.values()))) if scores else []


def best_setting(study: Study, suite: str) -> tuple[str, list[float]] | None:
    """Of I-STAR's settings the one with the best mean score over the seeds that all have, and its lead at each seed.

    The lead is over the second best. None with fewer than two settings or two seeds in common.
    """
    return _best(*_choices(study, suite))


def _best(
    scores: Mapping[str, Mapping[tuple[str, int], float]], common: Sequence[tuple[str, int]]
) -> tuple[str, list[float]] | None:
    if len(scores) < 2 or len(common) < 2:
        return None
    *_, second, best = sorted(scores, key=lambda arm: sum(scores[arm][unit] for unit in common))
    return best, [scores[best][unit] - scores[second][unit] for unit in common]


def best_settings(*studies: Study) -> pd.DataFrame:
    """The :func:`best_setting` of each suite: task, encoder, training, setting, lead.

    ``training`` is what else the suite has in its name. Of a task and encoder the last study counts that has one. Where
    too few runs are there to choose from, ``setting`` says how many, without a lead. Runs without padding aren't looked
    at.
    """
    best: dict[tuple[str, str], list[tuple[str, str, list[float]]]] = {}
    few: dict[tuple[str, str], list[tuple[str, str, list[float]]]] = {}
    for study in studies:
        found: dict[tuple[str, str], list[tuple[str, str, list[float]]]] = {}
        for suite, run in study.runs.drop_duplicates("suite").set_index("suite").iterrows():
            if "without padding" in str(suite):
                continue
            key = task_name(run["task"].removesuffix("_joint")), str(run["model"])
            more = str(suite).removeprefix(task_and_encoder(run)).removeprefix(", ")
            scores, common = _choices(study, str(suite))
            if one := _best(scores, common):
                found.setdefault(key, []).append((more, *one))
            elif scores:
                counts = ((len(scores), "setting"), (len(common), "seed"))
                told = ", ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in counts)
                few[key] = [(more, f"too few for a choice: {told}", [])]
        best |= found
    best |= {key: some for key, some in few.items() if key not in best}
    rows = [(*key, *one) for key, some in best.items() for one in some]
    return pd.DataFrame(rows, columns=["task", "encoder", "training", "setting", "lead"])


def counted() -> dict[str, int]:
    """In how many values of the printed Table 1 a method is above, level with or below another.

    "above", "tie", "below": I-STAR against Base; "clear-": by more than half of the 95% interval of a difference of two
    means of five seeds. "cos-above": CosReg against Base, "cos-over": against I-STAR.
    """
    means, errors = _table_1()["value"], _table_1()["std"]
    gain, half = means["I-STAR"] - means["Base"], (errors["I-STAR"] ** 2 + errors["Base"] ** 2).div(5).pow(0.5)
    half *= scipy_stats.t.ppf((1 + LEVEL) / 2, 5 + 5 - 2)
    cells = {
        "all": gain == gain,
        "above": gain > ROUNDING,
        "tie": gain.abs() <= ROUNDING,
        "below": gain < -ROUNDING,
        "clear-above": gain > half,
        "clear-below": gain < -half,
        "cos-above": means[arms.COSREG] - means["Base"] > ROUNDING,
        "cos-over": means[arms.COSREG] - means["I-STAR"] > ROUNDING,
    }
    return {name: int(values.sum()) for name, values in cells.items()}


def _table_1() -> pd.DataFrame:
    table = printed("istar", "Table 1", percent=False)
    return table.pivot_table(index=["model", "task", "metric"], columns="method", values=["value", "std"])


def _correlations_on_stsb(study: Study, suites: Sequence[str]) -> Evidence:
    """Over the runs of both signs and plain ones; the interval is over runs."""
    runs = study.runs[study.runs["suite"].isin(list(suites)) & study.runs["arm"].isin([arms.LOWER, PLAIN, arms.RAISE])]
    groups = runs.reindex(columns=["suite", ISOTROPY, "score"]).dropna().groupby("suite")
    return {str(suite): rank_correlation(*some[[ISOTROPY, "score"]].to_numpy().T) for suite, some in groups}


def _printed_gains(study: Study, suites: Sequence[str]) -> Evidence:
    """Each printed gain as it stands: what counts is its sign."""
    values = _table_1()["value"]
    gains = (values["I-STAR"] - values["Base"]).round(6)
    cells = [", ".join(cell).replace("_", " ") for cell in gains.index]
    return {cell: Interval(gain, gain, gain, LEVEL, 5, "printed") for cell, gain in zip(cells, gains, strict=True)}


def _early(study: Study, suites: Sequence[str], *, change: Callable[[Value], Change | Treated]) -> Evidence:
    """By how much more IsoScore* changes in the earlier half of the layers, whatever the sign."""
    halves = (change(partial(_half_mean, late=late))(study, suites) for late in (False, True))
    return difference(*({unit: abs(value) for unit, value in half.items()} for half in halves))


def _best_of_signs(study: Study, suites: Sequence[str]) -> Evidence:
    """The score at the best negative weight less that at the best positive one, by task and seed.

    The best are those of the mean score over the *other* seeds, so that no seed chooses what it is judged by. Cells
    count with two weights of each sign at least, of these the weights that learned, and seeds that have all of them.
    """
    treated = Treated("score", EVERY_WEIGHT, arms.plain_on(arms.GLUE))
    cells, gains = treated.cells(study.settings), treated(study, suites)
    tables: dict[str, dict[int, dict[float, float]]] = {}
    lost = set()
    for (name, seed), gain in gains.items():
        weight = float(study.settings[cells[name][0][0]]["method.weight"])
        cell = name.replace(f", weight {weight:g}", "")
        tables.setdefault(cell, {}).setdefault(seed, {})[weight] = gain
        if study.collapsed([run for run, _ in cells[name]]):
            lost.add((cell, weight))
    results = {}
    for cell, by_seed in tables.items():
        table = pd.DataFrame(by_seed)
        if min((table.index < 0).sum(), (table.index > 0).sum()) < 2:
            continue
        table = table[[(cell, weight) not in lost for weight in table.index]].dropna(axis=1)
        two_signs = (table.index < 0).any() and (table.index > 0).any()
        for seed in table if two_signs and table.shape[1] > 1 else ():
            others = table.drop(columns=seed).mean(axis=1)
            low, high = (others[others.index * sign > 0].idxmax() for sign in (-1, 1))
            results[cell, int(seed)] = float(table[seed][low] - table[seed][high])
    return results


def _own_correlations(study: Study, suites: Sequence[str]) -> Evidence:
    """Spearman's correlation over the paper's weights and plain training, by task and training, a number a seed.

    Weights count that learned, four of them with plain training at least, and seeds that have every one of these.
    """
    rows = dict(treated_runs(study.settings, CORRELATED))
    plain = treated_runs(study.settings, arms.plain_on(CORRELATED.tasks))
    runs = study.runs.set_index("run_id")
    results = {}
    for name, some in by_regime(rows.items()).items():
        regime = training_of(rows[some[0]])
        part = runs.loc[[*some, *(run for run, settings in plain if training_of(settings) == regime)]]
        weights = part["method.weight"].fillna(0.0)
        part = part[[not study.collapsed(part.index[weights == weight]) for weight in weights]]
        every = part["method.weight"].fillna(0.0).nunique()
        for seed, one in part.reindex(columns=["seed", ISOTROPY, "score"]).dropna().groupby("seed"):
            if len(one) == every >= 4:
                results[name, int(seed)] = _spearman(one)
    return {unit: value for unit, value in results.items() if value == value}


def _by_layer(study: Study, runs: Sequence[str]) -> dict[str, pd.Series[float]]:
    """IsoScore* of the tokens by layer, by run; the embedding output left out."""
    return {run: layers[layers.index > 0] for run, layers in study.by_layer(BY_LAYER, runs).items()}


def _half_mean(study: Study, runs: Sequence[str], *, late: bool) -> dict[str, float]:
    """The mean over the later, or the earlier, half of the layers, by run; encoders may have different depths."""
    layers = _by_layer(study, runs)
    return {run: float(x[(x.index > x.index.max() / 2) == late].mean()) for run, x in layers.items()}


def _last_alone(study: Study, runs: Sequence[str]) -> dict[str, float]:
    """The last layer less the mean of the others, by run."""
    return {run: float(x.iloc[-1] - x.iloc[:-1].mean()) for run, x in _by_layer(study, runs).items()}


def _three_ways(study: Study, suites: Sequence[str]) -> Evidence:
    """By how much three ways to compute IsoScore differ."""
    return disagreements()


LOWERED, RAISED = arms.istar_at(arms.ISTAR_LOWER), arms.istar_at(arms.ISTAR_RAISE)
EVERY_WEIGHT = arms.istar_at((*arms.ISTAR_LOWER, *arms.ISTAR_RAISE))
CORRELATED = replace(EVERY_WEIGHT, tasks=("rte", "stsb", "squad"))
AT_ENDS = arms.istar_at((-5, -3)), arms.istar_at((3, 5))  # the weights of the paper's Figure 5
AT_ONE = arms.istar_at((-1,)), arms.istar_at((1,))  # of its Figure 6
SINGLE_LAYERS = arms.at_chosen_weights(arms.istar_at((-1,), layers=range(1, 25)))  # of its Figure 8
by_weight = partial(arms.treated, depends="the task or the weight")
# What claims 14 and 15 take for granted: without a gain there is none to lose.
DOWN, UP = "λ of -5, -3, -1", "λ of 0.5, 1, 3, 5"
GAIN = by_weight(f"score, {DOWN} less none", LOWERED, expected_effect=arms.ISTAR_GAIN)
HARM = by_weight(f"score, {UP} less none", RAISED, "less", expected_effect=arms.ISTAR_GAIN)
NO_GAIN = "It takes a gain of λ < 0 for granted. With ζ = 1 the loss has no gradient: that is plain training."
CLAIMS = (
    claim(
        6,
        "IsoScore underestimates small samples; shrinkage brings it nearer to the truth",
        Prediction("IsoScore of fewer points than dimensions less the truth", too_low, on=(), runs_of=SMALL),
        Prediction("nearer to the truth with ζ of 0.2 to 0.8 than with 0", nearer, "greater", on=(), runs_of=SMALL),
        remark="Figure 2: clouds whose covariance is known; intervals over disjoint samples.",
    ),
    claim(
        7,
        "IsoScore* with ζ = 0 is IsoScore",
        Prediction(
            "largest difference of three ways to compute it", _three_ways, "equal", 1e-9, decided_by="all", on=()
        ),
        kind="identity",
    ),
    claim(
        8,
        "λ < 0 improves most cells, λ > 0 harms most, the best λ is negative in all",
        arms.scored(arms.LOWER),
        arms.scored(arms.RAISE, direction="less"),
        arms.scored(arms.LOWER, arms.RAISE),
        arms.scored(WEAK_DOWN, expected_effect=arms.ISTAR_GAIN, runs_of=""),
        arms.scored(WEAK_UP, direction="less", runs_of=""),
        arms.scored(WEAK_DOWN, WEAK_UP, runs_of=""),
        GAIN,
        HARM,
        arms.treated(
            "score, best λ < 0 less best λ > 0, chosen on the other seeds", EVERY_WEIGHT, evidence=_best_of_signs
        ),
        remark="In the head to head each sign has the strength that its tuning chose.",
    ),
    claim(
        9,
        "Isotropy and score are negatively correlated on RTE, STS-B and SQuAD",
        Prediction(
            "STS-B: Spearman's correlation of IsoScore* and score over runs",
            _correlations_on_stsb,
            trained=True,
            on=("STS-B",),
            runs_of="evidence_methods",
            arms=(arms.LOWER, arms.RAISE),
        ),
        arms.treated(
            "Spearman's correlation of IsoScore* and score over λ",
            CORRELATED,
            "less",
            ranks=True,
            evidence=_own_correlations,
        ),
    ),
    claim(
        10,
        "In Table 1 I-STAR is above Base in most values",
        Prediction("I-STAR less Base, as printed", _printed_gains, "greater", decided_by="most", on=()),
        kind="printed",
    ),
    claim(
        11,
        "CosReg changes the mean, not IsoScore*",
        arms.changed(f"mean cosine {OF_LAST}", COSINE, arms.COSREG, runs_of=arms.HEAD_TO_HEAD),
        arms.changed(
            f"IsoScore* {OF_LAST}", LAST_ISOTROPY, arms.COSREG, "equal", margin=ALIKE, runs_of=arms.HEAD_TO_HEAD
        ),
        *(
            part
            for weight, direction in ((1, "less"), (-1, "greater"))
            for part in (
                arms.treated(
                    f"mean cosine, CosReg {weight} less none", arms.cosreg_at(weight), direction, value=COSINE
                ),
                arms.treated(
                    f"IsoScore* {OF_LAST}, CosReg {weight} less none, alike within {ALIKE}",
                    arms.cosreg_at(weight),
                    "equal",
                    value=LAST_ISOTROPY,
                    margin=ALIKE,
                ),
            )
        ),
    ),
    claim(
        12,
        "λ < 0 lowers, λ > 0 raises the intrinsic dimension in later layers",
        *(
            arms.changed("TwoNN of the last layer's [CLS] vectors", CLS_TWO_NN, arm, direction, runs_of=runs_of)
            for arm, direction, runs_of in (
                (arms.LOWER, "less", arms.HEAD_TO_HEAD),
                (arms.RAISE, "greater", arms.HEAD_TO_HEAD),
                (WEAK_DOWN, "less", ""),
                (WEAK_UP, "greater", ""),
            )
        ),
        by_weight("TwoNN, λ of -5, -3 less none", AT_ENDS[0], "less", value=CLS_TWO_NN),
        by_weight("TwoNN, λ of 3, 5 less none", AT_ENDS[1], value=CLS_TWO_NN),
    ),
    claim(
        13,
        "I-STAR acts mainly on early layers; the last stays less isotropic even with λ > 0",
        *(
            Prediction(
                f"|change of IsoScore*|, {arm}, early less late layers",
                partial(_early, change=partial(Change, arm=arm)),
                "greater",
                trained=True,
                arms=(arm,),
            )
            for arm in (WEAK_DOWN, WEAK_UP)
        ),
        arms.shown(f"IsoScore*, {WEAK_UP}, last layer less the others", _last_alone, WEAK_UP),
        *(
            by_weight(
                f"|change of IsoScore*|, {weights}, early less late layers",
                treatment,
                evidence=partial(
                    _early, change=partial(Treated, treatment=treatment, base=arms.plain_on(treatment.tasks))
                ),
            )
            for weights, treatment in zip(("λ = -1", "λ = 1"), AT_ONE, strict=True)
        ),
        by_weight(
            "IsoScore*, λ = 1, last layer less the others", AT_ONE[1], "less", evidence=Treated(_last_alone, AT_ONE[1])
        ),
    ),
    claim(
        14,
        "ζ = 0 and ζ = 1 both cost score",
        by_weight(
            "score, ζ = 0 less ζ of 0.2",
            arms.istar_at((-1,), zeta=(0,)),
            "less",
            base=AT_ONE[0],
            expected_effect=arms.ISTAR_GAIN,
        ),
        remark=NO_GAIN,
        premise=(GAIN,),
    ),
    claim(
        15,
        "A penalty on all layers scores higher than on single ones",
        arms.treated(
            "score, single layers less all layers",
            SINGLE_LAYERS,
            "less",
            base=arms.at_chosen_weights(AT_ONE[0]),
            expected_effect=arms.ISTAR_GAIN,
            depends="the task or the layer",
        ),
        remark=NO_GAIN,
        premise=(GAIN,),
    ),
)
DESIGN = arms.learned_design("istar", arm_of, CLAIMS)


def variant(settings: Settings) -> str:
    """Task and encoder, and whether the runs are as released (padding counts, mixed lengths) or without padding."""
    name = task_and_encoder(settings)
    return f"{name}, without padding" if settings.get("group_by_length", True) else name


# The paper's own weights, zetas and layers, as released: what ``own_cells_plan.md`` asks of both encoders.
PAPER_WEIGHTS = Design(
    name="istar_own",
    page="papers/istar",
    recordings=arms.OWN_CELLS,
    arm=own_arm,
    suite=variant,
    size="full",
    grid=arms.OWN_CELLS[0],
    more=((arms.OWN_CELLS[1], "full"),),
)

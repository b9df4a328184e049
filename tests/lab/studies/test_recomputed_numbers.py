"""Numbers of the papers' own cells, computed again from the recorded files with pandas and scipy alone."""

import functools

import pandas as pd
import pytest
from scipy import stats

from isonb_lab.places import BOOK

SST2 = "SST-2 with test rows (tiny)"
TASKS = {SST2: "sst2_joint", "STS-B": "stsb", "CoLA": "cola", "MRPC": "mrpc"}
SHRINK = "batch_size == 64 and epochs == 10 and head == 'pooler'"
TRAINED = {
    "istar": "group_by_length == False and holdout == 0",  # as released
    "shrink_the_longest": SHRINK,
    "softdecay": "batch_size == 32 and epochs == 3 and head == 'pooler' and schedule == 'linear' and holdout == 0",
    "isolayer": "batch_size == 16 and head == 'linear' and holdout == 0.3",
    "head_to_head": SHRINK,  # of C5
}
NONE, SOFTDECAY, ISOLAYER = (f"`method.name` == '{name}'" for name in ("none", "softdecay", "isolayer"))
SELECTED, ALL = (f"`method.name` == 'entropy' and `method.select` == {select}" for select in (True, False))
ISTAR = (  # with padding, as released
    "`method.name` == 'istar' and `method.zeta` == 0.2 and `method.layers` == 'all' and `method.include_pads` == True"
)
ONE, THREE = (f"{ISTAR} and `method.weight` == {weight}" for weight in (-1, -3))
SCORES = ["metric.matthews", "metric.pearson", "metric.accuracy"]  # the first that a task has is its score
ALL_TOKENS, BY_LAYER = "metric.end.tokens.isoscore_star_all_layers", "layer.end.tokens.isoscore_star"
SKEWNESS, TWO_NN = "layer.end.tokens.spectral_skewness", "metric.end.cls.two_nn"
A1, A3, OF_ALL = "step.train.cls.anisotropy_1", "step.train.cls.anisotropy_3", "step.validation.cls.isoscore"


@functools.cache
def recorded(name):
    """The runs of a recording, with the mean of each series over the last 30% of the updates, and a column a layer."""
    runs, series = (pd.read_parquet(BOOK / f"recorded/{name}/{table}.parquet") for table in ("runs", "series"))
    updates = series[series["name"].str.startswith("step.")]
    late = updates["step"] > 0.7 * updates.groupby("run_id")["step"].transform("max")
    layers = series[series["name"].isin([BY_LAYER, SKEWNESS])]
    layers = layers.assign(name=layers["name"] + layers["step"].map(" {:g}".format))
    more = pd.concat([updates[late], layers]).pivot_table(index="run_id", columns="name", values="value")
    score = runs.reindex(columns=SCORES).bfill(axis=1)[SCORES[0]]
    return runs.assign(score=score).join(more, on="run_id").set_index("seed")


def gain(column):
    """What the method's runs have more of a column than plain ones, by seed."""
    return lambda runs, plain: runs[column] - plain[column]


def behind(measure):
    """What lies behind IsoLayer's layer less what lies before it, in one run."""
    return lambda runs, plain: runs[f"metric.end.second.{measure}"] - runs[f"metric.end.cls.{measure}"]


def early(runs, plain):
    """By how much more IsoScore* changes in layers 1 and 2 than in 3 and 4."""
    halves = ([f"{BY_LAYER} {layer}" for layer in half] for half in ((1, 2), (3, 4)))
    first, second = ((runs[half].mean(axis=1) - plain[half].mean(axis=1)).abs() for half in halves)
    return first - second


def rank_correlation(runs, plain):
    """Of isotropy and score, over all weights and none."""
    seeds = pd.concat([runs, plain]).groupby(level=0)
    return seeds.apply(lambda some: stats.spearmanr(some[ALL_TOKENS], some["score"]).statistic)


def last_layer(runs, plain):
    """The skewness of the last layer less that of the one before."""
    return runs[f"{SKEWNESS} 6"] - runs[f"{SKEWNESS} 5"]


CENTRED, SCORE = "_centered", gain("score")
NUMBERS = [  # study, claim, words of the prediction, cell; the method of the runs, and what is computed of them
    ("istar", 8, "score, λ of -5, -3, -1 less none", f"{SST2}, weight -1", ONE, SCORE),
    ("istar", 8, "score, λ of -5, -3, -1 less none", f"{SST2}, weight -3", THREE, SCORE),
    ("istar", 9, "Spearman's correlation", "STS-B", ISTAR, rank_correlation),
    ("istar", 12, "TwoNN, λ of -5, -3", f"{SST2}, weight -3", THREE, gain(TWO_NN)),
    ("istar", 13, "|change of IsoScore*|, λ = -1", SST2, ONE, early),
    ("shrink_the_longest", 2, "selected bars less none", "CoLA, raw", SELECTED, gain(A1)),
    ("shrink_the_longest", 2, "selected bars less none", "MRPC, centred", SELECTED, gain(A1 + CENTRED)),
    ("shrink_the_longest", 4, "selected bars less none", "CoLA", SELECTED, SCORE),
    ("shrink_the_longest", 4, "selected bars less none", "MRPC", SELECTED, SCORE),
    ("shrink_the_longest", 4, "all bars less none", "CoLA", ALL, SCORE),
    ("shrink_the_longest", 4, "all bars less none", "MRPC", ALL, SCORE),
    ("shrink_the_longest", 5, "selected bars less none", "CoLA, raw", SELECTED, gain(A3)),
    ("shrink_the_longest", 5, "selected bars less none", "MRPC, centred", SELECTED, gain(A3 + CENTRED)),
    ("softdecay", 17, "skewness", "CoLA, group by length True", NONE, last_layer),
    ("softdecay", 21, "SoftDecay less none", "CoLA", SOFTDECAY, SCORE),
    ("softdecay", 21, "SoftDecay less none", "MRPC, no rows held out", SOFTDECAY, SCORE),
    ("isolayer", 23, "IsoLayer less none", "CoLA", ISOLAYER, SCORE),
    ("isolayer", 23, "IsoLayer less none", "MRPC", ISOLAYER, SCORE),
    ("isolayer", 23, "IsoScore, after the layer less before", "CoLA", ISOLAYER, behind("isoscore")),
    ("isolayer", 24, "less before, raw", "CoLA", ISOLAYER, behind("explained_variance_1")),
    ("head_to_head", "C5", "IsoScore of all", "CoLA", SELECTED, gain(OF_ALL)),
    ("head_to_head", "C5", "IsoScore of all", "MRPC", SELECTED, gain(OF_ALL)),
]


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: f"{row[0]} {row[1]} {row[3]}")
def test_a_cell_at_a_papers_setting_is_that_of_its_runs(verdicts, row):
    study, number, words, cell, method, computed = row
    judged = [part for verdict in verdicts[study] if verdict.claim.number == number for part in verdict.predictions]
    parts = [part for part in judged if part.prediction.treatment and words in part.prediction.what]
    (found,) = (one for part in parts for one in part.cells if one.name == cell)
    task = TASKS[cell.partition(",")[0]]
    runs = recorded("own_cells" if cell.startswith(SST2) else "own_cells_minilm")
    runs = runs.query(f"task == '{task}' and {TRAINED[study]}")
    values = computed(runs.query(method), runs.query(NONE))
    ends = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    assert found.n == len(values) >= 3
    assert found.interval.ends == pytest.approx((values.mean(), *ends), rel=1e-9)

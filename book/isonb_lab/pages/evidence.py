"""Evidence in tables and pictures: spreads, claims and their cells, intervals by arm, curves with a band.

One notation in the whole book, ``0.120 (0.080 to 0.160)``: a number and its 95% interval, to two digits of the error.
Of a mean over runs the interval is Student's (``spread``), of a number with a standard error 1.96 of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from isonb.runtime.told import between
from isonb_lab.pages.values import Table, table
from isonb_lab.statistics.seeds import student

SPREAD = "mean (Student's 95% interval over runs)"
METRICS = {
    "matthews": "Matthews correlation",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "f1": "F1",
    "squad_f1": "F1",
    "matthews_corrcoef": "Matthews correlation",
    "exact_match": "exact match",
}


def arithmetic(runs: pd.DataFrame) -> str:
    """In which arithmetic these runs were trained, counted, in words.

    A run that asks for bfloat16 has float32 where its processor lacks that. A record without a processor says neither.

    >>> runs = pd.DataFrame({"precision": "bfloat16", "manifest.hardware.bfloat16": [True, False, False, None]})
    >>> arithmetic(runs)
    '2 in float32, 1 in bfloat16, 1 not recorded'
    """
    trained = runs.dropna(subset=["precision"])
    kinds = trained["manifest.hardware.bfloat16"].map({True: "in bfloat16", False: "in float32"}).fillna("not recorded")
    counts = kinds.mask(trained["precision"] == "float32", "in float32").value_counts()
    counted = [f"{counts[kind]} {kind}" for kind in ("in float32", "in bfloat16", "not recorded") if kind in counts]
    return ", ".join(counted) or "none"


def metric_name(name: str) -> str:
    """A metric of a task as tables print it.

    >>> metric_name("matthews"), metric_name("accuracy")
    ('Matthews correlation', 'accuracy')
    """
    return METRICS.get(name, name)


def in_words(name: str) -> str:
    """The name of a study, task or method as prose and tables have it.

    >>> in_words("english_sentiment"), in_words("spectrum_control")
    ('sentiment', 'spectrum control')
    """
    return name.removeprefix("english_").replace("_", " ")


def half_width(values: Sequence[float]) -> float:
    """Half of Student's 95% interval of the mean; NaN for fewer than two values.

    >>> round(half_width([1.0, 2.0, 3.0]), 3)
    2.484
    """
    numbers = [float(value) for value in values if not math.isnan(value)]
    mean = student(numbers) if len(numbers) > 1 else None
    return math.nan if mean is None else (mean.high - mean.low) / 2


def spread(values: Iterable[float], digits: int = 3, sign: str = "", count: bool = True) -> str:
    """The mean, Student's 95% interval and the number of values; one value alone says so; a dash for none.

    ``sign="+"`` shows the sign of a difference; ``digits`` are those of a mean whose error says none.

    >>> spread([0.5, 0.6, 0.7]), spread([0.25], 2, "+"), spread([0.25], count=False), spread([])
    ('0.60 (0.35 to 0.85), n = 3', '+0.25, n = 1', '0.250 (n = 1)', '–')
    >>> spread([2e-5, 3e-5, 4e-5], sign="+", count=False), spread([0, 0], sign="+", count=False)
    ('+0.000030 (+0.000005 to +0.000055)', '0.000 (0.000 to 0.000)')
    """
    numbers = [float(value) for value in values if not math.isnan(float(value))]
    if not numbers:
        return "–"
    mean, half = sum(numbers) / len(numbers), half_width(numbers)
    number = f", n = {len(numbers)}" if count else ""
    if len(numbers) == 1:
        return _signed(mean, digits, sign) + (number or " (n = 1)")
    half = 0.0 if len(set(numbers)) == 1 else half
    return with_interval(mean, mean - half, mean + half, sign, digits) + number


def _first_digit(value: float) -> int:
    """How many decimals show the first digit of a small number.

    >>> _first_digit(0.0003), _first_digit(-0.02)
    (4, 2)
    """
    return -math.floor(math.log10(abs(value)))


def estimate(value: float, error: float, digits: int = 3) -> str:
    """A number and 1.96 of its standard ``error`` to both sides; one without an error has ``digits``.

    >>> estimate(0.5601, 0.0066), estimate(7.2e-6, 2e-7), estimate(1.0, 0.0)
    ('0.560 (0.547 to 0.573)', '0.00000720 (0.00000681 to 0.00000759)', '1.000')
    """
    value, half = float(value), 1.96 * float(error)
    return with_interval(value, value - half, value + half, "", digits) if half else _signed(value, digits, "")


def with_interval(mean: float, low: float, high: float, sign: str = "+", digits: int = 3) -> str:
    """A number and its interval, to two digits of the error; an end that would read 0 shows on which side it lies.

    ``sign="+"`` is for differences. ``digits`` stand where there is no width; a number that isn't near 0 has three more
    at most.

    >>> with_interval(-0.0002, -0.0018, 0.0013), with_interval(0.12, 0.08, 0.16, "")
    ('-0.0002 (-0.0018 to +0.0013)', '0.120 (0.080 to 0.160)')
    >>> with_interval(0.0055, 0.0000012, 0.0108), with_interval(56, 21, 91, "")
    ('+0.0055 (+0.000001 to +0.0108)', '56 (21 to 91)')
    >>> with_interval(math.nan, math.nan, math.nan)  # nothing was run
    '–'
    """
    if math.isnan(mean):
        return "–"
    half = (high - low) / 2
    if half > 0:
        fine = max(0, _first_digit(half) + 1)
        digits = min(fine, digits + 3) if round(mean, digits) else fine
    return (
        f"{mean + 0.0:{sign if round(mean, digits) else 'z'}.{digits}f} ("
        + " to ".join(_signed(end, digits, sign) for end in (low, high))
        + ")"
    )


def in_points(mean: float, low: float, high: float) -> str:
    """A gain and its interval in points; a dash where nothing was run.

    >>> in_points(0.26, -0.51, 1.04), in_points(math.nan, math.nan, math.nan)
    ('+0.3 points (-0.5 to +1.0)', '–')
    """
    return "–" if math.isnan(mean) else between(mean, low, high, 1, "+", " points")


def differing(most: float) -> str:
    """What two computations do whose largest difference is this.

    >>> differing(3.1e-16), differing(0.0)
    ('differ by at most 3e-16', 'are the same')
    """
    return f"differ by at most {most:.1g}" if most else "are the same"


def p_words(p: float) -> str:
    """A p-value with three digits; none is shown as 0.

    >>> p_words(0.04671), p_words(2e-5), p_words(1.0)
    ('0.047', '< 0.001', '1.000')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def joined(items: Iterable[object], none: str = "none") -> str:
    """Words as a list in prose.

    >>> joined(["CoLA", "MRPC", "RTE"]), joined([])
    ('CoLA, MRPC and RTE', 'none')
    """
    listed = [str(word) for word in items]
    return ", ".join(listed[:-1]) + " and " + listed[-1] if len(listed) > 1 else "".join(listed) or none


def outcomes(judged: Iterable[Any]) -> str:
    """Which claims have which outcome: judgements of those that runs judge, as a line.

    >>> from isonb_lab.claims.verdicts import Claim, Judgement
    >>> results = {6: "supported", 8: "contradicted", 11: "contradicted"}
    >>> outcomes(Judgement(Claim(k, "it gains", ()), outcome) for k, outcome in results.items())
    '6 is supported; 8 and 11 are contradicted'
    """
    numbers: dict[str, list[object]] = {}
    for item in judged:
        if item.claim.kind == "runs":
            numbers.setdefault(item.label, []).append(item.claim.number)
    return "; ".join(f"{joined(some)} {'is' if len(some) == 1 else 'are'} {each}" for each, some in numbers.items())


def predictions_table(judged: Iterable[Any], *, caption: str) -> Table:
    """What judgements say of each of their predictions: the mean over the cells (95% interval), what effect the runs
    could have shown, and the outcome; where several encoders have a claim's treatment, of each of them, too.
    """
    rows = [
        {
            "claim": item.claim.number,
            "prediction": f"{whole.prediction.what}{encoder}",
            "mean over tasks": with_interval(*part.mean.ends) if part.mean else "–",
            "MDE": _signed(part.mde, sign="") if part.mde else "–",
            "verdict": item.outcome_of(part),
        }
        for item in judged
        for whole in item.predictions
        for encoder, part in {"": whole, **_by_encoder(whole)}.items()
    ]
    return table(rows, caption=f"{caption} MDE: minimum detectable effect.")


def _by_encoder(part: Any) -> dict[str, Any]:
    """A prediction judged with each encoder alone, where there are several."""
    return {f"; {name} alone": one for name, one in part.by_encoder.items()} if len(part.by_encoder) > 1 else {}


def ledger_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The claims cell by cell, as :func:`isonb_lab.claims.summary.cell_rows` gives them, with numbers as text."""
    return [
        {
            "claim": str(row["claim"]),
            "measured": row["what"],
            "cell": row["cell"] or "–",
            "outcome": row["outcome"],
            "n": str(row["n"] or "–"),
            "mean (95% interval)": _mean(row["mean"], row["low"], row["high"]),
            "MDE": _signed(row["mde"], sign="") if row["mde"] else "–",
            "can't tell": "" if row["mean"] is not None else row["reason"],
        }
        for row in rows
    ]


def over_runs(frame: pd.DataFrame, by: Sequence[str], value: str = "value") -> pd.DataFrame:
    """Mean and range over runs of each group: columns ``by``, ``mean``, ``low``, ``high``, ``n``."""
    groups = frame.groupby(list(by), as_index=False, sort=False)[value]
    return groups.agg(mean="mean", low="min", high="max", n="count").round(4)


def intervals(frame: pd.DataFrame, by: Sequence[str], value: str = "value") -> pd.DataFrame:
    """Mean and Student's 95% interval over runs of each group: columns ``by``, ``mean``, ``low``, ``high``, ``n``."""
    groups = frame.groupby(list(by), as_index=False, sort=False)[value]
    means = groups.agg(mean="mean", half=half_width, n="count")
    low, high = means["mean"] - means["half"].fillna(0), means["mean"] + means["half"].fillna(0)
    return means.assign(low=low, high=high)[[*by, "mean", "low", "high", "n"]].round(4)


def _mean(mean: float | None, low: float | None, high: float | None) -> str:
    """The mean of a claim's cell, with its interval where it has one: a printed number has none.

    >>> _mean(0.1, -0.05, 0.25), _mean(0.007, 0.007, 0.007), _mean(None, None, None)
    ('+0.10 (-0.05 to +0.25)', '+0.007', '–')
    """
    if mean is None:
        return "–"
    return _signed(mean) if low is None or high is None or low == high else with_interval(mean, low, high)


def _signed(value: float, digits: int = 3, sign: str = "+") -> str:
    """A difference with its sign.

    >>> _signed(0.0123), _signed(-7e-5), _signed(3e-6, sign=""), _signed(0.0)
    ('+0.012', '-0.00007', '0.000003', '0.000')
    """
    if value and round(value, digits) == 0:  # small is not nothing
        return f"{value:{sign}.{_first_digit(value)}f}" if abs(value) >= 1e-7 else f"{value:{sign}.0e}"
    return f"{value:{sign if value else ''}.{digits}f}"


def change_rows(
    values: Mapping[str, pd.DataFrame], *, suites: Sequence[str], arms: Sequence[str], base: str = "none"
) -> list[dict[str, str]]:
    """One row a suite and arm that ran there, one column a name of ``values``: tables of suite, arm, seed and value.

    Cells are as :func:`spread` gives them: of the value in the rows of ``base``, in the others of the difference from
    it at the same seed, with a sign.
    """
    series = {name: table.set_index(["suite", "arm", "seed"])["value"].sort_index() for name, table in values.items()}
    ran = {key[:2] for numbers in series.values() for key in numbers.index}
    return [
        {"task": suite, "arm": f"{arm} (value)" if arm == base else arm}
        | {name: _cell(numbers, suite, arm, base) for name, numbers in series.items()}
        for suite in suites
        for arm in arms
        if (suite, arm) in ran
    ]


def _cell(numbers: pd.Series, suite: str, arm: str, base: str) -> str:
    values, plain = (numbers.loc[(suite, name)] if (suite, name) in numbers.index else None for name in (arm, base))
    if values is None or plain is None:
        return spread([])
    return spread(values) if arm == base else spread((values - plain).dropna(), sign="+")

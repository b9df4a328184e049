"""Evidence in tables and pictures: spreads, claims and their cells, intervals by arm, curves with a band.

One meaning of "±" in the whole book: half of a 95% interval. Of a mean over runs that is Student's (``spread``), of a
number with a standard error 1.96 of these (``estimate``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from scipy import stats as scipy_stats

from isonb.pages.values import Table, table

SPREAD = "mean ± half of Student's 95% interval over runs (their number)"
OUTCOME_COLORS = {
    "supported": "#009E73",
    "contradicted": "#D55E00",
    "depends": "#E69F00",
    "inconclusive": "#7f7f7f",
    "not testable": "#c9c9c9",
}
LEVEL = 0.95
METRICS = {
    "matthews": "Matthews correlation",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "f1": "F1",
    "squad_f1": "F1",
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


def half_width(values: Sequence[float]) -> float:
    """Half of Student's 95% interval of the mean; NaN for fewer than two values.

    >>> round(half_width([1.0, 2.0, 3.0]), 3)
    2.484
    """
    n = len(values)
    if n < 2:
        return math.nan
    std = float(pd.Series(list(values), dtype=float).std())
    return float(scipy_stats.t.ppf((1 + LEVEL) / 2, n - 1)) * std / math.sqrt(n)


def spread(values: Iterable[float], digits: int = 3, sign: str = "", count: bool = True) -> str:
    """The mean ± half of Student's 95% interval and the number of values; one value alone without ±; a dash for none.

    ``sign="+"`` shows the sign of a difference.

    >>> spread([0.5, 0.6, 0.7]), spread([0.25], 2, "+"), spread([])
    ('0.600 ± 0.248 (3)', '+0.25 (1)', '–')
    >>> spread([2e-5, 3e-5, 4e-5], sign="+"), spread([0, 0, 0], sign="+")
    ('+0.00003 ± 0.00002 (3)', '0.000 ± 0 (3)')
    >>> spread([0.2529, 0.2530, 0.2531])  # more digits where half of the interval would read 0
    '0.2530 ± 0.0002 (3)'
    """
    known = [float(value) for value in values if not math.isnan(float(value))]
    if not known:
        return "–"
    mean, half = sum(known) / len(known), half_width(known)
    number = f" ({len(known)})" if count else ""
    if len(set(known)) == 1 < len(known):
        half = 0.0
    elif 0 < half < 0.5 * 10**-digits:  # small is not nothing; beside a mean that isn't 0 two digits more are enough
        finer = _first_digit(half)
        digits = finer if round(mean, digits) == 0 or finer <= digits + 2 else digits
    mean = 0.0 if round(mean, digits) == 0 else mean  # no -0.000
    plus = "" if math.isnan(half) else f" ± {half:.{digits}f}" if half else " ± 0"
    return f"{mean:{sign if mean else ''}.{digits}f}{plus}{number}"


def _first_digit(value: float) -> int:
    """How many decimals show the first digit of a small number.

    >>> _first_digit(0.0003), _first_digit(-0.02)
    (4, 2)
    """
    return -math.floor(math.log10(abs(value)))


def estimate(value: float, error: float, digits: int = 3) -> str:
    """A number ± 1.96 of its standard ``error``: one digit more where the interval is narrow, powers of ten if tiny.

    >>> estimate(0.5601, 0.0066), estimate(-0.00291, 0.00005), estimate(7.2e-6, 2e-7)
    ('0.560 ± 0.013', '-0.0029 ± 0.0001', '7.2e-06 ± 4e-07')
    >>> estimate(1.0, 1e-6)
    '1.0000 (± less than 0.0001)'
    """
    value, half = float(value), 1.96 * float(error)
    if half == 0:
        return f"{value:.{digits}f}"
    finest = 10.0 ** -(digits + 1)
    if abs(value) + half < finest / 2:
        return f"{value:.1e} ± {half:.0e}"
    if half < finest / 2:
        return f"{value:.{digits + 1}f} (± less than {finest:.{digits + 1}f})"
    places = digits if half >= 5 * finest else digits + 1
    value = 0.0 if round(value, places) == 0 else value  # no -0.000
    return f"{value:.{places}f} ± {half:.{places}f}"


def with_interval(mean: float, low: float, high: float, digits: int = 3) -> str:
    """A difference with its sign and its interval; an end that would read 0 shows on which side of it it lies.

    >>> with_interval(-0.0002, -0.0018, 0.0013), with_interval(0.0055, 0.0002, 0.0108)
    ('0.000 [-0.002, +0.001]', '+0.006 [+0.0002, +0.011]')
    """
    mean = round(mean, digits) + 0.0
    return f"{mean:{'+' if mean else ''}.{digits}f} [{_signed(low, digits)}, {_signed(high, digits)}]"


def p_words(p: float) -> str:
    """A p-value with three digits; none is shown as 0.

    >>> p_words(0.04671), p_words(2e-5), p_words(1.0)
    ('0.047', '< 0.001', '1.000')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def joined(words: Iterable[object], none: str = "none") -> str:
    """Words as a list in prose.

    >>> joined(["CoLA", "MRPC", "RTE"]), joined([])
    ('CoLA, MRPC and RTE', 'none')
    """
    listed = [str(word) for word in words]
    return ", ".join(listed[:-1]) + " and " + listed[-1] if len(listed) > 1 else "".join(listed) or none


def claims_table(rows: Sequence[Mapping[str, Any]], *, caption: str) -> Table:
    """The verdicts of a study, one row a claim, as :func:`isonb.lab.studies.summary.claim_rows` gives them."""
    return table(list(rows), caption=caption)


def cells_table(rows: Sequence[Mapping[str, Any]], *, caption: str) -> Table:
    """The claims cell by cell, as :func:`isonb.lab.studies.summary.cell_rows` gives them, with numbers as text.

    A line above the cells of a claim says what it claims, one above those of a part what is measured.
    """
    heads: dict[int, list[str]] = {}
    above: tuple[object, object] = (None, None)
    for at, row in enumerate(rows):
        if row["claim"] != above[0]:
            heads[at] = [
                f"Claim {row['claim']}: {row['statement']}" if isinstance(row["claim"], int) else row["statement"]
            ]
        if (row["claim"], row["what"]) != above:
            heads.setdefault(at, []).append(row["what"])
        above = row["claim"], row["what"]
    shown = [
        {
            "cell": row["cell"],
            "verdict": row["outcome"],
            "n": row["n"],
            "mean": _signed(row["mean"]),
            "95% interval": _around(row["low"], row["high"]),
            "minimum detectable effect": _signed(row["visible"] or None).lstrip("+"),
        }
        for row in rows
    ]
    return table(shown, caption=caption, heads=heads)


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


def _around(low: float | None, high: float | None) -> str:
    """The interval of a mean that stands beside it: as :func:`ends`, or ± half of it where the ends would look alike.

    >>> _around(-0.1, 0.25), _around(-0.84954, -0.84952), _around(0.00002, 0.0003), _around(None, None)
    ('-0.100 to +0.250', '± 0.00001', '+0.00002 to +0.0003', '–')
    """
    if low is None or high is None or low == high or round(low, 3) != round(high, 3) or not round(low, 3):
        return ends(low, high)
    half = (high - low) / 2
    return f"± {half:.{_first_digit(half)}f}"


def ends(low: float | None, high: float | None) -> str:
    """An interval, with a digit more where its ends would look alike; a dash where it has no width: a printed number.

    >>> ends(-0.1, 0.25), ends(0.0101, 0.0104), ends(0.007, 0.007)
    ('-0.100 to +0.250', '+0.0101 to +0.0104', '–')
    """
    if low is None or high is None or low == high:
        return "–"
    digits = next((k for k in (3, 4, 5) if round(low, k) != round(high, k)), 6)
    return f"{_signed(low, digits)} to {_signed(high, digits)}"


def _signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign.

    >>> _signed(0.0123), _signed(-7e-5), _signed(3e-6), _signed(0.0)
    ('+0.012', '-0.00007', '+0.000003', '0.000')
    """
    if value is None:
        return "–"
    if value and round(value, digits) == 0:  # small is not nothing
        return f"{value:+.{_first_digit(value)}f}" if abs(value) >= 1e-7 else f"{value:+.0e}"
    return f"{value:{'+' if value else ''}.{digits}f}"


def change_rows(
    values: Mapping[str, pd.DataFrame], *, suites: Sequence[str], arms: Sequence[str], base: str = "none"
) -> list[dict[str, str]]:
    """One row a suite and arm that ran there, one column a name of ``values``: tables of suite, arm, seed and value.

    Cells are mean ± half of Student's 95% interval and the number of runs: of the value in the rows of ``base``, in the
    others of the difference from it at the same seed, with a sign.
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
    own, plain = (numbers.loc[(suite, name)] if (suite, name) in numbers.index else None for name in (arm, base))
    if own is None or plain is None:
        return spread([])
    return spread(own) if arm == base else spread((own - plain).dropna(), sign="+")

"""The numbers that the four papers print."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb_lab.places import PACKAGE

FOLDER = PACKAGE / "data" / "printed"
PAPERS = ("isolayer", "istar", "shrink_the_longest", "softdecay")
PERCENT = ("accuracy", "exact_match", "f1", "GLUE leaderboard score")  # percentages that don't say so in their name
NUMBER = re.compile(r"~?([+-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)(k?)%?")


class PrintedError(InputError):
    """A paper, table, column or value that isn't among the printed ones."""


def printed(paper: str, table: str | None = None, *, percent: bool = True, **filters: Any) -> pd.DataFrame:
    """The printed numbers of one paper, one row a number.

    Columns: ``paper``, ``table``, ``model``, ``task``, ``method``, ``metric``, ``value`` and ``std`` (floats; missing
    where the paper gives none, or words), ``text`` (the value as printed) and ``note``. ``filters`` keep rows whose
    column equals a value or is in a list. ``percent=False`` turns scores printed as percentages into fractions and
    drops ``_x100`` from their metric.

    Raises :class:`PrintedError` for an unknown paper, table, column or value, naming those there are.

    >>> numbers = printed("istar", "Table 1", model="BERT", task="RTE", method="I-STAR")
    >>> numbers[["metric", "value", "std"]].values.tolist()
    [['accuracy', 62.53, 0.7]]
    """
    conditions = filters if table is None else {"table": table, **filters}
    numbers = _keep(_results(paper), conditions, paper)
    return numbers if percent else _fractions(numbers)


def hyperparameters(paper: str, **filters: Any) -> pd.DataFrame:
    """The hyper-parameters that the paper or its code states: ``scope``, ``model``, ``task``, ``parameter``, ``value``
    (text), ``source`` (paper or code), ``note``. ``filters`` and errors as in :func:`printed`.
    """
    return _keep(_read(paper, hyper=True), filters, paper)


def number(text: str) -> float:
    """A printed number as a float: signs, thousands, ``~``, ``k`` and ``%`` are read; NaN for words and ranges.

    >>> number("+5.8%"), number("250,000"), number("250k"), number("less than 5%")
    (5.8, 250000.0, 250000.0, nan)
    """
    match = NUMBER.fullmatch(text.strip())
    return float(match.group(1).replace(",", "")) * (1000 if match.group(2) else 1) if match else math.nan


def _read(paper: str, hyper: bool = False) -> pd.DataFrame:
    if paper not in PAPERS:
        raise PrintedError(f"paper must be one of {', '.join(PAPERS)}; got {paper!r}. Name one of them.")
    paths = sorted(FOLDER.glob(f"{paper}_*.csv"))
    tables = [path for path in paths if path.stem.endswith("_hyperparameters") == hyper]
    return pd.concat([pd.read_csv(path, dtype=str, keep_default_na=False) for path in tables], ignore_index=True)


def _results(paper: str) -> pd.DataFrame:
    numbers = _read(paper)
    numbers["text"] = numbers["value"]
    for column in ("value", "std"):
        numbers[column] = numbers[column].map(number).astype("float64")
    return numbers[["paper", "table", "model", "task", "method", "metric", "value", "std", "text", "note"]]


def _fractions(numbers: pd.DataFrame) -> pd.DataFrame:
    scaled = numbers["metric"].str.endswith("_x100") | numbers["metric"].isin(PERCENT)
    for column in ("value", "std"):
        numbers[column] = numbers[column].where(~scaled, numbers[column] / 100)
    return numbers.assign(metric=numbers["metric"].str.removesuffix("_x100"))


def _keep(table: pd.DataFrame, filters: Mapping[str, Any], paper: str) -> pd.DataFrame:
    for column, expected in filters.items():
        if column not in table.columns:
            names = ", ".join(table.columns)
            raise PrintedError(f"a column of {paper} must be one of {names}; got {column!r}. Name one of them.")
        values = list(expected) if isinstance(expected, list | tuple | set) else [expected]
        present = sorted(table[column].unique())
        if missing := [value for value in values if value not in present]:
            names = ", ".join(map(repr, present))
            raise PrintedError(f"{column} of {paper} must be one of {names}; got {missing[0]!r}. Name one of them.")
        table = table[table[column].isin(values)]
    return table.reset_index(drop=True)

"""The runs of a folder, a recording or a table, as what a comparison needs: setting, arm, seed, score, conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import yaml  # type: ignore[import-untyped]

from isonb.errors import InputError, fail
from isonb.options import describe
from isonb_lab.claims import treatment
from isonb_lab.claims.table import settings_of_rows
from isonb_lab.methods import Method, label, methods, plain_value
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import recorded, scored
from isonb_lab.runs.run_ids import canonical
from isonb_lab.runs.settings import EXPERIMENTS, counted
from isonb_lab.runs.table import scan, table

Runs: TypeAlias = str | Path | pd.DataFrame | Iterable[Record]
RUN_KEYS = ("seed", "inputs")  # of the configuration, what isn't the same for all runs of one setting


class CompareError(InputError):
    """Runs that can't be read or compared."""


def read_runs(runs: Runs, where: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """The runs as a table, with ``config``, ``setting``, ``arm`` and their scores; a failed run has none.

    ``setting`` is the configuration without method and seed, as one word; the scores are those of
    :func:`~isonb_lab.runs.recordings.scored`.

    Args:
        runs: the folder of a sweep, of records or of a recording; the file of a table that ``isonb collect`` wrote; a
            table as :func:`isonb_lab.runs.table.table` makes it; or records.
        where: conditions on columns; only runs that meet all of them are taken. Text is read as ``--set`` reads it.

    Raises :class:`CompareError` for what isn't a table of runs, and for a condition that no run meets.
    """
    frame = table_of(runs).copy()
    if "status" not in frame or "method.name" not in frame:
        must = "a table of runs must have the columns status and method.name"
        fail(CompareError, must, list(frame)[:8], "Use isonb collect.")
    frame = frame[frame["method.name"].notna()].reset_index(drop=True).copy()
    for name, value in (where or {}).items():
        if name not in frame:
            some = f"Some are {', '.join(list(frame)[3:12])}."
            fail(CompareError, "a condition must name a column of the runs", repr(name), some)
        cells = [None if pd.isna(cell) else plain_value(cell) for cell in frame[name]]
        wanted = {treatment.canonical(value), treatment.canonical(_read(value))}
        met = [treatment.canonical(cell) in wanted for cell in cells]
        if not any(met):
            some = f"Values of {name}: {', '.join(list(dict.fromkeys(map(str, cells)))[:8])}."
            fail(CompareError, "a condition must be met by some of the runs", f"{name}={value}", some)
        frame = frame[met].reset_index(drop=True).copy()
    configs = [
        config | {"method": whole_method(config["method"])} for config in map(config_of, settings_of_rows(frame))
    ]
    columns = {"config": configs, "setting": list(map(_setting, configs)), "arm": arm_names(configs)}
    return scored(frame).copy().assign(**columns)


def table_of(runs: Runs) -> pd.DataFrame:
    """The runs as a table, read once from wherever they are."""
    if isinstance(runs, pd.DataFrame):
        return runs
    if not isinstance(runs, str | Path):
        return table(runs)
    path = Path(runs)
    if (path / "runs.parquet").is_file():
        return recorded(path.name, path.parent).runs
    if path.is_dir():
        folder = path / "records" if (path / "records").is_dir() else path
        return table(scan(folder).records.values())
    if path.suffix not in (".parquet", ".csv") or not path.is_file():
        fix = "Give the folder of isonb run or isonb sweep, or a table of isonb collect."
        fail(CompareError, "runs must be a folder of records, a recording or a table", repr(str(runs)), fix)
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def config_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by column as a configuration, its method nested.

    >>> config_of({"task": "cola", "method.name": "istar", "method.weight": 1.0})
    {'method': {'name': 'istar', 'weight': 1}, 'task': 'cola'}
    """
    config: dict[str, Any] = {"method": {}}
    for name, value in settings.items():
        (config["method"] if name.startswith("method.") else config)[name.removeprefix("method.")] = plain_value(value)
    return config


def _read(value: Any) -> Any:
    """Text of a command line as YAML, where it is some."""
    try:
        return yaml.safe_load(value) if isinstance(value, str) else value
    except (yaml.YAMLError, ValueError):  # ValueError: the 45th of a 13th month
        return value


def _setting(config: Mapping[str, Any]) -> str:
    """One word for all settings but seed and method; an option that came later counts as it does for an id."""
    alike = {name: value for name, value in config.items() if name not in (*RUN_KEYS, "method")}
    kind = EXPERIMENTS.get(str(config.get("experiment")))
    return canonical(alike if kind is None else counted(str(config["experiment"]), alike, kind))


def arm_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The arm of each run: its method, with the options in which runs of this method differ.

    >>> arm_names([{"method": {"name": "none"}}, *({"method": {"name": "istar", "after": n}} for n in (2, None))])
    ['none', 'istar after=2', 'istar after=None']
    """
    first: dict[str, Mapping[str, Any]] = {}
    differ: dict[str, set[str]] = {}
    for method in (config["method"] for config in configs):
        name = method["name"]
        differ.setdefault(name, set()).update(differing(first.setdefault(name, method), method))
    return [_arm(config["method"], sorted(differ[config["method"]["name"]])) for config in configs]


def _arm(method: Mapping[str, Any], options: Sequence[str]) -> str:
    return label({"name": method["name"], **{option: method.get(option) for option in options}}, options)


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """The options in which two methods differ, whichever way their values are written.

    >>> differing({"name": "istar", "layers": "-1"}, {"name": "istar", "layers": -1, "after": 2})
    {'after'}
    """
    canonical = treatment.canonical
    return {option for option in {*one, *other} if canonical(one.get(option)) != canonical(other.get(option))}


def whole_method(method: Mapping[str, Any]) -> dict[str, Any]:
    """A method with the options that came after its run was recorded, at their defaults; another that lacks is None.

    >>> whole_method({"name": "log_isoscore", "weight": 2.0})
    {'name': 'log_isoscore', 'weight': 2.0, 'place': 'cls'}
    """
    name, kind = method["name"], methods().get(method["name"], Method)
    usual = describe(kind())
    first = counted(name, usual, kind)
    return {**method, **{option: usual[option] for option in usual if option not in {*first, *method}}}


def setting_names(runs: pd.DataFrame) -> dict[str, str]:
    """Each setting by words: task, model, and what tells settings of the same task and model apart."""
    configs = dict(zip(runs["setting"][::-1], runs["config"][::-1], strict=True))
    alike: dict[str, list[str]] = {}
    for setting, config in configs.items():
        alike.setdefault(f"{config.get('task')}, {config.get('model')}", []).append(setting)
    names = {}
    for title, settings in alike.items():
        options = {name for setting in settings for name in configs[setting] if name not in (*RUN_KEYS, "method")}
        differ = sorted(o for o in options if len({repr(configs[s].get(o)) for s in settings}) > 1)
        for setting in settings:
            names[setting] = ", ".join([title, *(f"{o} {configs[setting].get(o)}" for o in differ)])
    return names

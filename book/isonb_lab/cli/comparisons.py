"""``isonb compare`` and ``isonb plan``: runs against their matched controls, and how many seeds they need."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isonb.cli.limits import broken, check_names, limit
from isonb.errors import InputError, fail
from isonb.runtime.files import replace

if TYPE_CHECKING:
    from isonb_lab.runs.record import Record
    from isonb_lab.runs.settings import Planned


def run_compare(options: argparse.Namespace) -> int:
    """Print the comparison and write it where asked.

    Returns 1 where a rule of ``--fail-on`` holds, where a pair is broken, and where nothing could be judged.
    """
    from isonb_lab.comparing import compare

    limits = [limit(text, 'as "gain<0"') for text in options.fail_on]
    comparison = compare(
        options.runs,
        options.against,
        where=dict(map(_condition, options.where)),
        gain=options.gain,
        level=options.level,
        power=options.power,
    )
    values = comparison.values()
    check_names(limits, values)
    print(comparison)
    for kind, text in (("html", comparison.html), ("json", comparison.to_json), ("csv", comparison.to_csv)):
        if path := getattr(options, kind):
            replace(Path(path), text().encode())
            print(f"{kind:9s} {path}")
    passed = broken(limits, values)
    if fault := comparison.fault():
        print(f"broken    {fault}", file=sys.stderr)
    return 1 if passed or fault else 0


def run_plan(options: argparse.Namespace) -> int:
    """Print how many seeds and hours each pair of a grid needs, by the spread of its pilot."""
    from isonb_lab.comparing import plan_seeds
    from isonb_lab.runs.table import scan, table
    from isonb_lab.sweeps.execution import prepare
    from isonb_lab.sweeps.grids import load_grid

    ids = {prepare(run, options.out, data=options.data).run_id for run in load_grid(options.grid, options.size)}
    folder = Path(options.out) / "records"
    records = scan(folder).records if folder.is_dir() else {}
    pilot = [record for name, record in records.items() if name in ids]
    if not pilot:
        fix = f"Run it first, with three seeds: isonb sweep {options.grid} --size {options.size} --out {options.out}"
        fail(InputError, "a plan needs a pilot", f"no record of this grid in {options.out}", fix)
    seeds = plan_seeds(table(pilot), gain=options.gain, power=options.power)
    planned = seeds[seeds["reason"] == ""].drop(columns="reason")
    print(planned.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
    for row in seeds[seeds["reason"] != ""].itertuples():
        print(f"no plan   {row.setting}, {row.arm}: {row.reason}")
    print(f"in all    {seeds['hours'].sum():.1f} hours of one process beyond the pilot, for a gain of {options.gain:g}")
    print("seeds_high is by the upper end of the pilot's spread (80% interval): a pilot of few seeds knows it roughly")
    return 0


def control_lines(run: Planned, record: Record, out: Path) -> list[str]:
    """The matched control of a run beside it: its score if it is in ``out``, else the command that makes it."""
    from isonb_lab.cli.summary import scores
    from isonb_lab.methods import TUNING
    from isonb_lab.runs.inputs import differences, named
    from isonb_lab.runs.record import sound_record
    from isonb_lab.runs.settings import method_flags

    if run.method.name == "none" or run.experiment == "doses":  # these have no control
        return []
    control = run.control
    beside = sound_record(out / "records" / f"{control.run_id}.json")
    then, now = ({} if some is None else some.manifest.get("data", {}) for some in (beside, record))
    if other := differences(then, now):  # then the control on these rows, if it was run, has an id of its own
        control = control.with_inputs(named({**then, **{name: now[name] for name in then if name in now}}))
        beside, other = sound_record(out / "records" / f"{control.run_id}.json"), f" on these rows ({other})"
    if beside is None or beside.status != "complete":
        method = control.config["method"]
        flags = method_flags(method, [option for option in TUNING if option in method])
        return [f"control   {control.label}{other}, not in {out}: the same with {flags}"]
    values = {metric: value for metric, value, _ in scores(beside)}
    lines = [f"{metric} {values[metric]:.4f}" for metric, _, _ in scores(record) if values.get(metric) is not None]
    return [f"control   {control.label}: {', '.join(lines)}; isonb compare {out} judges it over seeds"]


def _condition(word: str) -> tuple[str, Any]:
    name, mark, value = word.partition("=")
    if not mark or not name:
        fail(InputError, "--where must be COLUMN=VALUE", repr(word), "Write --where task=cola, say.")
    return name, value

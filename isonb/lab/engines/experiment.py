"""One call for any run: settings written out, everything checked, then the engine of its experiment.

From a shell, ``python -m isonb.lab.engines.experiment --config run.json --out runs`` leaves the record alone; under
torchrun the processes share one run and the first one writes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.lab.engines.preflight import preflight
from isonb.lab.runs.inputs import named
from isonb.lab.runs.record import Record, write_record
from isonb.lab.runs.run_ids import run_id
from isonb.lab.runs.settings import resolve

__all__ = ["main", "run"]


def run(
    config: Mapping[str, Any], *, data: str | Path | None = None, work: str | Path | None = None, progress: bool = True
) -> Record:
    """The record of the run that ``config`` describes (see :func:`~isonb.lab.runs.settings.resolve`), unwritten.

    ``data`` is a folder in the hub's layout, "hub", or None for the folder in ISONB_DATA and else the hub; ``work`` a
    folder for checkpoints. Whatever can be wrong with configuration, model and data is found before any work starts.
    """
    config = resolve(config)
    preflight(config, data)
    record = _run(config, data, work, progress)
    if "inputs" in config and config["inputs"] != (now := named(record.manifest["data"])):
        fix = "They changed while it ran: start it again."
        fail(InputError, f"rows and weights must be those the run is named by, {config['inputs']}", now, fix)
    return record


def _run(config: dict[str, Any], data: str | Path | None, work: str | Path | None, progress: bool) -> Record:
    if config["experiment"] == "finetune":
        from isonb.lab.engines import finetune

        return finetune.run(config, data=data, work=work, progress=progress)
    if config["experiment"] == "doses":
        from isonb.lab.engines import doses

        return doses.run(config, data=data, work=work, progress=progress)
    if config["experiment"] == "similarity":
        from isonb.lab.engines import similarity

        return similarity.run(config, data=data, progress=progress)
    from isonb.lab.engines import synthetic

    return synthetic.run(config, progress=progress)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line: one run, one record, no notebook."""
    parser = argparse.ArgumentParser(
        prog="python -m isonb.lab.engines.experiment",
        description="Run one configuration and write its record; under torchrun, on several processes.",
        epilog="example:\n  torchrun --nproc-per-node 2 -m isonb.lab.engines.experiment --config run.json --out runs",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", required=True, help="JSON file with the settings that differ from the defaults")
    parser.add_argument("--out", required=True, help="folder; the record goes to OUT/records, checkpoints to OUT/work")
    parser.add_argument("--data", help='folder in the hub\'s layout, or "hub"')
    options = parser.parse_args(argv)
    try:
        config = resolve(json.loads(Path(options.config).read_text(encoding="utf-8")))
        out = Path(options.out)
        record = run(config, data=options.data, work=out / "work" / run_id(config))
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"record: {write_record(out / 'records', record)}")
    except (InputError, OSError, json.JSONDecodeError) as error:
        parser.exit(2, f"error: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

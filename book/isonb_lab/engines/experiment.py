"""One call for any run: the engine of its experiment, by name.

From a shell, ``python -m isonb_lab.engines.experiment --config run.json --out runs`` leaves the record alone; under
torchrun the processes share one run and the first one writes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.errors import InputError
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.settings import Planned, plan


def run(request: Mapping[str, Any] | Planned, **options: Any) -> Record:
    """The record of the run that ``request`` describes (see :func:`~isonb_lab.runs.settings.plan`), unwritten.

    Whatever can be wrong with configuration, model and data is told before any work starts
    (:func:`~isonb_lab.engines.preflight.preflight`). The same configuration gives the same metrics and series on the
    same machine.

    Args:
        request: a configuration, or a run that is written out.
        options: ``data``, a folder in the hub's layout, "hub", or None for the folder in ISONB_DATA and else the hub;
            ``work``, a folder for checkpoints; ``progress``; and what is left beside the record: ``report_to`` names
            trackers, as the Trainer's, ``predictions`` a file for a table, as its suffix says.
    """
    planned = plan(request)
    record: Record = _engine(planned.experiment)(planned, **options)
    return record


def _engine(experiment: str) -> Callable[..., Any]:
    """The engine of an experiment. One of points alone doesn't wait for the libraries of the others."""
    if experiment == "synthetic":
        from isonb_lab.engines import synthetic

        return synthetic.run
    from isonb_lab.engines import doses, finetune, similarity

    return {"doses": doses.run, "finetune": finetune.run, "similarity": similarity.run}[experiment]


def main(argv: Sequence[str] | None = None) -> int:
    """The command line: one run, one record, no notebook."""
    parser = argparse.ArgumentParser(
        prog="python -m isonb_lab.engines.experiment",
        description="Run one configuration and write its record; under torchrun, on several processes.",
    )
    parser.add_argument("--config", required=True, help="JSON file with the settings that differ from the defaults")
    parser.add_argument("--out", required=True, help="folder; the record goes to OUT/records, checkpoints to OUT/work")
    parser.add_argument("--data", help='folder in the hub\'s layout, or "hub"')
    options = parser.parse_args(argv)
    try:
        planned = plan(json.loads(Path(options.config).read_text(encoding="utf-8")))
        out = Path(options.out)
        record = run(planned, data=options.data, work=out / "work" / planned.run_id)
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"record: {write_record(out / 'records', record)}")
    except (InputError, OSError, json.JSONDecodeError) as error:
        parser.exit(2, f"error: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

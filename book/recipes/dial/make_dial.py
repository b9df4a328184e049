"""The study of the dial: ``whole`` makes its tables, ``again`` the end points of its curves.

``deployed`` makes the table of the dial as one deploys it. ``whole`` and ``again`` print how far what they made lies
from what was recorded, and end with 1 where a score is further away than one row of its set.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd
from dial import deployed, plan
from dial.record import differences, read_again, whole
from dial.study import READERS

from isonb.errors import DependencyError, InputError
from isonb.models.catalogue import models_folder
from isonb_lab.papers import deployed as study


def main() -> int:
    """Do what the first word says; 1 where what was made differs from what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["whole", "again", "deployed"])
    names = "whole, deployed: all of the plan if none is named; otherwise all that are recorded"
    parser.add_argument("encoders", nargs="*", metavar="ENCODER", help=names)
    parser.add_argument("--layers", type=int, nargs="+", default=[], help="again: these alone")
    parser.add_argument("--readers", nargs="+", default=list(READERS), help=", ".join(READERS))
    parser.add_argument("--vectors", type=Path, default=models_folder().parent / "dial", help="cache of vectors")
    parser.add_argument("--into", type=Path, help="whole, deployed: where tables are published")
    options = parser.parse_args()
    encoders_of_plan = study.LAYERS if options.verb == "deployed" else plan.LAYERS
    if unknown := sorted(set(options.encoders) - set(encoders_of_plan)):
        parser.error(f"encoders must be some of {', '.join(encoders_of_plan)}; got {', '.join(unknown)}. Name these.")
    try:
        if options.verb == "deployed":
            deployed.publish(options.encoders or list(study.LAYERS), options.vectors, options.into or study.FOLDER)
            return 0
        recorded = plan.read("scores")
        available = set(plan.LAYERS) if options.verb == "whole" else set(recorded["encoder"])
        encoders = options.encoders or [name for name in plan.LAYERS if name in available]
        if options.verb == "whole":
            whole(options.vectors, into := options.into or plan.FOLDER, encoders)
            computed = plan.read("scores", into)
        else:
            again = [read_again(row, options.readers, options.vectors, options.layers) for row in encoders]
            computed = pd.concat(again, ignore_index=True)
        table = differences(computed, recorded)
    except (InputError, DependencyError) as error:
        sys.exit(f"error: {error}")
    away = table["difference"].abs()
    beyond = table[away > table["allowed"] + 1e-9]
    if len(beyond):
        print(beyond.to_string(index=False, float_format="%.4f"))
    equal = f"{(away < 1e-9).sum()} equal, {len(beyond)} further away than a row, largest difference {away.max():.5f}"
    print(f"{len(table)} of {len(computed)} scores are recorded: {equal}")
    return int(len(table) < len(computed) or len(beyond) > 0)


if __name__ == "__main__":
    sys.exit(main())

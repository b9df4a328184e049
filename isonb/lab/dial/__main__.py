"""The study of the dial: ``whole`` makes all its tables; an encoder and a layer read the end points of curves again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from isonb.errors import DependencyError, InputError
from isonb.lab.dial.record import differences, read_again, whole
from isonb.lab.dial.study import READERS
from isonb.lab.encoders.catalogue import models_folder

CLOSE = 5e-4  # one test row of 2,000; another processor rounds another way


def main() -> int:
    """Print what was computed anew beside what was recorded; 1 where they differ."""
    parser = argparse.ArgumentParser(prog="python -m isonb.lab.dial", description=__doc__)
    parser.add_argument("encoder", help="tiny, minilm, smollm2; whole: make and publish every table")
    parser.add_argument("layer", type=int, nargs="?", default=-1)
    parser.add_argument("readers", nargs="*", default=["own topics"], help=", ".join(READERS))
    parser.add_argument("--vectors", type=Path, default=models_folder().parent / "dial", help="cache of vectors")
    given = parser.parse_args()
    try:
        if given.encoder == "whole":
            whole(given.vectors)
            return 0
        again = read_again(given.encoder, given.layer, given.readers, given.vectors)
        table = differences(again, given.encoder, given.layer)
    except (InputError, DependencyError) as error:
        sys.exit(f"error: {error}")
    print(table.to_string(index=False, float_format="%.4f"))
    return int(table.empty or table["difference"].abs().max() > CLOSE)


if __name__ == "__main__":
    sys.exit(main())

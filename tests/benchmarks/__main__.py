"""``make bench``: every comparison, as one table and as ``_build/bench.json``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch

from tests.benchmarks import measures, training
from tests.benchmarks.harness import Row, limits, table, write

SUITES = {**measures.SUITES, **training.SUITES}


def main() -> int:
    """Run the chosen suites; exit 1 if any row's results disagree."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of: {', '.join(SUITES)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("_build/bench.json"), help="where the record goes")
    args = parser.parse_args()
    if unknown := set(args.suites) - set(SUITES):
        parser.error(f"unknown suite {sorted(unknown)}; choose from {', '.join(SUITES)}")
    warnings.filterwarnings("ignore")  # the peers', not ours
    torch.set_num_threads(1)
    rows: list[Row] = []
    for name in args.suites or SUITES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += SUITES[name]()
        write(rows, args.out)  # kept as it comes: nothing is lost when stopped
    print(table(rows))
    print("\nOne thread, least of several interleaved rounds. Rows with <= compare with a lower bound, not a peer.")
    print(limits(rows))
    print(f"The record is {args.out}.")
    return int(any(row.verdict == "WRONG" for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""``make bench``: every comparison, as one table and as ``_build/bench.json``; ``--publish`` puts it into the book.

``make bench-gpu`` (``--card``): what is worth measuring on a card, as ``_build/bench_gpu.json``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import threadpoolctl
import torch

from isonb.barcodes import compiled_prim
from isonb.numerics import compiled_nearest
from tests.benchmarks.cards import CARD_SUITES
from tests.benchmarks.harness import Peak, Row, limits, peaks_table, surroundings, table, write
from tests.benchmarks.publish import CARD_PUBLISHED, PUBLISHED, PublishError, publish
from tests.benchmarks.suites import SUITES


def main(argv: list[str] | None = None) -> int:
    """Run the chosen suites, or publish what was run; exit 1 if any results disagree or nothing can be published."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of: {', '.join(SUITES)} (default: all)")
    parser.add_argument("--card", action="store_true", help=f"on a CUDA card: some of {', '.join(CARD_SUITES)}")
    parser.add_argument("--out", type=Path, help="where the record goes (default: in _build)")
    parser.add_argument("--small", action="store_true", help="the smallest sizes: to try the code, no measurement")
    parser.add_argument(
        "--publish", action="store_true", help=f"run nothing: copy a complete record to {PUBLISHED.parent}"
    )
    args = parser.parse_args(argv)
    suites = chosen(args.card)
    if unknown := set(args.suites) - set(suites):
        parser.error(f"unknown suite {sorted(unknown)}; choose from {', '.join(suites)}")
    args.out = args.out or Path("_build/bench_gpu.json" if args.card else "_build/bench.json")
    if args.publish:
        try:
            print(f"{args.out} is now {publish(args.out, CARD_PUBLISHED if args.card else PUBLISHED, list(suites))}.")
        except PublishError as error:
            print(f"PublishError: {error}", file=sys.stderr)
            return 1
        return 0
    if args.card and not torch.cuda.is_available():
        print("There is no CUDA card here: make bench-gpu needs one; make bench measures the CPU.", file=sys.stderr)
        return 1
    found = run(args.suites or list(suites), args.out, small=args.small, suites=suites)
    report(found, args.out, args.card)
    return int(any(one.verdict == "WRONG" for one in found))


Suites = Mapping[str, Callable[[bool], Sequence[Row | Peak]]]


def chosen(card: bool) -> Suites:
    """Those of the CPU, or those of a card."""
    if not card:
        return SUITES
    return {name: lambda small, suite=suite: suite(small, "cuda") for name, suite in CARD_SUITES.items()}


def run(names: list[str], out: Path, *, small: bool = False, suites: Suites = SUITES) -> list[Row | Peak]:
    """Every row of these suites; the record is written as it comes, so nothing is lost when stopped.

    The compiled loops are loaded at once: the first cloud of a process loads them.
    """
    compiled_prim.compiled_prim()
    compiled_nearest.compiled_choice(1)
    warnings.filterwarnings("ignore")  # the peers', not ours
    torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)  # the peers' numpy too, however this was started
    about = {"sizes": "small" if small else "full"} | surroundings()
    found: list[Row | Peak] = []
    for k, name in enumerate(names, start=1):
        print(f"{name} ...", file=sys.stderr, flush=True)
        found += [replace(one, suite=name) for one in suites[name](small)]
        write(found, about | {"missing": [suite for suite in suites if suite not in names[:k]]}, out)
    return found


def report(found: list[Row | Peak], out: Path, card: bool) -> None:
    """The tables, what holds back the rows that miss their goal, and where the record is."""
    rows, peaks = ([one for one in found if isinstance(one, kind)] for kind in (Row, Peak))
    if rows:
        print(table(rows))
        print("\nOne thread, rounds interleaved; ratios of the least times. Rows with <= compare with a lower bound.")
    if peaks:
        print("\n" + peaks_table(peaks))
    print(limits(found))
    more = " --card" if card else ""
    print(f"The record is {out}. To put it into the book: python -m tests.benchmarks{more} --publish")


if __name__ == "__main__":
    sys.exit(main())

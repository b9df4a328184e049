"""``make bench``: every comparison, as one table and as ``_build/bench.json``; ``--publish`` puts it into the book.

``make bench-gpu`` (``--card``): what is worth measuring on a card, as ``_build/bench_gpu.json``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import threadpoolctl
import torch

from isonb.runtime import files
from isonb_lab.places import RECORDINGS_FOLDER
from tests.benchmarks import functions, measures, memory, peers, scaling, training
from tests.benchmarks.cards import CARD_SUITES
from tests.benchmarks.harness import KINDS, Comparison, Peak, Peer, Reading, surroundings, write

PUBLISHED = {False: RECORDINGS_FOLDER / "bench.json", True: RECORDINGS_FOLDER / "bench_gpu.json"}
Suite = Iterator[Comparison | Peak | Reading]
Suites = Mapping[str, Callable[[bool], Suite]]


FIRST = "import torch; {}; x = torch.randn(2048, 64); {}; print('done')"
READ = "import torch, numpy; x = torch.from_numpy(numpy.load({!r})); x.sum(); x[:5000] @ x[:5000].mT; print('done')"
SINGLE_LINKAGE = "import fastcluster", "fastcluster.linkage_vector(x.numpy(), 'single')"


class PublishError(ValueError):
    """A record that can't be shown: not there, not whole, of toy sizes, or with wrong results."""


def starting(small):
    """Imports and the command line in a fresh process, against torch's import and what can't be avoided."""
    cloud = functions.gaussian(*((50, 8) if small else (100_000, 384)))
    audit, reading = f"isonb audit, {functions.size_of(cloud)}", "torch, reading and one product"
    folder = tempfile.TemporaryDirectory()
    path = f"{folder.name}/cloud.npy"
    np.save(path, cloud.numpy())
    commands = {
        audit: (["-m", "isonb", "audit", path], "Only labelled pairs tell"),
        reading: (["-c", READ.format(path)], "done"),
        "bare Python": (["-c", "print('up')"], "up"),
        "import torch": (["-c", "import torch; print(torch.__name__)"], "torch"),
        "import isonb": (["-c", "import isonb; print(isonb.__name__)"], "isonb"),
        "import isonb, use one name": (["-c", "import isonb; print(isonb.isoscore.__name__)"], "isoscore"),
        "isonb --help": (["-m", "isonb", "--help"], "usage: isonb"),
        "one barcode": (["-c", FIRST.format("import isonb", "isonb.h0_barcode(x)")], "done"),
        "one barcode by fastcluster": (["-c", FIRST.format(*SINGLE_LINKAGE)], "done"),
    }

    def started(name):
        command = [sys.executable, *commands[name][0]]
        return subprocess.run(command, cwd=memory.ROOT, capture_output=True, text=True, check=True).stdout

    floors = {
        "import isonb": "bare Python",
        "isonb --help": "bare Python",
        "import isonb, use one name": "import torch",
        audit: reading,
    }
    if small:  # imports are tried wherever something is imported
        floors = {name: floors[name] for name in ("isonb --help", audit)}
    elif peers.there("fastcluster"):
        floors["one barcode"] = "one barcode by fastcluster"
    for name, floor in floors.items():
        wrong = float(commands[name][1] not in started(name))
        barcode = name == "one barcode"
        others = [floor] if small or barcode else dict.fromkeys(["import torch", floor])
        against = [Peer(one, partial(started, one), wrong, 1.3 if barcode else None, one == floor) for one in others]
        yield Comparison(name, "a fresh process", partial(started, name), against, 0.0, clock=time.perf_counter)
    folder.cleanup()


SUITES = {
    **functions.SUITES,
    **measures.SUITES,
    **training.SUITES,
    **scaling.SUITES,
    **memory.SUITES,
    "starting": starting,
}


def main(argv=None):
    """Run the chosen suites, or publish what was run; exit 1 if any results disagree or nothing can be published."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of: {', '.join(SUITES)} (default: all)")
    parser.add_argument("--card", action="store_true", help=f"on a CUDA card: some of {', '.join(CARD_SUITES)}")
    parser.add_argument("--out", type=Path, help="where the record goes (default: in _build)")
    parser.add_argument("--small", action="store_true", help="the smallest sizes: to try the code, no measurement")
    told = f"run nothing: copy a complete record to {RECORDINGS_FOLDER}"
    parser.add_argument("--publish", action="store_true", help=told)
    args = parser.parse_args(argv)
    suites = {name: partial(suite, device="cuda") for name, suite in CARD_SUITES.items()} if args.card else SUITES
    if unknown := set(args.suites) - set(suites):
        parser.error(f"unknown suite {sorted(unknown)}; choose from {', '.join(suites)}")
    out = args.out or Path("_build/bench_gpu.json" if args.card else "_build/bench.json")
    if args.publish:
        try:
            print(f"{out} is now {publish(out, PUBLISHED[args.card], list(suites))}.")
        except PublishError as error:
            print(f"PublishError: {error}", file=sys.stderr)
            return 1
        return 0
    if args.card and not torch.cuda.is_available():
        print("There is no CUDA card here: make bench-gpu needs one; make bench measures the CPU.", file=sys.stderr)
        return 1
    parts = run(args.suites or list(suites), suites, out, small=args.small)
    report(parts, out, args.card)
    return int(any(one["verdict"] == "WRONG" for rows in parts.values() for one in rows))


def run(names, suites, out, *, small=False):
    """The lists of the record with every row of these suites, written after each, so that nothing is lost when stopped.

    Rows of other suites stay in a record of the same sizes and versions.
    """
    warnings.filterwarnings("ignore")  # the peers', not ours
    torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)  # the peers' numpy too, however this was started
    about = {"sizes": "small" if small else "full"} | surroundings()
    parts = earlier(out, about)
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        parts = {part: [one for one in rows if one["suite"] != name] for part, rows in parts.items()}
        for latest in timed(name, suites[name](small), small):
            parts[next(part for part, kind in KINDS.items() if isinstance(latest, kind))].append(latest.record())
            write(parts, about | {"missing": missing(suites, parts, name)}, out)
        write(parts, about | {"missing": missing(suites, parts)}, out)
    return parts


def missing(suites, parts, under_way=""):
    """The suites that have no rows, or not all."""
    ran = {one["suite"] for rows in parts.values() for one in rows} - {under_way}
    return [suite for suite in suites if suite not in ran]


def earlier(out, about):
    """What a record of the same sizes and versions holds; empty lists where there is none."""
    try:
        record = json.loads(out.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    alike = all(record.get(key) == about[key] for key in about if key != "load")
    return {part: record.get(part, []) if alike else [] for part in KINDS}


def timed(name, suite, small):
    """The rows of a suite, each comparison timed before the next is made."""
    for one in suite:
        for row in one.rows(small) if isinstance(one, Comparison) else [one]:
            yield replace(row, suite=name)


def report(parts, out, card):
    """The record as tables, without rounds and pieces, and where it is; the page *Speed* says what holds a row back."""
    for rows in filter(None, parts.values()):
        frame = pd.DataFrame(rows).drop(columns=["ours_rounds_ms", "peer_rounds_ms", "parts", "limit"], errors="ignore")
        print(frame.to_string(index=False, float_format="{:.3g}".format), end="\n\n")
    print(
        "One thread, CPU time, rounds interleaved; ratios of the least. Of a yardstick the ratio is our time over its."
    )
    more = " --card" if card else ""
    print(f"The record is {out}. To put it into the book: python -m tests.benchmarks{more} --publish")


def publish(record, target, suites):
    """Copy ``record`` to ``target`` if every one of ``suites`` ran at full size and no result disagrees.

    Raises :class:`PublishError` otherwise, and leaves ``target`` as it was.
    """
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PublishError(f"a record must be a readable JSON file; got {error}. Run make bench first.") from error
    rows = [one for part in KINDS for one in found.get(part, [])]
    ran = {one["suite"] for one in rows} - {*found.get("missing", [])}
    if lacking := [suite for suite in suites if suite not in ran]:
        raise PublishError(f"every suite must have run; {', '.join(lacking)} did not. Run make bench without names.")
    if found["sizes"] != "full":
        raise PublishError(f"sizes must be full; got {found['sizes']}. Run make bench without --small.")
    if wrong := [f"{one['what']}, {one['size']}" for one in rows if one["verdict"] == "WRONG"]:
        raise PublishError(f"all results must agree; these don't: {'; '.join(wrong)}. Find out which side is wrong.")
    files.replace(target, record.read_bytes())
    return target


if __name__ == "__main__":
    sys.exit(main())

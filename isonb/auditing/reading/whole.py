"""All vectors at once, for those who go on with them in Python."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.auditing.reading.matrices import matrix
from isonb.auditing.reading.rows import pieces

__all__ = ["vectors_of"]


def vectors_of(vectors: Any, name: str | None = None) -> Tensor:
    """The rows (m, d) that an audit counts, finite and not zero, as float32 (float64 if they are that).

    ``vectors``: whatever :func:`isonb.audit` takes, a path too; ``name``: which array or column, where there are
    several. Raises what :func:`isonb.audit` raises.

    >>> vectors_of([[0.0, 1.0], [float("nan"), 1.0], [2.0, 2.0]]).tolist()
    [[0.0, 1.0], [2.0, 2.0]]
    """
    parts = (part for _, part in pieces(matrix(vectors, name=name)))
    return torch.cat([part[part.isfinite().all(-1) & (part != 0).any(-1)] for part in parts])

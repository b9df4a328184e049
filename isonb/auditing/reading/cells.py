"""Cells of text that hold a vector: JSON, what numpy and torch print, and the text of pgvector and Postgres arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from isonb.errors import DtypeError

OPENS = ("[", "{", "(", "<", "tensor(", "array(", "np.array(", "Vector(", "HalfVector(")
WRAPPED = re.compile(r"^\s*(?:tensor|array|np\.array|Vector|HalfVector)\((.*)\)\s*$", re.DOTALL)
NAMED = re.compile(r"[,\s]+(?:dtype|device|shape|grad_fn)=.*$", re.DOTALL)
SPARSE = re.compile(r"^\{(.*)\}/(\d+)$", re.DOTALL)  # pgvector's sparsevec: indices from 1, then the dimensions


def numbers_in(cell: str) -> list[float]:
    """The numbers of a cell.

    >>> numbers_in("[0.5, -1]"), numbers_in("{1:2.5,3:1}/4"), numbers_in("tensor([1., 2.], dtype=torch.float16)")
    ([0.5, -1.0], [2.5, 0.0, 1.0, 0.0], [1.0, 2.0])

    Raises DtypeError for other text, and for what numpy has cut by "...".
    """
    text = cell.strip()
    try:
        values = json.loads(text)
        if isinstance(values, list):
            return [float("nan") if value is None else float(value) for value in values]
    except (ValueError, TypeError):
        pass
    try:
        if sparse := SPARSE.match(text):
            dense = [0.0] * int(sparse[2])
            for place, value in (pair.split(":") for pair in sparse[1].split(",") if pair):
                dense[int(place) - 1] = float(value)
            return dense
        wrapped = WRAPPED.match(text)
        body = NAMED.sub("", wrapped[1]) if wrapped else text
        return [float(part) for part in body.strip("[](){}<> \n").replace(",", " ").replace(";", " ").split()]
    except (ValueError, IndexError):
        why = "numpy has cut it by '...' when it was printed" if "..." in text else "it is no list of numbers"
        shown = text if len(text) < 60 else f"{text[:40]}...{text[-12:]}"
        must = "a cell of text must hold a vector"
        raise DtypeError(f"{must}; got {shown!r}: {why}. Keep lists, not printed arrays.") from None


def looks_like_vector(cells: Sequence[str | None]) -> bool:
    """Whether the first cell that isn't missing reads as two numbers or more, in brackets."""
    text = next((cell.strip() for cell in cells if cell and cell.strip()), "")
    if not text.startswith(OPENS):
        return False
    try:
        return "..." in text or len(numbers_in(text)) > 1
    except DtypeError:
        return False

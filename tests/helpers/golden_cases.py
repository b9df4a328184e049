"""Saved inputs and the values that independent code gave on them, see ``tests/golden``.

``load(case)`` gives the arrays of ``tests/golden/<case>.npz`` as float64 tensors (the values were computed on the
float64 copy of float32 input; integers stay integers). ``values(area, case)`` gives ``<area>_<case>.json``.
"""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

FOLDER = Path(__file__).parents[1] / "golden"


@functools.cache
def _arrays(case: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"{case}.npz") as archive:
        return {name: archive[name] for name in archive.files}


def load(case: str) -> dict[str, Tensor]:
    """The inputs of a case by name, fresh tensors each time: ``points``, ``c0_diag``, ``attention_mask``, ..."""
    arrays = _arrays(case)
    return {n: torch.tensor(a, dtype=torch.float64 if a.dtype.kind == "f" else None) for n, a in arrays.items()}


def points(case: str) -> Tensor:
    """One cloud (n, d) a case: its points, or the real tokens of all its sentences (of the last layer), row-major."""
    inputs = load(case)
    if "points" in inputs:
        return inputs["points"]
    tokens = inputs["tokens"] if "tokens" in inputs else inputs["hidden_states"][-1]
    return tokens[inputs["attention_mask"].bool()]


def shrinkage(case: str) -> Tensor:
    """The saved shrinkage matrix of a case, diag(c0_diag) + c0_factor^T c0_factor."""
    inputs = load(case)
    return torch.diag(inputs["c0_diag"]) + inputs["c0_factor"].T @ inputs["c0_factor"]


@functools.cache
def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def values(area: str, case: str) -> Any:
    """The expected values that one area keeps of a case."""
    return _json(FOLDER / f"{area}_{case}.json")


def cases(area: str) -> list[str]:
    """Names of the cases of which an area keeps values."""
    return sorted(path.stem.removeprefix(f"{area}_") for path in FOLDER.glob(f"{area}_*.json"))


def assert_matches(got: Tensor, saved: dict[str, Any], *, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    """A matrix equals a saved one: kept whole (``full``), or as sampled rows, row norms and column sums."""
    assert list(got.shape) == saved["shape"]
    flat = got.detach().reshape(-1, got.shape[-1]) if got.ndim > 1 else got.detach().reshape(1, -1)

    def same(a: Tensor, b: Any) -> None:
        torch.testing.assert_close(a, torch.tensor(b, dtype=torch.float64).view_as(a), rtol=rtol, atol=atol)

    if "full" in saved:
        return same(got.detach(), saved["full"])
    same(flat[saved["sampled_row_index"]], saved["sampled_rows"])
    same(flat.norm(dim=-1), saved["row_norms"])
    return same(flat.sum(0), saved["column_sums"])

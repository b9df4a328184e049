"""Fitted state on disk: tensors in ``weights.safetensors``, everything else in ``config.json``.

Nothing in the folder is code, and reading it back needs safetensors and this package, or safetensors and json alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from isonb.errors import InputError, fail, needs

__all__ = ["read_folder", "write_folder"]

CONFIG, WEIGHTS = "config.json", "weights.safetensors"


def _safetensors() -> Any:
    with needs("a folder of fitted state", "lab"):
        from safetensors import torch as library
    return library


def write_folder(folder: str | Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write ``config`` and ``tensors`` to ``folder``, made if missing."""
    library = _safetensors()
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    kept = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    library.save_file(kept, path / WEIGHTS)
    (path / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_folder(folder: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what :func:`write_folder` wrote; :class:`~isonb.errors.InputError` where a file is missing or broken."""
    library = _safetensors()
    path = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            fail(InputError, f"{path} must hold {CONFIG} and {WEIGHTS}", f"no {name}", "Pass the folder given to save.")
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
        tensors: dict[str, Tensor] = library.load_file(path / WEIGHTS)
    except Exception as broken:
        fail(InputError, f"{path} must hold what save wrote", f"{type(broken).__name__}: {broken}", "Save it again.")
    if not isinstance(config, dict) or "class" not in config:
        fail(InputError, f"{CONFIG} must name its class", config, "Save it again.")
    return config, tensors

"""One file that holds a training run's whole state: written in one move, read only if it is intact."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isonb.checks import InputError

__all__ = ["CheckpointError", "damaged", "load_state", "replace_text", "restore", "save_state"]


class CheckpointError(InputError):
    """A checkpoint that is damaged, or that belongs to a run with other settings."""


def save_state(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, record: dict[str, Any]) -> None:
    """Write parameters, optimiser state and ``record`` (plain JSON values) to ``path`` in safetensors.

    The file appears whole or not at all: it is written beside its place, flushed to disk and moved.
    """
    from safetensors.torch import save_file

    tensors = _tensors(model, optimizer)
    meta = {"record": json.dumps(record), "sha256": _digest(tensors, record)}
    part = path.with_suffix(".part")
    save_file(tensors, part, metadata=meta)
    _move(part, path)


def load_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and record of a checkpoint. Raises :class:`CheckpointError` unless every byte is as it was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            meta = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        record = json.loads(meta["record"])
        intact = meta["sha256"] == _digest(tensors, record)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error
    if not intact:
        raise damaged(path, "another checksum")
    return tensors, record


def restore(tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put the tensors of :func:`load_state` back into a model and an optimiser of the same shape."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        kind, _, rest = key.partition(".")
        if kind == "optimizer":
            number, _, name = rest.partition(".")
            state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def replace_text(path: Path, text: str) -> None:
    """Write a small text file in one move."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", newline="\n")
    _move(part, path)


def _move(part: Path, path: Path) -> None:
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)


def _tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {f"model.{name}": p.detach().cpu().contiguous() for name, p in model.named_parameters()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value.cpu().contiguous() for name, value in state.items()}
    return tensors


def _digest(tensors: dict[str, Tensor], record: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def damaged(path: Path, why: str) -> CheckpointError:
    """The error for a file of a run that isn't as it was written."""
    return CheckpointError(
        f"a run is resumed from the files that it wrote; got {why} in {path}. "
        "Begin again with --no-resume (resume=False), or choose another output folder."
    )

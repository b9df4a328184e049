"""Checkpoints that a run may go on from: whole, and as they were written.

The Trainer writes many files. A list of them with their digests comes last, so that a checkpoint that was cut short or
damaged is known before anything is read from it. A run that finds none starts anew, and ends with the same numbers.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from isonb.runtime.files import replace

SEAL = "digests.json"


class Seal(TrainerCallback):  # type: ignore[misc]
    """Seals each checkpoint once all processes have written what is theirs of it."""

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the digests beside the files, in one move."""
        if torch.distributed.is_initialized():
            torch.distributed.barrier()
        if state.is_world_process_zero:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            replace(folder / SEAL, json.dumps(_digests(folder)).encode())


def last_whole(folder: Path) -> Path | None:
    """The last checkpoint in ``folder`` that is as it was written, and the best one it names too; the others go."""
    whole = [path for path in folder.glob("checkpoint-*") if _is_whole(path)]
    usable = [path for path in whole if _best(path) in (None, *whole)]
    last = max(usable, key=_updates, default=None)
    for path in folder.glob("checkpoint-*"):
        if last is None or path not in whole or _updates(path) > _updates(last):
            shutil.rmtree(path, ignore_errors=True)
    return last


def _updates(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _best(checkpoint: Path) -> Path | None:
    """The checkpoint with the best score so far, whose weights the run may end with."""
    best = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["best_model_checkpoint"]
    return None if best is None else Path(best)


def _is_whole(checkpoint: Path) -> bool:
    try:
        return bool(json.loads((checkpoint / SEAL).read_text(encoding="utf-8")) == _digests(checkpoint))
    except (OSError, ValueError):
        return False


def _digests(folder: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((SEAL, "."))):
        with path.open("rb") as file:
            digests[str(path.relative_to(folder))] = hashlib.file_digest(file, "blake2b").hexdigest()
    return digests

"""Pretrains a small BERT on a folder of text: masked words, and which segment follows.

``python book/recipes/tiny/pretrain.py --text corpus --out runs/mine --steps 10000``; ``--start tiny`` goes on from the
model that ships. An interrupted run is taken up where its last checkpoint stands.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pretraining import PretrainSettings, card, training
from pretraining.text import Rows, Texts, read_folder, train_tokenizer
from transformers import TrainerState

from isonb.errors import InputError, OptionError, fail
from isonb.models.locate import find
from isonb.models.text_models import quiet
from isonb.options import build, describe, rules
from isonb.runtime.files import replace
from isonb_lab.engines.callbacks import last_valid_checkpoint

RECORD = "run.json"  # the settings and the text of the run in a folder


class CheckpointError(InputError):
    """A folder of checkpoints that belong to a run with other settings."""


def pretrain(text: str | Path, out: str | Path, *, resume: bool = True, progress: bool = True, **options: Any) -> Path:
    """Train, export, and return the folder of the finished model (``out/model``).

    ``options`` are those of :class:`PretrainSettings`. An interrupted run in ``out`` is taken up where its last
    checkpoint stands; a finished one is exported again. Raises :class:`~isonb.errors.OptionError` for options
    that can't be used, :class:`~pretraining.text.TextError` for such a text folder, :class:`CheckpointError` for a
    checkpoint of other settings.
    """
    settings = build(PretrainSettings, options, "pretraining")
    if settings.width % (2 * settings.heads):
        got = f"{settings.width}, {settings.heads}"
        fail(OptionError, "width must be an even multiple of heads", got, "Change one.")
    out, texts = Path(out).expanduser(), read_folder(text)
    fixed = {name: value for name, value in describe(settings).items() if name != "about"}
    fixed |= {"start": settings.start and find(settings.start).weights(), "text": texts.fingerprint}
    saved = _last_checkpoint(out, fixed) if resume else None
    if saved is None:
        for old in out.glob("checkpoint-*"):
            shutil.rmtree(old)
        replace(out / RECORD, json.dumps(fixed, indent=1).encode())
    model, tokenizer = _model(settings, texts, saved)
    rows = Rows(tokenizer, texts.train, settings.length, doubled=True)
    held_out = Rows(tokenizer, texts.validation, settings.length)
    trainer = training.trainer_of(settings, out, model, tokenizer, rows, held_out, progress=progress)
    with quiet():
        if saved and saved.name == f"checkpoint-{settings.steps}":
            trainer.state = TrainerState.load_from_json(str(saved / "trainer_state.json"))
        else:
            trainer.train(resume_from_checkpoint=str(saved) if saved else None)
        return card.export(out, trainer, settings, fixed)


def _model(settings: PretrainSettings, texts: Texts, saved: Path | None) -> tuple[Any, Any]:
    """Model and tokenizer: of the checkpoint, of the model to go on from, or fresh ones."""
    if not saved and not settings.start:
        tokenizer = train_tokenizer(texts.train, settings.vocabulary, 2 * settings.length)
        return training.fresh(settings, len(tokenizer)), tokenizer
    source = find(saved or settings.start)
    if source.config.model_type != "bert" or source.tokenizer.mask_token is None or not source.tokenizer.is_fast:
        fail(OptionError, "start must be a BERT encoder with tokenizer.json", settings.start, "Pass 'tiny', say.")
    if source.max_length < 2 * settings.length:
        fix = f"Use a length of at most {source.max_length // 2}."
        fail(OptionError, "start must have positions for twice the length", source.max_length, fix)
    return training.read(source.folder, settings.seed), source.tokenizer


def _last_checkpoint(out: Path, fixed: dict[str, Any]) -> Path | None:
    """The last whole checkpoint. CheckpointError unless its run has these settings and this text."""
    if not (out / RECORD).is_file() or (last := last_valid_checkpoint(out)) is None:
        return None
    then = json.loads((out / RECORD).read_text(encoding="utf-8"))
    if other := [f"{name} {then.get(name)!r} -> {value!r}" for name, value in fixed.items() if then.get(name) != value]:
        fix = "Use the old settings and text, choose another folder, or begin again with --no-resume."
        fail(CheckpointError, "a run is resumed with the settings it was started with", ", ".join(other), fix)
    return last


def main(argv: Sequence[str] | None = None) -> int:
    """The command: 0, or 2 and one line for what can't be done."""
    parser = argparse.ArgumentParser(prog="pretrain.py", description="Pretrains a small BERT on a folder of text.")
    parser.add_argument("--text", required=True, help="folder with *.parquet (column text) or *.txt files")
    parser.add_argument("--out", required=True, help="folder for checkpoints, the curve and the finished model")
    parser.add_argument(
        "--resume", action=argparse.BooleanOptionalAction, default=True, help="go on with the run there"
    )
    for setting in fields(PretrainSettings):
        action: Any = argparse.BooleanOptionalAction if isinstance(setting.default, bool) else "store"
        meaning = rules(PretrainSettings)[setting.name].replace("%", "%%")
        flag = "--" + setting.name.replace("_", "-")
        parser.add_argument(flag, action=action, default=argparse.SUPPRESS, help=f"{meaning} ({setting.default})")
    try:
        print(f"finished: {pretrain(**vars(parser.parse_args(argv)))}")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One pretraining from a folder of text to a finished model, taken up where it was interrupted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isonb.errors import InputError, fail
from isonb.lab.options import OptionError, build, describe
from isonb.lab.pretraining import PretrainSettings

if TYPE_CHECKING:
    from isonb.lab.pretraining.text import Texts

__all__ = ["CheckpointError", "pretrain"]

# Options that may change when a run is resumed; with another budget the learning rate moves to its new share.
FREE = ("minutes", "steps", "threads", "device", "about")


class CheckpointError(InputError):
    """A checkpoint that is damaged, or that belongs to a run with other settings."""


def pretrain(text: str | Path, out: str | Path, *, resume: bool = True, progress: bool = True, **options: Any) -> Path:
    """Train until the budget is used, export, and return the folder of the finished model (``out/model``).

    ``options`` are those of :class:`PretrainSettings`. An interrupted run in ``out`` is taken up where its last
    checkpoint stands; a finished one is exported again. Raises :class:`~isonb.lab.options.OptionError` for options
    that can't be used, :class:`~isonb.lab.pretraining.text.TextError` for such a text folder, :class:`CheckpointError`
    for a checkpoint that is damaged or belongs to other settings.
    """
    settings = _checked(build(PretrainSettings, options, "pretraining"))
    from isonb.lab.encoders.locate import find
    from isonb.lab.encoders.text_models import quiet
    from isonb.lab.pretraining import card, training
    from isonb.lab.pretraining.text import Rows, read_folder

    torch.set_num_threads(settings.threads)
    out, texts = Path(out).expanduser(), read_folder(text)
    fixed = {name: value for name, value in describe(settings).items() if name not in FREE}
    fixed |= {"start": settings.start and find(settings.start).weights(), "text": texts.fingerprint}
    saved = _last_checkpoint(out, fixed) if resume else None
    model, tokenizer = _model(settings, texts, saved)
    rows = Rows(tokenizer, texts.train, settings.length, follow=settings.follow, doubled=True)
    held = Rows(tokenizer, texts.validation, settings.length, follow=settings.follow)
    log = json.loads((saved / "trainer_state.json").read_text())["log_history"] if saved else []
    budget = training.Budget(settings, fixed, log, progress)
    trainer = training.BudgetTrainer(budget, out, model, tokenizer, rows, held)
    for other in training.checkpoints(out):  # begun and never sealed, or of a run that is begun again
        if not saved or not (other / training.RECORD).is_file():
            shutil.rmtree(other)
    with quiet():
        if budget.share < 1.0:
            trainer.train(resume_from_checkpoint=str(saved) if saved else None)
        return card.export(out, trainer, fixed)


def _checked(settings: PretrainSettings) -> PretrainSettings:
    """What no range says: a shape that can be, a device that is there."""
    if settings.width % (2 * settings.heads):
        got = f"{settings.width}, {settings.heads}"
        fail(OptionError, "width must be an even multiple of heads", got, "Change one.")
    if settings.device == "cuda" and not torch.cuda.is_available():
        fail(OptionError, "the device must be present", repr(settings.device), "Use 'cpu'.")
    return settings


def _model(settings: PretrainSettings, texts: Texts, saved: Path | None) -> tuple[Any, Any]:
    """Model and tokenizer: of the checkpoint, of the model to go on from, or fresh ones."""
    from isonb.lab.encoders.locate import find
    from isonb.lab.pretraining import training
    from isonb.lab.pretraining.text import train_tokenizer

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
    """The last sealed checkpoint. CheckpointError unless it belongs to this run and is as it was written."""
    from isonb.lab.pretraining.training import RECORD, checkpoints, digest

    sealed = [folder for folder in checkpoints(out) if (folder / RECORD).is_file()]
    if not sealed:
        return None
    folder, bad = sealed[-1], RECORD
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        then = {name: record["settings"].get(name, "unknown (an older run)") for name in fixed}
        bad = next((name for name, whole in record["files"].items() if digest(folder / name) != whole), "")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        bad = f"{bad} ({type(error).__name__}: {error})"
    if bad:
        fix = "Delete that checkpoint to go on from the one before, or begin again with --no-resume (resume=False)."
        fail(CheckpointError, "a run is resumed from the files that it wrote", f"other bytes in {folder / bad}", fix)
    other = [f"{name} {then[name]!r} -> {value!r}" for name, value in fixed.items() if then[name] != value]
    if other:
        fix = "Use the old settings and text, or choose another output folder."
        fail(CheckpointError, "a run is resumed with the settings it was started with", ", ".join(other), fix)
    return folder

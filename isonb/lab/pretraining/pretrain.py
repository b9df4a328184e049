"""Pretrain a small encoder on any folder of text and within a budget of time or steps.

The tasks are masked language modelling, which trains the tokens, and next sentence prediction, which trains [CLS].
The learning rate follows the share of the budget that is used, so it reaches zero at the end, however fast the machine
is. With a budget in steps the same seed gives the same weights on the same machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from isonb.checks import InputError, fail
from isonb.lab.pretraining import checkpoints, masking, mlm, warm_start
from isonb.lab.pretraining.text import read_folder
from isonb.lab.pretraining.training import PretrainConfig, Run, text_digest, train

__all__ = ["main", "pretrain"]

RANGES = {
    "minutes": (1e-6, 1e5),
    "steps": (1, 10**9),
    "seed": (0, 10**6),
    "threads": (1, 1024),
    "batch": (1, 65536),
    "length": (8, 4096),
    "learning_rate": (1e-8, 1.0),
    "warmup": (1e-6, 0.9),
    "weight_decay": (0.0, 1.0),
    "layers": (1, 64),
    "width": (8, 4096),
    "heads": (1, 64),
    "vocabulary": (64, 10**6),
}


def pretrain(config: PretrainConfig) -> Path:
    """Train until the budget is used, export, and return the folder of the finished model (``out/model``).

    An interrupted run in ``out`` is taken up where its last checkpoint stands; a finished one is exported again. Raises
    :class:`~isonb.checks.InputError` for settings out of range, :class:`~isonb.lab.pretraining.text.TextError` for a
    text folder that can't be used, :class:`~isonb.lab.pretraining.checkpoints.CheckpointError` for a checkpoint that is
    damaged or belongs to other settings.
    """
    from isonb.lab.pretraining.model_card import export

    _check(config)
    torch.set_num_threads(config.threads)
    run = _prepare(config)
    train(run)
    return export(run)


def _prepare(config: PretrainConfig) -> Run:
    """Read the text, train the tokenizer, take up the checkpoint (and the tokenizer beside it) if there is one."""
    texts = read_folder(config.text)
    out = Path(config.out).expanduser()
    out.mkdir(parents=True, exist_ok=True)
    saved = out / "checkpoint.safetensors"
    found = checkpoints.load_state(saved) if config.resume and saved.exists() else None
    if found is not None:
        _check_same(config, texts.fingerprint, found[1])
    tokenizer = _tokenizer(config, texts.train) if found is None else _saved_tokenizer(config, found[1])
    longest = 2 * config.length
    learn, held = (masking.stream(tokenizer, part, longest) for part in (texts.train, texts.validation))
    size = (config.layers, config.width, config.heads, tokenizer.get_vocab_size(), longest)
    model = mlm.bert(*size, seed=config.seed, follow=config.follow)
    if config.start and found is None:
        warm_start.load_weights(config.start, model)
    model = model.to(config.device)
    optimizer = mlm.tune(model, config.learning_rate, config.weight_decay)
    run = Run(config, tokenizer, learn, held, texts.fingerprint, model, optimizer, mlm.Clock(config.device))
    if found is not None:
        tensors, record = found
        checkpoints.restore(tensors, model, optimizer)
        run.step, run.tokens, run.curve = record["step"], record["tokens"], record["curve"]
        run.clock = mlm.Clock(config.device, record["elapsed"])
        run.budgets = record.get("budgets", [])
    if run.share < 1.0 and [config.minutes, config.steps] not in [budget[1:] for budget in run.budgets[-1:]]:
        run.budgets.append([run.step, config.minutes, config.steps])
    return run


def _tokenizer(config: PretrainConfig, paragraphs: Sequence[str]) -> Any:
    start = config.start
    tokenizer = warm_start.tokenizer(start) if start else masking.train_tokenizer(paragraphs, config.vocabulary)
    checkpoints.replace_text(Path(config.out).expanduser() / "tokenizer.json", tokenizer.to_str())
    return tokenizer


def _saved_tokenizer(config: PretrainConfig, record: dict[str, Any]) -> Any:
    from tokenizers import Tokenizer

    file = Path(config.out).expanduser() / "tokenizer.json"
    try:
        written = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise checkpoints.damaged(file, str(error)) from error
    if text_digest(written) != record["tokenizer"]:
        raise checkpoints.damaged(file, "another checksum")
    return Tokenizer.from_str(written)


def _check_same(config: PretrainConfig, fingerprint: str, record: dict[str, Any]) -> None:
    now, then = config.fixed() | {"text": fingerprint}, record["settings"] | {"text": record["text"]}
    old = {name: repr(then[name]) if name in then else "unknown (an older run)" for name in now}
    other = [f"{name} {old[name]} -> {value!r}" for name, value in now.items() if old[name] != repr(value)]
    if other:
        fix = "Use the old settings and text, or choose another output folder."
        fail(
            checkpoints.CheckpointError, "a run is resumed with the settings it was started with", ", ".join(other), fix
        )


def _check(config: PretrainConfig) -> None:
    """Settings in range, before any work starts."""
    if config.minutes is None and config.steps is None:
        fail(InputError, "a budget must be given", "neither minutes nor steps", "Pass minutes=60 or steps=20000.")
    for name, (low, high) in RANGES.items():
        value = getattr(config, name)
        if value is not None and not low <= value <= high:
            fail(InputError, f"{name} must lie in [{low:g}, {high:g}]", value, "Choose a value in the range.")
    if config.width % (2 * config.heads):
        fail(InputError, "width must be an even multiple of heads", f"{config.width}, {config.heads}", "Change one.")
    try:
        torch.empty(0, device=config.device)
    except (RuntimeError, AssertionError) as error:  # a name torch doesn't know, or a device that isn't there
        why = str(error).split("\n")[0]
        raise InputError(f"the device must be present; got {config.device!r} ({why}). Use 'cpu'.") from error


def main(argv: Sequence[str] | None = None) -> int:
    """The command line: ``python -m isonb.lab.pretraining.pretrain``."""
    parser = argparse.ArgumentParser(
        prog="python -m isonb.lab.pretraining.pretrain",
        description="Pretrain a small BERT by masked language modelling and next sentence prediction on a folder "
        "of parquet or text files.",
        epilog="examples:\n"
        "  python -m isonb.lab.pretraining.pretrain --text corpus --out runs/tiny --minutes 60\n"
        "  python -m isonb.lab.pretraining.pretrain --text corpus --out runs/try --steps 200 --seed 1 --no-resume\n"
        "  python -m isonb.lab.pretraining.pretrain --text corpus --out runs/mine --start tiny --minutes 20",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    options = vars(parser.parse_args(argv))
    if options["minutes"] is None and options["steps"] is None:
        options["minutes"] = 60.0
    try:
        folder = pretrain(PretrainConfig(**options))
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    print(f"finished: {folder}")
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command line; their names are those of :class:`PretrainConfig`."""
    add, default = parser.add_argument, PretrainConfig
    add("--text", required=True, help="folder with *.parquet (column text) or *.txt files")
    add("--out", required=True, help="folder for checkpoints, the curve and the finished model")
    add("--minutes", type=float, help="budget: CPU minutes of one thread, or GPU minutes (60 without --steps)")
    add("--steps", type=int, help="budget in steps; with it alone the same seed gives the same weights")
    add("--seed", type=int, default=default.seed, help="of weights, rows and hidden tokens (%(default)s)")
    add("--threads", type=int, default=default.threads, help="CPU threads (%(default)s)")
    add("--device", default=default.device, help="cpu, cuda, cuda:1, ... (%(default)s)")
    add("--batch", type=int, default=default.batch, help="rows a step (%(default)s)")
    add("--length", type=int, default=default.length, help="tokens a row; each fourth step doubles it (%(default)s)")
    add("--learning-rate", type=float, default=default.learning_rate, help="the peak (%(default)s)")
    follow = "also train [CLS]: does the second segment follow the first (yes)"
    add("--follow", action=argparse.BooleanOptionalAction, default=default.follow, help=follow)
    add("--start", default=default.start, metavar="MODEL", help="go on from this model (random weights)")
    add("--about", default="", help="the text's source and licence, for the model card")
    add("--resume", action=argparse.BooleanOptionalAction, default=True, help="take up the run in --out (yes)")


if __name__ == "__main__":
    sys.exit(main())

"""One pretraining run while it lasts: its state, a step, a point of the curve with its checkpoint.

Rows, their order and their hidden tokens are drawn from the seed and the number of the step alone. So a checkpoint
needs no state of a generator, and a run that was stopped and started again ends where an uninterrupted one does.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isonb.lab.pretraining import checkpoints, masking, mlm, warm_start
from isonb.lab.runs.arithmetic import bfloat16_pays

__all__ = ["PretrainConfig", "Run", "curve_csv", "text_digest", "train"]

POINTS = 40  # of the validation curve, each with a checkpoint
LONG_EVERY = 4  # each fourth step takes rows of twice the length, so that every position is trained
CURVE = (
    *("step", "tokens", "minutes", "learning_rate"),
    *("train_loss", "validation_loss", "validation_accuracy"),  # of hidden tokens
    *("follow_loss", "follow_accuracy"),  # of held-out pairs; NaN without the task
)
# Settings that may change when a run is resumed; with another budget the learning rate moves to its new share.
FREE = ("text", "out", "minutes", "steps", "threads", "device", "about", "resume", "progress")
BAR = "{l_bar}{bar}| {elapsed}<{remaining}{postfix}"


@dataclass(frozen=True)
class PretrainConfig:
    """What to train and for how long. ``batch`` counts rows of ``length`` tokens; positions reach 2 * length.

    ``minutes`` are CPU minutes of one thread, or GPU minutes. ``about`` (the text's source and licence) goes into the
    model card. ``follow`` adds next sentence prediction to masked language modelling, and with it trains [CLS] and the
    pooler. ``start`` names a model (or its folder) to go on from, "" random weights: its vocabulary and shape are kept.
    ``resume`` takes up the run in ``out``.
    """

    text: str | Path
    out: str | Path
    minutes: float | None = None
    steps: int | None = None
    seed: int = 0
    threads: int = 1
    device: str = "cpu"
    batch: int = 64
    length: int = 64
    learning_rate: float = 1.5e-3
    warmup: float = 0.03
    weight_decay: float = 0.01
    bfloat16: bool = True
    follow: bool = True
    start: str = ""
    layers: int = 4
    width: int = 128
    heads: int = 2
    vocabulary: int = 8192
    about: str = ""
    resume: bool = True
    progress: bool = True

    @property
    def half(self) -> bool:
        """Whether passes run in bfloat16: wanted, and done by the device itself."""
        return self.bfloat16 and bfloat16_pays(self.device)

    def fixed(self) -> dict[str, Any]:
        """The settings that a resumed run must share with the first."""
        kept = {name: value for name, value in asdict(self).items() if name not in FREE}
        return kept | {"start": warm_start.digest(self.start)}


@dataclass
class Run:
    """Everything that changes while training, and the data it reads."""

    config: PretrainConfig
    tokenizer: Any
    train: masking.Stream
    held: masking.Stream
    fingerprint: str
    model: Any
    optimizer: torch.optim.Optimizer
    clock: mlm.Clock
    step: int = 0
    tokens: int = 0
    recent: list[Tensor] = field(default_factory=list)
    curve: list[list[float]] = field(default_factory=list)
    order: tuple[int, Tensor] | None = None
    budgets: list[list[float | None]] = field(default_factory=list)  # step from which on, minutes, steps

    @property
    def share(self) -> float:
        """The share of the budget that is used, at most 1."""
        config = self.config
        by_time = self.clock.elapsed / (60 * config.minutes) if config.minutes else 0.0
        return min(1.0, max(by_time, self.step / config.steps if config.steps else 0.0))

    @property
    def learning_rate(self) -> float:
        """The rate at this share of the budget."""
        return self.config.learning_rate * mlm.rate(self.share, self.config.warmup)


def train(run: Run) -> None:
    """Step until the budget is used. The last point of the curve is of the finished weights."""
    from tqdm import tqdm

    done = int(POINTS * run.share)
    with tqdm(total=100.0, disable=None if run.config.progress else True, bar_format=BAR, desc="pretrain") as bar:
        bar.update(100 * run.share)
        if not run.curve:
            _measure(run)
        while run.share < 1.0:
            _one_step(run)
            run.clock.tick()
            if int(POINTS * run.share) > done:
                done = int(POINTS * run.share)
                _measure(run)
            if run.step % 10 == 0 or run.share == 1.0:
                speed = run.tokens / max(run.clock.elapsed, 1e-9)
                bar.set_postfix_str(f"{speed:,.0f} tokens/s", refresh=False)
                bar.update(100 * run.share - bar.n)
        if run.curve[-1][0] != run.step:
            _measure(run)


def curve_csv(curve: Sequence[Sequence[float]]) -> str:
    """The curve as CSV text with one head line."""
    rows = [",".join(f"{value:.6g}" if value % 1 else f"{value:.0f}" for value in point) for point in curve]
    return "\n".join((",".join(CURVE), *rows)) + "\n"


def text_digest(text: str) -> str:
    """sha256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _one_step(run: Run) -> None:
    config = run.config
    long = run.step % LONG_EVERY == LONG_EVERY - 1
    length, size = (2 * config.length, max(1, config.batch // 2)) if long else (config.length, config.batch)
    draw = torch.Generator().manual_seed((config.seed << 40) + run.step)
    which = _order(run)[:size]
    rows = masking.masked_rows(run.train, which, length, run.model.config.vocab_size, draw, config.follow)
    rows = rows.to(config.device)
    for group in run.optimizer.param_groups:
        group["lr"] = run.learning_rate
    loss = mlm.losses(run.model, rows, config.half)
    torch.autograd.backward(loss.words + loss.follow)
    nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    run.recent.append(loss.words.detach())
    run.step, run.tokens = run.step + 1, run.tokens + rows.input_ids.numel()


def _order(run: Run) -> Tensor:
    """The sentences at which this step's rows begin: each once an epoch, in an order of the epoch's own."""
    total, size = len(run.train.starts), run.config.batch
    epoch, place = divmod(run.step, max(1, total // size))
    if run.order is None or run.order[0] != epoch:
        shuffle = torch.Generator().manual_seed((run.config.seed << 40) + (1 << 39) + epoch)
        run.order = (epoch, torch.randperm(total, generator=shuffle))
    return run.order[1][place * size : (place + 1) * size]


def _measure(run: Run) -> None:
    """Add a point to the curve; write the curve and the checkpoint.

    The time of writing is counted with the next step: a budget that ended here would end before its last point.
    """
    config = run.config
    learnt = float(torch.stack(run.recent).mean()) if run.recent else float("nan")
    score = mlm.validate(run.model, run.held, config.length, config.device, config.half)
    run.recent.clear()
    minutes = run.clock.tick() / 60
    reached = [score.loss, score.hits, score.follow_loss, score.follow_hits]
    run.curve.append([run.step, run.tokens, minutes, run.learning_rate, learnt, *reached])
    out = Path(config.out).expanduser()
    record = {"step": run.step, "tokens": run.tokens, "elapsed": run.clock.elapsed, "curve": run.curve}
    record |= {"budgets": run.budgets}
    record |= {"settings": config.fixed(), "text": run.fingerprint, "tokenizer": text_digest(run.tokenizer.to_str())}
    checkpoints.save_state(out / "checkpoint.safetensors", run.model, run.optimizer, record)
    checkpoints.replace_text(out / "curve.csv", curve_csv(run.curve))
    if config.progress:
        line = f"step {run.step:,}  {minutes:.1f} min  train {learnt:.3f}  validation {score.loss:.3f}"
        follow = f"  follows {score.follow_loss:.3f}  right {score.follow_hits:.1%}" if config.follow else ""
        _say(f"{line}  hits {score.hits:.1%}{follow}")


def _say(line: str) -> None:
    from tqdm import tqdm

    tqdm.write(line, file=sys.stdout)
    sys.stdout.flush()

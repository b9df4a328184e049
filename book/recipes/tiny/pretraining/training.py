"""The model with its two losses, the budget that drives learning rate, curve and end, and their Trainer."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import Subset
from transformers import PrinterCallback, Trainer, TrainerCallback

from isonb.errors import fail
from isonb.models.text_models import quiet, with_dropout
from isonb.runtime.files import replace
from pretraining import PretrainSettings
from pretraining.text import NOT_ASKED, Hiding, Rows, TextError

if TYPE_CHECKING:
    import pandas as pd

SPREAD = 0.05  # of fresh weights; BERT's 0.02 is for a width of 768
POINTS = 40  # of the curve, each with a checkpoint
SAMPLE = 1024  # held-out rows of a point
RECORD = "run.json"  # written last into a checkpoint: the settings and the text of its run
CURVE = {  # column: key of the Trainer's log. The loss in training is the sum of both tasks'
    **{name: name for name in ("step", "tokens", "minutes", "learning_rate")},
    "train_loss": "loss",
    **{name: f"eval_{name}" for name in ("validation_loss", "validation_accuracy", "follow_loss", "follow_accuracy")},
}


class BertForPreTraining(transformers.BertForPreTraining):  # type: ignore[misc]
    """BERT with both heads, whose output layer sees the hidden tokens alone: in a small model that layer costs most.

    A batch without a pair has no loss of next sentence prediction.
    """

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, labels: Tensor, next_sentence_label: Tensor
    ) -> dict[str, Tensor]:
        """``loss`` (nats) and ``counts`` (1, 6): sum of losses, hits and number of hidden tokens; the same of pairs."""
        states, pooled = self.bert(input_ids, token_type_ids=token_type_ids, return_dict=False)[:2]
        hidden = labels != NOT_ASKED
        token_counts = _counts(self.cls.predictions(states[hidden]), labels[hidden])
        pairs = _counts(self.cls.seq_relationship(pooled), next_sentence_label)
        loss = token_counts[0] / token_counts[2] + pairs[0] / pairs[2].clamp(min=1)
        return {"loss": loss, "counts": torch.cat([token_counts, pairs]).detach().unsqueeze(0)}


def _counts(scores: Tensor, targets: Tensor) -> Tensor:
    loss = nn.functional.cross_entropy(scores.float(), targets, ignore_index=NOT_ASKED, reduction="sum")
    return torch.stack([loss, (scores.argmax(-1) == targets).sum(), (targets != NOT_ASKED).sum()])


def fresh(settings: PretrainSettings, vocabulary: int) -> BertForPreTraining:
    """Random weights from the seed, without dropout: a model this small underfits its text, and would only be slowed.

    The position table is learned, but starts as sines and cosines: from a random one a small model takes long to find
    its neighbours, and until then predicts each token by its frequency alone.
    """
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=4 * settings.width,
        max_position_embeddings=2 * settings.length,
        initializer_range=SPREAD,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model: BertForPreTraining = BertForPreTraining(with_dropout(config, 0.0)).float()
    waves = SPREAD * math.sqrt(2) * _waves(2 * settings.length, settings.width)
    model.bert.embeddings.position_embeddings.weight.data = waves
    return model


def _waves(positions: int, width: int) -> Tensor:
    """Sines and cosines (positions, width) with periods from 2 pi to 2000 pi: a fixed shift is then a rotation."""
    speed = torch.exp(-math.log(1000.0) * torch.arange(width // 2) / (width // 2))
    angle = torch.arange(positions).unsqueeze(-1) * speed
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def read(folder: Path, seed: int) -> BertForPreTraining:
    """The weights of a folder in float32, without dropout; heads that it lacks are drawn from the seed."""
    config = with_dropout(transformers.BertConfig.from_pretrained(folder), 0.0)
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        model: BertForPreTraining = BertForPreTraining.from_pretrained(folder, config=config, dtype=torch.float32)
    return model


class Budget(TrainerCallback):  # type: ignore[misc]
    """Counts work against the budget; asks for points of the curve, seals checkpoints, ends the run, shows a bar.

    Seconds are CPU time of this thread or, with an accelerator, wall time with gaps cut to 10 s. Either way a process
    that is stopped for a while isn't charged for it, nor, on the CPU, for waiting its turn.
    """

    def __init__(
        self, settings: PretrainSettings, fixed: Mapping[str, Any], log: Sequence[dict[str, Any]], progress: bool
    ) -> None:
        self.settings, self.fixed, self.off = settings, fixed, None if progress else True
        self.points = curve(log) if log else None
        self.elapsed = 0.0 if self.points is None else 60.0 * self.points["minutes"].iloc[-1]
        self._now = time.thread_time if settings.device == "cpu" else time.monotonic
        self._last = self._now()
        self.share = self.used(0 if self.points is None else self.points["step"].iloc[-1])
        self.done = int(POINTS * self.share)
        self.bar: Any = None

    def used(self, step: float) -> float:
        """The share of the budget that is used after so many updates, at most 1."""
        shares = zip((self.elapsed / 60, step), self.settings.budget, strict=True)
        return min(1.0, max(spent / whole for spent, whole in shares if whole))

    def tick(self) -> None:
        """Count the time since the last tick."""
        now = self._now()
        self.elapsed += now - self._last if self.settings.device == "cpu" else min(now - self._last, 10.0)
        self._last = now

    def rate(self, step: int) -> float:
        """Count the time up to here; the share of the peak learning rate for the next update: up, then down to 0."""
        self.tick()
        self.share = self.used(step)
        return min(self.share / self.settings.warmup, (1.0 - self.share) / (1.0 - self.settings.warmup))

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open the bar where the run stands."""
        from tqdm import tqdm

        form = "{l_bar}{bar}| {elapsed}<{remaining}"
        self.bar = tqdm(total=100.0, initial=100 * self.share, disable=self.off, bar_format=form, desc="pretrain")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask for a point and its checkpoint where one is due, the last when the budget is used.

        The time that these take is counted with the next update: a budget never ends between a point and its writing.
        """
        due, self.done = int(POINTS * self.share) > self.done, int(POINTS * self.share)
        control.should_log = control.should_evaluate = control.should_save = due
        control.should_training_stop = self.share >= 1.0
        self.bar.update(100 * self.share - self.bar.n)

    def on_evaluate(self, args: Any, state: Any, control: Any, lr_scheduler: Any = None, **kwargs: Any) -> None:
        """Add to the Trainer's log what only the budget knows; write the curve and a line."""
        self.tick()
        extra = {"tokens": state.num_input_tokens_seen, "minutes": self.elapsed / 60, "budget": self.settings.words}
        state.log_history[-1] |= extra | {"learning_rate": lr_scheduler.get_last_lr()[0]}
        self.points = curve(state.log_history)
        points = self.points.drop(columns="budget")
        text = points.to_csv(index=False, na_rep="nan", float_format="%.6g", lineterminator="\n")
        replace(Path(args.output_dir) / "curve.csv", text.encode())
        if self.off is None:
            line = "  ".join(f"{name} {value:.6g}" for name, value in points.iloc[-1].items())
            self.bar.write(line, file=sys.stdout)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Seal the checkpoint that was just written: without its record it doesn't count. The one before stays, too."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        replace(folder / RECORD, json.dumps(self.fixed, indent=1).encode())
        for old in checkpoints(folder.parent)[:-2]:
            shutil.rmtree(old)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the bar."""
        self.bar.close()


class BudgetTrainer(Trainer):  # type: ignore[misc]
    """A Trainer whose learning rate, points and end are the budget's. The curve is of a sample of the held-out rows."""

    def __init__(self, budget: Budget, out: Path, model: Any, tokenizer: Any, rows: Rows, held_out: Rows) -> None:
        self.budget, count = budget, min(SAMPLE, len(held_out))
        super().__init__(
            model,
            _arguments(budget, out),
            data_collator=Hiding(tokenizer),
            train_dataset=rows,
            eval_dataset=Subset(held_out, (torch.arange(count) * len(held_out) // count).tolist()),
            processing_class=tokenizer,
            compute_metrics=lambda output: _metrics(torch.as_tensor(output.predictions), held_out),
            callbacks=[budget],
        )
        self.remove_callback(PrinterCallback)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The rate of the next update: by the clock or the count, whichever is further on."""
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer, lambda n: self.budget.rate(n)
        )
        return self.lr_scheduler


def _arguments(budget: Budget, out: Path) -> Any:
    settings = budget.settings
    return transformers.TrainingArguments(
        output_dir=str(out),
        max_steps=settings.steps or 10**9,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=128,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        optim="adamw_torch_fused",
        bf16=settings.half,
        use_cpu=settings.device == "cpu",
        dataloader_pin_memory=settings.device != "cpu",
        seed=settings.seed,
        eval_on_start=budget.points is None,
        include_num_input_tokens_seen="all",
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        label_names=["labels", "next_sentence_label"],
        report_to="none",
        disable_tqdm=True,
        **dict.fromkeys(("logging_strategy", "eval_strategy", "save_strategy"), "no"),  # the budget asks for them
    )


def curve(log: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The points in the Trainer's log, one row each: the columns of :data:`CURVE` (NaN where unknown), and budget."""
    import pandas as pd

    table = pd.DataFrame(list(log)).groupby("step", as_index=False).last()
    table = table.reindex(columns=[*CURVE.values(), "budget"]).dropna(subset=["minutes"])
    return table.set_axis([*CURVE, "budget"], axis=1).astype({"step": int, "tokens": int})


def checkpoints(out: Path) -> list[Path]:
    """The folders of the checkpoints in ``out``, sealed or not, in the order of their updates."""
    return sorted(out.glob("checkpoint-*"), key=lambda path: int(path.name.removeprefix("checkpoint-")))


def _metrics(counts: Tensor, held_out: Rows) -> dict[str, float]:
    """Mean losses (nats) and shares of right guesses."""
    loss, hits, tokens, follow_loss, follow_hits, pairs = counts.double().sum(0).tolist()
    if not pairs:
        what = f"held-out paragraphs must have room for two segments, {held_out.length} tokens"
        fail(TextError, what, "none", "Use a text with longer paragraphs.")
    values = loss / tokens, hits / tokens, follow_loss / pairs, follow_hits / pairs
    return dict(zip(list(CURVE)[-4:], values, strict=True))

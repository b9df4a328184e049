"""The model with its two losses, and its Trainer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import Subset
from transformers import Trainer, TrainingArguments

from isonb.errors import fail
from isonb.models.text_models import quiet, with_dropout
from isonb_lab.engines.callbacks import CheckpointDigest
from isonb_lab.runs.manifest import bfloat16_pays
from pretraining import PretrainSettings
from pretraining.text import NOT_ASKED, Hiding, Rows, TextError

if TYPE_CHECKING:
    import pandas as pd

SPREAD = 0.05  # of fresh weights; BERT's 0.02 is for a width of 768
POINTS = 40  # of the curve, each with a checkpoint
SAMPLE = 1024  # held-out rows of a point
CURVE = {  # column: key of the Trainer's log. The loss in training is the sum of both tasks'
    "step": "step",
    "tokens": "num_input_tokens_seen",
    "learning_rate": "learning_rate",
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


def trainer_of(
    settings: PretrainSettings, out: Path, model: Any, tokenizer: Any, rows: Rows, held_out: Rows, *, progress: bool
) -> Trainer:
    """The Trainer of a run, whose curve is of a sample of the held-out rows; checkpoints lie in ``out``."""
    count, every = min(SAMPLE, len(held_out)), max(1, settings.steps // POINTS)
    arguments = TrainingArguments(
        output_dir=str(out),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=128,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        optim="adamw_torch_fused",
        bf16=settings.bfloat16 and bfloat16_pays("cuda" if torch.cuda.is_available() else "cpu"),
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
        seed=settings.seed,
        include_num_input_tokens_seen="all",
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        label_names=["labels", "next_sentence_label"],
        report_to="none",
        disable_tqdm=not progress,
        save_total_limit=2,
        **dict.fromkeys(("logging_steps", "eval_steps", "save_steps"), every),
        **dict.fromkeys(("logging_strategy", "eval_strategy", "save_strategy"), "steps"),
    )
    return Trainer(
        model,
        arguments,
        data_collator=Hiding(tokenizer),
        train_dataset=rows,
        eval_dataset=Subset(held_out, (torch.arange(count) * len(held_out) // count).tolist()),
        processing_class=tokenizer,
        compute_metrics=lambda output: _metrics(torch.as_tensor(output.predictions), held_out),
        callbacks=[CheckpointDigest()],
    )


def curve(log: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The points in the Trainer's log, one row each: the columns of :data:`CURVE`, NaN where unknown."""
    import pandas as pd

    table = pd.DataFrame(list(log)).groupby("step", as_index=False).last().reindex(columns=list(CURVE.values()))
    table = table.dropna(subset=["eval_validation_loss"])
    return table.set_axis(list(CURVE), axis=1).astype({"step": int, "tokens": int})


def _metrics(counts: Tensor, held_out: Rows) -> dict[str, float]:
    """Mean losses (nats) and shares of right guesses."""
    loss, hits, tokens, follow_loss, follow_hits, pairs = counts.double().sum(0).tolist()
    if not pairs:
        what = f"held-out paragraphs must have room for two segments, {held_out.length} tokens"
        fail(TextError, what, "none", "Use a text with longer paragraphs.")
    values = loss / tokens, hits / tokens, follow_loss / pairs, follow_hits / pairs
    return dict(zip(list(CURVE)[-4:], values, strict=True))

"""The tasks of pretraining a small BERT: the model, its losses, the learning rate, and a clock blind to pauses.

The tasks are masked language modelling and, if wanted, next sentence prediction on the pooler.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from isonb.lab.pretraining.masking import Masked, Stream, masked_rows
from isonb.lab.pretraining.segments import NO_PAIR
from isonb.lab.pretraining.text import TextError

__all__ = ["Clock", "Losses", "Score", "bert", "losses", "rate", "tune", "validate"]

SPREAD = 0.05  # of fresh weights; BERT's 0.02 is for a width of 768
SAMPLE = 1024  # validation rows during training
BATCH = 128


class Clock:
    """Seconds of work: CPU time of the calling thread or, with an accelerator, wall time with gaps cut to ``cap``.

    Either way a process that is stopped for a while isn't charged for it, nor, on the CPU, for waiting its turn.
    """

    def __init__(self, device: str = "cpu", elapsed: float = 0.0, cap: float = 10.0) -> None:
        self._now = time.thread_time if torch.device(device).type == "cpu" else time.monotonic
        self.elapsed, self.cap, self._last = elapsed, cap, self._now()

    def tick(self) -> float:
        """Count the time since the last tick; returns the sum."""
        now = self._now()
        self.elapsed += now - self._last if self._now is time.thread_time else min(now - self._last, self.cap)
        self._last = now
        return self.elapsed


@dataclass(frozen=True)
class Losses:
    """Losses (nats) of one batch as tensors, and how many guesses were right.

    Masked language modelling: ``words`` is the mean over the hidden tokens. Next sentence prediction: ``follow`` is
    the mean over the ``pairs`` rows that are asked (0 without one).
    """

    words: Tensor
    hits: Tensor
    follow: Tensor
    follow_hits: Tensor
    pairs: Tensor


@dataclass(frozen=True)
class Score:
    """Mean losses (nats) and shares of right guesses on held-out rows; those of pairs are NaN without the task."""

    loss: float
    hits: float
    follow_loss: float
    follow_hits: float


def bert(
    layers: int, width: int, heads: int, vocabulary: int, positions: int, seed: int, *, follow: bool = False
) -> Any:
    """A fresh ``BertForMaskedLM`` with tied embeddings. It is trained in evaluation mode: without dropout.

    With ``follow`` it is a ``BertForPreTraining``: pooler (dense and tanh on [CLS]) and a classifier on that, too.

    The position table is learned, but starts as sines and cosines: from a random one a small model takes long to find
    its neighbours, and until then predicts each token by its frequency alone. A model this small underfits its text,
    so dropout would only slow it; the configuration keeps BERT's 0.1 for fine-tuning on few examples.
    """
    from transformers import BertConfig, BertForMaskedLM, BertForPreTraining

    kind: Any = BertForPreTraining if follow else BertForMaskedLM
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=positions,
        initializer_range=SPREAD,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(config).float().eval()
    model.bert.embeddings.position_embeddings.weight.data = SPREAD * math.sqrt(2) * _waves(positions, width)
    return model


def _waves(positions: int, width: int) -> Tensor:
    """Sines and cosines (positions, width) with periods from 2 pi to 2000 pi: a fixed shift is then a rotation."""
    speed = torch.exp(-math.log(1000.0) * torch.arange((width + 1) // 2) / (width // 2))
    angle = torch.arange(positions).unsqueeze(-1) * speed
    return torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :width]


def losses(model: Any, rows: Masked, half: bool) -> Losses:
    """Cross-entropy at the hidden tokens alone and, where the model has a pooler, of what follows in the pairs.

    The output layer is the costliest part of a small model, so it sees no other position.
    """
    with torch.autocast(rows.input_ids.device.type, torch.bfloat16, enabled=half):
        states = model.bert(input_ids=rows.input_ids, token_type_ids=rows.token_type_ids)
        logits = model.cls.predictions(states.last_hidden_state.flatten(0, 1)[rows.positions])
        asked = None if model.bert.pooler is None else model.cls.seq_relationship(states.pooler_output)
    words = nn.functional.cross_entropy(logits.float(), rows.labels)
    hits = (logits.detach().argmax(-1) == rows.labels).sum()
    if asked is None:
        none = torch.zeros((), device=words.device)
        return Losses(words, hits, none, none, none)
    pairs = (rows.elsewhere != NO_PAIR).sum()
    total = nn.functional.cross_entropy(asked.float(), rows.elsewhere, ignore_index=NO_PAIR, reduction="sum")
    right = (asked.detach().argmax(-1) == rows.elsewhere).sum()
    return Losses(words, hits, total / pairs.clamp(min=1), right, pairs)


def tune(model: nn.Module, learning_rate: float, decay: float) -> torch.optim.AdamW:
    """AdamW; matrices decay, biases and layer norms don't."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), eps=1e-6, fused=True)


def rate(progress: float, warmup: float) -> float:
    """Share of the peak learning rate at ``progress`` in [0, 1]: up in a line over ``warmup``, then down to 0.

    >>> [rate(p, 0.1) for p in (0.05, 0.1, 0.55, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if progress < warmup:
        return progress / warmup
    return max(0.0, (1.0 - progress) / (1.0 - warmup))


@torch.no_grad()
def validate(model: Any, text: Stream, length: int, device: str, half: bool, sample: int | None = SAMPLE) -> Score:
    """Mean losses and accuracies on ``sample`` evenly spaced rows (None: from every sentence).

    Rows, hidden tokens and pairs are the same at every call. Raises :class:`TextError` if the model is trained
    on pairs of segments and none of the rows has two.
    """
    generator = torch.Generator().manual_seed(0)
    count = len(text.starts) if sample is None else min(sample, len(text.starts))
    which = torch.arange(count) * len(text.starts) // count
    follow = model.bert.pooler is not None
    loss = hits = seen = follow_loss = follow_hits = pairs = 0.0
    for part in torch.split(which, BATCH):
        rows = masked_rows(text, part, length, model.config.vocab_size, generator, follow).to(device)
        one, size = losses(model, rows, half), len(rows.labels)
        loss, hits, seen = loss + float(one.words) * size, hits + float(one.hits), seen + size
        follow_loss, follow_hits = follow_loss + float(one.follow * one.pairs), follow_hits + float(one.follow_hits)
        pairs += float(one.pairs)
    if not follow:
        return Score(loss / seen, hits / seen, math.nan, math.nan)
    if not pairs:
        fix = "Use --no-follow (follow=False), or a text with longer paragraphs."
        raise TextError(f"held-out paragraphs must have room for two segments, {length} tokens; got none. {fix}")
    return Score(loss / seen, hits / seen, follow_loss / pairs, follow_hits / pairs)

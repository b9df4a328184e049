"""Masked language modelling with a small BERT: the model, its loss, the learning rate, and a clock blind to pauses."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor, nn

from isonb.lab.masking import Masked, Stream, masked_rows

__all__ = ["Clock", "bert", "loss_and_hits", "rate", "tune", "validate"]

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


def bert(layers: int, width: int, heads: int, vocabulary: int, positions: int, seed: int) -> Any:
    """A fresh ``BertForMaskedLM`` with tied embeddings. It is trained in evaluation mode: without dropout.

    The position table is learned, but starts as sines and cosines: from a random one a small model takes long to find
    its neighbours, and until then predicts each token by its frequency alone. A model this small underfits its text,
    so dropout would only slow it; the configuration keeps BERT's 0.1 for fine-tuning on few examples.
    """
    from transformers import BertConfig, BertForMaskedLM

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
        model = BertForMaskedLM(config).float().eval()
    model.bert.embeddings.position_embeddings.weight.data = SPREAD * math.sqrt(2) * _waves(positions, width)
    return model


def _waves(positions: int, width: int) -> Tensor:
    """Sines and cosines (positions, width) with periods from 2 pi to 2000 pi: a fixed shift is then a rotation."""
    speed = torch.exp(-math.log(1000.0) * torch.arange((width + 1) // 2) / (width // 2))
    angle = torch.arange(positions).unsqueeze(-1) * speed
    return torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :width]


def loss_and_hits(model: Any, rows: Masked, half: bool) -> tuple[Tensor, Tensor]:
    """Cross-entropy (nats) at the hidden tokens alone, and how many of them the best guess hits.

    The output layer is the costliest part of a small model, so it sees no other position.
    """
    with torch.autocast(rows.input_ids.device.type, torch.bfloat16, enabled=half):
        states = model.bert(input_ids=rows.input_ids, token_type_ids=rows.token_type_ids).last_hidden_state
        logits = model.cls(states.flatten(0, 1)[rows.positions])
    hits = (logits.detach().argmax(-1) == rows.labels).sum()
    return nn.functional.cross_entropy(logits.float(), rows.labels), hits


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
def validate(
    model: Any, text: Stream, length: int, device: str, half: bool, sample: int | None = SAMPLE
) -> tuple[float, float]:
    """Mean loss (nats) and accuracy at hidden tokens, on ``sample`` evenly spaced rows (None: from every sentence).

    Rows and hidden tokens are the same at every call.
    """
    generator = torch.Generator().manual_seed(0)
    count = len(text.starts) if sample is None else min(sample, len(text.starts))
    which = torch.arange(count) * len(text.starts) // count
    loss = hits = seen = 0.0
    for part in torch.split(which, BATCH):
        rows = masked_rows(text, part, length, model.config.vocab_size, generator).to(device)
        one, right = loss_and_hits(model, rows, half)
        size = len(rows.labels)
        loss, hits, seen = loss + float(one) * size, hits + float(right), seen + size
    return loss / seen, hits / seen

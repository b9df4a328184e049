"""From rows to batches: tokens and labels, padding, and an order that depends on seed and epoch alone.

The contexts of span extraction are cut into overlapping windows, and the answer's text is read from their scores.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Sampler

from isonb_lab.data.tasks import Task

MEGA = 50  # batches among which rows of like length are sought
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LONGEST = 30  # tokens of an answer at most, as usual for SQuAD
ROOM = 8  # tokens of context that a window has beyond those it shares, special tokens included


@dataclass(frozen=True)
class Tokens:
    """Rows ready for the model. For a span task a row is a window; ``windows`` says which characters it covers."""

    rows: list[dict[str, Any]]
    windows: list[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    @property
    def lengths(self) -> list[int]:
        return [len(row["input_ids"]) for row in self.rows]

    def head(self, count: int) -> Tokens:
        return Tokens(self.rows[:count], self.windows[:count])


@dataclass(frozen=True)
class LongestFirst:
    """Rows for passes without gradients, the longest first: batches of like length need little padding.

    :meth:`back` brings a model's values for them into the order of the rows they were taken from.

    >>> sorted_rows = LongestFirst(Tokens([{"input_ids": [7]}, {"input_ids": [8, 9]}]))
    >>> [row["input_ids"] for row in sorted_rows], sorted_rows.back(torch.tensor([2.0, 1.0])).tolist()
    ([[8, 9], [7]], [1.0, 2.0])
    """

    tokens: Tokens

    @cached_property
    def order(self) -> list[int]:
        """Numbers of the rows in the order they are passed."""
        lengths = self.tokens.lengths
        return sorted(range(len(lengths)), key=lambda row: -lengths[row])

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.tokens[self.order[index]]

    def back(self, values: Any) -> Tensor:
        """Values (N, ...) in this order, in the order of the rows."""
        values = torch.as_tensor(values)
        return torch.empty_like(values).index_copy_(0, torch.tensor(self.order, device=values.device), values)


def tokenize(task: Task, rows: Any, tokenizer: Any, max_length: int, accepted: Sequence[str]) -> Tokens:
    """Tokens and labels of a classification or regression task; ``accepted`` names the model's inputs."""
    first, *second = (list(rows[column]) for column in task.inputs)
    tokens = tokenizer(first, *second, truncation=True, max_length=max_length)
    names = [name for name in INPUTS if name in tokens and name in accepted]
    labels = list(rows[task.target])
    return Tokens([{name: tokens[name][i] for name in names} | {"labels": labels[i]} for i in range(len(labels))])


def accepted_inputs(model: Any) -> list[str]:
    """The names of :data:`INPUTS` that a model's forward takes."""
    return [name for name in INPUTS if name in inspect.signature(model.forward).parameters]


class LengthGrouped(Sampler[int]):
    """Row numbers for batches of ``batch_size`` rows; with ``group``, of like length: little is spent on padding.

    Rows are shuffled; among each 50 batches of them rows are sorted by length and cut into batches, and all batches are
    shuffled. Rows that don't fill a batch are left out, other ones each epoch. The order follows from seed and epoch
    alone, so it is the same for one process and for several that share a batch.

    >>> order = list(LengthGrouped([1, 9, 2, 8], 2, seed=0))
    >>> sorted([sorted(order[:2]), sorted(order[2:])])
    [[0, 2], [1, 3]]
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, group: bool = True) -> None:
        self.lengths, self.batch_size, self.seed, self.group, self.epoch = lengths, batch_size, seed, group, 0

    def set_epoch(self, epoch: int) -> None:
        """Each epoch has an order of its own."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) // self.batch_size * self.batch_size

    def __iter__(self) -> Iterator[int]:
        draw = torch.Generator().manual_seed((self.seed << 20) + self.epoch)
        whole = len(self)
        order: list[int] = torch.randperm(len(self.lengths), generator=draw)[:whole].tolist()
        if not self.group:
            return iter(order)
        size = MEGA * self.batch_size
        mixed = (order[start : start + size] for start in range(0, whole, size))
        flat = [row for rows in mixed for row in sorted(rows, key=self.lengths.__getitem__, reverse=True)]
        batches = [flat[start : start + self.batch_size] for start in range(0, whole, self.batch_size)]
        shuffled = torch.randperm(len(batches), generator=draw).tolist()
        return iter([row for i in shuffled for row in batches[i]])


def batched(tokens: Tokens | LongestFirst, tokenizer: Any, size: int, device: Any) -> Iterator[dict[str, Tensor]]:
    """The rows in order, ``size`` at a time, on ``device``."""
    from transformers import DataCollatorWithPadding

    collate = DataCollatorWithPadding(tokenizer)
    for start in range(0, len(tokens), size):
        batch = collate([tokens[row] for row in range(start, min(start + size, len(tokens)))])
        yield {name: value.to(device) for name, value in batch.items()}


@dataclass(frozen=True)
class Window:
    """A stretch of a context: the number of its row, and the characters of each token (None outside the context)."""

    row: int
    characters: list[tuple[int, int] | None]


def windows(rows: Any, tokenizer: Any, max_length: int, stride: int, accepted: Sequence[str]) -> Tokens:
    """Every context cut into windows of ``max_length`` tokens, question included, that share ``stride`` tokens.

    The label is the place of the first answer's first and last token; (0, 0) where the window doesn't hold it.
    """
    tokens = tokenizer(
        _shortened(tokenizer, [question.strip() for question in rows["question"]], max_length - stride - ROOM),
        list(rows["context"]),
        truncation="only_second",
        max_length=max_length,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    names = [name for name in INPUTS if name in tokens and name in accepted]
    gold = [(answer["answer_start"][0], answer["text"][0]) for answer in rows["answers"]]
    token_rows, places = [], []
    for i, row in enumerate(tokens["overflow_to_sample_mapping"]):
        context = [side == 1 for side in tokens.sequence_ids(i)]
        spans = [
            tuple(span) if inside else None for span, inside in zip(tokens["offset_mapping"][i], context, strict=True)
        ]
        start, text = gold[row]
        token_rows.append(
            {name: tokens[name][i] for name in names} | {"labels": _place(spans, start, start + len(text))}
        )
        places.append(Window(row, spans))
    return Tokens(token_rows, places)


def _shortened(tokenizer: Any, questions: list[str], limit: int) -> list[str]:
    """Questions cut to ``limit`` tokens, so that each window has room for more of the context than windows share."""
    offsets = tokenizer(questions, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return [
        question if len(spans) <= limit else question[: spans[limit - 1][1]]
        for question, spans in zip(questions, offsets, strict=True)
    ]


def _place(spans: Sequence[tuple[int, int] | None], start: int, end: int) -> list[int]:
    """First and last token of the characters [start, end), or [0, 0] when the window doesn't hold them all."""
    real = [i for i, span in enumerate(spans) if span is not None and span[0] < span[1]]
    if not real or spans[real[0]][0] > start or spans[real[-1]][1] < end:  # type: ignore[index]
        return [0, 0]
    inside = [i for i in real if spans[i][1] > start and spans[i][0] < end]  # type: ignore[index]
    return [inside[0], inside[-1]] if inside else [0, 0]


def answers(rows: Any, places: Sequence[Window], logits: Tensor | Any) -> list[str]:
    """The best answer of each row over its windows: the pair of tokens with the highest sum of start and end score.

    ``logits`` (windows, T, 2). Only pairs inside the context, in order and at most :data:`LONGEST` tokens long count.
    """
    best: dict[int, tuple[float, str]] = {}
    contexts = list(rows["context"])
    for window, scores in zip(places, torch.as_tensor(logits).float(), strict=True):
        inside = torch.tensor([span is not None for span in window.characters])
        start, end = (scores[: len(inside), i].where(inside, -torch.inf) for i in (0, 1))
        pairs = (start[:, None] + end[None, :]).triu()
        allowed = torch.ones_like(pairs).triu().tril(LONGEST - 1).bool()
        pairs = pairs.where(allowed, -torch.inf)
        at = int(pairs.argmax())
        first, last = divmod(at, pairs.shape[1])
        value = float(pairs[first, last])
        if value > best.get(window.row, (-torch.inf, ""))[0]:
            opening, closing = window.characters[first], window.characters[last]
            text = "" if opening is None or closing is None else contexts[window.row][opening[0] : closing[1]]
            best[window.row] = (value, text)
    return [best.get(row, (0.0, ""))[1] for row in range(len(contexts))]

"""Span extraction: long contexts in overlapping windows, and the answer text from start and end scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isonb.lab.data.batches import INPUTS, Tokens

__all__ = ["LONGEST", "Window", "answers", "windows"]

LONGEST = 30  # tokens of an answer at most, as usual for SQuAD
ROOM = 8  # tokens of context that a window has beyond those it shares, special tokens included


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
    made, places = [], []
    for i, row in enumerate(tokens["overflow_to_sample_mapping"]):
        context = [side == 1 for side in tokens.sequence_ids(i)]
        spans = [
            tuple(span) if inside else None for span, inside in zip(tokens["offset_mapping"][i], context, strict=True)
        ]
        start, text = gold[row]
        made.append({name: tokens[name][i] for name in names} | {"labels": _place(spans, start, start + len(text))})
        places.append(Window(row, spans))
    return Tokens(made, places)


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
            left, right = window.characters[first], window.characters[last]
            text = "" if left is None or right is None else contexts[window.row][left[0] : right[1]]
            best[window.row] = (value, text)
    return [best.get(row, (0.0, ""))[1] for row in range(len(contexts))]

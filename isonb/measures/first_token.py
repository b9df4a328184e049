"""The first token of a language model: how much louder it is than the others, and what it does to a mean."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isonb.errors import ShapeError, fail
from isonb.measures.cosine import mean_cosine

LOUD = 3.0  # times the others' norm: beyond, a mean over tokens is mostly the first one's for a short text


@dataclass(frozen=True)
class FirstToken:
    """``ratio``: its norm over the others' mean norm; the mean cosine of texts pooled with it, and without it."""

    ratio: float
    with_it: float
    without_it: float

    @property
    def loud(self) -> bool:
        """Whether it is worth a word: it drowns the others in the mean of a short text."""
        return self.ratio >= LOUD

    def __str__(self) -> str:
        return (
            f"the first token's norm is {self.ratio:.3g} times the others'; pool without it: mean cosine "
            f"{self.with_it:.2f} -> {self.without_it:.2f}"
        )


@torch.no_grad()
def first_token(states: Tensor, mask: Tensor) -> FirstToken:
    """The effect of the first real token in hidden states (B, T, d) of one layer; ``mask`` (B, T) marks real tokens.

    Texts of one token are left out. Raises :class:`~isonb.errors.ShapeError` where fewer than two remain.

    >>> states = torch.tensor([[[9.0, 0.0], [0.0, 3.0]], [[9.0, 0.0], [3.0, 0.0]]])
    >>> print(first_token(states, torch.ones(2, 2, dtype=torch.bool)))
    the first token's norm is 3 times the others'; pool without it: mean cosine 0.95 -> 0.00
    """
    mask = mask.bool()
    long = mask.sum(-1) >= 2
    if int(long.sum()) < 2:
        fail(ShapeError, "there must be two texts of two tokens or more", int(long.sum()), "Pass longer texts.")
    states, mask = states[long].float(), mask[long]
    place = mask.int().argmax(-1)  # padding may stand on the left
    first = torch.zeros_like(mask)
    first[torch.arange(len(mask), device=mask.device), place] = True
    norms, others = torch.linalg.vector_norm(states, dim=-1), mask & ~first
    pooled = [
        (states * (selected / selected.sum(-1, keepdim=True)).unsqueeze(-1)).sum(1) for selected in (mask, others)
    ]
    with_it, without_it = (float(mean_cosine(vectors)) for vectors in pooled)
    return FirstToken(float(norms[first].mean() / norms[others].mean()), with_it, without_it)

"""Where the segments of a training row lie in the text: one segment, or a pair, for sentence order prediction too.

Sentence order prediction (Lan et al. 2020, ALBERT, section 3.1) asks of two segments of one paragraph which came first.
It is only worth asking if nothing but what the segments say gives it away. So both begin at a sentence, both are cut
after a number of tokens drawn without a look at the text, both lie in the paragraph to the last token, and the two
numbers are drawn alike: neither length nor a cut sentence nor a change of subject tells the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["NO_PAIR", "Segments", "cut_for_order", "first_and_rest"]

NO_PAIR = -100  # the label that cross-entropy skips


@dataclass(frozen=True)
class Segments:
    """Offsets (B,) at which the rows' first and second segments begin, and how many tokens the first has.

    A row of one segment has ``size`` length - 2. ``swapped`` (B,) is 1 for a pair whose second segment came first in
    the text, 0 for one in order, and :data:`NO_PAIR` for a row that isn't asked.
    """

    first: Tensor
    second: Tensor
    size: Tensor
    swapped: Tensor


def first_and_rest(starts: Tensor, ends: Tensor, which: Tensor, length: int, generator: torch.Generator) -> Segments:
    """Half of the rows as a sentence and what follows it, where it leaves room; nobody is asked for the order."""
    begin = starts[which]
    after = torch.searchsorted(starts, begin, right=True).clamp(max=len(starts) - 1)
    size = starts[after] - begin  # tokens of the row's first sentence
    pair = (torch.rand(len(which), generator=generator) < 0.5) & (size > 0) & (size < length - 3)
    size = torch.where(pair, size, length - 2)
    return Segments(begin, begin + size, size, torch.full_like(size, NO_PAIR))


def cut_for_order(starts: Tensor, ends: Tensor, which: Tensor, length: int, generator: torch.Generator) -> Segments:
    """Every row whose paragraph has room for it as a pair, half of the pairs swapped.

    The earlier segment begins at the row's sentence, the later one at the first sentence after the earlier one's cut.
    """
    room = length - 3
    least = max(1, room // 4)
    early = starts[which]
    size = torch.randint(least, room - least + 1, early.shape, generator=generator)
    swap = torch.rand(len(which), generator=generator) < 0.5
    after = torch.searchsorted(starts, early + size)  # the first sentence that begins there or later
    late = starts[after.clamp(max=len(starts) - 1)]
    pair = (after < len(starts)) & (late + room - size <= ends[which])
    swap &= pair
    first, second = torch.where(swap, late, early), torch.where(swap, early, late)
    size = torch.where(swap, room - size, size)
    size = torch.where(pair, size, length - 2)
    return Segments(first, second, size, torch.where(pair, swap.long(), NO_PAIR))

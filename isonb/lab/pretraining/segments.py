"""Where the segments of a training row lie in the text: one segment, or a pair, for next sentence prediction too.

Next sentence prediction (Devlin et al. 2019, BERT, section 3.1) asks whether the second segment follows the first in
the text or comes from elsewhere. It is only worth asking if nothing but what the segments say gives it away. So every
segment begins at a sentence, lies in its paragraph to the last token, and is cut after a number of tokens drawn without
a look at the text; and those from elsewhere are what follows other rows: neither length nor cut tells the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["NO_PAIR", "Segments", "cut_pairs", "first_and_rest"]

NO_PAIR = -100  # the label that cross-entropy skips


@dataclass(frozen=True)
class Segments:
    """Offsets (B,) at which the rows' first and second segments begin, and how many tokens the first has.

    A row of one segment has ``size`` length - 2. ``elsewhere`` (B,) is 0 for a pair whose second segment follows the
    first in the text, 1 for one whose second is from another paragraph, and :data:`NO_PAIR` for a row that isn't asked.
    """

    first: Tensor
    second: Tensor
    size: Tensor
    elsewhere: Tensor


def first_and_rest(starts: Tensor, ends: Tensor, which: Tensor, length: int, generator: torch.Generator) -> Segments:
    """Half of the rows as a sentence and what follows it, where it leaves room; nobody is asked what follows."""
    begin = starts[which]
    after = torch.searchsorted(starts, begin, right=True).clamp(max=len(starts) - 1)
    size = starts[after] - begin  # tokens of the row's first sentence
    pair = (torch.rand(len(which), generator=generator) < 0.5) & (size > 0) & (size < length - 3)
    size = torch.where(pair, size, length - 2)
    return Segments(begin, begin + size, size, torch.full_like(size, NO_PAIR))


def cut_pairs(starts: Tensor, ends: Tensor, which: Tensor, length: int, generator: torch.Generator) -> Segments:
    """Every row whose paragraph has room for it as a pair; half of the pairs get the second segment of another.

    The first segment begins at the row's sentence, what follows it at the first sentence after the first one's cut.
    All rows share one cut, so that a second segment fits any of them.
    """
    room = length - 3
    least = max(1, room // 4)
    begin = starts[which]
    size = torch.randint(least, room - least + 1, (), generator=generator).expand_as(begin)
    other = torch.rand(len(which), generator=generator) < 0.5
    after = torch.searchsorted(starts, begin + size)  # the first sentence that begins there or later
    second = starts[after.clamp(max=len(starts) - 1)]
    pair = (after < len(starts)) & (second + room - size <= ends[which])
    rows = pair.nonzero().squeeze(-1)
    donors = rows.roll(len(rows) // 2)
    foreign = ends[which[donors]] != ends[which[rows]]  # of another paragraph
    elsewhere = torch.full_like(begin, NO_PAIR)
    elsewhere[rows] = torch.where(foreign, other[rows].long(), NO_PAIR)
    given = second.clone()
    given[rows] = torch.where(elsewhere[rows] == 1, second[donors], second[rows])
    return Segments(begin, torch.where(pair, given, second), torch.where(pair, size, length - 2), elsewhere)

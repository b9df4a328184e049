"""Gates of a monitor: limits that a measure must not pass several times in a row, and who counts and who decides.

Each process counts what its own points do. What follows is decided by all together: a gate that is triggered on one
process is triggered for all. The counts themselves are never mixed, so that a process that is outside now and another
one that is outside later aren't taken for one that stays outside.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from isonb.checks import check_size, is_number
from isonb.errors import InputError, fail
from isonb.numerics.distributed import process_group

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gate:
    """Triggered where ``measure`` is below ``low`` or above ``high``, ``patience`` times in a row.

    Only values that are defined count. Raises :class:`~isonb.errors.InputError` without a limit, for a ``low`` above
    ``high``, which every value would pass, or for a patience below 1.

    >>> gate = Gate("mean_cosine", high=0.99)
    >>> gate.outside(0.999), gate.outside(0.5), str(gate)
    (True, False, 'mean_cosine above 0.99, 2 times in a row')
    """

    measure: str
    low: float = -math.inf
    high: float = math.inf
    patience: int = 2

    def __post_init__(self) -> None:
        limits = self.low, self.high
        got = f"low {self.low!r}, high {self.high!r}"
        if not (all(map(is_number, limits)) and self.low <= self.high):
            fail(InputError, "low and high must be numbers, low at most high", got, "Values outside them count.")
        if not any(map(math.isfinite, limits)):
            fail(InputError, "a gate must have a limit", got, "Give low or high.")
        check_size(self.patience, "patience", "Each value outside counts as one.")

    def outside(self, value: float) -> bool:
        """Whether one value passes a limit; one that isn't defined does not."""
        return value < self.low or value > self.high

    def __str__(self) -> str:
        sides = [f"below {self.low:g}"] * math.isfinite(self.low) + [f"above {self.high:g}"] * math.isfinite(self.high)
        return f"{self.measure} {' or '.join(sides)}, {self.patience} times in a row"


#: Gates that end a training whose vectors are all equal, or all point the same way, or nearly. Encoders that are not
#: trained yet read a mean cosine of up to 0.96; some that are healthy read 0.999. A trained classifier may well use one
#: or two directions only, so few dimensions are no reason to stop by themselves.
COLLAPSE = (Gate("relative_spread", low=1e-3), Gate("mean_cosine", high=0.9998))


class GateCounts:
    """How many times in a row the values of each process passed each gate.

    >>> counts = GateCounts([Gate("mean_cosine", high=0.9)])
    >>> [bool(counts.update({"mean_cosine": value})) for value in (0.95, 0.5, 0.95, float("nan"), 0.95)]
    [False, False, False, False, True]
    """

    def __init__(self, gates: Iterable[Gate]) -> None:
        self.gates = tuple(dict.fromkeys(gates))
        self.reset()

    def reset(self) -> None:
        """Begin a new training."""
        self.own = [0] * len(self.gates)
        self.every = [self.own]  # those of every process, in their order, as they were exchanged last

    def update(self, values: Mapping[str, float]) -> dict[Gate, list[int]]:
        """Count this process's values. Returns the gates that are triggered, each with the processes on which it is.

        Under several processes each has to call it; what is returned is the same on all of them.
        """
        passed = [(gate, values[gate.measure]) for gate in self.gates]
        self.own = [
            count if math.isnan(value) else count + 1 if gate.outside(value) else 0
            for count, (gate, value) in zip(self.own, passed, strict=True)
        ]
        self.every = _of_every_process(self.own)
        triggered = {
            gate: [process for process, counts in enumerate(self.every) if counts[place] >= gate.patience]
            for place, gate in enumerate(self.gates)
        }
        return {gate: processes for gate, processes in triggered.items() if processes}

    def state_dict(self) -> dict[str, Any]:
        """The counts of every process by gate, as JSON can hold them: what the first process saves serves all."""
        return {repr(gate): [counts[place] for counts in self.every] for place, gate in enumerate(self.gates)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on with this process's counts of :meth:`state_dict`.

        Gates that it lacks begin at 0. With another number of processes each sees other points, so all begin at 0.
        """
        self.reset()
        group = process_group("world")
        count = 1 if group is None else torch.distributed.get_world_size(group)
        process = 0 if group is None else torch.distributed.get_rank(group)
        saved = [state_dict.get(repr(gate), [0] * count) for gate in self.gates]
        if any(len(counts) != count for counts in saved):
            logger.warning("the gates begin anew: their counts are those of another number of processes")
            return
        self.every = [[counts[other] for counts in saved] for other in range(count)]
        self.own = self.every[process]


def _of_every_process(counts: list[int]) -> list[list[int]]:
    group = process_group("world")
    if group is None or not counts:
        return [counts]
    every: list[list[int]] = [[] for _ in range(torch.distributed.get_world_size(group))]
    torch.distributed.all_gather_object(every, counts, group=group)
    return every


def reason(triggered: Mapping[Gate, Sequence[int]], count: int) -> str:
    """The triggered gates in words, with the processes on which they are where that isn't all ``count``."""
    return "; ".join(
        str(gate) if len(on) == count else f"{gate}, on process {', '.join(map(str, on))} of {count}"
        for gate, on in triggered.items()
    )

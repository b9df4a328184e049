"""Ranks of several methods that say how sure they are.

A mean alone gives every method one rank, whatever the seeds could have shown. A rank set holds each rank that the
paired differences can't rule out (the idea of confidence sets for ranks: Mogstad, Romano, Shaikh and Wilhelm 2024).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from isonb_lab.statistics.paired import GAIN, OPEN, paired_tests
from isonb_lab.statistics.seeds import StatsError


@dataclass(frozen=True)
class RankSet:
    """The ranks ``best`` to ``worst`` (1 is the best) of a method; ``beats`` and ``loses_to`` name the sure ones."""

    best: int
    worst: int
    beats: tuple[str, ...]
    loses_to: tuple[str, ...]

    @property
    def label(self) -> str:
        """The ranks in words.

        >>> RankSet(1, 3, (), ()).label, RankSet(2, 2, (), ()).label
        ('1 to 3', '2')
        """
        return f"{self.best}" if self.best == self.worst else f"{self.best} to {self.worst}"


def rank_sets(scores: Mapping[str, Mapping[int, float]]) -> dict[str, RankSet]:
    """The rank set of each method, from one score a seed; greater is better.

    Every two methods are compared on the seeds that both have, by Student's paired test; Holm's method holds the chance
    of any wrong order among all pairs at 5%. A method that surely loses to k others has no rank better than
    k + 1, and one that surely beats m of K methods none worse than K - m. Raises
    :class:`~isonb_lab.statistics.seeds.StatsError` where two methods share fewer than 2 seeds.

    >>> scores = {"a": {0: 0.90, 1: 0.91, 2: 0.92}, "b": {0: 0.70, 1: 0.72, 2: 0.71}, "c": {0: 0.70, 1: 0.70, 2: 0.73}}
    >>> {name: (ranks.best, ranks.worst) for name, ranks in rank_sets(scores).items()}
    {'a': (1, 1), 'b': (2, 3), 'c': (2, 3)}
    """
    differences: dict[tuple[str, str], list[float]] = {}
    for a, b in itertools.combinations(scores, 2):
        shared = sorted(set(scores[a]) & set(scores[b]))
        if len(shared) < 2:
            raise StatsError(f"{a} and {b} must share 2 seeds; got {len(shared)}. Run both with the same seeds.")
        differences[a, b] = [scores[a][seed] - scores[b][seed] for seed in shared]
    beats: dict[str, list[str]] = {name: [] for name in scores}
    loses: dict[str, list[str]] = {name: [] for name in scores}
    for (a, b), test in paired_tests(differences).items():
        if test.verdict != OPEN:
            winner, loser = (a, b) if test.verdict == GAIN else (b, a)
            beats[winner].append(loser)
            loses[loser].append(winner)
    return {
        name: RankSet(1 + len(loses[name]), len(scores) - len(beats[name]), tuple(beats[name]), tuple(loses[name]))
        for name in scores
    }

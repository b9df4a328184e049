"""Random choices that are the same on every machine, and clauses drawn from the share of one split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import TypeVar

from english.grammar import NP, Clause, Wording, share
from english.lexicon import ADJECTIVES, MANNERS, NOUNS, PLACES, TIMES, VERBS, Noun, Verb, Word

T = TypeVar("T")
SINGULAR = ("the", "a", "the", "this", "that")
PLURAL = ("the", "some", "two", "these", "those", "three")
TWO_PLACE = [v for v in VERBS if v.object not in ("-", "+", "that")]
ONE_PLACE = [v for v in VERBS if v.object == "-"]
GIVING = [v for v in VERBS if v.object == "+"]
MEMBERS = {
    kind: [n for n in NOUNS.values() if kind in n.kinds]
    for kind in sorted({k for n in NOUNS.values() for k in n.kinds})
}


class Draw:
    """A seeded source of words and clauses of one split. Only ``Random.random`` is used, which Python keeps stable.

    >>> Draw("example").pick(["red", "green", "blue"])
    'blue'
    """

    def __init__(self, seed: str, split: str = "train") -> None:
        self.random = Random(seed).random
        self.split = split

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self.random() * len(options))]

    def chance(self, p: float) -> bool:
        """True with probability ``p``."""
        return self.random() < p

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order."""
        return [items[i] for _, i in sorted((self.random(), i) for i in range(len(items)))]

    def owns(self, *clauses: Clause) -> bool:
        """Whether every clause belongs to this split."""
        return all(share(c) == self.split for c in clauses)

    def noun(self, kind: str, unlike: Sequence[Noun] = ()) -> Noun:
        """A noun of the kind, no synonym, hypernym or hyponym of those in ``unlike``."""
        return self.pick(_nouns(kind, *unlike))

    def adjective(self, noun: Noun) -> Word:
        """An adjective that suits the noun."""
        return self.pick(ADJECTIVES[next(k for k in (noun.lemma, *noun.kinds) if k in ADJECTIVES)])

    def np(self, kind: str, modifiers: float = 0.0, plural: bool | None = None, unlike: Sequence[Noun] = ()) -> NP:
        """A noun phrase of the kind; with probability ``modifiers`` it has an adjective."""
        noun = self.noun(kind, unlike)
        many = self.chance(0.4) if plural is None else plural
        adjective = self.adjective(noun) if self.chance(modifiers) else None
        return NP(self.pick(PLURAL if many else SINGULAR), noun, many, adjective)

    def clause(self, verbs: Sequence[Verb] = (), modifiers: float = 0.0, **fixed: bool) -> Clause:
        """A clause of this split. ``modifiers`` is the probability of each adjective, adverb, place and time."""
        return self.until(
            lambda: self._clause(self.pick(verbs or self.pick((TWO_PLACE, TWO_PLACE, ONE_PLACE))), modifiers, fixed)
        )

    def until(self, make: Callable[[], Clause]) -> Clause:
        """Draw clauses until one belongs to this split."""
        while not self.owns(clause := make()):
            pass
        return clause

    def _clause(self, verb: Verb, modifiers: float, fixed: dict[str, bool]) -> Clause:
        agent = self.np(verb.subject, modifiers, fixed.get("plural"))
        patient = recipient = None
        if verb.object == "+":
            patient = self.np(self.pick(("object", "text")), modifiers)
            recipient = self.np("person", 0.0, unlike=[agent.noun])
        elif verb.object != "-":
            patient = self.np(verb.object, modifiers, unlike=[agent.noun])
        if fixed.get("negated"):  # the scope of "some" and "two" under "not" is unclear: definite ones have none
            agent = _definite(agent)
            patient, recipient = (_definite(np) if np else None for np in (patient, recipient))
        return Clause(
            agent, verb, patient, recipient,
            negated=fixed.get("negated", False),
            present=fixed.get("present", False),
            manner=self.pick(MANNERS) if self.chance(modifiers * 0.6) else None,
            place=self.pick(PLACES) if self.chance(modifiers * 0.6) else None,
            time=self.pick(TIMES) if self.chance(modifiers * 0.6) and not fixed.get("present") else None,
        )  # fmt: skip

    def wording(self, clause: Clause) -> Wording:
        """One of the ways to say the clause."""
        fronts = [f for f in ("place", "time") if getattr(clause, f) is not None]
        front = self.pick(fronts) if fronts and self.chance(0.4) else ""
        passive = clause.patient is not None and self.chance(0.4)
        return Wording(passive, front, self.chance(0.5))


@lru_cache(maxsize=4096)  # drawn by the hundred thousand
def _nouns(kind: str, *unlike: Noun) -> list[Noun]:
    taken = {n.concept for n in unlike}
    above = taken.union(*(n.kinds for n in unlike))
    return [n for n in MEMBERS[kind] if n.concept not in above and taken.isdisjoint(n.kinds)]


def _definite(np: NP) -> NP:
    return np if np.det in ("this", "that", "these", "those") else replace(np, det="the")

"""Meanings and the sentences that say them: noun phrases, clauses, and a few ways to word the same clause.

A :class:`Clause` says who did what to whom, how, where and when. :func:`say` words it, active or passive, with the time
or place first or last. Two wordings of one clause are paraphrases by construction.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

from english.lexicon import Noun, Verb, Word, article

SHARES = ("train", "train", "train", "validation", "test")


@dataclass(frozen=True)
class NP:
    """A noun phrase: "the old dog that chased the cat", "two bakers", "the boy and the girl"."""

    det: str
    noun: Noun
    plural: bool = False
    adjective: Word | None = None
    relative: Clause | None = None  # its agent (or, when patient is this noun, its patient) is the noun itself
    gap: str = "agent"
    also: NP | None = None
    link: str = "and"

    @property
    def many(self) -> bool:
        """Whether the verb is plural."""
        return self.plural or (self.also is not None and (self.link == "and" or self.also.many))


@dataclass(frozen=True)
class Clause:
    """Who (agent) did what (verb) to whom (patient), for whom (recipient), how, where and when."""

    agent: NP
    verb: Verb
    patient: NP | None = None
    recipient: NP | None = None
    negated: bool = False
    present: bool = False
    manner: Word | None = None
    place: Word | None = None
    time: Word | None = None
    hedge: str = ""

    @property
    def participants(self) -> list[NP]:
        """The noun phrases of the clause itself, members of a coordination apart."""
        results = [np for np in (self.agent, self.patient, self.recipient) if np is not None]
        return results + [np.also for np in results if np.also is not None]


@dataclass(frozen=True)
class Wording:
    """How to say a clause: passive or not, which adjunct stands first, recipient before the object or after."""

    passive: bool = False
    front: str = ""
    dative: bool = False


def share(clause: Clause) -> str:
    """The split that owns a clause: a checksum of the meanings of its verb and its nouns, whatever their roles.

    Swapped roles, the passive and synonyms stay in the split; modifiers don't count. So no combination of a verb with
    its participants that is in one split is ever in another.
    """
    concepts = [clause.verb.concept, *(np.noun.concept for np in clause.participants)]
    return SHARES[sum(zlib.crc32(c.encode()) for c in concepts) % len(SHARES)]


def np_words(np: NP) -> list[str]:
    """The words of a noun phrase; "a" becomes "an" in :func:`finish`."""
    noun = np.noun.plural if np.plural else np.noun.lemma
    results = [w for w in (np.det, np.adjective.lemma if np.adjective else "", noun) if w]
    if np.relative is not None:
        results += ["that", *_relative(np)]
    return [*results, np.link, *np_words(np.also)] if np.also is not None else results


def _relative(np: NP) -> list[str]:
    clause = np.relative
    assert clause is not None
    if np.gap == "agent":
        return [*verb_words(clause, np.many), *(np_words(clause.patient) if clause.patient else [])]
    return [*np_words(clause.agent), *verb_words(clause, clause.agent.many)]


def verb_words(clause: Clause, many: bool, passive: bool = False) -> list[str]:
    """The verb group, agreeing with a subject that is plural (``many``) or not."""
    verb = clause.verb
    if passive:
        be = ("are" if many else "is") if clause.present else ("were" if many else "was")
        return [be, *(["not"] if clause.negated else []), verb.participle]
    if clause.negated:
        do = ("do" if many else "does") if clause.present else "did"
        return [do, "not", verb.lemma]
    if clause.present:
        return [verb.lemma if many else verb.third]
    return [verb.past]


def clause_words(clause: Clause, wording: Wording) -> list[str]:
    """The words of a clause in order, before capitals and punctuation."""
    passive = wording.passive and clause.patient is not None
    subject, other = (clause.patient, clause.agent) if passive else (clause.agent, clause.patient)
    assert subject is not None
    manner = [clause.manner.lemma] if clause.manner else []
    verb = verb_words(clause, subject.many, passive)
    # the adverb stands before the last word of the group: "was quietly eaten", "did not quietly eat", "quietly ate"
    results = [*np_words(subject), *verb[:-1], *manner, verb[-1]]
    goal = np_words(clause.recipient) if clause.recipient else []
    if passive:
        results += [*(["to", *goal] if goal else []), "by", *np_words(clause.agent)]
    elif other is not None and goal:
        results += [*goal, *np_words(other)] if wording.dative else [*np_words(other), "to", *goal]
    elif other is not None:
        results += np_words(other)
    adjuncts = {"place": clause.place, "time": clause.time}
    first = adjuncts.pop(wording.front, None)
    results += [a.lemma for a in adjuncts.values() if a is not None]
    head = [first.lemma + ","] if first is not None else []
    return [*([clause.hedge] if clause.hedge else []), *head, *results]


def finish(tokens: list[str], mark: str = ".") -> str:
    """Join words: "a" before a vowel sound becomes "an", the first letter a capital.

    >>> finish(["a", "owl", "saw", "a", "useful", "box"])
    'An owl saw a useful box.'
    """
    flat = " ".join(tokens).split()
    flat = [article(after) if word == "a" else word for word, after in zip(flat, [*flat[1:], "x"], strict=True)]
    text = " ".join(flat)
    return text[0].upper() + text[1:] + mark


def say(clause: Clause, wording: Wording = Wording()) -> str:
    """The sentence for a clause.

    >>> from english.draw import Draw
    >>> clause = Draw("z").clause(modifiers=0.5)
    >>> say(clause), say(clause, Wording(passive=True))
    ('A happy sculptor worked in April.', 'A happy sculptor worked in April.')
    """
    return finish(clause_words(clause, wording))


def put(clause: Clause, role: str, what: NP | Word | None) -> Clause:
    """The clause with another entry in one role: agent, patient, recipient, manner, place or time."""
    change: dict[str, Any] = {role: what}
    return replace(clause, **change)

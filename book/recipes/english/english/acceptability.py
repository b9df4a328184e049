"""Acceptable sentences and sentences that break one rule, phenomenon by phenomenon.

Each function takes a :class:`Draw` and whether the sentence shall be good, and returns the sentence. Good and bad ones
hold the same words as often: what tells them apart is how the words go together.
"""

from __future__ import annotations

from dataclasses import replace

from english.draw import GIVING, ONE_PLACE, TWO_PLACE, Draw
from english.grammar import NP, Clause, Wording, clause_words, finish, np_words, say, verb_words
from english.lexicon import NOUNS, PLACES, TIMES, VERBS, WORDS, Noun

NEAR = ("near", "behind", "beside", "with", "without")
PERSONAL = [
    v for v in TWO_PLACE if v.subject == v.object == "person" and v.lemma not in ("contact", "visit", "meet", "greet")
]
STRICT = [v for v in TWO_PLACE if v.lemma in WORDS["needs_object"].split()]
ALONE = [v for v in ONE_PLACE if v.lemma in WORDS["takes_none"].split()]
# "the boy read" is good as a past tense: agreement needs verbs whose past looks different
TELLING = [[v for v in verbs if v.past != v.lemma] for verbs in (TWO_PLACE, TWO_PLACE, ONE_PLACE)]
GENDERED = [n for n in NOUNS.values() if n.gender]
NAMES = [Noun(n, n, n, ("person",), "m") for n in WORDS["male_names"].split()]
NAMES += [Noun(n, n, n, ("person",), "f") for n in WORDS["female_names"].split()]


def agreement(draw: Draw, good: bool) -> str:
    """The verb agrees with its subject, not with a noun that stands between them.

    >>> agreement(Draw("a"), True)
    'Some musicians without the butterflies insult the polite queens.'
    >>> agreement(Draw("a"), False)
    'Some musicians without the butterflies insults the polite queens.'
    """
    many, between = draw.chance(0.5), draw.chance(0.5)
    clause = draw.clause(draw.pick(TELLING), modifiers=0.3, plural=many, present=True, negated=draw.chance(0.2))
    det = draw.pick(("the", "some", "two") if many else ("the", "a", "every"))
    subject = replace(clause.agent, det=det)
    near = draw.np(draw.pick(("person", "animal")), plural=between, unlike=[subject.noun])
    middle = [draw.pick(NEAR), *np_words(replace(near, det="the"))] if draw.chance(0.8) else []
    return _with_verb(clause, [*np_words(subject), *middle], many == good)


def distant_agreement(draw: Draw, good: bool) -> str:
    """As :func:`agreement`, over a relative clause with a verb and a noun of its own.

    >>> distant_agreement(Draw("a"), True)
    'Two guards that the biologists trick nervously clean the expensive rug.'
    >>> distant_agreement(Draw("a"), False)
    'Two guards that the biologists trick nervously cleans the expensive rug.'
    """
    many, between = draw.chance(0.5), draw.chance(0.5)
    clause = draw.clause(draw.pick(TELLING), plural=many, present=True, modifiers=0.2)
    kind = clause.verb.subject
    other = draw.np(kind, plural=between, unlike=[clause.agent.noun])
    verb = draw.pick([v for v in TWO_PLACE if v.subject == v.object == kind])
    inner = Clause(replace(other, det="the"), verb, present=True)
    gap = draw.pick(("agent", "patient"))
    if gap == "agent":
        inner = Clause(clause.agent, verb, replace(other, det="the"), present=True)
    det = draw.pick(("the", "some", "two") if many else ("the", "a", "every"))
    subject = replace(clause.agent, det=det, adjective=None, relative=inner, gap=gap)
    return _with_verb(clause, np_words(subject), many == good)


def _with_verb(clause: Clause, subject: list[str], many: bool) -> str:
    """The clause with its subject's words given and its verb in the number asked for."""
    verb = verb_words(clause, many)
    manner = [clause.manner.lemma] if clause.manner else []
    rest = np_words(clause.patient) if clause.patient else []
    place = [clause.place.lemma] if clause.place else []
    return finish([*subject, *verb[:-1], *manner, verb[-1], *rest, *place])


def argument_structure(draw: Draw, good: bool) -> str:
    """A verb has the objects it needs and no more.

    >>> argument_structure(Draw("a"), True)
    'That guard arrested the intelligent ruler in the valley.'
    >>> argument_structure(Draw("a"), False)
    'The polite drummer did not arrest.'
    """
    takes = draw.chance(0.5)
    verb = draw.pick(STRICT if takes else ALONE)

    def make() -> Clause:
        agent = draw.np(verb.subject, 0.5)
        kind = verb.object if takes else draw.pick(("person", "animal", "object"))
        patient = draw.np(kind, 0.5, unlike=[agent.noun]) if takes == good else None
        extra = [draw.pick(words) if draw.chance(0.5) else None for words in (PLACES, TIMES)]
        return Clause(agent, verb, patient, place=extra[0], time=extra[1], negated=draw.chance(0.2))

    return say(draw.until(make), Wording(front=draw.pick(("", "", "time", "place"))))


def word_order(draw: Draw, good: bool) -> str:
    """Two neighbouring words, or two phrases, must not change places.

    >>> word_order(Draw("a"), True)
    'The polite drummer nervously consoled the elderly girl.'
    >>> word_order(Draw("a"), False)
    'The polite drummer nervously the consoled elderly girl.'
    """
    clause = draw.clause((*TWO_PLACE, *GIVING), modifiers=0.5, negated=draw.chance(0.2))
    subject = replace(clause.agent, adjective=clause.agent.adjective or draw.adjective(clause.agent.noun))
    clause = replace(clause, agent=subject, time=None)
    tokens = clause_words(clause, Wording())
    if good:
        return finish(tokens)
    adjective = tokens.index(subject.adjective.lemma) if subject.adjective else 0
    verb = verb_words(clause, clause.agent.many)
    last = len(np_words(subject)) + len(verb) - 1 + (clause.manner is not None)  # where the verb itself stands
    where = draw.pick((0, adjective, last))  # "old the baker", "the baker old", "bought the a violin"
    tokens[where], tokens[where + 1] = tokens[where + 1], tokens[where]
    return finish(tokens)


def determiners(draw: Draw, good: bool) -> str:
    """A determiner agrees with its noun: this dog, these dogs.

    >>> determiners(Draw("a"), True)
    'The cook gladly supported this drummer at noon.'
    >>> determiners(Draw("a"), False)
    'The cook gladly supported these drummer at noon.'
    """
    clause = draw.clause(TWO_PLACE, modifiers=0.5)
    role = draw.pick(("agent", "patient"))
    np = clause.agent if role == "agent" else clause.patient
    assert np is not None
    many = np.plural == good
    det = draw.pick(("these", "those", "many", "two", "several") if many else ("this", "that", "every", "each", "a"))
    wrong = replace(np, det=det)
    clause = replace(clause, agent=wrong) if role == "agent" else replace(clause, patient=wrong)
    return say(clause, draw.wording(clause))


def reflexives(draw: Draw, good: bool) -> str:
    """A reflexive agrees with the subject of its own clause in gender and number.

    >>> reflexives(Draw("a"), True)
    'Clara congratulated herself.'
    >>> reflexives(Draw("a"), False)
    'Clara congratulated himself.'
    """
    verb = draw.pick(PERSONAL)

    def make() -> Clause:
        noun = draw.pick(NAMES if draw.chance(0.4) else GENDERED)
        many = noun not in NAMES and draw.chance(0.4)
        det = "" if noun in NAMES else draw.pick(("the", "some", "those") if many else ("the", "this", "that"))
        adjective = draw.adjective(noun) if det and draw.chance(0.4) else None
        time = draw.pick(TIMES) if draw.chance(0.5) else None
        return Clause(NP(det, noun, many, adjective), verb, time=time)

    clause = draw.until(make)
    pronoun = "themselves" if clause.agent.plural else {"m": "himself", "f": "herself"}[clause.agent.noun.gender]
    others = [r for r in ("himself", "herself", "themselves") if r != pronoun]
    tail = [draw.pick(NEAR), "the", draw.pick(GENDERED).plural] if clause.agent.det and draw.chance(0.5) else []
    time = [clause.time.lemma] if clause.time else []
    return finish([*np_words(clause.agent), *tail, verb.past, pronoun if good else draw.pick(others), *time])


PHENOMENA = (agreement, distant_agreement, argument_structure, word_order, determiners, reflexives)
REPORTING = [v for v in VERBS if v.object == "that"]


def judged(draw: Draw, good: bool) -> str:
    """A sentence of any phenomenon; some are told by somebody or go on, which makes them longer and no better.

    >>> judged(Draw("a"), True)
    'Two musicians that the tailor tricks nervously insult these queens.'
    >>> judged(Draw("a"), False)
    'Two musicians that the tailor tricks nervously insults these queens.'
    """
    text = draw.pick(PHENOMENA)(draw, good)
    if draw.chance(0.15):
        more = draw.clause(modifiers=0.5)
        return finish(
            [text.removesuffix(".") + ",", draw.pick(("and", "but")), *clause_words(more, draw.wording(more))]
        )
    if draw.chance(0.75):
        return text
    first, _, rest = text.removesuffix(".").partition(" ")
    first = first if first in {n.lemma for n in NAMES} else first.lower()
    parts = [*np_words(draw.np("person", 0.7)), draw.pick(REPORTING).past, "that", first, rest]
    return finish(parts)

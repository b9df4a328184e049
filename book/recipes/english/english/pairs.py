"""Pairs of sentences: paraphrases against near-misses, and pairs that share a known part of their meaning."""

from __future__ import annotations

from dataclasses import replace

from english.draw import GIVING, ONE_PLACE, TWO_PLACE, Draw
from english.grammar import NP, Clause, put, say
from english.lexicon import ADJECTIVES, MANNERS, NOUNS, PLACES, TIMES, VERBS, WORDS, Noun, Word

MODIFIERS = {"manner": MANNERS, "place": PLACES, "time": TIMES}
WEIGHTS = {"agent": 2.0, "verb": 2.0, "patient": 2.0, "recipient": 1.0}  # every modifier counts 0.5
NEAR = [set(group.split()) for group in WORDS["near_verbs"].split("|")]
FRAMES = (*TWO_PLACE, *TWO_PLACE, *TWO_PLACE, *GIVING, *GIVING, *ONE_PLACE)


def components(clause: Clause) -> dict[str, str]:
    """The meaning of a clause, role by role; synonyms have the same entry.

    >>> components(Draw("a").clause())
    {'verb': 'comfort', 'agent': 'drummer', 'agent number': 'the', 'patient': 'sculptor', 'patient number': 'the'}
    """
    result = {"verb": clause.verb.concept}
    for role in ("agent", "patient", "recipient"):
        if np := getattr(clause, role):
            result |= {role: np.noun.concept, f"{role} number": np.det + ("+" if np.plural else "")}
            result |= {f"{role} adjective": np.adjective.concept} if np.adjective else {}
    return result | {role: word.concept for role in MODIFIERS if (word := getattr(clause, role))}


def reworded(draw: Draw, clause: Clause, rate: float) -> Clause:
    """The clause with each word that has synonyms exchanged for one of them, with probability ``rate``."""

    def other(word: Word | None, options: list[Word]) -> Word | None:
        same = [o for o in options if word and o.concept == word.concept and o.lemma != word.lemma]
        return draw.pick(same) if same and draw.chance(rate) else word

    def np(old: NP | None) -> NP | None:
        if old is None:
            return None
        same = [n for n in NOUNS.values() if n.concept == old.noun.concept and n != old.noun]
        noun = draw.pick(same) if same and draw.chance(rate) else old.noun
        kind = next((k for k in (old.noun.lemma, *old.noun.kinds) if k in ADJECTIVES), "")
        return replace(old, noun=noun, adjective=other(old.adjective, ADJECTIVES.get(kind, [])))

    old = clause.verb
    same = [v for v in VERBS if (v.concept, v.object, v.subject) == (old.concept, old.object, old.subject)]
    verb = draw.pick(same) if draw.chance(rate) else old
    agent = np(clause.agent)
    assert agent is not None
    manner = other(clause.manner, MANNERS)
    return replace(
        clause, verb=verb, agent=agent, patient=np(clause.patient), recipient=np(clause.recipient), manner=manner
    )


def changed(draw: Draw, clause: Clause, role: str) -> Clause:
    """The clause with another meaning in one role: agent, patient, recipient, verb, adjective, manner, place, time,
    "polarity", or "swap" (agent and patient change places).
    """
    if role == "polarity":
        return replace(clause, negated=not clause.negated)
    if role == "swap":
        assert clause.patient is not None
        return replace(clause, agent=clause.patient, patient=clause.agent)
    if role == "verb":
        old = clause.verb
        close = {old.concept}.union(*(g for g in NEAR if old.concept in g))
        near = [v for v in VERBS if (v.object, v.subject) == (old.object, old.subject) and v.concept not in close]
        return replace(clause, verb=draw.pick(near))
    if role == "adjective":
        np = clause.agent
        assert np.adjective is not None
        near_words = [a for a in ADJECTIVES[clause.verb.subject] if a.concept != np.adjective.concept]
        return replace(clause, agent=replace(np, adjective=draw.pick(near_words)))
    if role in MODIFIERS:
        old_word: Word = getattr(clause, role)
        return put(clause, role, draw.pick([word for word in MODIFIERS[role] if word.concept != old_word.concept]))
    old_np: NP = getattr(clause, role)
    noun = draw.noun(old_np.noun.kinds[-1], [p.noun for p in clause.participants])
    return put(clause, role, replace(old_np, noun=noun))


def roles(clause: Clause) -> list[str]:
    """What :func:`changed` can change here."""
    results = ["verb", "polarity"]
    results += [role for role in ("agent", "patient", "recipient", *MODIFIERS) if getattr(clause, role) is not None]
    results += ["adjective"] if clause.agent.adjective else []
    if clause.patient and clause.verb.subject == clause.verb.object:
        results += ["swap"] * 4
    return results


def paraphrase(draw: Draw, label: int) -> tuple[str, str] | None:
    """Two sentences that mean the same (label 1), or that differ in one thing (0): who, whom, what, how, when, whether.

    A near-miss keeps more of the words than a paraphrase does, so that shared words alone don't give it away.

    >>> paraphrase(Draw("a"), 1)
    ('Those butterflies did not bite the white bunny.', 'Those butterflies did not bite the white rabbit.')
    >>> paraphrase(Draw("a"), 0)
    ('Those butterflies did not bite the white bunny.', 'The white bunny did not bite those butterflies.')
    """
    clause = draw.clause(FRAMES, modifiers=0.6, negated=draw.chance(0.3))
    other = reworded(draw, clause, 0.75 if label else 0.35)
    if not label:
        other = changed(draw, other, draw.pick(roles(other)))
        if not draw.owns(other):
            return None
    first, second = say(clause, draw.wording(clause)), say(other, draw.wording(other))
    return (first, second) if first != second else None


def likeness(first: Clause, second: Clause) -> float:
    """Shared meaning on the 0-5 scale of STS.

    Each role of either clause counts by its weight: 1 for the same meaning, 0.5 for nouns of one kind (two dogs, two
    tools) or for a noun that stands in another role, 0.2 for nouns of one wide kind (two animals) and verbs of
    one frame.
    The weighted mean times 5; a sentence against its negation keeps 0.6 of it.
    """
    a, b = components(first), components(second)
    total = shared = 0.0
    for role in sorted(a.keys() | b.keys()):
        weight = WEIGHTS.get(role, 0.5)
        total += weight
        if role in a and role in b:
            shared += weight * _alike(role, a[role], b[role], set(a.values()) & set(b.values()))
    score = 5 * shared / total
    return round(score * (0.6 if first.negated != second.negated else 1.0), 2)


def _alike(role: str, a: str, b: str, both: set[str]) -> float:
    if a == b:
        return 1.0
    if role == "verb":
        frames = [{(v.subject, v.object) for v in VERBS if v.concept == c} for c in (a, b)]
        return 0.2 if frames[0] & frames[1] else 0.0
    if role not in WEIGHTS:
        return 0.0
    if a in both or b in both:
        return 0.5
    above: list[Noun] = [NOUNS[a], NOUNS[b]]
    kinds = [{n.concept, *n.kinds} for n in above]
    common = kinds[0] & kinds[1]
    wide = {n.kinds[-1] if n.kinds else n.concept for n in above}
    return 0.5 if common - wide else 0.2 if common else 0.0


def similar(draw: Draw) -> tuple[str, str, float] | None:
    """Two sentences and how much meaning they share, from 0 (nothing) to 5 (all of it).

    >>> similar(Draw("a"))
    ('The white bunny was bitten by those butterflies.', 'Those owls followed the white squirrel.', 1.8)
    """
    first = draw.clause(FRAMES, modifiers=0.4, negated=draw.chance(0.1))
    if draw.chance(0.12):
        second = draw.clause(FRAMES, modifiers=0.4, negated=draw.chance(0.1))
    else:
        second = reworded(draw, first, 0.5)
        options = [r for r in dict.fromkeys(roles(first)) if r not in ("swap", "polarity")]
        for role in draw.shuffled(options)[: int(draw.random() * (len(options) + 1))]:
            second = changed(draw, second, role)
        for special in ("swap", "polarity"):
            if special in roles(second) and draw.chance(0.12):
                second = changed(draw, second, special)
    if not draw.owns(second):
        return None
    texts = say(first, draw.wording(first)), say(second, draw.wording(second))
    return (*texts, likeness(first, second)) if texts[0] != texts[1] else None

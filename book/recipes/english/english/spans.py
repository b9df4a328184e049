"""Short stories and a question whose answer is a stretch of the story, as in SQuAD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from english.draw import ONE_PLACE, TWO_PLACE, Draw
from english.grammar import NP, Clause, finish, np_words, say
from english.lexicon import PLACES, TIMES, Noun, Verb, Word
from english.pairs import reworded


def story(draw: Draw) -> list[Clause]:
    """Four or five things that happened. The first is asked about: another has its verb, a third its agent.

    >>> [say(clause) for clause in story(Draw("z"))]
    ['The gentle singers carefully supported the courteous cousin beside the lake last winter.', 'The scientist
    supported the bakers at the market before sunrise.', 'The gentle singers examined the recent piano in the valley
    in April.', 'The librarians hesitated in the courtyard after the storm.']
    """
    places, times = draw.shuffled(PLACES), draw.shuffled(TIMES)
    taken: list[Noun] = []

    def add(clause: Clause, keep: bool = False) -> Clause:
        """The clause with a place and a time that no other has, about nobody known yet, definite."""
        place, time = places.pop(), times.pop()
        agent = clause.agent if keep else replace(clause.agent, det="the")
        patient = replace(clause.patient, det="the") if clause.patient else None
        return replace(clause, agent=agent, patient=patient, place=place, time=time if draw.chance(0.6) else None)

    def fresh(verbs: Sequence[Verb], agent: NP | None = None) -> Clause:
        while True:
            result = draw.clause(verbs, modifiers=0.4)
            result = replace(result, agent=agent) if agent else result
            nouns = [p.noun for p in result.participants if p is not agent]
            if draw.owns(result) and not any(_related(n, t) for n in nouns for t in taken):
                taken.extend(nouns)
                return add(result, agent is not None)

    first = fresh(TWO_PLACE)
    rest = [
        fresh([first.verb]),
        fresh(
            [v for v in TWO_PLACE if v.subject == first.verb.subject and v.concept != first.verb.concept], first.agent
        ),
        fresh([v for v in (*TWO_PLACE, *ONE_PLACE) if v.concept != first.verb.concept]),
    ]
    return [first, *rest[: draw.pick((2, 3, 3))]]


def _related(first: Noun, second: Noun) -> bool:
    return first.concept in (second.concept, *second.kinds) or second.concept in first.kinds


def question(draw: Draw) -> dict[str, object]:
    """A story in random order, a question about one of its sentences, and the answer with its place in the story.

    >>> row = question(Draw("z"))
    >>> row["question"], row["answers"]
    ('Who did the singers support?', {'text': ['The courteous cousin'], 'answer_start': [65]})
    """
    clauses = story(draw)
    target = clauses[0]
    role = draw.pick(["agent", "patient", "place", *(["time"] if target.time else [])])
    part: NP | Word | None = getattr(target, role)
    assert part is not None
    answer = " ".join(np_words(part)) if isinstance(part, NP) else part.lemma
    context, start = "", 0
    for clause in draw.shuffled(clauses):
        sentence = say(clause, draw.wording(clause)) + " "
        if clause is target:
            start = len(context) + sentence.lower().index(answer.lower())
        context += sentence
    text = context[start : start + len(answer)]
    return {
        "title": "A short story",
        "context": context.strip(),
        "question": _ask(reworded(draw, target, 0.4), role, draw.chance(0.4)),
        "answers": {"text": [text], "answer_start": [start]},
    }


def _ask(clause: Clause, role: str, passive: bool) -> str:
    """The question for one part of a clause, active or passive; who for people, what for things and animals."""
    assert clause.patient is not None
    agent, patient = replace(clause.agent, adjective=None), replace(clause.patient, adjective=None)
    who = "who" if "person" in (getattr(clause, role).noun.kinds if role in ("agent", "patient") else ()) else "what"
    verb = clause.verb
    be = "were" if patient.plural else "was"
    if role == "agent":
        tokens = (
            [who, be, *np_words(patient), verb.participle, "by"] if passive else [who, verb.past, *np_words(patient)]
        )
    elif role == "patient":
        tokens = (
            [who, "was", verb.participle, "by", *np_words(agent)]
            if passive
            else [who, "did", *np_words(agent), verb.lemma]
        )
    else:
        where = "where" if role == "place" else "when"
        active = [where, "did", *np_words(agent), verb.lemma, *np_words(patient)]
        tokens = [where, be, *np_words(patient), verb.participle, "by", *np_words(agent)] if passive else active
    return finish(tokens, "?")

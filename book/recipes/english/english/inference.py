"""Premises and hypotheses. Where a pair is two clauses, :func:`entails` says whether one follows from the other.

Each function makes one kind of pair, entailed or not as asked; the first three only propose pairs, and a caller who
wants the other verdict draws again. Among them are the traps of HANS: the same words in other roles, neighbours that
don't belong together ("the baker that helped the boy laughed": "the boy laughed"), a clause that is only thought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from english.draw import ONE_PLACE, TWO_PLACE, Draw
from english.entailment import entails
from english.grammar import Clause, Wording, clause_words, finish, np_words, put, say
from english.lexicon import NOUNS, VERBS, WORDS, Verb
from english.pairs import MODIFIERS, changed, reworded

SAME_KIND = [v for v in TWO_PLACE if v.subject == v.object]
THATS = [v for v in VERBS if v.object == "that"]
FACTS = {f.split("/")[0] for f in WORDS["factive"].split()}


@dataclass(frozen=True)
class Case:
    """A premise and a hypothesis, whether one follows from the other, and the clauses they say."""

    premise: str
    hypothesis: str
    entailed: bool
    clauses: tuple[Clause, ...]

    def __str__(self) -> str:
        return f"{self.premise}\n{'=>' if self.entailed else '=/=>'} {self.hypothesis}"


def _base(draw: Draw, verbs: Sequence[Verb] = (*TWO_PLACE, *ONE_PLACE), quantify: bool = False) -> Clause:
    """A clause to start from. Under a negation or "no" its object is "a" or "any", so that it can be narrowed."""
    clause = draw.clause(verbs, modifiers=0.4, negated=draw.chance(0.25))
    agent, patient = clause.agent, clause.patient
    det = "the"
    if quantify and not clause.negated:
        down = ("all", "no") if agent.plural else ("every", "no")
        up = ("the", "some", "three") if agent.plural else ("the", "a")
        det = draw.pick(down if draw.chance(0.5) else up)
    if patient is not None:
        narrow = clause.negated or det == "no"
        patient = replace(patient, det=("any" if patient.plural else "a") if narrow else "the")
    return replace(clause, agent=replace(agent, det=det), patient=patient)


def _plain(draw: Draw, verbs: Sequence[Verb] = (*TWO_PLACE, *ONE_PLACE)) -> Clause:
    """An affirmative clause about definite participants."""
    clause = replace(_base(draw, verbs), negated=False)
    return replace(clause, patient=replace(clause.patient, det="the")) if clause.patient else clause


def _wording(draw: Draw, clause: Clause) -> Wording:
    """A wording that keeps the scope of quantifiers: no passive over "a" or "any"."""
    wording = draw.wording(clause)
    fixed = clause.patient is not None and clause.patient.det in ("a", "any")
    return replace(wording, passive=False) if fixed else wording


def _case(draw: Draw, premise: Clause, hypothesis: Clause) -> Case:
    texts = say(premise, _wording(draw, premise)), say(hypothesis, _wording(draw, hypothesis))
    return Case(*texts, entails(premise, hypothesis), (premise, hypothesis))


def modifiers(draw: Draw, entailed: bool) -> Case:
    """A modifier more or less; it can be dropped, except under every, all, no and not, where it can be added.

    >>> print(modifiers(Draw("b"), True))
    No sculptor criticised a clever violinist in the square.
    => No sculptor nervously criticised a clever violinist in the square.
    >>> print(modifiers(Draw("a"), False))
    The polite drummer contacted the elderly girl last winter.
    =/=> The elderly girl was noisily contacted by the polite drummer last winter.
    """
    clause = _base(draw, quantify=True)
    where = draw.pick(("agent", "manner", "place", "time"))
    if where == "agent":
        without = replace(clause, agent=replace(clause.agent, adjective=None))
        more = replace(clause, agent=replace(clause.agent, adjective=draw.adjective(clause.agent.noun)))
    else:
        without = put(clause, where, None)
        more = put(clause, where, draw.pick(MODIFIERS[where]))
    return _case(draw, *((more, without) if draw.chance(0.5) else (without, more)))


def hypernyms(draw: Draw, entailed: bool) -> Case:
    """A noun and a wider one, or a sister of it.

    >>> print(hypernyms(Draw("b"), True))
    In the square, no sculptor criticised a person.
    => No sculptor criticised a violinist in the square.
    >>> print(hypernyms(Draw("a"), False))
    The person nervously contacted the elderly girl last winter.
    =/=> The elderly girl was nervously contacted by the drummer last winter.
    """
    clause = _base(draw, quantify=True)
    role = "patient" if clause.patient and clause.patient.det != "the" and draw.chance(0.5) else "agent"
    np = replace(getattr(clause, role), adjective=None)
    wider = [k for k in np.noun.kinds if k in NOUNS]
    clause = put(clause, role, np)
    if not wider or draw.chance(0.15):
        return _case(draw, clause, changed(draw, clause, role))
    wide = put(clause, role, replace(np, noun=NOUNS[draw.pick(wider)]))
    return _case(draw, *((clause, wide) if draw.chance(0.5) else (wide, clause)))


def quantifiers(draw: Draw, entailed: bool) -> Case:
    """The same clause of all, most, some, three, two, none ("the" is left out: in a small world it means all).

    >>> print(quantifiers(Draw("f"), True))
    Every musician carefully apologised.
    => Every musician carefully apologised.
    >>> print(quantifiers(Draw("a"), False))
    No polite drummer nervously contacted the elderly girl last winter.
    =/=> Last winter, the elderly girl was nervously contacted by every polite drummer.
    """
    clause = _plain(draw)
    dets = ("all", "most", "some", "no", "three", "two") if clause.agent.plural else ("every", "no", "a")
    first, second = draw.shuffled(dets)[:2] if draw.chance(0.8) else [draw.pick(dets)] * 2
    return _case(draw, *(replace(clause, agent=replace(clause.agent, det=d)) for d in (first, second)))


def polarity(draw: Draw, entailed: bool) -> Case:
    """A clause and itself in other words, or its negation.

    >>> print(polarity(Draw("a"), True))
    The polite drummer nervously contacted the elderly girl last winter.
    => The elderly girl was nervously contacted by the polite drummer last winter.
    >>> print(polarity(Draw("a"), False))
    The polite drummer nervously contacted the elderly girl last winter.
    =/=> The elderly girl was not nervously contacted by the polite drummer last winter.
    """
    clause = replace(_plain(draw), negated=draw.chance(0.5))
    other = reworded(draw, clause, 0.5)
    return _case(draw, clause, other if entailed else changed(draw, other, "polarity"))


def roles(draw: Draw, entailed: bool) -> Case:
    """The same words, who and whom kept (active or passive) or exchanged.

    >>> print(roles(Draw("a"), True))
    The polite drummer nervously answered the elderly girl last winter.
    => The polite drummer nervously answered the elderly girl last winter.
    >>> print(roles(Draw("a"), False))
    The polite drummer nervously answered the elderly girl last winter.
    =/=> The elderly girl nervously answered the polite drummer last winter.
    """
    clause = _plain(draw, SAME_KIND)
    return _case(draw, clause, clause if entailed else changed(draw, clause, "swap"))


def relatives(draw: Draw, entailed: bool) -> Case:
    """What follows from a sentence with a relative clause: its two clauses, and not the words that stand side by side.

    >>> print(relatives(Draw("a"), True))
    The polite drummer that the cousin questioned nervously contacted the elderly girl last winter.
    => Last winter, the elderly girl was nervously contacted by the polite drummer.
    >>> print(relatives(Draw("a"), False))
    The polite drummer that the cousin questioned nervously contacted the elderly girl last winter.
    =/=> Last winter, the elderly girl was nervously contacted by the cousin.
    """
    main = _plain(draw)
    kind = main.verb.subject
    other = replace(draw.np(kind, 0.3, unlike=[p.noun for p in main.participants]), det="the")
    verb = draw.pick([v for v in SAME_KIND if v.subject == kind])
    gap = draw.pick(("agent", "patient"))
    inner = Clause(main.agent, verb, other) if gap == "agent" else Clause(other, verb, main.agent)
    shown = replace(main, agent=replace(main.agent, relative=inner, gap=gap))
    variant = (
        draw.pick((main, inner)) if entailed else draw.pick((replace(main, agent=other), changed(draw, inner, "swap")))
    )
    return Case(say(shown), say(variant, _wording(draw, variant)), entailed, (main, inner, variant))


def coordination(draw: Draw, entailed: bool) -> Case:
    """One of two joined by "and" can be dropped, not one of two joined by "or".

    >>> print(coordination(Draw("a"), True))
    The polite drummer or the astronomers nervously contacted the elderly girl last winter.
    => The elderly girl was nervously contacted by the astronomers or the polite drummer last winter.
    >>> print(coordination(Draw("a"), False))
    The elderly girl was nervously contacted by the polite drummer or the astronomers last winter.
    =/=> Last winter, the elderly girl was nervously contacted by the astronomers.
    """
    clause = _plain(draw)
    link = draw.pick(("and", "or"))
    also = replace(draw.np(clause.verb.subject, 0.3, unlike=[p.noun for p in clause.participants]), det="the")
    both = replace(clause, agent=replace(clause.agent, also=also, link=link))
    if link == "and" and not entailed:
        variant = changed(draw, both, "agent")
        variant = replace(variant, agent=replace(variant.agent, also=None))
    elif link == "or" and entailed:
        variant = replace(clause, agent=replace(also, also=clause.agent, link=link))
    else:
        variant = replace(clause, agent=draw.pick((clause.agent, also)))
    return Case(say(both, _wording(draw, both)), say(variant, _wording(draw, variant)), entailed, (both, variant))


def reports(draw: Draw, entailed: bool) -> Case:
    """What is known or regretted is so, what is thought or claimed need not be.

    >>> print(reports(Draw("a"), True))
    The astronomers claimed that the polite drummer nervously contacted the elderly girl last winter.
    => The astronomers claimed that the elderly girl was anxiously contacted by the polite drummer last winter.
    >>> print(reports(Draw("a"), False))
    The astronomers claimed that the polite drummer nervously contacted the elderly girl last winter.
    =/=> Last winter, the elderly girl was anxiously contacted by the polite drummer.
    """
    clause, verb = _plain(draw), draw.pick(THATS)
    subject = replace(draw.np("person", 0.3, unlike=[p.noun for p in clause.participants]), det="the")

    def report(content: Clause) -> str:
        return finish(
            [*np_words(subject), verb.past, "that", *clause_words(content, replace(_wording(draw, content), front=""))]
        )

    result = reworded(draw, clause, 0.4)
    if verb.lemma in FACTS:
        result = result if entailed else changed(draw, result, draw.pick(("agent", "polarity", "verb")))
        return Case(report(clause), say(result, _wording(draw, result)), entailed, (clause, result))
    hypothesis = report(result) if entailed else say(result, _wording(draw, result))
    return Case(report(clause), hypothesis, entailed, (clause, result))


def hedges(draw: Draw, entailed: bool) -> Case:
    """What holds perhaps need not hold; what holds indeed does.

    >>> print(hedges(Draw("a"), True))
    In fact, the elderly girl was nervously contacted by the polite drummer last winter.
    => Last winter, the elderly girl was anxiously contacted by the polite drummer.
    >>> print(hedges(Draw("a"), False))
    In fact, the elderly girl was nervously contacted by the polite drummer last winter.
    =/=> Last winter, the polite drummer did not anxiously contact the elderly girl.
    """
    clause = _plain(draw)
    variant = reworded(draw, clause, 0.4)
    if draw.chance(0.5):
        premise = replace(clause, hedge=draw.pick(("perhaps", "possibly", "maybe")))
        hypothesis = replace(variant, hedge=premise.hedge) if entailed else variant
    else:
        premise = replace(clause, hedge=draw.pick(("indeed,", "certainly", "in fact,")))
        hypothesis = variant if entailed else changed(draw, variant, draw.pick(("agent", "polarity", "verb")))
    texts = say(premise, replace(_wording(draw, premise), front="")), say(hypothesis, _wording(draw, variant))
    return Case(*texts, entailed, (premise, hypothesis))


INFERENCES = (modifiers, hypernyms, quantifiers, polarity, roles, relatives, coordination, reports, hedges)

"""When one clause follows from another: quantifiers, hypernyms, modifiers and negation, by monotonicity.

:func:`entails` compares two clauses. :mod:`english.inference` proposes the pairs.
"""

from __future__ import annotations

from english.grammar import NP, Clause

# which determiners follow from which, besides themselves ("all" and "every" presuppose that there are some;
# "three" means at least three)
WEAKER = {
    "the": ("a", "some"), "this": ("a",), "that": ("a",), "these": ("some",), "those": ("some",), "many": ("some",),
    "three": ("two", "some"), "two": ("some",), "all": ("most", "some"), "every": ("a",), "most": ("some",),
}  # fmt: skip
DOWN = ("every", "all", "no")  # what holds of all dogs holds of all spaniels


def entails(premise: Clause, hypothesis: Clause) -> bool:
    """Whether the hypothesis must be true when the premise is.

    The subject's noun and modifiers may be widened (spaniel to dog, old dog to dog), or narrowed under every, all, no;
    the rest of the clause may be widened, or narrowed under a negation or no. A definite phrase refers to the same one.
    """
    if premise.negated != hypothesis.negated or (premise.hedge and not hypothesis.hedge):
        return False
    falls = premise.negated or premise.agent.det == "no"
    below, above = (hypothesis, premise) if falls else (premise, hypothesis)
    return _np_entails(premise.agent, hypothesis.agent) and _predicate_entails(below, above)


def _predicate_entails(p: Clause, h: Clause) -> bool:
    if p.verb.concept != h.verb.concept or (p.patient is None) != (h.patient is None):
        return False
    if p.patient is not None and h.patient is not None and not _np_entails(p.patient, h.patient):
        return False
    return all(getattr(h, f) in (None, getattr(p, f)) for f in ("manner", "place", "time"))


def _np_entails(p: NP, h: NP) -> bool:
    if p.plural != h.plural and p.det != "no":
        return False
    if p.det != h.det and h.det not in WEAKER.get(p.det, ()):
        return False
    if "most" in (p.det, h.det):  # neither a wider nor a narrower noun keeps a majority
        return (p.noun.concept, p.adjective) == (h.noun.concept, h.adjective)
    narrow, wide = (h, p) if p.det in DOWN and p.det == h.det else (p, h)
    kinds = (narrow.noun.concept, *narrow.noun.kinds)
    return wide.noun.concept in kinds and (wide.adjective is None or wide.adjective == narrow.adjective)
